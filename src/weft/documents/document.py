"""A document as a translator sees it: segments of text, and all that lies between and inside them.

A format reads a document into segments and a skeleton. Writing puts a translation in the place of
each segment; every other character of the skeleton stays.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from html import unescape
from typing import Any, Protocol, TypeVar

from weft.errors import UsageError

_TAG = re.compile(r"<[^<>]*>")


class Kind(Enum):
    """The kinds of inline items.

    A pair of OPEN and CLOSE surrounds words. The others stand between words: EMPTY, a tag without
    words; BREAK, one that ends a line; KEPT, a placeholder, an address or an element whose words
    are not translated.
    """

    OPEN = "open"
    CLOSE = "close"
    EMPTY = "empty"
    BREAK = "break"
    KEPT = "kept"


@dataclass(frozen=True)
class Item:
    """A stretch of a segment that the model does not read.

    `raw` is how it stands in the document, `before` and `after` the white space directly around it
    there. `start` and `end` are its place among the characters of the segment's text: nothing but
    the white space that the text has in its stead is between them. `partner` is the number of the
    item that closes or opens its pair, among those of the segment.
    """

    kind: Kind
    raw: str
    start: int
    end: int
    before: str = ""
    after: str = ""
    partner: int | None = None

    @property
    def is_point(self) -> bool:
        """Return whether it stands between words, and surrounds none."""
        return self.kind not in (Kind.OPEN, Kind.CLOSE)


def items_without(items: Sequence[Item], gone: Collection[int]) -> tuple[Item, ...]:
    """Return the items but for those of some numbers. A tag whose partner is gone stands alone."""
    rest = [number for number in range(len(items)) if number not in gone]
    number_of = {number: new for new, number in enumerate(rest)}
    left = []
    for number in rest:
        item = items[number]
        if item.partner in number_of:
            item = replace(item, partner=number_of[item.partner])
        elif item.partner is not None:
            item = replace(item, kind=Kind.EMPTY, partner=None)
        left.append(item)
    return tuple(left)


def shown_item(raw: str) -> str:
    """Return an item as a person reads it: nothing of a tag, and without entities."""
    return unescape(_TAG.sub("", raw))


@dataclass(frozen=True)
class Segment:
    """A stretch of a document that is translated as a whole.

    `text` is plain, without tags, placeholders and entities: what a model reads. `source` is the
    stretch as it stands in the document. The items are in its order, and their pairs are well
    nested. `escapes` is how the document writes some characters, `spaces` how it writes some of the
    text's spaces, by their places: `&nbsp;`. With `keeps_numbers`, those that a translation has
    changed or lost are put back; plain text is as the model writes it. What is `kept` stands in the
    text as it does in the document, and has to stand so in the translation.
    """

    text: str
    source: str
    items: tuple[Item, ...] = ()
    escapes: Mapping[str, str] = field(default_factory=dict)
    spaces: Mapping[int, str] = field(default_factory=dict)
    keeps_numbers: bool = True
    kept: tuple[str, ...] = ()

    def with_items(self, added: Sequence[Item]) -> "Segment":
        """Return the segment with more items, in the order of the text; none has a partner."""
        ends = [item.end for item in self.items]
        places = [bisect_right(ends, item.start) for item in added]
        items: list[Item] = []
        done = 0
        for number, item in enumerate(self.items):
            reached = bisect_right(places, number)
            items += added[done:reached]
            done = reached
            partner = item.partner
            if partner is not None:
                partner += bisect_right(places, partner)
            items.append(replace(item, partner=partner))
        return replace(self, items=(*items, *added[done:]))

    def escape(self, text: str) -> str:
        """Write a text as the document does."""
        if not self.escapes:
            return text
        table = {ord(character): entity for character, entity in self.escapes.items()}
        return text.translate(table)


@dataclass(frozen=True)
class Offer:
    """A unit of a translation memory that is much like a segment.

    `score` says how much, up to 1; `where` is its file and line.
    """

    source: str
    target: str
    score: float
    where: str

    def __str__(self) -> str:
        return f"{self.where} ({self.score:.0%}): {self.source} = {self.target}"


@dataclass(frozen=True)
class Doubt:
    """Doubt of a translation, for the person who checks it.

    `remarks` are sentences, none where nothing is suspected. `confidence` is a probability, None
    where there is none. `offers` are what a translation memory has for the segment; where the
    translation itself was `taken` from there, that says how: "exact", or "repaired" with the
    numbers of the segment; and `where` the file and line.
    """

    remarks: tuple[str, ...] = ()
    confidence: float | None = None
    offers: tuple[Offer, ...] = ()
    taken: str = ""
    where: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Doubt":
        """Read what `dataclasses.asdict` wrote, and JSON after it."""
        return cls(
            tuple(value["remarks"]),
            value["confidence"],
            tuple(Offer(**offer) for offer in value["offers"]),
            value["taken"],
            value["where"],
        )


@dataclass(frozen=True)
class Translated:
    """The translation of a segment's text.

    The alignment has pairs of words that belong together, each as the places where the source word
    begins and ends in the segment's text, and the target word in the translation; () where the
    model has none. `stands` has sources with markup, as they may stand in the document, and their
    targets: a memory has them so. `languages` are those of both (BCP-47), empty where unknown.
    `words` are places in the translation that are of interest, and move with its words.
    """

    text: str
    alignment: Sequence[tuple[int, int, int, int]] = ()
    doubt: Doubt = Doubt()
    stands: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, str] = ("", "")
    words: Sequence[tuple[int, int]] = ()

    def edited(self, edits: Sequence[tuple[int, int, str]]) -> "Translated":
        """Return it with other characters in the place of some, `(start, end, text)` in their
        order; what is left of a link or a word without any is dropped or empty.
        """
        parts: list[str] = []
        shifts = [0]
        copied = 0
        for start, end, new in edits:
            parts += (self.text[copied:start], new)
            copied = end
            shifts.append(shifts[-1] + len(new) - (end - start))
        parts.append(self.text[copied:])
        starts = [start for start, _, _ in edits]

        def moved(place: int) -> int:
            number = bisect_left(starts, place)
            if not number:
                return place
            start, end, new = edits[number - 1]
            if place >= end:
                return place + shifts[number]
            return start + shifts[number - 1] + min(place - start, len(new))

        links = [
            (a, b, moved(start), moved(end)) for a, b, start, end in self.alignment
        ]
        return replace(
            self,
            text="".join(parts),
            alignment=[link for link in links if link[2] < link[3]],
            words=[(moved(start), moved(end)) for start, end in self.words],
        )


@dataclass(frozen=True)
class Written:
    """The stretch in a segment's place, written as the document writes text."""

    text: str
    doubt: Doubt = Doubt()


