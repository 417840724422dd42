"""Runs whose models read terms and matches in the source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data import builtin
from weft.data.glossary import Entry, Glossary
from weft.errors import UsageError
from weft.folder.model_folder import RunFolder
from weft.run.begun import held_out
from weft.run.record import Verdict

Train = Callable[..., Verdict]
JOINT = ("tokenizer.joint=true", "data.terms=0.5", "data.memory=0.3")


@pytest.fixture
def train(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    glossary: str,
) -> Train:
    """Train for two steps on 216 pairs into `out`, with hints and a glossary."""
    text = write_pairs(216)

    def call(*settings: str, **request: Any) -> Verdict:
        steps = ("training.max_steps=2", "training.save_every=1")
        request = {"out": tmp_path / "out", "glossary": glossary} | request
        every = (*tiny_settings, *JOINT, *steps, *settings)
        return weft.train(train=text, settings=every, quiet=True, **request)

    return call


@pytest.fixture
def glossary(tmp_path: Path) -> str:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\ncat\tKatze\n", "utf-8")
    return str(path)


def test_a_run_says_and_keeps_which_hints_it_has(
    train: Train, tmp_path: Path, glossary: str
) -> None:
    verdict = train()
    out = tmp_path / "out"
    terms, matches = (note for note in verdict.notes if note.startswith("data."))
    assert terms.startswith("data.terms = 0.5: ")
    assert " terms are marked in " in terms
    assert matches.startswith("data.memory = 0.3: ")
    assert " 0 " not in terms + matches
    config = json.loads((out / "config.json").read_bytes())
    assert config["takes_terms"]
    assert config["takes_match"]
    assert config["joint"]
    record = json.loads(RunFolder(out).recipe.read_bytes())
    assert record["texts"]["glossary"]["size"] == "2 terms"
    assert record["sources"]["glossary"] == glossary
    assert (
        "glossary: 2 terms from terms.tsv (sha256 " in (out / "README.md").read_text()
    )
    model = weft.load(out)
    assert model.takes_terms
    assert model.takes_match
    # what was held out is found again without the glossary
    Path(glossary).unlink()
    assert len(held_out(out)[1])


def test_a_run_goes_on_with_the_same_glossary_alone(
    train: Train, tmp_path: Path, glossary: str
) -> None:
    first = train()
    with pytest.raises(UsageError, match=r"the glossary text was 2 terms .* is none"):
        train("training.max_steps=3", glossary=None)
    Path(glossary).write_text("dog\tKatze\n", "utf-8")
    with pytest.raises(UsageError, match=r"the glossary text was 2 terms .* is 1 term"):
        train("training.max_steps=3")
    Path(glossary).write_text("dog\tHund\ncat\tKatze\n", "utf-8")
    again = train("training.max_steps=3")
    assert again.step == 3
    hints = [note for note in first.notes if note.startswith("data.")]
    assert set(hints) <= set(again.notes)


def test_what_cannot_be_is_refused(
    train: Train, tmp_path: Path, tiny_folder: Path, glossary: str
) -> None:
    with pytest.raises(UsageError, match=r"add --set data\.terms=0\.3"):
        train("data.terms=0")
    with pytest.raises(UsageError, match="--glossary has terms for a translator"):
        weft.train(
            out=tmp_path / "other",
            recipe="causal-lm",
            train=glossary,
            glossary=glossary,
            quiet=True,
        )
    with pytest.raises(
        UsageError, match=r"tokenizer for each side.* start from a model"
    ):
        train(start_from=tiny_folder, out=tmp_path / "from")


def test_without_hints_a_folder_says_so(
    train: Train, tmp_path: Path, tiny_folder: Path
) -> None:
    train("data.terms=0", "data.memory=0.2", glossary=None)
    model = weft.load(tmp_path / "out")
    assert not model.takes_terms
    assert model.takes_match
    plain = weft.load(tiny_folder)
    assert not plain.takes_terms
    assert not plain.takes_match


@pytest.mark.long
def test_a_model_learns_to_write_the_terms_that_it_reads(tmp_path: Path) -> None:
    """Words that never translate those of the source are written in their places."""
    settings = (
        *("data.builtin=everyday", "data.src_lang=de", "data.tgt_lang=en"),
        *("tokenizer.joint=true", "tokenizer.kind=bpe", "data.terms=0.5"),
        *("training.max_steps=1200", "training.eval_every=600"),
    )
    weft.train(out=tmp_path / "out", recipe="demo", settings=settings, quiet=True)
    model = weft.load(tmp_path / "out")
    others = {"Hund": "horse", "Tee": "soup", "Kaffee": "milk", "Garten": "kitchen"}
    entries = (Entry((source,), (target,)) for source, target in others.items())
    glossary = Glossary(tuple(entries))
    pairs = builtin.pairs("everyday", "de", "en").test
    sources = [source for source, _ in pairs if glossary.find(source)]
    assert len(sources) > 10
    reading = model.with_glossary(glossary, terms="source").translate(sources)
    num_terms = num_read = num_free = 0
    for read, free in zip(reading, model.translate(sources), strict=True):
        for use in read.terms or ():
            num_terms += 1
            num_read += bool(use.used)
            num_free += use.wanted[0] in free.text
    assert num_read > 0.6 * num_terms
    assert num_free < 0.1 * num_terms
