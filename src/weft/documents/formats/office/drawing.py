"""Paragraphs of DrawingML: text on slides and in shapes, charts and diagrams.

Source: ECMA-376, part 1, section 21.1.2.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weft.documents.direction import is_right_to_left
from weft.documents.document import Kind, Note, Reading, Written
from weft.documents.formats.office.flow import (
    Event,
    Flow,
    Look,
    Point,
    divided,
    read_flow,
)
from weft.documents.formats.office.opc import Package
from weft.documents.formats.office.package import Member, Parts, Stretch, WriteParts
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tree import prefix_of, with_attribute

DRAWING = {
    "http://schemas.openxmlformats.org/drawingml/2006/main",
    "http://purl.oclc.org/ooxml/drawingml/main",
}
# what makes no difference to the eye
_UNSEEN = {"lang", "altLang", "dirty", "err", "noProof", "smtClean", "smtId", "bmk"}
_CALLED = {"drawing": "drawing", "chart": "chart", "chartUserShapes": "chart"}
_CALLED |= {"diagramData": "diagram", "diagramDrawing": "diagram"}
_LANGUAGE = re.compile(r"\slang=[\"'][^\"']*[\"']")
# a tab, or a character as these formats write what XML cannot
_MARK = re.compile(r"\t|_x[0-9A-Fa-f]{4}_")
_MARKS = {"\t": None, "_x0009_": None, "_x000b_": Kind.BREAK}

Where = Callable[[int], str]


@dataclass(frozen=True)
class _Paragraph:
    """A paragraph as it is written again."""

    head: str
    flow: Flow
    prefix: str

    def render(
        self, notation: str, _written: Sequence[Written], write_parts: WriteParts
    ) -> str:
        return self.head + self.flow.write(notation, self._words, write_parts)

    def _words(self, raw: str) -> str:
        return f"<{self.prefix}t>{raw}</{self.prefix}t>"


class DrawingReader:
    """Reads the paragraphs of a part."""

    def __init__(self, elements: Elements, target: str, where: Where) -> None:
        """Read all; `where` says the place of a paragraph, by the place of its tag."""
        self._elements = elements
        self._target = target
        self._stretches: dict[int, Stretch] = {}
        for start in elements.named({"p"}, DRAWING):
            if elements.ends[start] > start:
                self._paragraph(start, where(start))

    def parts(self) -> Parts:
        """Return the part as what stays and what is translated."""
        tokens = self._elements.tokens
        parts: list[str | Stretch] = []
        place = 0
        for start, stretch in self._stretches.items():
            parts += (self._elements.raw(place, start + 1), stretch)
            place = self._elements.ends[start]
        parts.append(self._elements.raw(place, len(tokens)))
        return parts

    def _paragraph(self, start: int, place: str) -> None:
        elements = self._elements
        flow = read_flow(
            [event for n in elements.children(start) for event in self._event(n)]
        )
        if not flow.text.segments:
            return
        prefix = prefix_of(elements.tokens[start].raw)
        properties = elements.child(start, "pPr")
        head = self._directed(properties, prefix)
        paragraph = _Paragraph(head, flow, prefix)
        parts = [elements.raw(start + 1, elements.ends[start])]
        self._stretches[start] = Stretch(parts, flow.text, place, paragraph.render)

    def _event(self, place: int) -> Iterable[Event]:
        elements = self._elements
        token = elements.tokens[place]
        raw = elements.raw(place, elements.after(place))
        if token.space not in DRAWING:
            return [Point([raw], Kind.KEPT)]
        if token.name == "pPr":
            return []
        if token.name == "r":
            return self._run(place)
        if token.name == "br":
            return [Point([raw], Kind.BREAK)]
        return [Point([raw], Kind.KEPT if token.name == "fld" else Kind.EMPTY)]

    def _run(self, place: int) -> Iterator[Event]:
        elements = self._elements
        text = elements.child(place, "t")
        raw = "" if text is None else elements.text(text)
        if raw:
            yield from divided(raw, self._look(place), _MARK, _kind)

    def _look(self, place: int) -> Look:
        """Return the look of a run."""
        elements = self._elements
        tag = elements.tokens[place].raw
        properties = elements.child(place, "rPr")
        end = f"</{prefix_of(tag)}r>"
        if properties is None:
            return Look("", tag, end)
        token = elements.tokens[properties]
        seen = sorted(
            entry for entry in token.attributes.items() if entry[0] not in _UNSEEN
        )
        inside = elements.raw(properties + 1, elements.ends[properties])
        # of a tag that is an element by itself there is nothing more
        rest = elements.raw(properties + 1, elements.after(properties))
        told = token.raw
        if self._target and _LANGUAGE.search(told):
            told = with_attribute(told, "lang", self._target)
        key = f"{seen} {inside}" if seen or inside else ""
        return Look(key, tag + told + rest, end)

    def _directed(self, properties: int | None, prefix: str) -> str:
        """Return a paragraph's properties in the direction of the target language."""
        tag = rest = ""
        if properties is not None:
            tag = self._elements.tokens[properties].raw
            rest = self._elements.raw(properties + 1, self._elements.after(properties))
        raw = tag + rest
        if not self._target:
            return raw
        tag = tag or f"<{prefix}pPr/>"
        if is_right_to_left(self._target):
            if 'algn="' not in tag or 'algn="l"' in tag:
                tag = with_attribute(tag, "algn", "r")
            return with_attribute(tag, "rtl", "1") + rest
        if 'rtl="1"' not in tag:
            return raw
        tag = tag.replace('algn="r"', 'algn="l"')
        return with_attribute(tag, "rtl", "0") + rest


def _same(where: str, _start: int) -> str:
    return where


def _kind(mark: str) -> Kind | None:
    return _MARKS.get(mark.lower(), Kind.KEPT)


def read_drawings(
    package: Package, parts: Sequence[str], reading: Reading, place: str = ""
) -> tuple[list[Member], list[Note]]:
    """Read the charts and diagrams of some parts, and what these point to."""
    members = []
    notes = []
    waiting = list(parts)
    seen = set(parts)
    while waiting:
        part = waiting.pop(0)
        for relation in package.relations(part):
            target = relation.target
            if relation.kind not in _CALLED or target in seen:
                continue
            seen.add(target)
            waiting.append(target)
            called = _CALLED[relation.kind]
            where = f"{place}, {called}" if place else called
            elements = package.elements(target)
            reader = DrawingReader(elements, reading.target, partial(_same, where))
            members.append(Member(target, reader.parts(), elements.encoding))
            if any(token.name == "strCache" for token in elements.tokens):
                note = "names of a chart's series and categories stay, as its table has them"
                notes.append(Note(where, note))
    return members, notes
