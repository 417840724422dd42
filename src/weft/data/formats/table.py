"""Tables with named columns: CSV, TSV and JSON Lines, each also packed with gzip.

CSV has quoted cells as RFC 4180 describes them, and its rows may go over several lines. TSV has none: a cell is
what stands between two TABs, a row is a line. In both the first row names the columns. JSON Lines has one object a
line.
"""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from weft.data.formats import lines
from weft.data.formats.row import TOO_LONG
from weft.data.formats.source import open_file, read_head
from weft.errors import DataError

EMPTY_LINE = "empty line"
_JSON = (".jsonl", ".ndjson", ".json")
_DELIMITERS = ",;\t"  # of CSV: the first of them that the header holds
_MOST_NAMES, _MOST_CHARS = 20, 40  # of the columns that a message lists
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


def read_table(
    path: Path,
    columns: Sequence[str],
    dropped: Counter[str],
    notes: list[str],
    keys: Mapping[str, str] = _NO_KEYS,
    whole: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line where each row begins, from 1, and its values of the wanted columns: text, in JSON anything.

    With `whole`, the values of all columns that have a name.

    Rows in lines that are too long are dropped and counted, as are empty lines. `keys` says which recipe key names
    a column, for the message. Raises DataError with file and line for a missing or repeated column, rows of
    another width than the header, quotes that do not close, what is no JSON object, and a table without rows.
    """
    kind = _kind(path)
    reader = _read_json if kind == "json" else _read_cells
    num_rows = num_quoted = 0
    for number, row in reader(path, kind, columns, dropped, keys, whole):
        num_rows += 1
        num_quoted += kind == "tsv" and any(map(_is_quoted, row.values()))
        yield number, row
    if not num_rows:
        where = "" if kind == "json" else " below the header"
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(dropped.items()))
        raise DataError(f"{path}: no row{where}" + (f" ({reasons})" if reasons else ""))
    if num_quoted:
        notes.append(
            f"{path}: quotes around cells stay part of the text, for TSV knows no quoting (rows: {num_quoted:,})"
        )


def column_names(path: Path) -> list[str]:
    """The columns of a table; of JSON Lines the first object's keys. Raises DataError as `read_table` does."""
    kind, dropped = _kind(path), Counter[str]()
    if kind == "json":
        numbered = _lines_of(enumerate(lines.read_lines_within(path), start=1), dropped)
        number, line = next(((n, line) for n, line in numbered if line is not None), (1, "{}"))
        return list(_parse(f"{path}:{number}", line))
    rows = _CsvReader(path, dropped).rows() if kind == "csv" else _tsv_rows(path, dropped)
    _, names = next(rows, (1, []))
    return [name.strip() for name in names or ()]


def _kind(path: Path) -> str:
    """`csv`, `tsv` or `json` by the name, after refusing what cannot be a table."""
    with open_file(path):
        if not path.is_file():
            raise DataError(f"{path}: is not a regular file; write the rows to a file first")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in (".csv", ".tsv", *_JSON):
        raise DataError(
            f"{path}: what kind of table is it? Rows are read from .csv, .tsv and .jsonl; rename or convert it"
        )
    if not read_head(path):
        raise DataError(f"{path}: is empty (0 bytes)")
    return "json" if suffix in _JSON else suffix[1:]


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _read_cells(
    path: Path, kind: str, columns: Sequence[str], dropped: Counter[str], keys: Mapping[str, str], whole: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = _CsvReader(path, dropped).rows() if kind == "csv" else _tsv_rows(path, dropped)
    line, names = next(rows, (1, []))
    if names is None:
        raise DataError(f"{path}:{line}: longer than {lines.MAX_LINE_CHARS:,} characters; name the columns first")
    places = _places(f"{path}:{line}", names, columns, keys)
    if whole:
        places = {name.strip(): place for place, name in enumerate(names) if name.strip()}
    for number, cells in rows:
        if cells is None:
            dropped[TOO_LONG] += 1
            continue
        if len(cells) != len(names):
            _refuse_ragged(f"{path}:{number}", kind, len(cells), len(names))
        yield number, {column: cells[place] for column, place in places.items()}


def _places(where: str, header: Sequence[str], columns: Sequence[str], keys: Mapping[str, str]) -> dict[str, int]:
    """Where each wanted column stands. Raises DataError if one is missing, or any name stands twice."""
    names = [name.strip() for name in header]
    again = next((name for name, count in Counter(names).items() if name and count > 1), None)
    if again is not None:
        raise DataError(f"{where}: two columns are named {_shown(again)}; rename one of them")
    _refuse_missing(where, "column", columns, names, keys)
    return {column: names.index(column) for column in columns}


def _refuse_missing(
    where: str, what: str, columns: Sequence[str], names: Sequence[str], keys: Mapping[str, str]
) -> None:
    """Raise DataError if any column is missing, and say what there is instead of each."""
    missing = [column for column in columns if column not in names]
    if not missing:
        return
    listing = ", ".join(_shown(name) for name in names[:_MOST_NAMES]) or "none"
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    remedies = [_instead(column, names, keys.get(column)) for column in missing]
    if what == "column" and len(missing) == len(columns):
        remedies.append("the first line must name the columns")
    wanted = f" and no {what} ".join(map(repr, missing))
    raise DataError(f"{where}: no {what} {wanted}; {what}s: {listing}{more}; {'; '.join(remedies)}")


def _instead(wanted: str, names: Sequence[str], key: str | None) -> str:
    """What to do about a missing name: nearest is another case of it, then another spelling."""
    same = [name for name in names if name.casefold() == wanted.casefold()]
    near = (same or difflib.get_close_matches(wanted, names, n=1, cutoff=0.6))[:1]
    if key is None:
        return f"rename {_shown(near[0]) if near else 'the right one'} to {wanted!r}"
    return f"did you mean --set {key}={_shown(near[0])}?" if near else f"name the right one by --set {key}=..."


def _shown(name: str) -> str:
    """A name as it is, if it is short and can be seen."""
    short = name if len(name) <= _MOST_CHARS else f"{name[:_MOST_CHARS]}…"
    return short if short.isprintable() and short.strip() else repr(short)


def _refuse_ragged(where: str, kind: str, width: int, num_columns: int) -> NoReturn:
    cells = "1 cell" if width == 1 else f"{width} cells"
    remedy = {
        "csv": "put a cell that holds the delimiter or a line break in quotes",
        "tsv": "take TABs and line breaks out of its cells, or write CSV with quotes",
    }[kind]
    raise DataError(f"{where}: {cells} where the header names {num_columns} columns; {remedy}")


def _lines_of(
    numbered: Iterator[tuple[int, str | None]], dropped: Counter[str]
) -> Iterator[tuple[int, str | None]]:
    """The lines that hold something; None stands for one that is too long."""
    for number, line in numbered:
        if line is not None and (not line or line.isspace()):
            dropped[EMPTY_LINE] += 1
        else:
            yield number, line


def _tsv_rows(path: Path, dropped: Counter[str]) -> Iterator[tuple[int, list[str] | None]]:
    for number, line in _lines_of(enumerate(lines.read_lines_within(path), start=1), dropped):
        yield number, None if line is None else line.split("\t")


class _CsvReader:
    """Rows of cells, read from left to right; a quote has a meaning only where a cell begins with it."""

    def __init__(self, path: Path, dropped: Counter[str]) -> None:
        self._path, self._dropped = path, dropped
        self._lines = enumerate(lines.read_lines_within(path), start=1)
        self._delimiter = ""
        self._skipped = 0  # a line too long to be read, as long as no quote has shown that it left no cell open

    def rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """The first line and the cells of each row; None stands for a line that is too long."""
        for number, line in _lines_of(self._lines, self._dropped):
            if line is None:
                self._skipped = number
                yield number, None
            else:
                self._delimiter = self._delimiter or next((d for d in _DELIMITERS if d in line), ",")
                yield number, self._cells(number, line)

    def _cells(self, number: int, line: str) -> list[str]:
        cells, at = [], 0
        while at <= len(line):
            if line.startswith('"', at):
                cell, number, line, at = self._quoted(number, line, at + 1)
            else:
                end = line.find(self._delimiter, at)
                end = len(line) if end < 0 else end
                cell, at = line[at:end], end
                if self._skipped and '"' in cell:
                    self._refuse(
                        self._skipped, "too long to be read, and a cell seems to go on after it; break it up"
                    )
            cells.append(cell)
            at += 1  # over the delimiter, or beyond the end
        return cells

    def _quoted(self, number: int, line: str, at: int) -> tuple[str, int, str, int]:
        """A cell from behind its first quote; the line that it ends in, by number and text, and where."""
        opened, pieces, length = number, [], 0
        self._skipped = 0
        while (end := line.find('"', at)) < 0 or line.startswith('""', end):
            pieces.append(f"{line[at:]}\n" if end < 0 else line[at : end + 1])
            length += len(pieces[-1])
            at = end + 2
            if end < 0:
                (number, line), at = self._next(opened, length), 0
        if end + 1 < len(line) and line[end + 1] != self._delimiter:
            self._refuse(
                number,
                f"{line[end + 1]!r} after the quote that closes a cell (which opened in line {opened}); "
                "inside a quoted cell write two quotes for one",
            )
        return "".join([*pieces, line[at:end]]), number, line, end + 1

    def _next(self, opened: int, length: int) -> tuple[int, str]:
        """The next line of a cell that is still open."""
        number, line = next(self._lines, (0, ""))
        if not number:
            self._refuse(opened, "a quote opens a cell here that is never closed")
        if line is None or length > lines.MAX_LINE_CHARS:
            limit = f"{lines.MAX_LINE_CHARS:,} characters"
            self._refuse(opened, f"a quote opens a cell here that is not closed within {limit}")
        return number, line

    def _refuse(self, number: int, what: str) -> NoReturn:
        raise DataError(f"{self._path}:{number}: {what}")


def _read_json(
    path: Path, kind: str, columns: Sequence[str], dropped: Counter[str], keys: Mapping[str, str], whole: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines_of(enumerate(lines.read_lines_within(path), start=1), dropped):
        if line is None:
            dropped[TOO_LONG] += 1
            continue
        where = f"{path}:{number}"
        row = _parse(where, line)
        _refuse_missing(where, "key", columns, list(row), keys)
        yield number, row if whole else {column: row[column] for column in columns}


def _parse(where: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not JSON: {error.msg} at column {error.colno}; write one object a line"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).split(";", 1)[0]
        raise DataError(f"{where}: JSON that cannot be read: {reason}") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: JSON, but not an object; write one object a line, as JSON Lines has it")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        again = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {again[:_MOST_CHARS]!r} stands twice in one object")
    return found
