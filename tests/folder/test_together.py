"""Files that are written together appear together or not at all, and leave nothing behind."""

import os
from pathlib import Path

import pytest

from weft.errors import FolderError
from weft.folder import together
from weft.folder.together import written_together


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def write(paths: list[Path], text: str) -> None:
    with written_together(paths) as temporary:
        for path in temporary:
            path.write_text(text)


def test_all_appear_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    paths = [tmp_path / "one", tmp_path / "two", tmp_path / "b" / "one"]
    for text in ("first", "second"):
        write(paths, text)
        assert [path.read_text() for path in paths] == [text] * 3
    assert names(tmp_path) == ["b", "b/one", "one", "two"]


def write_half(paths: list[Path], error: Exception | None = None) -> None:
    with written_together(paths) as temporary:
        temporary[0].write_text("half")
        if error is not None:
            raise error


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    write(paths, "old")
    with pytest.raises(ValueError, match="no"):
        write_half(paths, ValueError("no"))
    with pytest.raises(FolderError, match=r"one: cannot be written \(full\)"):
        write_half(paths, OSError(28, "full"))
    with pytest.raises(FolderError, match="one: cannot be written"):
        write_half(paths)  # the second is missing
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert names(tmp_path) == ["one", "two"]


def test_an_old_file_never_stands_beside_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    write(paths, "old")
    replaced = []

    def stop_at_the_second(new: Path, path: Path) -> None:
        if replaced:
            raise KeyboardInterrupt
        replaced.append(path)
        os.rename(new, path)

    monkeypatch.setattr(together.os, "replace", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        write(paths, "new")
    assert names(tmp_path) == ["one"]
    assert paths[0].read_text() == "new"


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "one"
    with written_together([path]) as temporary:
        left = temporary[0].parent.name
        with written_together([tmp_path / "two"]) as other:
            assert temporary[0].parent.is_dir()  # its writer lives
            other[0].write_text("two")
        temporary[0].write_text("one")
    (tmp_path / left).mkdir()
    (tmp_path / left / "one").write_text("half")
    write([path], "whole")
    assert names(tmp_path) == ["one", "two"]
