"""A temporary folder goes with who holds it, and with the next process where that was killed."""

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest

from weft.data.home import Home, told_of_disk
from weft.errors import FolderError


def test_a_folder_goes_with_the_last_who_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = Home()
    (home.path / "text").write_text("a", "utf-8")
    assert home.path.parent == tmp_path
    del home
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living = Home()
    left = living.path.with_name(f"{living.path.name[:-8]}killed")
    left.mkdir()
    (left / "0.txt").write_text("a text", "utf-8")
    # by one that was killed before it held a lock
    left.with_name(f"{left.name}-at-once").mkdir()
    other = tmp_path / "weft-other"
    other.mkdir()
    home = Home()
    assert set(tmp_path.iterdir()) == {living.path, other, home.path}
    assert [stat.S_IMODE(each.path.stat().st_mode) for each in (living, home)] == [
        0o700,
        0o700,
    ]


def test_a_full_disk_is_said_with_what_to_do() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(FolderError, match=r"No space left .*TMPDIR"), told_of_disk():
        raise full
