"""Texts that a file writes in a way of its own: with escapes, with marks at the head of each line.

A value is decoded, its text read by another reader, and what takes its place encoded again. Values
without a translation stay as they stand in the file.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.documents.document import (
    Doubt,
    Note,
    Segment,
    TextDocument,
    Written,
    refuse_other_number,
)

Encode = Callable[[str, Sequence[Doubt]], str]
_BREAKS = re.compile(r"[\r\n]++")
_MARK = "\ue0f0{}\ue0f1"  # stands for a value in the text around it


@dataclass(frozen=True)
class Value:
    """A stretch of a file that is decoded and encoded.

    `raw` is how it stands there, `inner` its text, and `encode` says how another text is written in
    its place. `inside` are values that stand in items of the text, each once, in their order.
    """

    raw: str
    inner: TextDocument
    encode: Encode
    place: str = ""
    inside: tuple["Value", ...] = ()

    @property
    def segments(self) -> list[Segment]:
        """Return the segments of its text, then those of the values inside."""
        found = list(self.inner.segments)
        for value in self.inside:
            found += value.segments
        return found

    def write(self, translations: Sequence[Written]) -> str:
        """Return what takes its place; a translation that changes nothing leaves it as it is."""
        end = len(self.inner.segments)
        text = self.inner.write(_in_lines(self.inner, translations[:end]))
        is_same = text == unchanged_text(self.inner)
        written: list[str] = []
        for value in self.inside:
            start = end
            end += len(value.segments)
            written.append(value.write(translations[start:end]))
            is_same = is_same and written[-1] == value.raw
        if is_same:
            return self.raw
        text = _with_inside(text, [value.raw for value in self.inside], written)
        return self.encode(text, [written.doubt for written in translations])


def _in_lines(document: TextDocument, translations: Sequence[Written]) -> list[Written]:
    """Return translations without line breaks where their segments have none.

    An empty one leaves its segment as it was: a place without text may be no place.
    """
    found = []
    for segment, written in zip(document.segments, translations, strict=True):
        text = written.text
        if not text.strip():
            text = segment.source
        elif not _BREAKS.search(segment.source):
            text = _BREAKS.sub(" ", text)
        found.append(Written(text, written.doubt))
    return found


def _with_inside(text: str, raws: Sequence[str], written: Sequence[str]) -> str:
    """Put what was written of the values inside in their places."""
    for number, raw in enumerate(raws):
        text = text.replace(raw, _MARK.format(number), 1)
    for number, new in enumerate(written):
        text = text.replace(_MARK.format(number), new, 1)
    return text


def joined(documents: Sequence[TextDocument], between: str = "") -> TextDocument:
    """Make one document of several, with a stretch between each two."""
    segments: list[Segment] = []
    skeleton: list[str] = []
    for document in documents:
        first, *others = document.skeleton
        if skeleton:
            skeleton[-1] += between + first
        else:
            skeleton.append(first)
        skeleton += others
        segments += document.segments
    return TextDocument(tuple(segments), tuple(skeleton) or ("",))


def unchanged_text(document: TextDocument) -> str:
    """Return the text that a document was read from."""
    return document.write([Written(segment.source) for segment in document.segments])


@dataclass(frozen=True)
class ValuesDocument:
    """A file of text that has values.

    `skeleton` has the stretches before, between and after the values: one more than these.
    """

    values: tuple[Value, ...]
    skeleton: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    encoding: str = "utf-8"

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of all values."""
        return tuple(segment for value in self.values for segment in value.segments)

    @cached_property
    def _places(self) -> list[str]:
        return [value.place for value in self.values for _ in value.segments]

    def place(self, number: int) -> str:
        """Return where the value stands that a segment is of."""
        return self._places[number]

    def write(self, translations: Sequence[Written]) -> bytes:
        """Return the file's bytes with each segment's source replaced."""
        refuse_other_number(translations, self.segments)
        parts = [self.skeleton[0]]
        end = 0
        for value, following in zip(self.values, self.skeleton[1:], strict=True):
            start = end
            end += len(value.segments)
            parts += (value.write(translations[start:end]), following)
        # half a pair of surrogates is no character of any encoding
        whole = "".join(parts).encode("utf-8", "replace").decode("utf-8")
        return whole.encode(self.encoding)


class Collector:
    """Collects a file in its order: what stays, and values."""

    def __init__(self) -> None:
        """Begin a file without anything."""
        self._values: list[Value] = []
        self._skeleton: list[list[str]] = [[]]
        self._notes: list[Note] = []
        self._line = 1

    @property
    def line(self) -> int:
        """Return the number of the line that is reached."""
        return self._line

    def keep(self, raw: str) -> None:
        """Add a stretch that stays as it is."""
        self._skeleton[-1].append(raw)
        self._line += raw.count("\n")

    def add(
        self,
        raw: str,
        inner: TextDocument,
        encode: Encode,
        place: str = "",
        inside: Sequence[Value] = (),
    ) -> None:
        """Add a value; one without a segment stays.

        `place` is for messages, by itself the line.
        """
        value = Value(raw, inner, encode, place or f"line {self._line}", tuple(inside))
        if not value.segments:
            self.keep(raw)
            return
        self._values.append(value)
        self._skeleton.append([])
        self._line += raw.count("\n")

    def note(self, text: str, place: str = "") -> None:
        """Note what is not translated, by itself at the line that is reached."""
        self._notes.append(Note(place or f"line {self._line}", text))

    def document(self, encoding: str = "utf-8") -> ValuesDocument:
        """Return the file that was collected."""
        skeleton = tuple("".join(stretch) for stretch in self._skeleton)
        return ValuesDocument(
            tuple(self._values), skeleton, tuple(self._notes), encoding
        )
