"""Rows of cells: quoted as RFC 4180 has it, the delimiter chosen by the file, or plain cells
between TABs.

Spreadsheets quote the cells of TSV as well: whole cells, every quote within them doubled. People's
text has quotes of its own. So whether a TSV file is quoted is decided by all of its cells together.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NoReturn

from weft.data.formats import lines
from weft.data.formats.row import EMPTY_LINE
from weft.errors import DataError

Rows = Iterator[tuple[int, list[str] | None]]
"""The first line and the cells of each row; None stands for a line that is too long."""

_DELIMITERS = "\t,;"  # the earlier one where two fit as well
_SAMPLE = 100  # lines that a delimiter is chosen by
_FEW = 5  # cells or rows from which on "all of them are quoted" is no coincidence
# so many cells that only a spreadsheet writes outweigh one that it would not
_EXCEPTIONS = 20
_DOUBTED = 5  # so many times as many cells that no spreadsheet writes leave no doubt


def read_csv(
    path: Path, wanted: Sequence[str], dropped: Counter[str], keeps_cr: bool = False
) -> Rows:
    """Return the rows of CSV, the header's first; `wanted` columns help to choose the delimiter.

    A first line `sep=;`, by which some spreadsheets name it, is no row. A line end within a cell is
    LF; with `keeps_cr` it is what stands there. Raises DataError for quotes that do not close, or
    that close before a cell ends.
    """
    numbered = enumerate(lines.read_lines_within(path, keeps_cr), start=1)
    sample, delimiter, _ = _begin(path, numbered, wanted)
    reader = CellReader(path, chain(sample, numbered), delimiter)
    yield from reader.rows()
    if reader.num_empty:
        dropped[EMPTY_LINE] += reader.num_empty


def head_rows(path: Path, head: Sequence[str]) -> list[list[str]]:
    """Return the first rows of CSV, by lines from its beginning; those before a quote that does not
    close.
    """
    sample, delimiter, _ = _begin(path, enumerate(head, start=1), ())
    reader = CellReader(path, iter(sample), delimiter)
    rows: list[list[str]] = []
    with suppress(DataError):
        rows.extend(cells for _, cells in reader.rows() if cells)
    return rows


def find_delimiter(path: Path, wanted: Sequence[str]) -> tuple[str, str]:
    """Return the delimiter of CSV, and the line `sep=;` that names it, or ""."""
    _, delimiter, line = _begin(
        path, enumerate(lines.read_lines_within(path), start=1), wanted
    )
    return delimiter, line


def _begin(
    path: Path, numbered: Iterator[tuple[int, str | None]], wanted: Sequence[str]
) -> tuple[list[tuple[int, str | None]], str, str]:
    """Return the first lines without one that names the delimiter, the delimiter, and that line."""
    sample = list(islice(numbered, _SAMPLE))
    line = (sample[0][1] if sample else "") or ""
    if delimiter := _named_delimiter(line):
        return sample[1:], delimiter, line.removesuffix("\r")
    return sample, _choose_delimiter(path, sample, wanted), ""


def _named_delimiter(line: str | None) -> str:
    """Return the delimiter of a line `sep=;`; "" of any other."""
    text = (line or "").removesuffix("\r").strip('" ')
    return text[-1] if len(text) == 5 and text[:4].lower() == "sep=" else ""


def _choose_delimiter(
    path: Path, sample: Sequence[tuple[int, str | None]], wanted: Sequence[str]
) -> str:
    """Return the one by which the header has the wanted columns.

    Else by which most rows are as wide as the header.
    """

    def merit(delimiter: str) -> tuple[int, float, int]:
        rows: list[list[str]] = []
        with suppress(DataError):  # an end within a cell may be the sample's
            rows.extend(
                row
                for _, row in CellReader(path, iter(sample), delimiter).rows()
                if row
            )
        if not rows or len(rows[0]) < 2:
            return (0, 0.0, 0)
        names = {name.strip() for name in rows[0]}
        same = sum(len(row) == len(rows[0]) for row in rows)
        return (
            1 + len(names.intersection(wanted)),
            same / len(rows),
            -_DELIMITERS.index(delimiter),
        )

    return max(_DELIMITERS, key=merit)


class CellReader:
    """Rows of cells, read from left to right; a quote has a meaning only where a cell begins with
    it.
    """

    def __init__(
        self,
        path: Path,
        numbered: Iterator[tuple[int, str | None]],
        delimiter: str,
        is_strict: bool = False,
    ) -> None:
        self._path = path
        self._lines = numbered
        self._delimiter = delimiter
        self._is_strict = is_strict
        self.num_empty = 0  # lines between rows
        self._end = "\n"  # of the line that is read, within a cell
        # a line too long to be read, as long as no quote has shown that it left no cell open
        self._skipped = 0

    def rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Yield the first line and the cells of each row; None stands for a line that is too
        long.
        """
        for number, line in self._lines:
            if line is None:
                self._skipped = number
                yield number, None
            elif line and not line.isspace():
                yield number, self._cells(number, self._without_end(line))
            else:
                self.num_empty += 1

    def _without_end(self, line: str) -> str:
        self._end = "\r\n" if line.endswith("\r") else "\n"
        return line.removesuffix("\r")

    def _cells(self, number: int, line: str) -> list[str]:
        cells = []
        at = 0
        while at <= len(line):
            if line.startswith('"', at):
                cell, number, line, at = self._quoted(number, line, at + 1)
            else:
                end = line.find(self._delimiter, at)
                end = len(line) if end < 0 else end
                cell = line[at:end]
                at = end
                if self._is_strict and '"' in cell:
                    self._refuse(number, "a quote within a cell that is not quoted")
                if self._skipped and '"' in cell:
                    self._refuse(
                        self._skipped,
                        "too long to be read, and a cell seems to continue after it; break it up",
                    )
            cells.append(cell)
            at += 1  # over the delimiter, or beyond the end
        return cells

    def _quoted(self, number: int, line: str, at: int) -> tuple[str, int, str, int]:
        """Read a cell from behind its first quote, over as many lines as it has.

        Returns the cell; the line that it ends in, by number and text; and where in that line.
        """
        opened = number
        pieces: list[str] = []
        length = 0
        self._skipped = 0
        while (end := line.find('"', at)) < 0 or line.startswith('""', end):
            pieces.append(f"{line[at:]}{self._end}" if end < 0 else line[at : end + 1])
            length += len(pieces[-1])
            at = end + 2
            if end < 0:
                number, line = self._next(opened, length)
                at = 0
        if end + 1 < len(line) and line[end + 1] != self._delimiter:
            self._refuse(
                number,
                f"{line[end + 1]!r} after the quote that closes a cell (which opened in line {opened}); "
                "inside a quoted cell write two quotes for one",
            )
        return "".join([*pieces, line[at:end]]), number, line, end + 1

    def _next(self, opened: int, length: int) -> tuple[int, str]:
        """Return the next line of a cell that is still open."""
        number, line = next(self._lines, (0, ""))
        if not number:
            self._refuse(opened, "a quote opens a cell here that is never closed")
        if line is None or length > lines.MAX_LINE_CHARS:
            limit = f"{lines.MAX_LINE_CHARS:,} characters"
            self._refuse(
                opened, f"a quote opens a cell here that is not closed within {limit}"
            )
        return number, self._without_end(line)

    def _refuse(self, number: int, what: str) -> NoReturn:
        raise DataError(f"{self._path}:{number}: {what}")


