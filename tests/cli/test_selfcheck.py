"""weft selfcheck: what it says, and with which code it ends."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.inspection.selfcheck import Proof

Command = Callable[..., Any]


def test_a_sound_model(command: Command, tiny_folder: Path) -> None:
    ended = command("selfcheck", tiny_folder)
    assert (ended.code, ended.err) == (0, "")
    by, *lines = ended.lines
    assert re.fullmatch(
        r"by     the native engine, (compiled here|built for \S+); float32", by
    )
    assert len(lines) == 14
    assert all(line.startswith("holds  ") for line in lines[::2])
    assert all(line.startswith(" " * 7) for line in lines[1::2])
    assert any("beam 1 = greedy" in line for line in ended.lines)


def test_a_proof_that_fails(
    command: Command, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs = [Proof("one", True, "so"), Proof("two", False, "not so")]
    monkeypatch.setattr("weft.inspection.selfcheck.selfcheck", lambda *given: proofs)
    ended = command("selfcheck", tiny_folder)
    assert ended.code == 1
    assert ended.lines[1:] == ["holds  one", "       so", "FAILS  two", "       not so"]
    assert ended.messages == [
        "weft: 1 of 2 proofs fail: do not trust what this model gives here"
    ]


def test_no_folder(command: Command, tmp_path: Path) -> None:
    ended = command("selfcheck", tmp_path / "none")
    assert ended.code == 5
    assert len(ended.messages) == 1
