"""Tables with named columns: CSV, TSV and JSON Lines, each also packed with gzip.

CSV has quoted cells as RFC 4180 describes them, and its rows may go over several lines. TSV has
them where a spreadsheet wrote it, which the whole file shows; else a cell is what stands between
two TABs, and a row is a line. In both the first row names the columns. JSON Lines has one object a
line.
"""

import difflib
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from weft.data.formats import lines
from weft.data.formats.cells import find_quoting, read_csv, read_tab_separated
from weft.data.formats.filetype import type_of_name
from weft.data.formats.json_object import first_repeated, parse_object
from weft.data.formats.parquet import ColumnFile
from weft.data.formats.row import TOO_LONG
from weft.data.formats.source import open_file, read_head
from weft.errors import DataError

_MOST_NAMES = 20  # of the columns that a message lists
_MOST_CHARS = 40  # of a column's name that a message shows; what has more is a text
_MOST_WORDS = 5  # of a column's name; what has more is a text
_PAIRS = (
    "if these are pairs, name two columns by their languages or codes (English,Deutsch or en,kos), "
    "or source and target"
)
_ZIP = b"PK\x03\x04"  # as which spreadsheets are packed
NO_KEYS: Mapping[str, str] = MappingProxyType({})


def read_table(
    path: Path,
    columns: Sequence[str],
    dropped: Counter[str],
    notes: list[str],
    keys: Mapping[str, str] = NO_KEYS,
    whole: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line where each row begins, from 1, and its values of the wanted columns: text, in
    JSON anything.

    With `whole`, the values of all columns that have a name.

    Rows in lines that are too long are dropped and counted, as are empty lines. `keys` says which
    recipe key or option (`--column`) names a column, for the message. Raises DataError with file
    and line for a missing or repeated column, rows of another width than the header, quotes that do
    not close, what is no JSON object, and a table without rows.
    """
    if is_parquet(path):
        yield from _read_parquet(path, columns, keys, whole)
        return
    kind = _kind(path)
    num_rows = 0
    read = (
        _read_json(path, columns, dropped, keys, whole)
        if kind == "json"
        else _read_cells(path, columns, dropped, notes, keys, whole)
    )
    for number, row in read:
        num_rows += 1
        yield number, row
    if not num_rows:
        where = "" if kind == "json" else " below the header"
        reasons = ", ".join(
            f"{reason}: {count}" for reason, count in sorted(dropped.items())
        )
        raise DataError(f"{path}: no row{where}" + (f" ({reasons})" if reasons else ""))


def column_names(path: Path, wanted: Sequence[str] = ()) -> list[str]:
    """Return the columns of a table, some of which are wanted; of JSON Lines the first object's
    keys.

    Raises DataError as `read_table` does.
    """
    if is_parquet(path):
        return ColumnFile(path).names
    kind = _kind(path)
    dropped = Counter[str]()
    if kind == "json":
        numbered = lines.filled_lines(path, dropped)
        readable = ((n, line) for n, line in numbered if line is not None)
        number, line = next(readable, (1, "{}"))
        return list(parse_object(f"{path}:{number}", line))
    _, names = next(_rows(path, kind, wanted, dropped, []), (1, []))
    return [name.strip() for name in names or ()]


def is_parquet(path: Path) -> bool:
    """Return whether a file is one of columns, Parquet or Arrow, by its name."""
    named = type_of_name(path)
    return named is not None and named.name == "parquet"


def _read_parquet(
    path: Path, columns: Sequence[str], keys: Mapping[str, str], whole: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each row, from 1, and its values."""
    with open_file(path):
        pass  # its message names near matches
    file = ColumnFile(path)
    _refuse_names(str(path), file.names, columns, keys)
    number = 0
    for row in file.rows(file.names if whole else columns):
        number += 1
        yield number, row
    if not number:
        raise DataError(f"{path}: no row")


def _kind(path: Path) -> str:
    """Return `csv`, `tsv` or `json` by the name, after refusing what cannot be a table."""
    with open_file(path) as file:
        if not path.is_file():
            raise DataError(
                f"{path}: is not a regular file; write the rows to a file first"
            )
        if file.peek(len(_ZIP)).startswith(_ZIP):
            remedy = "open it in a spreadsheet and save it as CSV UTF-8, or unpack it"
            raise DataError(
                f"{path}: is a spreadsheet or a zip archive, whatever its name; {remedy}"
            )
    named = type_of_name(path)
    if named is None:
        raise DataError(
            f"{path}: what kind of table is it? Rows are read from .csv, .tsv and .jsonl; rename or convert it"
        )
    if not named.table:
        raise DataError(
            f"{path}: is {named.words}, not rows of .csv, .tsv or .jsonl; {named.remedy}"
        )
    if not read_head(path):
        raise DataError(f"{path}: is empty (0 bytes)")
    return named.table


def _rows(
    path: Path,
    kind: str,
    columns: Sequence[str],
    dropped: Counter[str],
    notes: list[str],
    keeps_cr: bool = False,
) -> Iterator[tuple[int, list[str] | None]]:
    """Return the first line and the cells of each row, the header's too.

    None stands for a line that is too long.
    """
    if kind == "csv":
        return read_csv(path, columns, dropped, keeps_cr)
    quoting = find_quoting(path)
    notes.extend(f"{path}: {note}" for note in quoting.notes)
    return read_tab_separated(path, quoting, dropped, keeps_cr)


def read_cells(
    path: Path,
    columns: Sequence[str],
    dropped: Counter[str],
    notes: list[str],
    keys: Mapping[str, str] = NO_KEYS,
    keeps_cr: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and all cells of each row of CSV or TSV, the header's first.

    With `keeps_cr` line ends within cells are what stands there, else LF. Raises DataError as
    `read_table` does.
    """
    kind = _kind(path)
    rows = _rows(path, kind, columns, dropped, notes, keeps_cr)
    line, names = next(rows, (1, []))
    if names is None:
        raise DataError(
            f"{path}:{line}: longer than {lines.MAX_LINE_CHARS:,} characters; name the columns first"
        )
    _refuse_names(f"{path}:{line}", names, columns, keys)
    yield line, names
    for number, cells in rows:
        if cells is None:
            dropped[TOO_LONG] += 1
            continue
        if len(cells) != len(names):
            _refuse_ragged(f"{path}:{number}", kind, len(cells), len(names))
        yield number, cells


def _read_cells(
    path: Path,
    columns: Sequence[str],
    dropped: Counter[str],
    notes: list[str],
    keys: Mapping[str, str],
    whole: bool,
) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = read_cells(path, columns, dropped, notes, keys)
    _, header = next(rows)
    names = [name.strip() for name in header]
    kept = filter(None, names) if whole else columns
    places = {name: names.index(name) for name in kept}
    for number, cells in rows:
        yield number, {column: cells[place] for column, place in places.items()}


def _refuse_names(
    where: str, header: Sequence[str], columns: Sequence[str], keys: Mapping[str, str]
) -> None:
    """Raise DataError if a wanted column is missing, or any name stands twice."""
    names = [name.strip() for name in header]
    again = first_repeated(filter(None, names))
    if again is not None:
        raise DataError(
            f"{where}: two columns are named {_shown(again)}; rename one of them"
        )
    _refuse_missing(where, "column", columns, names, keys)


def _refuse_missing(
    where: str,
    what: str,
    columns: Sequence[str],
    names: Sequence[str],
    keys: Mapping[str, str],
) -> None:
    """Raise DataError if any column is missing, and say what there is instead of each."""
    missing = [column for column in columns if column not in names]
    if not missing:
        return
    listing = ", ".join(_shown(name) for name in names[:_MOST_NAMES]) or "none"
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    wanted = f" and no {what} ".join(map(repr, missing))
    raise DataError(
        f"{where}: no {what} {wanted}; {what}s: {listing}{more}; {_remedy(what, columns, missing, names, keys)}"
    )


def _remedy(
    what: str,
    columns: Sequence[str],
    missing: Sequence[str],
    names: Sequence[str],
    keys: Mapping[str, str],
) -> str:
    """Say what to do about missing names; where no name resembles a wanted one, the header may be a
    row of data, and a table whose text and labels are both missing may be of pairs.
    """
    near = {column: _near(column, names) for column in missing}
    renaming = _renaming_remedy(near, keys)
    if what == "key" or len(missing) < len(columns) or any(near.values()):
        return renaming
    header = "add a first line that names the columns"
    if len(columns) > 1:
        header += f" ({','.join(columns)})"
    if any(_is_of_a_row(name) for name in names):
        return f"this looks like a row: {header}"
    named = f"if this is a row, {header}; if it names them, {renaming}"
    return f"{named}; {_PAIRS}" if len(columns) > 1 else named


def _is_of_a_row(cell: str) -> bool:
    """Return whether a cell is hardly the name of a column."""
    return (
        len(cell) > _MOST_CHARS
        or len(cell.split()) > _MOST_WORDS
        or cell.strip(" -+.,").isdigit()
    )


def _near(wanted: str, names: Sequence[str]) -> str:
    """Return the name that may be meant, another case of it before another spelling; "" for
    none.
    """
    same = [name for name in names if name.casefold() == wanted.casefold()]
    near = same or difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    return near[0] if near else ""


def _renaming_remedy(near: Mapping[str, str], keys: Mapping[str, str]) -> str:
    """Say what to do about missing names, for each of which another is `near`, or none."""
    remedies = []
    far = [name for name in near if name in keys and not near[name]]
    if far:
        ones = "one" if len(far) == 1 else "ones"
        options = " ".join(_option(keys[name], "...") for name in far)
        remedies.append(f"name the right {ones} by {options}")
    for wanted, other in near.items():
        if wanted not in keys:
            shown = _shown(other) if other else "the right one"
            remedies.append(f"rename {shown} to {wanted!r}")
        elif other:
            option = _option(keys[wanted], _shown(other))
            remedies.append(f"did you mean {option}?")
    return "; ".join(remedies)


def _option(key: str, name: str) -> str:
    """Write the option that names a column: `--column NAME`, or `--set KEY=NAME` for a recipe's
    key.
    """
    if not key.startswith("--"):
        return f"--set {key}={name}"
    return f"{key} {shlex.quote(name)}"


def _shown(name: str) -> str:
    """Return a name as it is, if it is short and can be seen."""
    short = name if len(name) <= _MOST_CHARS else f"{name[:_MOST_CHARS]}…"
    return short if short.isprintable() and short.strip() else repr(short)


def _refuse_ragged(where: str, kind: str, width: int, num_columns: int) -> NoReturn:
    cells = "1 cell" if width == 1 else f"{width} cells"
    remedy = {
        "csv": "put a cell that holds the delimiter or a line break in quotes",
        "tsv": "take TABs and line breaks out of its cells, or write CSV with quotes",
    }[kind]
    raise DataError(
        f"{where}: {cells} where the header names {num_columns} columns; {remedy}"
    )


def _read_json(
    path: Path,
    columns: Sequence[str],
    dropped: Counter[str],
    keys: Mapping[str, str],
    whole: bool,
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines.filled_lines(path, dropped):
        if line is None:
            dropped[TOO_LONG] += 1
            continue
        where = f"{path}:{number}"
        row = parse_object(where, line)
        _refuse_missing(where, "key", columns, list(row), keys)
        if not whole:
            row = {column: row[column] for column in columns}
        yield number, row
