"""Segments from the inline pieces of a document, whatever its format.

A format's reader finds the pieces between two blocks: text, tags, what is kept. Here tags are
paired, what need not be inside a segment leaves it, and the text is made that a model reads.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.documents.document import Item, Kind, Segment, TextDocument
from weft.documents.placeholders import find_kept
from weft.documents.words import OPENING

# marks before which there is no space
_CLOSING = ".,;:!?)]}…»”’%，。！？；：、）」』】》"
_AROUND = dict(zip("([\"'„“«‘»「『（", ")]\"'“”»’«」』）", strict=True))
_AROUND["&quot;"] = "&quot;"
_LONGEST_COMMA = 8
_CALL = re.compile(r"[\"'(=]\s*tel:", re.I)  # the address of a telephone
# between the placeholders of a list; between those that are one thing
_LIST = re.compile(r"\s?[,;/|]\s?")
_SLASH = re.compile(r"\s?/\s?")
_LONGEST_LIST = 40
# white space other than spaces and line breaks
_HARD = re.compile(r"[^\S \t\r\n\f]")
_COMMA = re.compile(r"[,;:–—-]\s++$")
# what binds a placeholder to the text after it, as in "{name}: hello" and "{name} - hello"
_BOUND = re.compile(r"\s*+[,;:.!?…)\]–—-]++(?=\s|$)")


@dataclass(frozen=True)
class Piece:
    """A stretch of a document between two blocks; text has no `kind`.

    Tags that belong together have one `name`.
    """

    raw: str
    kind: Kind | None = None
    name: str = ""


@dataclass(frozen=True)
class Syntax:
    """The way in which a format writes text.

    `white` finds white space, and `decode` reads a stretch without any. With `collapses`, white
    space of any length is one space. `escapes_of` says how to write the characters of what takes
    the place of some text. `keeps_numbers` is that of its segments.
    """

    white: re.Pattern[str]
    decode: Callable[[str], str]
    escapes_of: Callable[[str], Mapping[str, str]]
    collapses: bool
    keeps_numbers: bool = True

    def space(self, raw: str) -> str:
        """Return the white space that a model reads in the place of some."""
        return " " if raw and self.collapses else raw


class Builder:
    """Collects a document in its order: what stays, and runs of inline pieces."""

    def __init__(self, syntax: Syntax) -> None:
        """Begin a document without anything."""
        self._syntax = syntax
        self._segments: list[Segment] = []
        self._skeleton: list[list[str]] = [[]]

    def keep(self, raw: str) -> None:
        """Add a stretch that stays as it is."""
        self._skeleton[-1].append(raw)

    def run(self, pieces: Sequence[Piece]) -> None:
        """Add the inline pieces between two blocks.

        A tag without a partner among them stays where it is, and ends a segment.
        """
        found = (part for piece in pieces for part in _parts(piece))
        parts = list(_with_bound_apart(found))
        parts = _with_telephones(parts, self._syntax.decode)
        if len(parts) == 1 and parts[0].kind is None:
            self._segment(parts, 0, 1, {})
            return
        pieces, partners = _pair(parts, self._syntax.white)
        pieces = _with_marks(_with_lists(pieces))
        begin = 0
        for place, piece in enumerate(pieces):
            if not _surrounds(piece) or place in partners:
                continue
            self._segment(pieces, begin, place, partners)
            self.keep(piece.raw)
            begin = place + 1
        self._segment(pieces, begin, len(pieces), partners)

    def document(self) -> TextDocument:
        """Return the document that was collected."""
        skeleton = tuple("".join(stretch) for stretch in self._skeleton)
        return TextDocument(tuple(self._segments), skeleton)

    def _segment(
        self, pieces: list[Piece], begin: int, end: int, partners: dict[int, int]
    ) -> None:
        """Add what is a segment, once the tags and white space at its edges are taken off."""
        decode = self._syntax.decode
        if not any(_has_letters(piece, decode) for piece in pieces[begin:end]):
            self.keep("".join(piece.raw for piece in pieces[begin:end]))
            return
        first, last = self._inner(pieces, begin, end, partners)
        self.keep("".join(piece.raw for piece in pieces[begin:first]))
        inner = list(pieces[first:last])
        head, tail = self._trim(inner)
        self.keep(head)
        pairs = {
            place - first: partners[place] - first
            for place in range(first, last)
            if place in partners
        }
        self._segments.append(_Text(self._syntax, inner, pairs).segment())
        self._skeleton.append([tail])
        self.keep("".join(piece.raw for piece in pieces[last:end]))

    def _inner(
        self, pieces: list[Piece], first: int, last: int, partners: dict[int, int]
    ) -> tuple[int, int]:
        """Return the places without the white space and tags at the edges that can stay there."""
        while True:
            if self._may_leave(pieces[first]):
                first += 1
            elif self._may_leave(pieces[last - 1]):
                last -= 1
            elif partners.get(first) == last - 1:
                first += 1
                last -= 1
            elif _is_bound(pieces[first : first + 2]):
                first += 2
            else:
                return first, last

    def _may_leave(self, piece: Piece) -> bool:
        """Return whether a piece at the edge of a segment is white space or a tag without words."""
        if piece.kind is None:
            return bool(self._syntax.white.fullmatch(piece.raw))
        return piece.kind in (Kind.EMPTY, Kind.BREAK)

    def _trim(self, pieces: list[Piece]) -> tuple[str, str]:
        """Take white space off the text at both edges, and return it."""
        head = tail = ""
        white = self._syntax.white
        if pieces[0].kind is None and (match := white.match(pieces[0].raw)):
            head = match[0]
            rest = pieces[0].raw.removeprefix(head)
            pieces[0] = replace(pieces[0], raw=rest)
        if pieces[-1].kind is None:
            raw = pieces[-1].raw
            for match in white.finditer(raw):
                tail = match[0] if match.end() == len(raw) else ""
            end = len(raw) - len(tail)
            pieces[-1] = replace(pieces[-1], raw=raw[:end])
        return head, tail


def _parts(piece: Piece) -> Iterator[Piece]:
    """Divide text into what is translated and what is kept."""
    if piece.kind is not None:
        yield piece
        return
    raw = piece.raw
    place = 0
    for start, stop in find_kept(raw):
        if start > place:
            yield Piece(raw[place:start])
        yield Piece(raw[start:stop], Kind.KEPT)
        place = stop
    if place < len(raw):
        yield Piece(raw[place:])


def _with_bound_apart(parts: Iterable[Piece]) -> Iterator[Piece]:
    """Divide off the mark that is bound to a placeholder at the head: both may leave a segment."""
    is_head = True
    before = None
    for part in parts:
        piece = part
        bound = None
        if is_head and before is Kind.KEPT and piece.kind is None:
            bound = _BOUND.match(piece.raw)
        if bound:
            yield Piece(bound[0])
            piece = Piece(piece.raw[bound.end() :])
        is_head = is_head and (piece.kind is not None or not piece.raw.strip())
        before = piece.kind
        if piece.raw or not bound:
            yield piece


def _with_telephones(
    parts: Sequence[Piece], decode: Callable[[str], str]
) -> list[Piece]:
    """Make a placeholder of each link to a telephone whose text is a number."""
    made: list[Piece] = []
    for part in parts:
        made.append(part)
        before = made[-3:]
        kinds = [piece.kind for piece in before]
        if kinds == [Kind.OPEN, None, Kind.CLOSE] and _is_call(before, decode):
            whole = "".join(piece.raw for piece in before)
            made[-3:] = [Piece(whole, Kind.KEPT)]
    return made


def _is_call(pieces: Sequence[Piece], decode: Callable[[str], str]) -> bool:
    opening, text, closing = pieces
    is_link = _CALL.search(opening.raw) or _CALL.search(closing.raw)
    return bool(is_link) and not _has_letters(text, decode)


def _is_bound(pieces: list[Piece]) -> bool:
    """Return whether these are a placeholder at the head of a text, and a mark between both."""
    kinds = [piece.kind for piece in pieces]
    if kinds != [Kind.KEPT, None]:
        return False
    return _BOUND.fullmatch(pieces[1].raw) is not None


def _surrounds(piece: Piece) -> bool:
    return piece.kind in (Kind.OPEN, Kind.CLOSE)


def _pair(
    pieces: list[Piece], white: re.Pattern[str]
) -> tuple[list[Piece], dict[int, int]]:
    """Return the pieces, and each tag's partner by its place.

    Tags that are not well nested have none, nor have those around them. A pair without text in it
    becomes one piece.
    """
    partners: dict[int, int] = {}
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece.kind is Kind.OPEN:
            opened.append(place)
        elif piece.kind is Kind.CLOSE:
            if opened and pieces[opened[-1]].name == piece.name:
                partners[place] = opened.pop()
                partners[partners[place]] = place
            else:
                opened.clear()
    return _join_empty(pieces, partners, white)


def _with_lists(pieces: list[Piece]) -> list[Piece]:
    """Make one placeholder of several with slashes between, or of a list and its brackets; in
    the places of the others is empty text.
    """
    pieces = list(pieces)
    place = 0
    while place < len(pieces):
        last = _end_of_list(pieces, place, _LIST)
        if last > place and _takes_brackets(pieces, place, last):
            stretch = slice(place - 1, last + 2)
            pieces[stretch] = _in_brackets(pieces[stretch])
        elif (last := _end_of_list(pieces, place, _SLASH)) > place:
            stretch = slice(place, last + 1)
            pieces[stretch] = _as_one(pieces[stretch])
        place = last + 1
    return pieces


def _end_of_list(pieces: Sequence[Piece], place: int, link: re.Pattern[str]) -> int:
    """Return the place of the last placeholder that is linked to the one at a place."""
    last = place
    limit = min(len(pieces) - 2, place + _LONGEST_LIST)
    if pieces[place].kind is not Kind.KEPT:
        return place
    while last < limit and pieces[last + 2].kind is Kind.KEPT:
        between = pieces[last + 1]
        if between.kind is not None or not link.fullmatch(between.raw):
            break
        last += 2
    return last


def _takes_brackets(pieces: Sequence[Piece], place: int, last: int) -> bool:
    """Return whether a list is all that is between two brackets or quotes."""
    if place == 0 or last + 1 == len(pieces):
        return False
    before, after = pieces[place - 1], pieces[last + 1]
    if before.kind or after.kind:
        return False
    return bool(_marks_around(before.raw, after.raw)[1])


def _in_brackets(stretch: Sequence[Piece]) -> list[Piece]:
    """Return a list with the texts around it, the brackets at whose edges become its own."""
    before, *inner, after = stretch
    opening, closing = _marks_around(before.raw, after.raw)
    whole, *rest = _as_one(inner)
    head = Piece(before.raw.removesuffix(opening))
    tail = Piece(after.raw.removeprefix(closing))
    closed = Piece(opening + whole.raw + closing, Kind.KEPT)
    return [head, closed, *rest, tail]


def _as_one(stretch: Sequence[Piece]) -> list[Piece]:
    """Return as many pieces, of which the first is all of them."""
    whole = Piece("".join(piece.raw for piece in stretch), Kind.KEPT)
    return [whole, *[Piece("")] * (len(stretch) - 1)]


def _with_marks(pieces: list[Piece]) -> list[Piece]:
    """Give each placeholder the marks that are there for it alone: brackets or quotes around it,
    and a comma before it where another mark follows.
    """
    pieces = list(pieces)
    for place in range(1, len(pieces) - 1):
        before, piece, after = pieces[place - 1 : place + 2]
        if piece.kind not in (Kind.KEPT, Kind.EMPTY) or before.kind or after.kind:
            continue
        opening, closing = _marks_around(before.raw, after.raw)
        if opening or closing:
            rest = len(before.raw) - len(opening)
            pieces[place - 1] = Piece(before.raw[:rest])
            whole = opening + piece.raw + closing
            pieces[place] = Piece(whole, Kind.KEPT)
            pieces[place + 1] = Piece(after.raw[len(closing) :])
    return pieces


def _marks_around(before: str, after: str) -> tuple[str, str]:
    """Return the marks at the end of one text and at the start of another that belong together."""
    for opening, closing in _AROUND.items():
        if before.endswith(opening) and after.startswith(closing):
            return opening, closing
    comma = _COMMA.search(before[-_LONGEST_COMMA:])
    if comma and after[:1] in set(_CLOSING):
        return comma[0], ""
    return "", ""


def _join_empty(
    pieces: list[Piece], partners: dict[int, int], white: re.Pattern[str]
) -> tuple[list[Piece], dict[int, int]]:
    """Make one piece of every pair that has no text in it."""
    with_text = [0]
    for piece in pieces:
        is_text = piece.kind is None and not white.fullmatch(piece.raw)
        with_text.append(with_text[-1] + is_text)
    joined: list[Piece] = []
    moved: dict[int, int] = {}  # from the old place to the new one
    place = 0
    while place < len(pieces):
        last = partners.get(place, place)
        moved[place] = len(joined)
        if last > place and with_text[last] == with_text[place]:
            inside = pieces[place : last + 1]
            raw = "".join(piece.raw for piece in inside)
            joined.append(Piece(raw, _kind_of_empty(inside)))
            place = last
        else:
            joined.append(pieces[place])
        place += 1
    pairs = {
        moved[place]: moved[other]
        for place, other in partners.items()
        if place in moved and _surrounds(joined[moved[place]])
    }
    return joined, pairs


def _kind_of_empty(inside: list[Piece]) -> Kind:
    kinds = {piece.kind for piece in inside}
    if Kind.KEPT in kinds:
        return Kind.KEPT
    return Kind.BREAK if kinds & {Kind.BREAK, None} else Kind.EMPTY


def _has_letters(piece: Piece, decode: Callable[[str], str]) -> bool:
    if piece.kind is not None:
        return False
    return any(map(str.isalpha, decode(piece.raw)))


@dataclass
class _Gap:
    """The gap between two stretches of text: pieces, and the white space around each.

    `whites` has one more than there are pieces.
    """

    places: list[int] = field(default_factory=list)
    whites: list[str] = field(default_factory=lambda: [""])


class _Text:
    """The text of a segment as it is put together from its pieces."""

    def __init__(
        self, syntax: Syntax, pieces: list[Piece], partners: dict[int, int]
    ) -> None:
        self._syntax = syntax
        self._pieces = pieces
        self._partners = partners
        self._chunks: list[str] = []
        self._length = 0
        # start, end and white space of each item, by the place of its piece
        self._found: dict[int, tuple[int, int, str, str]] = {}
        self._spaces: dict[int, str] = {}
        self._gap = _Gap()

    def segment(self) -> Segment:
        for place, piece in enumerate(self._pieces):
            if piece.kind is None:
                self._add_text(piece.raw)
            else:
                self._gap.places.append(place)
                self._gap.whites.append("")
        self._close_gap("")
        written = "".join(piece.raw for piece in self._pieces if piece.kind is None)
        return Segment(
            text="".join(self._chunks),
            source="".join(piece.raw for piece in self._pieces),
            items=tuple(self._items()),
            escapes=self._syntax.escapes_of(written),
            spaces=self._spaces,
            keeps_numbers=self._syntax.keeps_numbers,
        )

    def _add_text(self, raw: str) -> None:
        if not self._syntax.collapses and not _HARD.search(raw):
            # white space that stays as it is is text like any other, but at the edges
            inner = raw.strip()
            head, _, tail = raw.partition(inner) if inner else (raw, "", "")
            self._gap.whites[-1] += head
            self._add_chunk(inner)
            self._gap.whites[-1] += tail
            return
        place = 0
        for match in self._syntax.white.finditer(raw):
            self._add_chunk(raw[place : match.start()])
            self._gap.whites[-1] += match[0]
            place = match.end()
        self._add_chunk(raw[place:])

    def _add_chunk(self, raw: str) -> None:
        chunk = self._syntax.decode(raw)
        if chunk:
            self._close_gap(chunk)
            self._append(chunk)

    def _append(self, text: str) -> None:
        self._chunks.append(text)
        self._length += len(text)

    def _close_gap(self, following: str) -> None:
        """Write the white space of the gap before some text, and the items in it."""
        gap = self._gap
        self._gap = _Gap()
        space = self._space_of(gap, following)
        start = self._length
        if space and not gap.places and _is_hard(gap.whites[0]):
            self._spaces[start] = gap.whites[0]
        self._append(space)
        is_past = False
        for number, place in enumerate(gap.places):
            before = gap.whites[number]
            is_past = is_past or bool(before)
            begin = end = self._length if is_past else start
            if not _surrounds(self._pieces[place]):
                begin = start
                end = self._length
                is_past = True
            self._found[place] = (begin, end, before, gap.whites[number + 1])

    def _space_of(self, gap: _Gap, following: str) -> str:
        """Return the white space that the text has in the place of a gap."""
        if not self._chunks or not following:
            return ""
        white = "".join(gap.whites)
        if not gap.places:
            return " " if _is_hard(white) else self._syntax.space(white)
        kinds = {self._pieces[place].kind for place in gap.places}
        if kinds <= {Kind.OPEN, Kind.CLOSE}:
            return " " if white else ""
        closes = following[0] in _CLOSING and not gap.whites[-1]
        opens = self._chunks[-1][-1] in OPENING and not gap.whites[0]
        if closes or opens:
            return ""
        return " " if white or kinds & {Kind.BREAK, Kind.KEPT} else ""

    def _items(self) -> Iterator[Item]:
        """Yield the items, each with the number of its partner."""
        number_of = {place: number for number, place in enumerate(self._found)}
        for place, found in self._found.items():
            piece = self._pieces[place]
            assert piece.kind is not None
            partner = number_of.get(self._partners.get(place, -1))
            yield Item(piece.kind, piece.raw, *found, partner)


def _is_hard(white: str) -> bool:
    """Return whether there is more to some white space than spaces and line breaks."""
    return bool(white.strip(" \t\r\n\f"))
