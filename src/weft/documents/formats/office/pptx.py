"""Presentations of PowerPoint (.pptx): slides and their notes, charts and diagrams.

Source: ECMA-376, part 1, sections 13 and 19.
"""

from collections.abc import Iterator

from weft.documents.document import Note, Reading
from weft.documents.formats.office.drawing import DRAWING, DrawingReader, read_drawings
from weft.documents.formats.office.opc import Package
from weft.documents.formats.office.package import Member, PackageDocument
from weft.documents.formats.office.properties import (
    core_properties,
    notes_on_package,
    notes_on_pictures,
)
from weft.documents.formats.xml.elements import Elements

_KEPT = {
    "comments": "comments stay as they are",
    "package": "an embedded document stays as it is",
    "oleObject": "an embedded object stays as it is",
}


def open_pptx(content: bytes, reading: Reading) -> PackageDocument:
    """Read a presentation; raises UsageError for what is none, or is damaged or hostile."""
    return _Reader(Package(content, reading.name), reading).document()


class _Reader:
    """Reads the slides of a presentation in its order."""

    def __init__(self, package: Package, reading: Reading) -> None:
        self._package = package
        self._reading = reading
        self._main = package.main_part("presentationml", "PowerPoint")
        self._members: list[Member] = []
        self._notes: list[Note] = []

    def document(self) -> PackageDocument:
        package = self._package
        for number, slide in enumerate(self._slides(), 1):
            where = f"slide {number}"
            self._paragraphs(slide, where)
            members, notes = read_drawings(package, [slide], self._reading, where)
            self._members += members
            self._notes += notes
            self._notes += self._notes_on_slide(slide, where)
            for notes_slide in package.related(slide, "notesSlide"):
                self._paragraphs(notes_slide, f"{where}, notes")
        self._members += core_properties(package, self._reading)
        self._notes += self._notes_on_masters()
        self._notes += notes_on_package(package)
        return PackageDocument(
            package.content, package.archive, self._members, self._notes
        )

    def _slides(self) -> list[str]:
        """List the parts of the slides in the order in which they are shown."""
        elements = self._package.elements(self._main)
        relations = {
            found.key: found.target
            for found in self._package.relations(self._main)
            if found.kind == "slide"
        }
        space = {elements.tokens[elements.root].space}
        slides = []
        for place in elements.named({"sldId"}, space):
            # beside the relationship it has a number of its own, called id, too
            values = elements.tokens[place].attributes.values()
            slides += [relations[key] for key in values if key in relations]
        return list(dict.fromkeys(slides))

    def _paragraphs(self, part: str, where: str) -> None:
        elements = self._package.elements(part)
        reader = DrawingReader(elements, self._reading.target, lambda _: where)
        self._members.append(Member(part, reader.parts(), elements.encoding))
        self._notes += notes_on_pictures(elements, where)

    def _notes_on_slide(self, slide: str, where: str) -> Iterator[Note]:
        for kind, note in _KEPT.items():
            if self._package.related(slide, kind):
                yield Note(where, note)

    def _notes_on_masters(self) -> Iterator[Note]:
        """Say which masters and layouts have text that is no prompt, and stays."""
        masters = self._package.related(self._main, "slideMaster")
        for number, master in enumerate(masters, 1):
            layouts = self._package.related(master, "slideLayout")
            parts = [master, *layouts]
            texts = [text for part in parts for text in self._fixed_texts(part)]
            if texts:
                note = f"text on the master and its layouts stays: {len(texts)} times"
                yield Note(f"master {number}", note)

    def _fixed_texts(self, part: str) -> Iterator[str]:
        elements = self._package.elements(part)
        space = {elements.tokens[elements.root].space}
        for place in elements.named({"sp"}, space):
            inside = elements.tokens[place : elements.ends[place]]
            if any(token.name == "ph" for token in inside):
                continue
            text = _text(elements, place)
            if any(map(str.isalpha, text)):
                yield text


def _text(elements: Elements, place: int) -> str:
    tokens = elements.tokens
    return "".join(
        elements.plain(inner)
        for inner in range(place, elements.ends[place])
        if tokens[inner].opens
        and tokens[inner].name == "t"
        and tokens[inner].space in DRAWING
    )
