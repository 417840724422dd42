"""Plain text: a line is a segment, and all white space between lines stays.

Tags in it, as subtitles have, and placeholders are items of their segment.
"""

import re
from collections.abc import Iterator, Mapping

from weft.documents.document import FileDocument, Kind, TextDocument, decode_file
from weft.documents.inline import Builder, Piece, Syntax

# what ends a stretch that reads on: line ends, tabs, columns
_BREAK = re.compile(r"[\r\n\t\v\f\x1c-\x1e\x85\u2028\u2029]++| {3,}+")
# white space, then marks as before an item of a list
_HEAD = re.compile(r"\ufeff?\s*+(?:[-–—*+•>#]++\s++)*+")
_TAG = re.compile(
    r"<(/?)([A-Za-z][\w:.-]*+)"
    r"(?:\s++[\w:.-]++=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s\"'<>]++))*+\s*+(/?)>"
)


def _decode(raw: str) -> str:
    return raw


def _no_escapes(_source: str) -> Mapping[str, str]:
    return {}


SYNTAX = Syntax(
    re.compile(r"\s+"),
    _decode,
    _no_escapes,
    collapses=False,
    keeps_numbers=False,
)


def read_plain(text: str) -> TextDocument:
    """Read plain text."""
    builder = Builder(SYNTAX)
    place = 0
    for match in _BREAK.finditer(text):
        _read_line(text[place : match.start()], builder)
        builder.keep(match[0])
        place = match.end()
    _read_line(text[place:], builder)
    return builder.document()


def open_plain(content: bytes, name: str) -> FileDocument:
    """Read a file of plain text; raises UsageError if it is not UTF-8."""
    return FileDocument(read_plain(decode_file(content, name)))


def _read_line(line: str, builder: Builder) -> None:
    head = _HEAD.match(line)
    start = head.end() if head else 0
    builder.keep(line[:start])
    builder.run(list(_pieces(line[start:])))


def _pieces(line: str) -> Iterator[Piece]:
    tags = list(_TAG.finditer(line))
    opened = {tag[2] for tag in tags if not tag[1]}
    closed = {tag[2] for tag in tags if tag[1]}
    place = 0
    for tag in tags:
        if tag.start() > place:
            yield Piece(line[place : tag.start()])
        yield Piece(tag[0], _kind(tag, opened & closed), tag[2])
        place = tag.end()
    if place < len(line):
        yield Piece(line[place:])


def _kind(tag: re.Match[str], paired: set[str]) -> Kind:
    """Return what a tag is; one without a partner in its line is kept like a placeholder."""
    if tag[2].lower() == "br":
        return Kind.BREAK
    if tag[3]:
        return Kind.EMPTY
    if tag[2] not in paired:
        return Kind.KEPT
    return Kind.CLOSE if tag[1] else Kind.OPEN
