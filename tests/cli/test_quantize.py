"""weft quantize: the report on standard output, a folder that other verbs take, exit codes."""

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.kernels import decoding, native
from weft.model_folder import open_model_folder

Command = Callable[..., Any]
TOLERANT = ("--max-bleu-loss", "10")  # so small a model is easily disturbed


@pytest.fixture(scope="module")
def pairs(write_pairs: Callable[[int], str]) -> str:
    return write_pairs(60)


@pytest.fixture
def need_engine() -> None:
    try:
        decoding.library()
    except native.UnavailableError as error:
        pytest.skip(f"no engine here: {error}")


@pytest.mark.usefixtures("need_engine")
def test_the_report_and_the_folder(command: Command, tiny_folder: Path, pairs: str, tmp_path: Path) -> None:
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "out", *TOLERANT)
    assert ended.code == 0
    assert [line.split(" ")[0] for line in ended.lines][::3] == ["BLEU", "log-probabilities"]
    assert ended.err == f"weft: wrote {tmp_path / 'out'}\n"
    assert open_model_folder(tmp_path / "out").config.weights == "int8"
    assert command("translate", tmp_path / "out", "cat sees dog.").code == 0
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "other", "--json", *TOLERANT)
    assert json.loads(ended.lines[0])["folder"] == str(tmp_path / "other")
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "out")
    assert (ended.code, len(ended.err.split("\n"))) == (2, 2)
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "third", "--max-bleu-loss", "-100")
    assert ended.code == 5
    assert "nothing was written" in ended.err


def test_without_an_engine_translate_says_so_and_goes_on(
    command: Command, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = command("translate", tiny_folder, "cat sees dog.")

    def refuse(name: str) -> ctypes.CDLL:
        raise native.UnavailableError("there is no C++ compiler; install one")

    monkeypatch.setattr(native, "library", refuse)
    decoding.library.cache_clear()
    try:
        ended = command("translate", tiny_folder, "cat sees dog.")
    finally:
        decoding.library.cache_clear()
    assert (ended.code, ended.lines) == (0, here.lines)
    assert ended.err == "weft: without native kernels (there is no C++ compiler; install one) this takes longer\n"
