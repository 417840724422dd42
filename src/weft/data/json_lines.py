"""A glossary and a translation memory as JSON lines, the form in which a pack has them.

A line of a glossary has `source`, `target` and perhaps `avoid`, each a list of alternatives, and
`case` and `inflection` where they are true. A line of a memory has `source` and `target`, and
`coded` with both sides where codes were taken out of them (`weft.data.formats.codes`).
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from weft.data.formats.json_object import parse_object
from weft.data.formats.lines import MAX_LINE_CHARS
from weft.data.formats.row import on_one_line
from weft.data.glossary import Entry, Glossary
from weft.data.memory import Units
from weft.errors import DataError

T = TypeVar("T")
Row = dict[str, Any]
_PIECE = 2**20  # bytes that are looked through at once
_MOST_BYTES = 4 * 6 * MAX_LINE_CHARS  # of a line: four sides, each letter as \\uXXXX
_END = b"\n"


def glossary_lines(glossary: Glossary) -> Iterator[bytes]:
    """Yield a line for each term."""
    for entry in glossary.entries:
        row: Row = {"source": entry.sources, "target": entry.targets}
        if entry.avoided:
            row["avoid"] = entry.avoided
        if entry.exact_case:
            row["case"] = True
        if entry.inflected:
            row["inflection"] = True
        yield _line(row)


def glossary_of_lines(content: memoryview, name: str) -> Glossary:
    """Return the glossary of lines. Raises DataError, with the name and the line, for what
    `glossary_lines` does not write.
    """
    return Glossary(tuple(_read(content, name, _entry)))


def memory_lines(units: Units) -> Iterator[bytes]:
    """Yield a line for each unit, in their order. None of the units are parts of others."""
    assert not units.num_parts
    coded = dict(zip(units.coded, range(len(units.coded)), strict=True))
    for number in range(len(units)):
        row: Row = {"source": units.sources[number], "target": units.targets[number]}
        place = coded.get(number)
        if place is not None:
            row["coded"] = units.coded_sources[place], units.coded_targets[place]
        yield _line(row)


def units_of_lines(content: memoryview, name: str) -> Units:
    """Return the units of lines, which stand in a file of a name. Raises DataError, with the name
    and the line, for what `memory_lines` does not write.
    """
    units = Units([name])
    for number, row in enumerate(_read(content, name, _unit), start=1):
        source, target, *coded = row
        units.add(source, target, 0, number)
        if coded:
            units.add_marked(*coded)
    return units


def _line(row: Row) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + _END


def _read(content: memoryview, name: str, read: Callable[[Row, str], T]) -> Iterator[T]:
    """Yield what is read of each line."""
    for number, line in enumerate(_lines(content, name), start=1):
        where = f"{name}:{number}"
        try:
            text = line.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise DataError(f"{where}: not UTF-8") from None
        yield read(parse_object(where, text), where)


def _lines(content: memoryview, name: str) -> Iterator[bytes]:
    """Yield each line, of which the whole content is never copied at once."""
    held = b""
    for start in range(0, len(content), _PIECE):
        *lines, held = (held + content[start : start + _PIECE]).split(_END)
        yield from lines
        if len(held) > _MOST_BYTES:
            raise DataError(f"{name}: a line has over {_MOST_BYTES:,} bytes")
    if held:
        raise DataError(f"{name}: its last line has no end")


def _entry(row: Row, where: str) -> Entry:
    _refuse_keys(row, where, {"source", "target"}, {"avoid", "case", "inflection"})
    sources = _texts(row, "source", where)
    if not sources:
        raise DataError(f"{where}: the term has no source")
    return Entry(
        sources,
        _texts(row, "target", where),
        _texts(row, "avoid", where),
        exact_case=_is_true(row, "case", where),
        inflected=_is_true(row, "inflection", where),
        where=where,
    )


def _unit(row: Row, where: str) -> tuple[str, ...]:
    _refuse_keys(row, where, {"source", "target"}, {"coded"})
    coded = row.get("coded", [])
    if not isinstance(coded, list) or len(coded) not in (0, 2):
        raise DataError(f"{where}: coded has not two sides")
    sides = [_text(row[key], where) for key in ("source", "target")]
    return *sides, *(_any_text(side, where) for side in coded)


def _refuse_keys(row: Row, where: str, needed: set[str], others: set[str]) -> None:
    """Raise DataError where a key is missing, or is none of these."""
    strays = (row.keys() ^ needed) - (others & row.keys())
    if strays:
        raise DataError(
            f"{where}: {min(strays)[:40]!r} is missing, or should not be there"
        )


def _texts(row: Row, key: str, where: str) -> tuple[str, ...]:
    """Return the texts of a list; none where the key is missing."""
    texts = row.get(key, [])
    if not isinstance(texts, list):
        raise DataError(f"{where}: {key} is no list of texts")
    return tuple(_text(text, where) for text in texts)


def _text(text: Any, where: str) -> str:
    """Return a text as a file of terms or units has it: in one line, and not blank."""
    found = _any_text(text, where)
    if on_one_line(found) != found:
        raise DataError(f"{where}: {found[:40]!r} is no text of one line")
    return found


def _any_text(text: Any, where: str) -> str:
    if not isinstance(text, str) or not text or "\0" in text:
        raise DataError(f"{where}: {str(text)[:40]!r} is no text")
    return text


def _is_true(row: Row, key: str, where: str) -> bool:
    if row.get(key, True) is not True:
        raise DataError(f"{where}: {key} is neither true nor left out")
    return key in row
