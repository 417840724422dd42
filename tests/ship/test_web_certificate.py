"""The certificate of a page: its weights read back, and its own scripts at work in a browser."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import random_models
import weft
from weft.errors import FolderError
from weft.ship.exporting import Export, export
from weft.ship.source import open_source
from weft.ship.web import browser
from weft.ship.web.page import read_page
from weft.ship.web.target import Web

TASKS = {
    "lm-modern": "language-modelling",
    "tiny-shakespeare": "language-modelling",
    "classify-modern": "classification",
    "classify-fast": "classification",
}
HAS_BROWSER = find_spec("playwright") is not None and browser._installed() is not None


def exported(recipe: str, place: Path, data: bool = True) -> Export:
    folder = random_models.write_folder(recipe, place / "model")
    task = TASKS.get(recipe, "translation")
    dev = [random_models.write_dev(task, place)] if data else []
    return export(folder, Web(), place / "out", dev)


def checks_of(made: Export) -> dict[str, Any]:
    assert made.certificate is not None
    return {check.name: check for check in made.certificate.checks}


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be where playwright is not installed."""
    monkeypatch.setattr(browser, "find_spec", lambda name: None)


@pytest.mark.skipif(not HAS_BROWSER, reason="there is no playwright with Chromium")
@pytest.mark.parametrize(
    "recipe",
    ["en-de-modern", *(pytest.param(name, marks=pytest.mark.long) for name in TASKS)],
)
def test_a_pages_scripts_compute_what_weft_computes(
    recipe: str, tmp_path: Path
) -> None:
    made = exported(recipe, tmp_path)
    found = checks_of(made)
    searches = {
        "translation": ["greedy", "beam"],
        "language-modelling": ["greedy"],
        "classification": [],
    }[TASKS.get(recipe, "translation")]
    assert [*found] == ["weights", "ids", "logits", *searches, "use"]
    assert found["logits"].tolerance == 1e-4
    assert found["logits"].largest < 5e-5
    assert made.certificate is not None
    assert set(made.certificate.versions) == {"Chromium", "playwright"}


@pytest.mark.usefixtures("no_browser")
def test_without_a_browser_weights_are_compared_and_what_rounding_changes(
    tmp_path: Path,
) -> None:
    made = exported("en-de", tmp_path)
    assert [*checks_of(made)] == ["weights", "use"]
    assert made.certificate is not None
    why = set(made.certificate.unchecked.values())
    assert why == {"no browser could be started: it takes playwright and Chromium"}
    scores = checks_of(made)["use"].scores
    assert set(scores) == {"BLEU of Weft", "BLEU of this form"}


@pytest.mark.usefixtures("no_browser")
def test_without_text_the_weights_are_compared_alone(tmp_path: Path) -> None:
    made = exported("lm-modern", tmp_path, data=False)
    assert [*checks_of(made)] == ["weights"]
    told = json.loads((tmp_path / "out" / "parity.json").read_text("utf-8"))
    assert told["checks"][0]["compared"] > 30_000
    assert all("it takes text" in why for why in told["unchecked"].values())
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "It was compared with the model that it was made from:" in card


@pytest.mark.usefixtures("no_browser")
def test_the_page_has_the_folders_numbers_in_16_bits(tmp_path: Path) -> None:
    """Each array of the folder is found in the page, once or more often."""
    exported("en-de", tmp_path, data=False)
    source = open_source(tmp_path / "model")
    written = [array for _, array in read_page(tmp_path / "out").arrays()]
    for name, array in source.arrays.items():
        halves = array.astype(np.float16)
        assert any(np.array_equal(halves, found) for found in written), name


@pytest.mark.usefixtures("no_browser")
def test_an_int8_model_keeps_its_bits(tmp_path: Path) -> None:
    made = export(weft.DEMO, Web(), tmp_path / "out")
    assert [*checks_of(made)] == ["weights"]
    kinds = {array.dtype.name for _, array in read_page(tmp_path / "out").arrays()}
    assert kinds == {"int8", "float32", "float16", "int32"}


def changed(
    monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[str], str]
) -> None:
    """Let a file of a page be another one than was meant."""
    real = Web.write

    def write(self: Any, source: Any, place: Path, asked: Any) -> Any:
        written = real(self, source, place, asked)
        text = (place / name).read_text("utf-8")
        assert change(text) != text
        (place / name).write_text(change(text), "utf-8")
        return written

    monkeypatch.setattr(Web, "write", write)


@pytest.mark.usefixtures("no_browser")
def test_one_changed_number_is_found_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault X1."""

    def other(text: str) -> str:
        letter = "A" if text[5000] != "A" else "B"
        return f"{text[:5000]}{letter}{text[5001:]}"

    changed(monkeypatch, "weights-001.js", other)
    with pytest.raises(
        FolderError, match=r"numbers of the weights: .* is .*, not .*; nothing"
    ):
        exported("en-de", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not HAS_BROWSER, reason="there is no playwright with Chromium")
def test_a_page_that_computes_something_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights are right, but not the number that divides before a root."""

    def other(text: str) -> str:
        return text.replace('"eps":1e-05', '"eps":0.01')

    changed(monkeypatch, "model.js", other)
    with pytest.raises(FolderError, match="logits that differ by"):
        exported("classify-modern", tmp_path)
    assert not (tmp_path / "out").exists()
