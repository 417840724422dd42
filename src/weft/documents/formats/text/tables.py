"""CSV and TSV (.csv, .tsv): the cells of some columns, which are named or numbered.

A quote has a meaning only where a cell begins with it, as in the tables that Weft is trained from;
TSV is quoted where every such cell is one whole. A quoted cell stays quoted; one that is not is
quoted where its translation needs that.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weft.documents.document import Doubt, Reading, decode_file
from weft.documents.formats.text.messages import choices_in, read_message
from weft.documents.formats.text.values import Collector, ValuesDocument
from weft.errors import UsageError

_DELIMITERS = "\t,;"  # the earlier one where two fit as well
_SAMPLE = 100  # rows that a delimiter is chosen by
_NAMED = re.compile(r"\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_MOST_NAMES = 20


@dataclass(frozen=True)
class _Cell:
    """A cell: where it begins and ends, with its quotes."""

    start: int
    end: int


def open_csv(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of CSV; raises UsageError for columns that it lacks, and for odd quotes."""
    text = decode_file(content, reading.name)
    head = "\ufeff" if text.startswith("\ufeff") else ""
    named = _NAMED.match(text, len(head))
    start = named.end() if named else len(head)
    delimiter = named[1] if named else _choose(text[start:], reading)
    return _read(text, start, delimiter, True, reading)


def open_tsv(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of TSV; raises UsageError for columns that it lacks."""
    text = decode_file(content, reading.name)
    start = 1 if text.startswith("\ufeff") else 0
    is_quoted = True
    try:
        list(_rows(text, start, "\t", "", True))
    except UsageError:
        is_quoted = False
    return _read(text, start, "\t", is_quoted, reading)


def _choose(text: str, reading: Reading) -> str:
    """Return the delimiter by which the header has most columns that are asked for, else by which
    most rows are as wide as the header.
    """

    def merit(delimiter: str) -> tuple[int, float, int]:
        sample: list[list[str]] = []
        try:
            for row in _rows(text, 0, delimiter, "", True):
                sample.append([_text(text, cell, True).strip() for cell in row])
                if len(sample) >= _SAMPLE:
                    break
        except UsageError:
            pass  # the rows before count
        if not sample or len(sample[0]) < 2:
            return (0, 0.0, 0)
        same = sum(len(row) == len(sample[0]) for row in sample)
        named = len(set(sample[0]).intersection(reading.columns))
        return (1 + named, same / len(sample), -_DELIMITERS.index(delimiter))

    return max(_DELIMITERS, key=merit)


def _read(
    text: str, start: int, delimiter: str, is_quoted: bool, reading: Reading
) -> ValuesDocument:
    rows = _rows(text, start, delimiter, reading.name, is_quoted)
    header = next(rows, [])
    names = [_text(text, cell, is_quoted).strip() for cell in header]
    wanted, has_header = _columns(names, reading)
    found = Collector()
    place = 0
    all_rows = rows if has_header else _from(header, rows)
    for row in all_rows:
        for number in wanted:
            if number >= len(row):
                continue
            cell = row[number]
            found.keep(text[place : cell.start])
            place = cell.end
            raw = text[cell.start : place]
            said = _text(text, cell, is_quoted)
            encode = partial(_encoded, raw, delimiter, is_quoted)
            name = names[number] if has_header else str(number + 1)
            where = f"line {found.line}, column {name}"
            found.add(raw, read_message(said), encode, where, choices_in(said))
    found.keep(text[place:])
    return found.document()


def _from(first: list[_Cell], rest: Iterator[list[_Cell]]) -> Iterator[list[_Cell]]:
    yield first
    yield from rest


def _columns(names: Sequence[str], reading: Reading) -> tuple[list[int], bool]:
    """Return the numbers of the columns that are translated, and whether the first row names them.

    Where all are given as numbers that are no names, the first row is one like any other.
    """
    listed = ", ".join(names[:_MOST_NAMES])
    if not reading.columns:
        raise UsageError(
            f"{reading.name}:1: which columns are translated? Name them (the first row has: {listed}) "
            "or give their numbers, from 1"
        )
    found = []
    has_header = False
    for column in reading.columns:
        if column in names:
            has_header = True
            found.append(names.index(column))
        elif column.isdecimal() and 1 <= int(column) <= len(names):
            found.append(int(column) - 1)
        else:
            raise UsageError(
                f"{reading.name}:1: no column {column}; the first row has: {listed}"
            )
    return sorted(set(found)), has_header


def _rows(
    text: str, start: int, delimiter: str, name: str, is_quoted: bool
) -> Iterator[list[_Cell]]:
    """Yield the cells of each row; an empty line is none. Raises UsageError for odd quotes."""
    mark = re.escape(delimiter)
    quotes = r"\"((?:[^\"]|\"\")*+)\"" if is_quoted else r"(?!)()"
    form = re.compile(rf"(?:{quotes}|([^{mark}\r\n]*+))({mark}|\r\n?|\n|\Z)")
    row: list[_Cell] = []
    place = start
    while place < len(text) or row:
        match = form.match(text, place)
        if match is None or (is_quoted and (match[2] or "").startswith('"')):
            line = text.count("\n", 0, place) + 1
            raise UsageError(
                f"{name}:{line}: a cell begins with a quote that does not close at its end; double the quotes in it"
            )
        row.append(_Cell(place, match.start(3)))
        place = match.end()
        if match[3] != delimiter:
            if len(row) > 1 or row[0].end > row[0].start:
                yield row
            row = []
            if not match[3]:
                return


def _text(text: str, cell: _Cell, is_quoted: bool) -> str:
    raw = text[cell.start : cell.end]
    if is_quoted and raw.startswith('"'):
        return raw[1:-1].replace('""', '"')
    return raw


def _encoded(
    raw: str, delimiter: str, is_quoted: bool, text: str, _doubts: Sequence[Doubt]
) -> str:
    """Write a cell: with quotes where it had them or needs them."""
    if not is_quoted:
        return re.sub(r"[\t\r\n]", " ", text)
    needs = text.startswith('"') or any(
        mark in text for mark in (delimiter, "\r", "\n")
    )
    if raw.startswith('"') or needs:
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text
