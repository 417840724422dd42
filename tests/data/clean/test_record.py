"""The list of changes is in the order of the text, wherever it is kept."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.data.clean.record import Record


def recorded() -> Record:
    """What three passes over two files may have noted."""
    record = Record()
    for line in range(1, 13):
        record.mend((1, line), f"b:{line}", ("spaces",), (f" {line}",), (str(line),))
    record.mend((0, 7), "a:7", ("markup", "spaces"), ("<b>\t7",), ("7",))
    record.drop((0, 7), "a:7", "duplicates", ("7",))
    for line in (12, 2):
        record.drop((1, line), f"b:{line}", "empty", (str(line),))
    record.drop((0, 3), "a:3", "shifted-lines", ("half",), other_half=True)
    return record


def test_the_list_is_in_the_order_of_the_text_and_of_the_passes() -> None:
    record = recorded()
    head, *lines = record.lines(("text",))
    assert head == "done\trule\twhere\ttext\tnew text\n"
    assert lines[:3] == [
        "dropped\tshifted-lines\ta:3\thalf\t\n",
        "mended\tmarkup spaces\ta:7\t<b>\\t7\t7\n",
        "dropped\tduplicates\ta:7\t7\t\n",
    ]
    assert [line.split("\t")[2] for line in lines[3:]] == [
        *("b:1", "b:2", "b:2", *(f"b:{line}" for line in range(3, 13)), "b:12")
    ]
    assert len(lines) == record.num_changes == 17
    assert record.counts() == {
        "empty": {"mended": 0, "dropped": 2},
        "markup": {"mended": 1, "dropped": 0},
        "spaces": {"mended": 13, "dropped": 0},
        "duplicates": {"mended": 0, "dropped": 1},
    }
    assert record.num_dropped == 3


def test_a_long_list_lies_on_disk_while_it_grows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    large_from: Callable[[int, int], None],
) -> None:
    wanted = list(recorded().lines(("text",)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    large_from(10, 10)
    record = recorded()
    (file,) = tmp_path.glob("*/0.txt")
    assert list(record.lines(("text",))) == wanted
    assert file.read_bytes().count(b"\n") == record.num_changes
