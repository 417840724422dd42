"""Runs whose models translate in several directions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from weft.data.store import ParallelStore
from weft.errors import UsageError
from weft.folder.layout import RunFolder
from weft.run.begun import held_out
from weft.ship.quantization import quantize
from weft.ship.source import NoHome, open_source
from weft.tasks.detecting import languages_in
from weft.tasks.opening import load_task
from weft.tasks.translation import Translation


def test_a_folder_says_its_directions(both_ways: Path) -> None:
    config = json.loads((both_ways / "config.json").read_bytes())
    assert config["directions"] == [["en", "de"], ["de", "en"]]
    assert config["marks"]["languages"] == ["de", "en"]
    assert config["joint"]
    verdict = json.loads(RunFolder(both_ways).verdict.read_bytes())
    dev = verdict["dev"]
    mean = (dev["dev_bleu_en_to_de"] + dev["dev_bleu_de_to_en"]) / 2
    assert dev["dev_bleu"] == pytest.approx(mean)
    assert verdict["test"]["bleu_signature"] == "mean of 2 directions"
    assert list(verdict["test"]["directions"]) == ["en to de", "de to en"]
    card = (both_ways / "README.md").read_text("utf-8")
    assert card.startswith("# Translation, en to de, de to en\n")
    assert "de to en: BLEU " in card


def test_every_row_begins_with_the_language_to_write(both_ways: Path) -> None:
    store = ParallelStore(RunFolder(both_ways).stores / "train")
    model = weft.load(both_ways)
    first = store.src_ids[store.src_offsets[:-1]]
    marks = [model.src_tokenizer.mark_id(mark) for mark in ("<to de>", "<to en>")]
    counts = [int((first == mark).sum()) for mark in marks]
    assert counts[0] == counts[1] == len(store) / 2
    dev = ParallelStore(RunFolder(both_ways).stores / "dev")
    assert set(dev.src_ids[dev.src_offsets[:-1]].tolist()) == set(marks)


def test_it_translates_into_the_language_that_is_said(both_ways: Path) -> None:
    model = weft.load(both_ways)
    with pytest.raises(UsageError, match="to: the model writes de, en; say which"):
        model.translate("cat sees dog.")
    english = ["cat sees dog.", "bird hears fish."]
    into_german = model.translate(english, to="de", doubts=False)
    assert model.toward("de").translate(english, doubts=False) == into_german
    assert model.toward("de").tgt_lang == "de"
    back = model.translate(["Katze sieht Hund."], to="en", alignments=True)
    (row,) = model.toward("en").rows("Katze sieht Hund.")
    assert all(link.source < len(row.ids) for link in back[0].alignments or [])
    with pytest.raises(UsageError, match="to fr: the model does not translate so"):
        model.translate("cat", to="fr")


def test_scores_are_those_of_each_direction(both_ways: Path) -> None:
    task = load_task(both_ways)
    assert isinstance(task, Translation)
    _, text = held_out(both_ways)
    scores = task.evaluate(text, beam_size=1)
    pair = ("de", "en")
    one = task.toward("en")
    alone = one.evaluate(text.of(pair), beam_size=1)
    assert scores.directions["de to en"].bleu == alone.bleu
    assert scores.bleu == sum(s.bleu for s in scores.directions.values()) / 2
    assert "mean of 2 directions" in scores.summary()
    assert any(line.startswith("de to en: BLEU") for line in scores.lines())


def test_other_programs_write_no_marks(both_ways: Path) -> None:
    with pytest.raises(NoHome, match="<to de>, <to en>"):
        open_source(both_ways)


def test_a_reverse_run_holds_out_the_same_pairs(
    tmp_path: Path, write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...]
) -> None:
    text = write_pairs(216)
    steps = ["training.max_steps=1"]
    parts = []
    for name, directions in (("one", "one"), ("back", "reverse")):
        settings = [*tiny_settings, *steps, f"data.directions={directions}"]
        weft.train(out=tmp_path / name, train=text, settings=settings, quiet=True)
        parts.append(held_out(tmp_path / name)[1])
    assert parts[1].src == parts[0].tgt
    assert parts[1].tgt == parts[0].src
    assert (parts[1].src_lang, parts[1].tgt_lang) == ("de", "en")
    model = weft.load(tmp_path / "back")
    assert (model.src_lang, model.tgt_lang) == ("de", "en")
    assert not model.marks


def test_it_can_be_trained_further_in_one_of_its_directions(
    both_ways: Path, tmp_path: Path, write_pairs: Callable[[int], str]
) -> None:
    out = tmp_path / "further"
    settings = ["training.max_steps=1", "data.directions=reverse"]
    verdict = weft.train(
        out=out,
        train=write_pairs(216),
        start_from=both_ways,
        settings=settings,
        quiet=True,
    )
    lost = "the new model translates de to en alone, no longer en to de; --set data.directions=both trains"
    assert any(note.startswith(lost) for note in verdict.notes)
    model = weft.load(out)
    assert (model.src_lang, model.tgt_lang) == ("de", "en")
    (row,) = model.rows("Katze sieht Hund.")
    assert row.marks == (model.src_tokenizer.mark_id("<to en>"),)


def test_hints_are_for_one_direction(
    tmp_path: Path, write_pairs: Callable[[int], str]
) -> None:
    settings = ["data.directions=both", "data.terms=0.3"]
    with pytest.raises(UsageError, match="are for one direction"):
        weft.train(out=tmp_path / "x", train=write_pairs(60), settings=settings)


@pytest.mark.long
def test_it_is_quantized_with_all_directions(both_ways: Path, tmp_path: Path) -> None:
    out = tmp_path / "int8"
    found = quantize(both_ways, [], out, max_bleu_loss=100)
    assert list(found.directions) == ["en to de", "de to en"]
    means = [sum(both) / 2 for both in zip(*found.directions.values(), strict=True)]
    assert means == pytest.approx([found.bleu, found.bleu_int8])
    losses = [before - after for before, after in found.directions.values()]
    assert found.bleu_loss == max(losses)
    _, text = held_out(both_ways)
    assert found.sentences == len(text)
    assert not any("not compared" in note for note in found.notes)
    model = weft.load(out)
    assert model.directions == (("en", "de"), ("de", "en"))
    assert model.translate("Katze sieht Hund.", to="en")
    assert set(languages_in(out).profiles) == {"en", "de"}
    one = tmp_path / "one.en-de.tsv"
    one.write_text("cat sees dog.\tKatze sieht Hund.\n" * 2, "utf-8")
    part = quantize(both_ways, [str(one)], tmp_path / "part", max_bleu_loss=100)
    assert "the text has no pairs de to en, which are not compared" in part.notes
    with pytest.raises(UsageError, match="it is learned for one direction"):
        quantize(both_ways, [], tmp_path / "x", shortlist=[str(one)])