@dataclass(frozen=True)
class Quoting:
    """The quoting of the cells of a TSV file, and notes on it, without the file's name.

    none: quotes are text. cells: a cell that is quoted as a whole is read without, and stays in its
    line. rows: as in CSV, cells may hold TABs and line ends. csv: the file is CSV itself.
    """

    kind: Literal["none", "cells", "rows", "csv"] = "none"
    notes: list[str] = field(default_factory=list)


def read_tab_separated(
    path: Path, quoting: Quoting, dropped: Counter[str], keeps_cr: bool = False
) -> Rows:
    """Return the rows of TSV, the first too, whatever it is; `keeps_cr` as for `read_csv`."""
    if quoting.kind == "csv":
        yield from read_csv(path, (), dropped, keeps_cr)
        return
    if quoting.kind == "rows":
        reader = CellReader(
            path, enumerate(lines.read_lines_within(path, keeps_cr), start=1), "\t"
        )
        yield from reader.rows()
        if reader.num_empty:
            dropped[EMPTY_LINE] += reader.num_empty
        return
    for number, line in lines.filled_lines(path, dropped):
        cells = None if line is None else line.split("\t")
        if cells is not None and quoting.kind == "cells" and '"' in str(line):
            cells = [_unquoted(cell) for cell in cells]
        yield number, cells


