"""Plain text: a line is a segment, and in files a paragraph whose lines are filled; all white space
between segments stays.

Tags in it, as subtitles have, and placeholders are items of their segment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft.documents.document import (
    FileDocument,
    Kind,
    Reading,
    Segment,
    TextDocument,
    Written,
    decode_file,
)
from weft.documents.formats.text.lines import Line, lines_of
from weft.documents.formats.text.paragraphs import Paragraph, paragraphs_of
from weft.documents.formats.text.values import joined
from weft.documents.formats.text.wrapping import fill
from weft.documents.formats.web.native import native_kind, native_name
from weft.documents.inline import Builder, Piece, Syntax

# what ends a stretch that reads on: line ends, tabs, columns
_BREAK = re.compile(r"[\r\n\t\v\f\x1c-\x1e\x85\u2028\u2029]++| {3,}+")
# white space, then marks as before an item of a list
_HEAD = re.compile(r"\ufeff?\s*+(?:[-–—*+•>#]++\s++)*+")
_TAG = re.compile(
    r"<(/?)([A-Za-z][\w:.-]*+|\d{1,3}+)"
    r"(?:\s++[\w:.-]++=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s\"'<>]++))*+\s*+(/?)>"
)
_SQUARE_TAG = re.compile(r"\[(/?)([A-Za-z]\w*+)(?:=[^\[\]\n]*+)?\]")


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


def read_plain(text: str, syntax: Syntax = SYNTAX) -> TextDocument:
    """Read plain text; a syntax says how it is written where that is not as it reads."""
    builder = Builder(syntax)
    place = 0
    for match in _BREAK.finditer(text):
        _read_line(text[place : match.start()], builder)
        builder.keep(match[0])
        place = match.end()
    _read_line(text[place:], builder)
    return builder.document()


@dataclass(frozen=True)
class PlainFile(FileDocument):
    """A file of plain text; some of its segments, by their numbers, are filled paragraphs."""

    filled: Mapping[int, "Filled"] = field(default_factory=dict)

    def write(self, translations: Sequence[Written]) -> bytes:
        """Return the file's bytes, the lines of paragraphs filled anew."""
        written = list(translations)
        for number, paragraph in self.filled.items():
            if number < len(written) <= len(self.segments):
                text = paragraph.write(written[number].text, self.segments[number])
                written[number] = Written(text, written[number].doubt)
        return super().write(written)


@dataclass(frozen=True)
class Filled:
    """The way in which a paragraph is filled.

    `head` is how wide what stands before its first line is, `between` what stands between two.
    """

    head: int
    between: str
    width: int
    white: re.Pattern[str]

    def write(self, text: str, segment: Segment) -> str:
        """Divide a translation into lines."""
        if text == segment.source:
            return text
        indent = len(self.between.lstrip("\r\n"))
        lines = fill(self.white.sub(" ", text), self.head, indent, self.width)
        return self.between.join(lines)


def open_plain(content: bytes, reading: Reading) -> PlainFile:
    """Read a file of plain text; raises UsageError if it is not UTF-8.

    A paragraph whose lines are filled is one segment; any other line is one.
    """
    lines = lines_of(decode_file(content, reading.name))
    documents: list[TextDocument] = []
    filled: dict[int, Filled] = {}
    place = 0
    num_segments = 0
    for paragraph in paragraphs_of(lines):
        inner = _read_filled(lines, paragraph)
        if len(inner[0].segments) != 1:
            continue
        before = read_plain(_joined(lines[place : paragraph.first]))
        documents += (before, inner[0])
        filled[num_segments + len(before.segments)] = inner[1]
        num_segments += len(before.segments) + 1
        place = paragraph.end
    documents.append(read_plain(_joined(lines[place:])))
    return PlainFile(joined(documents), filled=filled)


def _joined(lines: Sequence[Line]) -> str:
    return "".join(line.text + line.end for line in lines)


