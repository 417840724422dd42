"""One file of pairs, `source<TAB>target` on each line, without quoting and without a header."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from weft.data.formats.lines import read_lines_within
from weft.data.formats.row import BOTH_EMPTY, TOO_LONG, Row
from weft.errors import DataError


def read_tsv(path: Path, dropped: Counter[str], notes: list[str]) -> Iterator[Row]:
    """Line number and first two columns of each line; further columns must be as many in every line.

    Raises DataError for a line without a TAB or with another number of columns than the first.
    """
    columns = 0
    for number, line in enumerate(read_lines_within(path), start=1):
        if line is None:
            dropped[TOO_LONG] += 1
        elif not line or line.isspace():
            dropped[BOTH_EMPTY] += 1
        else:
            cells = line.split("\t")
            if len(cells) != columns:
                columns = _first_width(path, number, len(cells), columns)
            yield number, cells[0], cells[1]
    if columns > 2:
        notes.append(f"{path}: {columns} columns in every line; the first two are used")


def _first_width(path: Path, number: int, width: int, columns: int) -> int:
    """The width of the first line with text; raises DataError if there is none or the file is ragged."""
    if width < 2:
        raise DataError(
            f"{path}:{number}: no TAB; write source<TAB>target on every line, "
            "or give two aligned files joined by a comma (train.en,train.de)"
        )
    if columns:
        raise DataError(
            f"{path}:{number}: {width} columns where the lines before have {columns}; "
            "take stray TABs out of the text or drop the line"
        )
    return width
