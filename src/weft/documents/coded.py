"""Units of a memory from whose text codes were taken out, read with the marks of these."""

from collections.abc import Iterator

from weft.data.formats.codes import Mark, marks_in
from weft.documents.document import Kind, TextDocument
from weft.documents.formats.text.messages import MESSAGE
from weft.documents.inline import Builder, Piece


def read_coded(text: str) -> TextDocument:
    """Read the text of a unit with marks: what was a pair of codes is one of tags, and any other
    code stands for itself.
    """
    builder = Builder(MESSAGE)
    builder.run(list(_pieces(text)))
    return builder.document()


def _pieces(text: str) -> Iterator[Piece]:
    place = 0
    for mark in marks_in(text):
        if mark.start > place:
            yield Piece(text[place : mark.start])
        yield _piece(mark, text)
        place = mark.end
    if place < len(text):
        yield Piece(text[place:])


def _piece(mark: Mark, text: str) -> Piece:
    if mark.is_pair:
        kind = Kind.OPEN if mark.opens else Kind.CLOSE
        return Piece(text[mark.start : mark.end], kind, mark.name)
    return Piece(mark.shown or text[mark.start : mark.end], Kind.KEPT)
