"""Placeholders that a model reads, since it has learned to write them again.

Elsewhere a model does not read them, and they are placed by the alignment. Here they stand in the
text of the segment, and the model's own words say where they belong.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic

from weft.data.kept import bare, form_of
from weft.documents.document import (
    Content_co,
    Document,
    Item,
    Kind,
    Note,
    Segment,
    TextDocument,
    Translated,
    Written,
    items_without,
)
from weft.documents.words import Word, split_words

_LONGEST = 80  # characters of what is read
_MOST = 24  # of them in a segment
_FILLER = "_"


@dataclass(frozen=True)
class ReadDocument(Generic[Content_co]):
    """A document in whose segments the model reads what has one of the `forms` that it knows."""

    document: Document[Content_co]
    forms: Collection[str]

    @cached_property
    def segments(self) -> Sequence[Segment]:
        """Return its segments, in their order."""
        return [with_kept(segment, self.forms) for segment in self.document.segments]

    @property
    def notes(self) -> Sequence[Note]:
        """Return the notes of the document."""
        return self.document.notes

    def place(self, number: int) -> str:
        """Return where a segment stands."""
        return self.document.place(number)

    def write(self, translations: Sequence[Written]) -> Content_co:
        """Return the document with each segment's source replaced."""
        return self.document.write(translations)


@dataclass(frozen=True)
class Span:
    """A place in a text where something that is kept stands."""

    start: int
    end: int
    raw: str


def read_by(document: TextDocument, forms: Collection[str]) -> TextDocument:
    """Return a text in whose segments the model reads what has one of the `forms` that it knows."""
    segments = tuple(with_kept(segment, forms) for segment in document.segments)
    return replace(document, segments=segments)


def with_kept(segment: Segment, forms: Collection[str]) -> Segment:
    """Return the segment with what has a known form in its text, no longer an item."""
    known = [
        number for number, item in enumerate(segment.items) if _is_known(item, forms)
    ]
    if not known or len(known) > _MOST:
        return segment
    return _Text(segment, frozenset(known)).segment()


def _is_known(item: Item, forms: Collection[str]) -> bool:
    if item.kind is not Kind.KEPT or len(item.raw) > _LONGEST:
        return False
    return form_of(core_of(item.raw)) in forms


def core_of(raw: str) -> str:
    """Return a placeholder without the marks that it came with."""
    return bare(raw.lstrip(",;:–— ") if raw[:1] in ",;–—" else raw)


class _Text:
    """The text of a segment while items go into it."""

    def __init__(self, segment: Segment, known: frozenset[int]) -> None:
        self._segment = segment
        self._known = known
        self._parts: list[str] = []
        self._length = 0
        self._read = 0  # how far the old text is copied
        # where stretches of the old text begin, and what is before each in the new one
        self._shifts = [(0, 0)]

    def segment(self) -> Segment:
        items: list[Item] = []
        for number, item in enumerate(self._segment.items):
            self._copy(item.start)
            start = self._length
            if number in self._known:
                self._insert(item)
            else:
                self._copy(item.end)
            items.append(replace(item, start=start, end=self._length))
        self._copy(len(self._segment.text))
        kept = (core_of(self._segment.items[number].raw) for number in self._known)
        return replace(
            self._segment,
            text="".join(self._parts),
            items=items_without(items, self._known),
            spaces={
                self._moved(place): raw for place, raw in self._segment.spaces.items()
            },
            kept=tuple(sorted(set(kept))),
        )

    def _copy(self, end: int) -> None:
        """Copy the old text up to a place."""
        if end > self._read:
            self._append(self._segment.text[self._read : end])
            self._read = end

    def _insert(self, item: Item) -> None:
        """Write an item, in the stead of the white space that the text has there."""
        is_apart = self._length > 0 and not self._parts[-1][-1:].isspace()
        if item.before and is_apart:
            self._append(" ")
        self._append(item.raw)
        self._read = max(self._read, item.end)
        if item.after and self._read < len(self._segment.text):
            self._append(" ")
        self._shifts.append((self._read, self._length - self._read))

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _moved(self, place: int) -> int:
        shift = 0
        for start, longer in self._shifts:
            if start <= place:
                shift = longer
        return place + shift


def spans(text: str, kept: Collection[str]) -> list[Span]:
    """Return where the kept stand in a text, the longest at each place."""
    if not kept:
        return []
    longest = sorted(kept, key=len, reverse=True)
    any_of = re.compile("|".join(map(re.escape, longest)))
    return [Span(*found.span(), found[0]) for found in any_of.finditer(text)]


def without_kept(text: str, kept: Collection[str]) -> str:
    """Return a text with other characters, as many, in the stead of what is kept."""
    parts: list[str] = []
    place = 0
    for span in spans(text, kept):
        parts += (text[place : span.start], _FILLER * len(span.raw))
        place = span.end
    parts.append(text[place:])
    return "".join(parts)


def words_around(
    text: str, kept: Sequence[Span], cuts: Collection[int] = ()
) -> list[Word]:
    """Return the words and marks of a text; each of the kept is a single word."""
    if not kept:
        return split_words(text, cuts)
    words: list[Word] = []
    place = 0
    for span in kept:
        words += _words_between(text, place, span.start, cuts)
        words.append(Word(span.start, span.end, is_mark=False))
        place = span.end
    return words + _words_between(text, place, len(text), cuts)


def _words_between(
    text: str, start: int, end: int, cuts: Collection[int]
) -> list[Word]:
    inside = {cut - start for cut in cuts if start <= cut <= end}
    return [
        Word(word.start + start, word.end + start, word.is_mark)
        for word in split_words(text[start:end], inside)
    ]


def repair_kept(segment: Segment, translated: Translated) -> tuple[Segment, Translated]:
    """Return both so that the translation will have what is kept as often as the segment.

    What it has too often is taken out of it, and what it lacks becomes an item.
    """
    own = spans(segment.text, segment.kept)
    wanted = Counter(span.raw for span in own)
    found = Counter(span.raw for span in spans(translated.text, segment.kept))
    edits = []
    for span in reversed(spans(translated.text, segment.kept)):
        if found[span.raw] > wanted[span.raw]:
            found[span.raw] -= 1
            has_space = translated.text.endswith(" ", 0, span.start)
            edits.append((span.start - has_space, span.end, ""))
    missing = wanted - found
    lost = []
    for span in reversed(own):
        if missing[span.raw] > 0:
            missing[span.raw] -= 1
            lost.append(span)
    items = [_item(segment.text, span) for span in reversed(lost)]
    return segment.with_items(items), translated.edited(edits[::-1])


def _item(text: str, span: Span) -> Item:
    """Return a stretch of a text as an item, with the white space that it has around it."""
    return Item(
        Kind.KEPT,
        span.raw,
        span.start,
        span.end,
        before=" " if text[: span.start][-1:] == " " else "",
        after=" " if text[span.end : span.end + 1] == " " else "",
    )
