"""JSON lines of pairs: an object a line, whose keys say the two sides as the columns of a table do.

The object may have the pair in an object of its own, `{"translation": {"en": "...", "de": "..."}}`,
as data sets of the web often have it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weft.data.formats.header import Header, find_header
from weft.data.formats.json_object import parse_object
from weft.data.formats.lines import filled_lines
from weft.data.formats.named_sides import INNER, choose_sides, text_in
from weft.data.formats.pairs import OpenPairs, Sides
from weft.data.formats.row import TOO_LONG, PairRow
from weft.errors import DataError


def open_jsonl(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open JSON lines, by the languages asked for and those of the file's name, else by the keys.

    Raises DataError where nothing says which keys are the two sides.
    """
    dropped = Counter[str]()
    first = next((row for _, row in _objects(path, Counter()) if row is not None), {})
    keys = list(first)
    header, pair, notes = choose_sides(path, "keys", keys, keys, asked, named)
    return OpenPairs(
        rows=read_jsonl(path, header, dropped),
        languages=pair,
        dropped=dropped,
        notes=notes,
    )


def holds_pairs(row: Mapping[str, Any]) -> bool:
    """Return whether an object's keys name the two sides of a pair for certain."""
    keys = list(_pair_of(row))
    return find_header(keys, None, None, least_known=2) is not None


def read_jsonl(path: Path, header: Header, dropped: Counter[str]) -> Iterator[PairRow]:
    """Yield the line and the two sides of each object. Raises DataError for one without them."""
    src_key, tgt_key = header.cells[header.src], header.cells[header.tgt]
    for number, row in _objects(path, dropped):
        if row is None:
            dropped[TOO_LONG] += 1
            continue
        where = f"{path}:{number}"
        yield number, _side(where, row, src_key), _side(where, row, tgt_key)


def _objects(
    path: Path, dropped: Counter[str]
) -> Iterator[tuple[int, Mapping[str, Any] | None]]:
    for number, line in filled_lines(path, dropped):
        if line is None:
            yield number, None
        else:
            yield number, _pair_of(parse_object(f"{path}:{number}", line))


def _pair_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object that has the sides: an inner one, where there is one."""
    inner = row.get(INNER)
    return inner if isinstance(inner, dict) else row


def _side(where: str, row: Mapping[str, Any], key: str) -> str:
    """Return a side as text; null is empty."""
    if key not in row:
        raise DataError(
            f"{where}: the key {key!r} of the first line is missing; give every line both sides"
        )
    return text_in(where, row[key], key, "write it in quotes")