def _read_filled(
    lines: Sequence[Line], paragraph: Paragraph
) -> tuple[TextDocument, Filled]:
    """Read a paragraph, in which what stands between two lines is a space."""
    text = _joined(lines[paragraph.first : paragraph.end])
    white = re.compile(rf"(?:\r?\n{re.escape(paragraph.prefix)}|\s)++")
    builder = Builder(replace(SYNTAX, white=white, collapses=True))
    found = _HEAD.match(text)
    start = found.end() if found else 0
    builder.keep(text[:start])
    builder.run(list(tagged_pieces(text[start:])))
    between = lines[paragraph.first].end + paragraph.prefix
    return builder.document(), Filled(start, between, paragraph.width, white)


def _read_line(line: str, builder: Builder) -> None:
    head = _HEAD.match(line)
    start = head.end() if head else 0
    builder.keep(line[:start])
    builder.run(list(tagged_pieces(line[start:])))


def tagged_pieces(line: str) -> Iterator[Piece]:
    """Divide a line into text and tags; one without a partner is kept like a placeholder."""
    tags = sorted([*_tags(line), *_square_tags(line)])
    opened = {tag.name for tag in tags if tag.kind is Kind.OPEN}
    closed = {tag.name for tag in tags if tag.kind is Kind.CLOSE}
    alone = opened ^ closed
    place = 0
    for tag in tags:
        if tag.start < place:
            continue
        if tag.start > place:
            yield Piece(line[place : tag.start])
        is_alone = tag.kind in (Kind.OPEN, Kind.CLOSE) and tag.name in alone
        kind = Kind.KEPT if is_alone else tag.kind
        yield Piece(line[tag.start : tag.end], kind, tag.name)
        place = tag.end
    if place < len(line):
        yield Piece(line[place:])


def pieces_around(text: str, kept: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Divide a text as `tagged_pieces` does, in which some stretches are kept, also inside tags."""
    masked = list(text)
    for start, end in kept:
        # as an attribute of a tag has it
        masked[start:end] = "a=".ljust(end - start, "a")[: end - start]
    waiting = list(reversed(kept))
    place = 0
    for piece in tagged_pieces("".join(masked)):
        start = place
        end = place + len(piece.raw)
        place = end
        while waiting and waiting[-1][1] <= start:
            waiting.pop()
        if piece.kind is not None:
            yield Piece(text[start:end], piece.kind, piece.name)
            continue
        while waiting and waiting[-1][0] < end:
            first, last = waiting.pop()
            if first > start:
                yield Piece(text[start:first])
            yield Piece(text[first:last], Kind.KEPT)
            start = last
        if start < end:
            yield Piece(text[start:end])


class _Tag(NamedTuple):
    """A tag in a line, or an element that is one as a whole."""

    start: int
    end: int
    name: str
    kind: Kind


def _tags(line: str) -> Iterator[_Tag]:
    endless: set[str] = set()  # names of elements that no end tag follows any more
    place = 0
    for match in _TAG.finditer(line):
        if match.start() < place:
            continue
        place = match.end()
        name = match[2]
        kind = _kind(match)
        native = native_kind(name.lower(), match[0]) if kind is Kind.OPEN else None
        if native and name not in endless:
            end_tag = f"</{name}>"
            end = line.find(end_tag, place)
            if end < 0:
                endless.add(name)
            else:
                place = end + len(end_tag)
                name = native_name(match[0])
                kind = native
        yield _Tag(match.start(), place, name, kind)


def _square_tags(line: str) -> Iterator[_Tag]:
    """Yield the tags of BBCode, `[b]` and `[url=x]`, whose name both opens and closes in a line."""
    if "[/" not in line:
        return
    found = list(_SQUARE_TAG.finditer(line))
    closed = {match[2] for match in found if match[1]}
    opened = {match[2] for match in found if not match[1]}
    for match in found:
        if match[2] in opened & closed:
            kind = Kind.CLOSE if match[1] else Kind.OPEN
            yield _Tag(match.start(), match.end(), f"[{match[2]}", kind)


def _kind(tag: re.Match[str]) -> Kind:
    """Return what a tag is by itself."""
    if tag[2].lower() == "br":
        return Kind.BREAK
    if tag[3]:
        return Kind.EMPTY
    return Kind.CLOSE if tag[1] else Kind.OPEN
