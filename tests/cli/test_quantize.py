"""weft quantize: the report on standard output, a folder that other verbs take, exit codes."""

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.engine import bindings
from weft.folder.model_folder import open_model_folder
from weft.kernels import native

Command = Callable[..., Any]
TOLERANT = ("--max-bleu-loss", "10")  # so small a model is easily disturbed


@pytest.fixture(scope="module")
def pairs(write_pairs: Callable[[int], str]) -> str:
    return write_pairs(60)


@pytest.mark.usefixtures("need_engine")
def test_what_stands_against_the_pairs_is_said_before_the_work(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.console.stages.SLOW", 0.0)
    ended = command(
        "quantize",
        tiny_folder,
        write_pairs(3),
        "--output",
        tmp_path / "out",
        "--max-bleu-loss",
        "100",
    )
    lines = ended.err.split("\n")
    (said,) = [i for i, line in enumerate(lines) if "3 pairs prove nothing" in line]
    assert lines[0].startswith("loading the model ...")
    for how in ("as it is", "in int8"):
        assert any(
            line.startswith(f"translating 3 pairs {how} ...") for line in lines[said:]
        )


@pytest.mark.usefixtures("need_engine")
def test_the_report_and_the_folder(
    command: Command, tiny_folder: Path, pairs: str, tmp_path: Path
) -> None:
    ended = command(
        "quantize", tiny_folder, pairs, "--output", tmp_path / "out", *TOLERANT
    )
    assert ended.code == 0
    assert [line.split(" ")[0] for line in ended.lines[:4]][::3] == [
        "BLEU",
        "log-probabilities",
    ]
    few = "weft: note: 60 pairs prove nothing: to show that int8 translates as well takes 100 or more"
    wrote = (
        f"weft: wrote {tmp_path / 'out'}: weights, vocabularies, hashes and counts of frequent letter groups, which "
        "tell its languages, and hashes that detect overlap with a test text and unseen words (readable only by "
        "guessing a whole sentence or word); no training text, but README.md names its files"
    )
    assert ended.err.startswith("loading the model ...")
    assert [line for line in ended.messages if "contaminated" not in line] == [
        few,
        wrote,
    ]
    assert open_model_folder(tmp_path / "out").config.weights == "int8"
    assert command("translate", tmp_path / "out", "cat sees dog.").code == 0
    ended = command(
        "quantize",
        tiny_folder,
        pairs,
        "--output",
        tmp_path / "other",
        "--json",
        *TOLERANT,
    )
    assert json.loads(ended.lines[0])["folder"] == str(tmp_path / "other")
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "out")
    assert (ended.code, len(ended.messages)) == (2, 1)
    ended = command(
        "quantize",
        tiny_folder,
        pairs,
        "--output",
        tmp_path / "third",
        "--max-bleu-loss",
        "-100",
    )
    assert ended.code == 5
    assert "nothing was written" in ended.err


@pytest.mark.usefixtures("need_engine")
@pytest.mark.parametrize("held", ["test", "dev"])
def test_without_pairs_the_report_is_on_what_the_run_held_out(
    command: Command,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    held: str,
) -> None:
    text = tmp_path / "text.en-de.tsv"
    text.write_bytes(Path(write_pairs(216)).read_bytes())
    sizes = (
        "data.dev_size=24",
        f"data.test_size={30 if held == 'test' else 0}",
        "training.max_steps=2",
    )
    weft.train(
        out=tmp_path / "model",
        train=str(text),
        settings=(*tiny_settings, *sizes),
        quiet=True,
    )
    asked = (
        "quantize",
        tmp_path / "model",
        "--max-bleu-loss",
        "100",
        "--json",
        "--output",
    )
    ended = command(*asked, tmp_path / "int8")
    chose, size = ("", 30) if held == "test" else (", which chose the weights", 24)
    note = f"compared on the run's own {held} text ({size} pairs){chose}"
    assert (ended.code, json.loads(ended.lines[0])["sentences"]) == (0, size)
    assert f"weft: note: {note}" in ended.messages
    assert f"note: {note}" in (tmp_path / "int8" / "README.md").read_text("utf-8")
    assert not any("contaminated" in line for line in ended.messages)
    text.unlink()
    ended = command(*asked, tmp_path / "again")
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert "the text was not found again" in ended.messages[0]
    assert f"({text.name}: no such file" in ended.messages[0]
    assert str(text) not in ended.messages[0]  # the folder of who trained the model
    assert ended.messages[0].endswith("; give DATA")
    ended = command("quantize", tmp_path / "int8", "--output", tmp_path / "again")
    assert (ended.code, "is in int8 already" in ended.err) == (2, True)


def test_without_an_engine_translate_says_so_and_goes_on(
    command: Command, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = command("translate", tiny_folder, "cat sees dog.")

    def refuse(name: str) -> ctypes.CDLL:
        raise native.UnavailableError("there is no C++ compiler; install one")

    monkeypatch.setattr(native, "library", refuse)
    bindings.library.cache_clear()
    try:
        ended = command("translate", tiny_folder, "cat sees dog.")
    finally:
        bindings.library.cache_clear()
    assert (ended.code, ended.lines) == (0, here.lines)
    assert (
        ended.err
        == "weft: without native kernels (there is no C++ compiler; install one) this takes longer\n"
    )
