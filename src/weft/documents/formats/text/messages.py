"""Messages of programs: plain text with placeholders and tags, or a piece of HTML."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from weft.documents.document import Doubt, Kind, TextDocument
from weft.documents.formats.text.plain import SYNTAX as PLAIN
from weft.documents.formats.text.plain import read_plain, tagged_pieces
from weft.documents.formats.text.values import Value
from weft.documents.formats.web.html import read_html
from weft.documents.inline import Builder, Piece, Syntax
from weft.documents.placeholders import find_choices

MESSAGE = replace(PLAIN, keeps_numbers=True)
# block tags, entities, elements that are kept: what only a reader of HTML knows
_HTML = re.compile(
    r"<(?:p|div|ul|ol|li|h[1-6]|table|tr|td|blockquote|br|hr|img|code|kbd|pre)\b[^<>]*>"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|hellip|[mn]dash|[lr][sd]quo|copy|#\d{1,7}|#x[0-9a-f]{1,6});",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"</?\d{1,3}\s*/?>")  # a tag in messages of React
_NUMBER = re.compile(r"((?<!\w)#(?!\w))")


def read_message(text: str, syntax: Syntax = MESSAGE) -> TextDocument:
    """Read a message, as HTML where it shows that it is."""
    if syntax is MESSAGE and _HTML.search(text) and not _NUMBERED.search(text):
        return read_html(text)
    return read_plain(text, syntax)


def choices_in(text: str) -> list[Value]:
    """Read the messages of ICU in a text, which are kept in it: the texts that they choose from."""
    found = []
    for start, end in find_choices(text):
        raw = text[start:end]
        builder = Builder(MESSAGE)
        inside: list[Value] = []
        place = 0
        for first, last in _branches(raw):
            builder.keep(raw[place:first])
            builder.run(list(_branch_pieces(raw[first:last])))
            inside += choices_in(raw[first:last])
            place = last
        builder.keep(raw[place:])
        found.append(Value(raw, builder.document(), _as_it_is, inside=tuple(inside)))
    return found


def _branches(choice: str) -> Iterator[tuple[int, int]]:
    """Yield where the texts are that a message of ICU chooses from."""
    depth = 0
    start = 0
    for match in re.finditer(r"[{}]", choice):
        if match[0] == "{":
            depth += 1
            if depth == 2:
                start = match.end()
        else:
            if depth == 2:
                yield start, match.start()
            depth -= 1


def _branch_pieces(text: str) -> Iterator[Piece]:
    """Divide a text of a choice; `#` stands for its number."""
    for piece in tagged_pieces(text):
        if piece.kind is not None:
            yield piece
            continue
        place = 0
        for start, end in find_choices(piece.raw):
            yield from _numbered_pieces(piece.raw[place:start])
            yield Piece(piece.raw[start:end], Kind.KEPT)
            place = end
        yield from _numbered_pieces(piece.raw[place:])


def _numbered_pieces(text: str) -> Iterator[Piece]:
    for part in _NUMBER.split(text):
        if part:
            yield Piece(part, Kind.KEPT if part == "#" else None)


def _as_it_is(text: str, _doubts: Sequence[Doubt]) -> str:
    return text
