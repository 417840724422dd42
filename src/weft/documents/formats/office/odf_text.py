"""Paragraphs of OpenDocument: spans that look alike are one text.

Source: Open Document Format for Office Applications 1.3 (OASIS, 2021), part 3, sections 5 to 7.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from weft.documents.document import Doubt, Kind, Note, Written
from weft.documents.formats.office.flow import (
    NO_LOOK,
    Edge,
    Event,
    Flow,
    Look,
    Point,
    Words,
    read_flow,
)
from weft.documents.formats.office.odf_places import Places
from weft.documents.formats.office.odf_styles import text_looks
from weft.documents.formats.office.package import Parts, Stretch, WriteParts, parts_of
from weft.documents.formats.xml.elements import Elements, text_of
from weft.documents.formats.xml.tokens import XmlToken, written_as_xml
from weft.documents.formats.xml.tree import prefix_of

_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE = f"{_NAMES}office:1.0"
TEXT = f"{_NAMES}text:1.0"
DRAW = f"{_NAMES}drawing:1.0"
# who a comment is by; a file need not name this space by itself
_AUTHOR = '<dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Weft</dc:creator>'
# what surrounds words
_AROUND = {"a", "meta", "bookmark-ref", "reference-ref", "title", "subject"}
# in which white space goes on that is before them
_THROUGH = {"span", "bookmark", "bookmark-start", "bookmark-end", *_AROUND}
# what stands between them and is no word itself
_EMPTY = {"note", "bookmark", "reference-mark", "change", "toc-mark", "user-index-mark"}
_EMPTY |= {"alphabetical-index-mark", "script", "number", "soft-page-break"}
_LONGEST_SHOWN = 40
_WHITE = re.compile(r"[ \t\r\n]+")
_FEW = re.compile("[0-9]{1,3}")
_SPACES = re.compile("  +")
_FIRST_SPACE = re.compile(r"\A((?:<[^/>]*>)*) ")


@dataclass(frozen=True)
class _Paragraph:
    """A paragraph as it is written again; `remark` writes what is doubtful about it."""

    flow: Flow
    prefix: str
    office: str  # the prefix of comments; "" where there can be none

    def render(
        self, notation: str, written: Sequence[Written], write_parts: WriteParts
    ) -> str:
        text = self.flow.write(notation, self._words, write_parts)
        text = _FIRST_SPACE.sub(rf"\1<{self.prefix}s/>", text)
        remarks = [self._remark(entry.doubt) for entry in written if self.office]
        return "".join(remarks) + text

    def _words(self, raw: str) -> str:
        """Write words; of several spaces all but the first are an element."""
        tag = f"<{self.prefix}s {self.prefix}c="
        return _SPACES.sub(lambda found: f' {tag}"{len(found[0]) - 1}"/>', raw)

    def _remark(self, doubt: Doubt) -> str:
        if not doubt.remarks:
            return ""
        text = " ".join(doubt.remarks)
        if doubt.confidence is not None:
            text += f" ({doubt.confidence:.0%})"
        shown = f"<{self.prefix}p>{written_as_xml(text)}</{self.prefix}p>"
        return f"<{self.office}annotation>{_AUTHOR}{shown}</{self.office}annotation>"


class OdfReader:
    """Reads the paragraphs of a member of a document of some kind."""

    def __init__(self, elements: Elements, kind: str) -> None:
        """Read all; of a member of styles only headers and footers are read."""
        self._elements = elements
        self._places = Places(elements, kind)
        self._looks = text_looks(elements)
        self._stretches: dict[int, tuple[int, Stretch]] = {}
        self._pairs = count()
        self._ranges: dict[tuple[str, str], int] = {}
        self._place = ""
        self._is_after_white = True
        self._office = ""
        if kind == "text":
            self._office = prefix_of(elements.tokens[elements.root].raw)
        self.notes = self._places.notes
        # the inner ones first
        starts = self._places.paragraphs
        self._inner = elements.within(starts)
        for start in sorted(starts, key=elements.ends.__getitem__):
            self._place = starts[start]
            self._paragraph(start)

    def parts(self) -> Parts:
        """Return the member as what stays and what is translated."""
        return self._parts(0, len(self._elements.tokens))

    def _parts(self, start: int, stop: int) -> Parts:
        return parts_of(self._elements.tokens, self._stretches, start, stop)

    def _paragraph(self, start: int) -> None:
        elements = self._elements
        end = elements.ends[start]
        if end == start:
            return
        self._ranges = {}
        self._is_after_white = True
        flow = read_flow(list(self._inside(start, NO_LOOK)))
        if not flow.text.segments or self._places.is_named(start):
            return
        prefix = prefix_of(elements.tokens[start].raw)
        # there are no comments in a note or a text box
        office = "" if start in self._inner else self._office
        paragraph = _Paragraph(flow, prefix, office)
        parts = self._parts(start + 1, end)
        stretch = Stretch(parts, flow.text, self._place, paragraph.render)
        self._stretches[start + 1] = (end, stretch)

    def _inside(self, start: int, look: Look) -> Iterator[Event]:
        """Yield what is in a paragraph, a span or what surrounds words."""
        elements = self._elements
        place = start + 1
        while place < elements.ends[start]:
            token = elements.tokens[place]
            if token.opens:
                yield from self._element(place, look)
                place = elements.after(place)
                continue
            text = self._collapsed(text_of(token))
            if text:
                yield Words(text, look)
            place += 1

    def _collapsed(self, raw: str) -> str:
        """Return text as it is shown: white space of any length is one space, none at the head."""
        text = _WHITE.sub(" ", raw)
        if self._is_after_white:
            text = text.removeprefix(" ")
        if text:
            self._is_after_white = text.endswith(" ")
        return text

    def _element(self, place: int, look: Look) -> Iterable[Event]:
        token = self._elements.tokens[place]
        self._is_after_white &= token.name in _THROUGH
        if token.space != TEXT:
            return [self._beside_words(place, look)]
        if token.name == "span":
            return self._inside(place, self._within(place, look))
        if token.name in _AROUND:
            return self._around(place, look)
        if token.name == "ruby":
            return self._ruby(place, look)
        if token.name == "s":
            return [Words(" " * _number(token), look)]
        return [self._in_text(place, look)]

    def _in_text(self, place: int, look: Look) -> Event:
        """Return a thing of the text's own namespace."""
        token = self._elements.tokens[place]
        if token.name.endswith(("-start", "-end")):
            return self._range(place, look)
        if token.name == "change":
            deleted = self._places.deleted.get(
                token.attributes.get(f"{TEXT} change-id", "")
            )
            if deleted:
                shown = deleted[:_LONGEST_SHOWN]
                self.notes.append(Note(self._place, f"deleted text stays: {shown}"))
        kind = Kind.EMPTY if token.name in _EMPTY else Kind.KEPT
        if token.name == "tab":
            return Point(self._parts(place, self._elements.after(place)), None, look)
        if token.name == "line-break":
            kind = Kind.BREAK
        return self._point(place, kind, look)

    def _beside_words(self, place: int, look: Look) -> Event:
        """Return a picture, a frame or a comment."""
        token = self._elements.tokens[place]
        if token.space not in (DRAW, OFFICE):
            return self._point(place, Kind.KEPT, look)
        if token.name in ("annotation", "annotation-end"):
            return self._range(place, look)
        inside = self._elements.tokens[place : self._elements.ends[place]]
        has_object = any(inner.name == "object" for inner in inside)
        return self._point(place, Kind.KEPT if has_object else Kind.EMPTY, look)

    def _around(self, place: int, look: Look) -> Iterator[Event]:
        elements = self._elements
        end = elements.ends[place]
        if end == place:
            yield self._point(place, Kind.EMPTY, look)
            return
        pair = next(self._pairs)
        tag = elements.tokens[place].raw
        yield Edge(look.start + tag, pair)
        yield from self._inside(place, NO_LOOK)
        yield Edge(elements.tokens[end].raw + look.end, pair, True)

    def _ruby(self, place: int, look: Look) -> Iterator[Event]:
        """Yield the words that a reading is above; the reading goes where they are translated."""
        note = "how to read words stands above them (ruby); where they are translated it goes"
        if Note(self._place, note) not in self.notes[-1:]:
            self.notes.append(Note(self._place, note))
        base = self._elements.child(place, "ruby-base")
        if base is not None:
            yield from self._inside(base, look)

    def _range(self, place: int, look: Look) -> Event:
        """Return the start or the end of a bookmark, a change or a comment."""
        elements = self._elements
        token = elements.tokens[place]
        raw = elements.raw(place, elements.after(place))
        name = token.name.removesuffix("-start").removesuffix("-end")
        keys = ("name", "change-id", "id")
        told = (token.attributes.get(f"{token.space} {key}", "") for key in keys)
        known = (name, next(filter(None, told), ""))
        is_end = token.name.endswith("-end")
        if not is_end:
            self._ranges[known] = next(self._pairs)
        pair = self._ranges.get(known)
        if pair is None:
            return Point([raw], Kind.EMPTY, look)
        return Edge(raw, pair, is_end, may_part=True)

    def _point(self, place: int, kind: Kind, look: Look) -> Point:
        return Point(self._parts(place, self._elements.after(place)), kind, look)

    def _within(self, place: int, look: Look) -> Look:
        """Return the look of a span within another."""
        token = self._elements.tokens[place]
        key = self._looks.get(token.attributes.get(f"{TEXT} style-name", ""))
        if key == "":
            return look
        if key is None:
            key = token.raw
        end = f"</{prefix_of(token.raw)}span>"
        return Look(f"{look.key}\n{key}", look.start + token.raw, end + look.end)


def _number(token: XmlToken) -> int:
    """Return how many spaces an element stands for."""
    number = token.attributes.get(f"{TEXT} c", "1")
    return int(number) if _FEW.fullmatch(number) else 1
