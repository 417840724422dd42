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
def test_what_stands_against_the_pairs_is_said_before_the_work(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.stages.SLOW", 0.0)
    ended = command(
        "quantize", tiny_folder, write_pairs(3), "--output", tmp_path / "out", "--max-bleu-loss", "100"
    )
    lines = ended.err.split("\n")
    (said,) = [i for i, line in enumerate(lines) if "3 pairs prove nothing" in line]
    assert lines[0].startswith("loading PyTorch ...")
    for how in ("as it is", "in int8"):
        assert any(line.startswith(f"translating 3 pairs {how} ...") for line in lines[said:])


@pytest.mark.usefixtures("need_engine")
def test_the_report_and_the_folder(command: Command, tiny_folder: Path, pairs: str, tmp_path: Path) -> None:
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "out", *TOLERANT)
    assert ended.code == 0
    assert [line.split(" ")[0] for line in ended.lines[:4]][::3] == ["BLEU", "log-probabilities"]
    few = "weft: note: 60 pairs prove nothing: whether int8 translates as well takes 100 or more to tell"
    wrote = (
        f"weft: wrote {tmp_path / 'out'}: weights, vocabularies, and hashes that tell overlap with a test text "
        "and unseen words (readable only by guessing a whole sentence or word); no training text, but README.md "
        "names its files"
    )
    assert ended.err.startswith("loading PyTorch ...")
    assert [line for line in ended.messages if "contaminated" not in line] == [few, wrote]
    assert open_model_folder(tmp_path / "out").config.weights == "int8"
    assert command("translate", tmp_path / "out", "cat sees dog.").code == 0
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "other", "--json", *TOLERANT)
    assert json.loads(ended.lines[0])["folder"] == str(tmp_path / "other")
    ended = command("quantize", tiny_folder, pairs, "--output", tmp_path / "out")
    assert (ended.code, len(ended.messages)) == (2, 1)
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
