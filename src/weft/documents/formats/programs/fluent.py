"""Fluent (.ftl): the patterns of messages, attributes and terms, and of the variants of a choice.

The package fluent.syntax says where each pattern and each placeable stands. Placeables are kept.
Source: Project Fluent, Syntax 1.0, "Special Characters" and "Indentation".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from weft.documents.document import Doubt, Reading, decode_file
from weft.documents.formats.text.plain import SYNTAX as PLAIN
from weft.documents.formats.text.plain import pieces_around
from weft.documents.formats.text.values import Collector, Value, ValuesDocument
from weft.documents.inline import Builder, Piece
from weft.errors import UsageError

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
# what has a meaning where a line begins
_FIRST = re.compile(r"(\n *)([\[*.])|\{\s*\"(?:[^\"\\\n]|\\.)*\"\s*\}|[{}]")
_MOST_NESTED = 20
_BRACES = {"{": '{"{"}', "}": '{"}"}'}


def open_fluent(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of Fluent; raises UsageError if it is not UTF-8, or nested too deep."""
    text = decode_file(content, reading.name)
    found = Collector()
    place = 0
    for entry in _entries(text, reading.name):
        if type(entry).__name__ == "Junk":
            line = text.count("\n", 0, entry.span.start) + 1
            found.note("is not understood as Fluent, and stays", f"line {line}")
        for pattern in _patterns(entry):
            start = pattern.span.start
            found.keep(text[place:start])
            place = pattern.span.end
            _add(found, text, pattern)
    found.keep(text[place:])
    return found.document()


def _entries(text: str, name: str) -> Sequence[Any]:
    try:
        found: Sequence[Any] = (
            import_module("fluent.syntax").FluentParser().parse(text).body
        )
    except RecursionError:
        raise UsageError(
            f"{name}: placeables are nested deeper than can be read; divide that message"
        ) from None
    return found


def _patterns(entry: Any) -> Iterator[Any]:
    """Yield the patterns of a message or a term, in their order."""
    if getattr(entry, "value", None) is not None:
        yield entry.value
    for attribute in getattr(entry, "attributes", ()):
        yield attribute.value


def _add(found: Collector, text: str, pattern: Any) -> None:
    builder = Builder(_SYNTAX)
    inside = _run(builder, text, pattern, 0)
    raw = text[pattern.span.start : pattern.span.end]
    encode = partial(_encoded, _begins_line(text, pattern))
    found.add(raw, builder.document(), encode, inside=inside)


def _run(builder: Builder, text: str, pattern: Any, depth: int) -> list[Value]:
    """Add the text of a pattern; return the choices in it."""
    start = pattern.span.start
    raw = text[start : pattern.span.end]
    spans = []
    inside = []
    for element in pattern.elements:
        if type(element).__name__ != "Placeable":
            continue
        first = element.span.start - start
        spans.append((first, element.span.end - start))
        if type(element.expression).__name__ == "SelectExpression":
            inside.append(_choice(text, element, depth + 1))
    for group in _paragraphs(pieces_around(raw, spans)):
        if isinstance(group, str):
            builder.keep(group)
        else:
            builder.run(group)
    return inside


def _paragraphs(pieces: Iterator[Piece]) -> Iterator[str | list[Piece]]:
    """Yield the pieces of each paragraph, and as texts the empty lines between."""
    group: list[Piece] = []
    for piece in pieces:
        place = 0
        gaps = _PARAGRAPH.finditer(piece.raw) if piece.kind is None else ()
        for gap in gaps:
            if gap.start() > place:
                group.append(Piece(piece.raw[place : gap.start()]))
            yield group
            yield gap[0]
            group = []
            place = gap.end()
        if place < len(piece.raw):
            group.append(replace(piece, raw=piece.raw[place:]))
    yield group


def _choice(text: str, placeable: Any, depth: int) -> Value:
    """Return a choice whose variants are patterns."""
    builder = Builder(_SYNTAX)
    place = placeable.span.start
    inside: list[Value] = []
    for variant in placeable.expression.variants:
        pattern = variant.value
        builder.keep(text[place : pattern.span.start])
        place = pattern.span.start
        if depth < _MOST_NESTED and not _begins_line(text, pattern):
            inside += _run(builder, text, pattern, depth)
            place = pattern.span.end
    builder.keep(text[place : placeable.span.end])
    raw = text[placeable.span.start : placeable.span.end]
    return Value(raw, builder.document(), _as_it_is, inside=tuple(inside))


def _begins_line(text: str, pattern: Any) -> bool:
    """Return whether a pattern stands in lines of its own, so that its first one begins there."""
    return text[: pattern.span.start].rstrip(" ").endswith("\n")


def _encoded(begins_line: bool, text: str, _doubts: Sequence[Doubt]) -> str:
    """Write a pattern; a mark that would be one of Fluent becomes a placeable."""
    head = "\n" if begins_line else ""
    text = head + text
    parts: list[str] = []
    place = 0
    depth = 0
    for match in _FIRST.finditer(text):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if match[2] and depth == 0:
            parts += (text[place : match.start(2)], f'{{"{match[2]}"}}')
            place = match.end()
    parts.append(text[place:])
    return "".join(parts)[len(head) :]


def _as_it_is(text: str, _doubts: Sequence[Doubt]) -> str:
    return text


def _escapes_of(_source: str) -> Mapping[str, str]:
    return _BRACES


_SYNTAX = replace(PLAIN, escapes_of=_escapes_of, collapses=True, keeps_numbers=True)