def find_quoting(path: Path) -> Quoting:
    """Decide by all cells of a file. Raises DataError where it cannot be read."""
    counts = _CellCounts()
    for line in lines.read_lines_within(path):
        if line:
            counts.add(line)
    read = "cells are quoted, as spreadsheets write TSV; they are read without their quotes"
    if counts.strange and _reads_as_rows(path):
        return Quoting("rows", [f"{read} (some go over several lines)"])
    if counts.quoted and counts.are_of_a_spreadsheet:
        return Quoting("cells", [f"{read} (cells: {counts.quoted:,})"])
    if counts.doubled * _DOUBTED <= counts.strange:
        return Quoting()
    many = "1 cell is" if counts.doubled == 1 else f"{counts.doubled:,} cells are"
    note = f"quotes stay part of the text: {many} quoted as spreadsheets do it, but {counts.strange:,} not so"
    return Quoting("none", [note])


@dataclass
class _CellCounts:
    """Counts of the cells of a file that speak for and against quoting."""

    rows: int = 0
    quoted: int = 0  # as a whole, with every quote within doubled
    doubled: int = 0  # of those, cells with a quote within
    # of the others of those, cells with a comma, which Excel always quotes
    with_comma: int = 0
    strange: int = 0  # cells with quotes that no spreadsheet writes so
    bare_comma: int = 0  # cells without quotes, with a comma
    bare: int = 0  # all cells without quotes that hold something

    def add(self, line: str) -> None:
        self.rows += 1
        for cell in line.split("\t"):
            if '"' not in cell:
                self.bare += cell != ""
                self.bare_comma += "," in cell
            elif not _is_quoted(cell):
                self.strange += 1
            else:
                self.quoted += 1
                self.doubled += '""' in cell[1:-1]
                self.with_comma += "," in cell and '""' not in cell[1:-1]

    @property
    def are_of_a_spreadsheet(self) -> bool:
        """Return whether cells are quoted that hold quotes; or all those that hold commas, and no
        others; or all.
        """
        if self.doubled:
            return self.strange * _EXCEPTIONS <= self.doubled
        if self.strange:
            return False
        only_commas = not self.bare_comma and self.quoted == self.with_comma >= _FEW
        return only_commas or (not self.bare and self.rows >= _FEW)


def _is_quoted(cell: str) -> bool:
    """Return whether quotes stand around a cell and every quote within is doubled."""
    return (
        len(cell) > 1
        and cell[0] == cell[-1] == '"'
        and '"' not in cell[1:-1].replace('""', "")
    )


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if _is_quoted(cell) else cell


def _reads_as_rows(path: Path) -> bool:
    """Return whether the whole file is sound as quoted rows of one width, with no quote in a cell
    that is not quoted.

    A cell that would hold a TAB as well as a line end is most likely two quotes of different rows.
    """
    width = 0
    reader = CellReader(
        path, enumerate(lines.read_lines_within(path), start=1), "\t", is_strict=True
    )
    try:
        for _, row in reader.rows():
            if row is not None:
                width = width or len(row)
                if len(row) != width or any(
                    "\t" in cell and "\n" in cell for cell in row
                ):
                    return False
    except DataError:
        return False
    return width > 1