@dataclass(frozen=True)
class Reading:
    """The way in which a file is to be read.

    `name` is what messages call it. `source` and `target` are languages (BCP-47), empty where
    unknown: what says in which language the document is, says the target; a document of several
    languages is translated from the one to the other. `columns` are those of a table, or the keys
    of a JSON file, whose text is translated.
    """

    name: str
    source: str = ""
    target: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """A thing in a document that is not translated, or not kept, and where it stands."""

    place: str
    text: str


Content_co = TypeVar("Content_co", str, bytes, covariant=True)


class Document(Protocol[Content_co]):
    """A document of any format.

    `Content_co` is what it is written as: text, or the bytes of a file.
    """

    @property
    def segments(self) -> Sequence[Segment]:
        """Return its segments, in their order."""

    @property
    def notes(self) -> Sequence[Note]:
        """Return the things that are not translated or not kept, though one might expect it."""

    def place(self, number: int) -> str:
        """Return where a segment stands, for messages: `line 12`."""

    def write(self, translations: Sequence[Written]) -> Content_co:
        """Return the document with each segment's source replaced.

        Raises UsageError unless there is one translation for each segment.
        """


@dataclass(frozen=True)
class TextDocument:
    """A document that is one text.

    `skeleton` has the stretches before, between and after the segments: one more than these.
    """

    segments: tuple[Segment, ...]
    skeleton: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    def place(self, number: int) -> str:
        """Return the line that a segment begins in."""
        return f"line {self._lines[number]}"

    @cached_property
    def _lines(self) -> list[int]:
        """Return the line that each segment begins in, from 1."""
        found = []
        line = 1
        for stretch, segment in zip(self.skeleton, self.segments, strict=False):
            line += stretch.count("\n")
            found.append(line)
            line += segment.source.count("\n")
        return found

    def write(self, translations: Sequence[Written]) -> str:
        """Return the text with each segment's source replaced."""
        refuse_other_number(translations, self.segments)
        parts = [self.skeleton[0]]
        for translation, following in zip(translations, self.skeleton[1:], strict=True):
            parts += (translation.text, following)
        return "".join(parts)


@dataclass(frozen=True)
class FileDocument:
    """A document that is a file of text.

    A character that the encoding lacks is written as a reference of XML where the format has
    these, else as a question mark.
    """

    text: TextDocument
    encoding: str = "utf-8"
    has_references: bool = False

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of its text."""
        return self.text.segments

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on its text."""
        return self.text.notes

    def place(self, number: int) -> str:
        """Return the line that a segment begins in."""
        return self.text.place(number)

    def write(self, translations: Sequence[Written]) -> bytes:
        """Return the file's bytes with each segment's source replaced."""
        text = self.text.write(translations)
        lacking = "xmlcharrefreplace" if self.has_references else "replace"
        # half a pair of surrogates is no character, and has no reference either
        whole = text.encode("utf-8", "replace").decode("utf-8")
        return whole.encode(self.encoding, lacking)


def refuse_other_number(
    translations: Sequence[Written], segments: Sequence[Segment]
) -> None:
    """Raise UsageError unless there is one translation for each segment."""
    if len(translations) != len(segments):
        raise UsageError(
            f"{len(translations)} translations for {len(segments)} segments of a document; give one for each"
        )


def decode_file(content: bytes, name: str) -> str:
    """Read a file's bytes as UTF-8; a byte-order mark is a character of the text.

    Raises UsageError for another encoding.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from None
