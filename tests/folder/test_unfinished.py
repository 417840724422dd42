"""Folders that are being written, and those that killed writers left."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.folder import unfinished
from weft.folder.durable import TEMPORARY, writing_folder
from weft.folder.unfinished import being_written, remove_abandoned

fcntl = pytest.importorskip("fcntl", reason="there are no locks of files")

KILLED = """
import os, signal, sys
from pathlib import Path
from weft.folder import durable
with durable.writing_folder(Path(sys.argv[1])) as temporary:
    (temporary / "a").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", KILLED, str(tmp_path / "out")]
    assert subprocess.run(asked, timeout=60, check=False).returncode == -9
    (left,) = names(tmp_path)
    assert left.startswith(TEMPORARY)
    (tmp_path / "mine").mkdir()
    (tmp_path / f"{TEMPORARY}file").write_text("of a file that is being written")
    with writing_folder(tmp_path / "other") as temporary:
        remove_abandoned(tmp_path, TEMPORARY)
        expected = [temporary.name, f"{TEMPORARY}file", "mine"]
        assert names(tmp_path) == sorted(expected)
    assert names(tmp_path) == [f"{TEMPORARY}file", "mine", "other"]
    remove_abandoned(tmp_path / "none", TEMPORARY)


def test_a_folder_that_was_taken_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process sees it after it was made, and before it has its lock."""
    real = fcntl.flock
    calls = []

    def flock(descriptor: int, kind: int) -> Any:
        calls.append(kind)
        if len(calls) == 1:
            shutil.rmtree(tmp_path / "new")
        return real(descriptor, kind)

    monkeypatch.setattr(unfinished.fcntl, "flock", flock)
    with being_written(tmp_path / "new"):
        assert calls == [fcntl.LOCK_EX] * 2
        remove_abandoned(tmp_path, "new")
        assert names(tmp_path) == ["new"]
    remove_abandoned(tmp_path, "new")
    assert names(tmp_path) == []


def test_without_locks_nothing_is_taken_for_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "fcntl", None)
    with being_written(tmp_path / "new"):
        pass
    remove_abandoned(tmp_path, "new")
    assert names(tmp_path) == ["new"]
