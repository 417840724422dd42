"""What is exported to transformers is the same model in transformers 4, too, in a process that has
that version and nothing of Weft.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import random_models
import weft
from homes import CLASSIFIERS, WRITERS
from weft.data.tokenizer import EOS_ID
from weft.folder.arrays import read_arrays
from weft.ship.certificate.reference import reference_of
from weft.ship.exporting import export
from weft.ship.huggingface.classes import home_of
from weft.ship.huggingface.target import HuggingFace
from weft.ship.opened import Floats, Opened, Row, Wanted
from weft.ship.source import Source, open_source
from weft.ship.written import Written

PROGRAM = Path(random_models.__file__).with_name("transformers4.py")
PYTHON = os.environ.get("WEFT_TRANSFORMERS4", "")
LIMIT = 12  # new ids that a pipeline may write

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PYTHON, reason="WEFT_TRANSFORMERS4 names no Python that has transformers 4"
    ),
]

TRANSLATORS: dict[str, tuple[str, ...]] = {
    "BlenderbotForConditionalGeneration": ("en-de",),
    "BlenderbotForConditionalGeneration, two vocabularies": ("en-zh",),
    "BlenderbotForConditionalGeneration, untied": (
        "en-de",
        "model.tie_embeddings=false",
    ),
    "PegasusForConditionalGeneration": ("en-zh", "model.max_len=2049"),
    "MarianMTModel": ("seq2seq-transformer",),
    "MarianMTModel, one vocabulary": ("en-de", "model.norm_first=false"),
    "T5GemmaForConditionalGeneration": ("en-de-modern",),
    "T5GemmaForConditionalGeneration, untied, fewer keys": (
        "en-de-modern",
        "model.tie_embeddings=false",
        "model.num_key_value_heads=3",
    ),
}


class InTransformers4(Opened):
    """An exported folder as the other process has it."""

    def __init__(self, process: "subprocess.Popen[str]", place: Path, by: str) -> None:
        self.process = process
        self.place = place
        self.version = self.ask("open", place=str(place), auto_class=by)

    def ask(self, do: str, **arguments: Any) -> Any:
        """What the process answers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the process has ended; its error output says why"
        return json.loads(line)

    @property
    def versions(self) -> Mapping[str, str]:
        return {"transformers": self.version}

    def arrays(self) -> Iterator[tuple[str, Any]]:
        yield from read_arrays(self.place / "model.safetensors").items()

    def encode(self, text: str) -> list[int]:
        return self.ask("encode", text=text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.ask("decode", ids=plain(ids))

    def logits(self, row: Row) -> Floats:
        numbers = self.ask("logits", ids=plain(row.ids), tgt_in=plain(row.tgt_in))
        return np.array(numbers, np.float32)

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        return [
            self.ask("search", ids=plain(row.ids), limit=row.limit, beam_size=beam_size)
            for row in rows
        ]

    def use(self, texts: Sequence[str]) -> list[Any]:
        answers = [self.pipeline(text)[0] for text in texts]
        # a translation, a beginning with what is drawn for it, or a label
        return [next(iter(answer.values())) for answer in answers]

    def pipeline(self, text: str, **settings: Any) -> list[Any]:
        """What the version's own pipeline gives."""
        found: list[Any] = self.ask("use", text=text, settings=settings)
        return found


class Transformers4(HuggingFace):
    """The export, proved by the other process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def open(self, source: Source, place: Path, written: Written) -> Opened:
        home = home_of(source)
        assert home is not None
        return InTransformers4(self.process, place, home.auto_class)


@pytest.fixture(scope="module")
def process() -> Iterator["subprocess.Popen[str]"]:
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [PYTHON, str(PROGRAM)],
        stdin=pipe,
        stdout=pipe,
        text=True,
        env={**own, "HF_HUB_OFFLINE": "1"},
    ) as running:
        yield running
        assert running.stdin is not None
        running.stdin.close()


def proved(
    case: Sequence[str], task: str, place: Path, process: "subprocess.Popen[str]"
) -> tuple[Any, InTransformers4]:
    """The certificate that the other process made, and the folder as it has it."""
    name, *settings = case
    folder = random_models.write_folder(name, place / "model", *settings)
    dev = random_models.write_dev(task, place)
    out = place / "out"
    made = export(folder, Transformers4(process), out, [dev])
    assert made.certificate is not None
    assert made.certificate.versions["transformers"].startswith("4.")
    return made, InTransformers4(process, out, _opens(folder))


@pytest.mark.parametrize("case", TRANSLATORS)
def test_a_translator_is_the_same_model_in_transformers_4(
    case: str, tmp_path: Path, process: "subprocess.Popen[str]"
) -> None:
    made, there = proved(TRANSLATORS[case], "translation", tmp_path, process)
    assert made.form == case.split(",", maxsplit=1)[0]
    assert made.certificate.unchecked == {}
    _is_set(there)
    _translates(open_source(tmp_path / "model"), there)


@pytest.mark.parametrize("case", WRITERS)
def test_a_language_model_is_the_same_in_transformers_4(
    case: str, tmp_path: Path, process: "subprocess.Popen[str]"
) -> None:
    home, *settings = WRITERS[case]
    greedy = (*settings, "decoding.temperature=0", f"decoding.max_new_tokens={LIMIT}")
    made, there = proved(greedy, "language-modelling", tmp_path, process)
    assert made.form.startswith(home)
    assert [*made.certificate.unchecked] == ["beam"]
    _is_set(there)
    if case == "tiny-shakespeare":
        return  # its pieces are bytes, too, of which each reader makes another text
    own = weft.load(tmp_path / "model")
    for text in random_models.TEXTS[:5]:
        beginning = text[:LIMIT]
        # by the settings in the folder, as the card has it
        (found,) = there.pipeline(beginning, clean_up_tokenization_spaces=False)
        assert found["generated_text"] == beginning + own.generate(beginning).text


@pytest.mark.parametrize(
    "case",
    # version 4 has no Ultrabert
    [case for case, (home, *_) in CLASSIFIERS.items() if home != "Ultrabert"],
)
def test_a_classifier_is_the_same_in_transformers_4(
    case: str, tmp_path: Path, process: "subprocess.Popen[str]"
) -> None:
    home, *settings = CLASSIFIERS[case]
    made, there = proved(settings, "classification", tmp_path, process)
    assert made.form == f"{home}ForSequenceClassification"
    texts = random_models.TEXTS[:5]
    answers = weft.load(tmp_path / "model").classify(texts)
    for text, own in zip(texts, answers, strict=True):
        scores = there.pipeline(text, top_k=None, truncation=True)
        found = {given["label"]: given["score"] for given in scores}
        assert found == pytest.approx(own.probabilities, abs=1e-5)


def _opens(folder: Path) -> str:
    home = home_of(open_source(folder))
    assert home is not None
    return home.auto_class


def _translates(source: Source, opened: InTransformers4) -> None:
    """Its pipeline gives the greedy translation as Weft does, from the folder alone."""
    reference = reference_of(source.task)
    src, tgt = source.tokenizers
    for text in random_models.TEXTS[:5]:
        row = Wanted((*src.encode(text), EOS_ID), LIMIT)
        (ids,) = reference.search([row], 1)
        (found,) = opened.pipeline(text, num_beams=1, max_new_tokens=LIMIT)
        assert found["translation_text"] == tgt.decode(ids)


def _is_set(opened: InTransformers4) -> None:
    """The version's pipeline has the settings of the folder, in place of its own."""
    path = opened.place / "generation_config.json"
    told = json.loads(path.read_text("utf-8"))
    assert len(told) >= 7
    assert opened.ask("settings", names=list(told)) == told


def plain(ids: Sequence[int]) -> list[int]:
    """Numbers that JSON has."""
    return [int(number) for number in ids]
