"""Blocks: whatever the lines are, the blocks have all of them, once and in order."""

import io
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.cluster.block import Block, divided
from weft.data.plain_lines import lines
from weft.errors import DataError

LINE = st.text(
    st.characters(exclude_characters="\n", exclude_categories=("Cs",)), max_size=6
)
ENDS = st.sampled_from(["\n", "\r\n"])


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_block_is_a_run_of_lines_with_its_bytes_and_its_hash(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"one\ntwo\r\n\nfour")
    division = divided([path], 2)
    name = str(path)
    assert division.blocks == [
        Block(0, name, 1, 2, 0, 9, sha256(b"one\ntwo\n").hexdigest()),
        Block(1, name, 3, 2, 9, 14, sha256(b"\nfour\n").hexdigest()),
    ]
    assert [block.lines() for block in division.blocks] == [
        ["one", "two"],
        ["", "four"],
    ]
    (found,) = division.inputs
    assert (found.path, found.rows) == (name, 4)
    assert found.sha256 == sha256(b"one\ntwo\n\nfour\n").hexdigest()


def test_a_block_never_reaches_into_another_file(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.txt", b"1\n2\n3\n"),
        write(tmp_path / "empty.txt", b""),
        write(tmp_path / "b.txt", b"4\n"),
    ]
    division = divided(paths, 2)
    assert [each.rows for each in division.inputs] == [3, 0, 1]
    assert division.rows == 4
    assert [block.lines() for block in division.blocks] == [["1", "2"], ["3"], ["4"]]
    assert [block.number for block in division.blocks] == [0, 1, 2]
    assert [block.first for block in division.blocks] == [1, 3, 1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    texts=st.lists(st.tuples(LINE, ENDS), max_size=9),
    rows=st.integers(1, 4),
    has_mark=st.booleans(),
    ends=st.booleans(),
)
def test_blocks_have_the_lines_of_the_whole(
    tmp_path: Path,
    texts: list[tuple[str, str]],
    rows: int,
    has_mark: bool,
    ends: bool,
) -> None:
    content = "".join(line + end for line, end in texts)
    if not ends:
        content = content.removesuffix("\n").removesuffix("\r")
    raw = b"\xef\xbb\xbf" * has_mark + content.encode()
    path = write(tmp_path / "a.txt", raw)
    whole = [line for _, line in lines(io.BytesIO(raw), path)]
    division = divided([path], rows)
    assert [line for block in division.blocks for line in block.lines()] == whole
    assert all(block.rows <= rows for block in division.blocks)


def test_a_byte_order_mark_goes_from_the_beginning_of_a_file_alone(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.txt", "\ufeffone\n\ufefftwo\n".encode())
    assert [block.lines() for block in divided([path], 1).blocks] == [
        ["one"],
        ["\ufefftwo"],
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"one\nTWO\nthree\n"),
        lambda path: path.write_bytes(b"one\n"),
        lambda path: path.write_bytes(b"one\n\xfftw\nthree\n"),
    ],
    ids=["another word", "shorter", "no text"],
)
def test_a_file_that_changes_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = write(tmp_path / "a.txt", b"one\ntwo\nthree\n")
    _, second, _ = divided([path], 1).blocks
    change(path)
    with pytest.raises(DataError, match=r"a\.txt: has changed since the work began"):
        second.lines()
    path.unlink()
    with pytest.raises(DataError, match="every machine needs it by this name"):
        second.lines()


def test_a_line_that_is_no_text_is_named_before_any_work(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"one\n\xff\n")
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8 at the text's byte 4"):
        divided([path], 1)
