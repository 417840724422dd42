"""Runs on sources of unequal worth: what they read, what they keep and what their models know."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.config import MarksSection
from weft.data.batches import Batch, Batches
from weft.data.store import ParallelStore
from weft.data.train_text import TrainText
from weft.errors import UsageError
from weft.folder.layout import RunFolder
from weft.folder.model_folder import open_model_folder
from weft.kernels.machine import Machine
from weft.run.begun import held_out
from weft.run.record import Verdict
from weft.ship.source import open_source
from weft.tasks.trainable_translation import TrainableTranslation

Train = Callable[..., Verdict]


@pytest.fixture
def texts(tmp_path: Path, write_pairs: Callable[[int], str]) -> tuple[str, str]:
    """Two files with 216 and 20 pairs, none of which is in both."""
    lines = Path(write_pairs(216)).read_text("utf-8").split("\n")[:-1]
    names = (tmp_path / "news.en-de.tsv", tmp_path / "bible.en-de.tsv")
    names[0].write_text("\n".join(lines), "utf-8")
    behold = [line.replace(".\t", ", behold.\t") for line in lines[:20]]
    names[1].write_text("\n".join(behold), "utf-8")
    return str(names[0]), str(names[1])


@pytest.fixture
def train(tmp_path: Path, tiny_settings: tuple[str, ...]) -> Train:
    """Train for two steps into `out`."""

    def call(*texts: str | TrainText, **request: Any) -> Verdict:
        steps = ("training.max_steps=2", "training.save_every=1")
        request = {"out": tmp_path / "out", "quiet": True} | request
        settings = (*tiny_settings, *steps, *request.pop("settings", ()))
        return weft.train(train=texts, settings=settings, **request)

    return call


def test_a_run_says_and_keeps_what_its_sources_are_worth(
    train: Train, tmp_path: Path, texts: tuple[str, str]
) -> None:
    news, bible = texts
    verdict = train(news, f"{bible}@2.5:bible")
    out = tmp_path / "out"
    of_files = [note for note in verdict.notes if "an epoch reads" in note]
    assert len(of_files) == 2
    assert of_files[1].startswith(f"{bible}: ")
    assert ", weight 2.5, tag bible; an epoch reads " in of_files[1]
    card = (out / "README.md").read_text("utf-8")
    assert "- bible.en-de.tsv: " in card
    assert str(tmp_path) not in card
    record = json.loads(RunFolder(out).recipe.read_bytes())
    assert record["sources"]["train"] == [
        news,
        {"data": bible, "weight": 2.5, "tag": "bible"},
    ]
    worths = record["texts"]["train"]["worths"]
    assert [worth["weight"] for worth in worths] == [1.0, 2.5]
    manifest = json.loads((out / "manifest.json").read_bytes())
    kept = manifest["texts"]["train"]["worths"]
    assert [worth["file"] for worth in kept] == ["news.en-de.tsv", "bible.en-de.tsv"]
    # the same text is found again for the scores
    assert len(held_out(out)[1])


def test_a_run_goes_on_with_the_same_worth_alone(
    train: Train, texts: tuple[str, str]
) -> None:
    news, bible = texts
    train(news, f"{bible}@2:bible")
    for other in (bible, f"{bible}@3:bible", f"{bible}@2", f"{bible}@2:b"):
        with pytest.raises(UsageError, match=r"the sources of train were .*weight 2"):
            train(news, other)
    again = train(news, f"{bible}@2:bible", settings=["training.max_steps=3"])
    assert again.step == 3


def test_a_model_reads_the_tag_it_is_asked_for(
    train: Train, tmp_path: Path, texts: tuple[str, str]
) -> None:
    news, bible = texts
    made = TrainText(bible, made=True)
    train(f"{news}@:news", made)
    out = tmp_path / "out"
    config = json.loads((out / "config.json").read_bytes())
    assert config["marks"] == {"languages": [], "made": True, "tags": ["news"]}
    model = weft.load(out)
    tokenizer = model.src_tokenizer
    (mark,) = (tokenizer.mark_id("<tag news>"),)
    (plain,) = model.rows("the cat sees the dog.")
    (row,) = model.with_tag("news").rows("the cat sees the dog.")
    assert plain.read == plain.ids == row.ids
    assert row.read == (mark, *row.ids)
    found = model.with_tag("news").translate("The cat sees the dog.", alignments=True)
    # no word of the translation is from the mark
    assert all(link.source < len(row.ids) for link in found[0].alignments or [])
    with pytest.raises(UsageError, match=r"no tag 'bible' \(it knows: news\)"):
        model.with_tag("bible")
    # other programs write no marks: it leaves as it translates without a tag
    source = open_source(out)
    assert source.own.config.marks != source.config.marks == MarksSection()
    left, whole = source.tokenizers[0], model.src_tokenizer
    assert left.vocab_size == whole.vocab_size - 2
    texts = ["Cat sees dog.", "bird hears fish."]
    alone = source.task.predictor().translate(texts, beam_size=2)
    own = model.translate(texts, beam_size=2)
    assert [one.text for one in alone] == [one.text for one in own]
    scores = [one.score for one in own]
    assert [one.score for one in alone] == pytest.approx(scores, abs=1e-4)


def test_the_store_has_marks_and_machine_made_rows_are_not_held_out(
    train: Train, tmp_path: Path, texts: tuple[str, str]
) -> None:
    news, _ = texts
    # the same targets as the held-out ones have, with sources by a machine
    copied = tmp_path / "made.en-de.tsv"
    lines = Path(news).read_text("utf-8").replace(" sees ", " saw ")
    copied.write_text(lines, "utf-8")
    train(news, TrainText(str(copied), made=True), dev=None)
    out = tmp_path / "out"
    _, part = held_out(out)
    assert not any(part.made())
    store = ParallelStore(RunFolder(out).stores / "train")
    tokenizer = weft.load(out).src_tokenizer
    first = store.src_ids[store.src_offsets[:-1]]
    num_made = int((first == tokenizer.mark_id("<made by machine>")).sum())
    assert 0 < num_made < len(store)
    dev = ParallelStore(RunFolder(out).stores / "dev")
    assert not set(np.unique(dev.src_ids).tolist()) & set(tokenizer.mark_ids)
    # no target of the held-out text was trained on
    rows = {tuple(store.tgt(i).tolist()) for i in range(len(store))}
    assert not rows & {tuple(dev.tgt(i).tolist()) for i in range(len(dev))}


def test_a_model_without_marks_can_learn_some(
    train: Train, tmp_path: Path, texts: tuple[str, str]
) -> None:
    news, bible = texts
    train(news)
    out, later = tmp_path / "out", tmp_path / "later"
    before = open_model_folder(out).config
    train(f"{bible}@:bible", out=later, start_from=out)
    after = open_model_folder(later).config
    assert after.src_vocab_size == before.src_vocab_size + 1  # type: ignore[attr-defined]
    assert weft.load(later).with_tag("bible").translate("The cat sees the dog.")
    # what was known is kept: at the first step the weights are those of the start
    machine = Machine("cpu", "float32", 1, "")
    both = [TrainableTranslation.load(folder, machine) for folder in (out, later)]
    tables = [task.model.src_embedding.tokens.weight for task in both]  # type: ignore[union-attr]
    assert tables[1].shape[0] == tables[0].shape[0] + 1
    distance = (tables[1][:-1] - tables[0]).abs().max()
    assert distance < 0.1  # two small steps away


def test_weights_are_for_pairs(tmp_path: Path, tiny_settings: tuple[str, ...]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one line\n" * 50, "utf-8")
    with pytest.raises(UsageError, match="weight 2: weights and tags are for pairs"):
        weft.train(
            train=f"{text}@2",
            out=tmp_path / "out",
            recipe="causal-lm",
            settings=["data.builtin=none"],
        )


MIXTURES = "data.mixtures=[{until=0.5, weights={bible=0}}, {until=1.0, weights={bible=3, other=0}}]"


def test_a_run_reads_one_mixture_after_the_other(
    train: Train,
    tmp_path: Path,
    texts: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    news, bible = texts
    asked: list[set[int]] = []
    batch = Batches.batch

    def noting(self: Batches, epoch: int, position: int) -> Batch:
        found = batch(self, epoch, position)
        asked.append({int(row) for row in found.rows})
        return found

    steps = "training.max_steps=4"
    monkeypatch.setattr(Batches, "batch", noting)
    verdict = train(news, f"{bible}@:bible", settings=[MIXTURES, steps])
    monkeypatch.undo()
    store = ParallelStore(RunFolder(tmp_path / "out").stores / "train")
    first_of_bible = 216 - 40  # what is held out of both files is the news', mostly
    in_bible = {row for row in range(len(store)) if store.rows[row] >= first_of_bible}
    of_steps = [bool(rows & in_bible) for rows in asked[-4:]]
    assert of_steps == [False, False, True, True]
    one, two = (note for note in verdict.notes if note.startswith("mixture "))
    assert one.startswith("mixture 1, up to 50% of the steps: ")
    assert "bible.en-de.tsv 3; an epoch reads " in two
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "mixtures = [{until = 0.5, weights = {bible = 0.0}}, " in card


def test_a_mixture_of_what_is_not_there_is_refused(
    train: Train, texts: tuple[str, str]
) -> None:
    news, bible = texts
    for weights, message in (
        ("{bib=1}", r"no text has the tag bib \(tags: bible\)"),
        ("{bible=0, other=0}", "leaves no text to train on"),
    ):
        mixture = f"data.mixtures=[{{until=0.5, weights={weights}}}]"
        with pytest.raises(UsageError, match=message):
            train(news, f"{bible}@:bible", settings=[mixture])
    falling = "data.mixtures=[{until=0.5}, {until=0.4}]"
    with pytest.raises(UsageError, match="a later end"):
        train(news, settings=[falling])
