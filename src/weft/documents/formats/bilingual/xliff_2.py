"""XLIFF 2.0 and 2.1: units of segments, each with a source and a target.

Source: XLIFF Version 2.1 (OASIS Standard, 2018), section 4, "Detailed Specifications".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.documents.document import Kind, Note, Reading, TextDocument, Written
from weft.documents.formats.bilingual.choices import Part
from weft.documents.formats.bilingual.content import (
    Wording,
    pair,
    parts_of,
    read_parts,
    syntax_of,
)
from weft.documents.formats.bilingual.units import (
    Bilingual,
    Unit,
    language_of,
    refuse_other_languages,
    remark_of,
)
from weft.documents.formats.xml.tokens import written_as_xml
from weft.documents.formats.xml.tree import (
    XML,
    Edit,
    Element,
    XmlTree,
    allowed,
    named,
    opened,
    prefix_of,
    with_attribute,
)
from weft.documents.inline import Builder, Piece

_WORDING = Wording()
_SPACE = f"{XML} space"
_LANGUAGE = f"{XML} lang"
# where what begins with one of these elements ends, notes may stand no more
_AFTER_NOTES = ("originalData", "segment", "ignorable")
_FINISHED = ("reviewed", "final")
# the part of a sub-state before the colon is the tool's name
_DOUBTED = "weft:doubtful"
_STARTS = ("sc", "sm")
_ENDS = ("ec", "em")
_UNTRANSLATED = "untranslated"


def read_xliff_2(tree: XmlTree, reading: Reading) -> Bilingual:
    """Read a file; raises UsageError if it states other languages than the reading."""
    root = tree.root
    target = root.get("trgLang")
    language = language_of(target, reading.target)
    reader = _Reader(tree, language)
    reader.read()
    in_use = target if reader.has_translations else ""
    line = tree.line(root.start)
    refuse_other_languages(reading, line, root.get("srcLang"), in_use)
    stated = []
    if language != target:
        tag = with_attribute(root.token.raw, "trgLang", language)
        stated.append(Edit(root.start, root.inner, tag))
    if reader.units and not language:
        note = "does not say its target language (trgLang)"
        reader.notes.append(Note(f"line {line}", note))
    return Bilingual(tree, tuple(reader.units), tuple(stated), tuple(reader.notes))


class _Reader:
    """Collects the segments of a file that have no translation."""

    def __init__(self, tree: XmlTree, language: str) -> None:
        self._tree = tree
        self._language = language
        self.units: list[Unit] = []
        self.notes: list[Note] = []
        self.has_translations = False

    def read(self) -> None:
        """Read all files of the file."""
        waiting = [(self._tree.root, True, False)]
        while waiting:
            element, is_translated, is_exact = waiting.pop()
            if stated := element.get("translate"):
                is_translated = stated != "no"
            is_exact = _is_exact(element, is_exact)
            if element.name == "unit" and is_translated:
                self._read_unit(element, is_exact)
                continue
            children = element.all("file", "group", "unit")
            children.reverse()
            waiting += [(child, is_translated, is_exact) for child in children]

    def _read_unit(self, unit: Element, is_exact: bool) -> None:
        places = []
        contents = []
        for segment in unit.all("segment"):
            source = segment.child("source")
            target = segment.child("target")
            if source is None:
                continue
            if not _is_waiting(self._tree, segment, target):
                self.has_translations = True
                continue
            content = self._content(source, _is_exact(source, is_exact))
            state = segment.get("state")
            if content.segments and state in _FINISHED:
                self._note(unit, f"is {state}, though it has no translation; it stays")
            elif "".join(content.skeleton).strip() or content.segments:
                places.append(_Place(segment, source, target))
                contents.append(content)
        if places:
            writer = _Writer(self._tree, unit, tuple(places), self._language)
            self.units.append(Unit(tuple(contents), unit.start, writer.edits))

    def _content(self, source: Element, is_exact: bool) -> TextDocument:
        parts = parts_of(self._tree, source, self._role, _WORDING, is_exact)
        builder = Builder(syntax_of(self._tree, source, _WORDING, is_exact))
        read_parts(builder, without_excluded(parts))
        return builder.document()

    def _role(self, element: Element) -> Piece:
        """Return the part that an inline element is of its text."""
        raw = self._tree.raw(element)
        name = element.name
        is_excluded = element.get("translate") == "no"
        if name in ("ph", "cp") or (name == "mrk" and is_excluded):
            return Piece(raw, Kind.EMPTY if name == "cp" else Kind.KEPT)
        if name in _STARTS:
            excluded = f"{_UNTRANSLATED} " if is_excluded else ""
            return Piece(raw, Kind.OPEN, f"{excluded}{name[1]} {element.get('id')}")
        if name in _ENDS:
            return Piece(raw, Kind.CLOSE, f"{name[1]} {_start_of(element)}")
        return pair(element)

    def _note(self, unit: Element, text: str) -> None:
        place = f"line {self._tree.line(unit.start)}, unit {unit.get('id')[:80]}"
        self.notes.append(Note(place, text))


def _start_of(element: Element) -> str:
    return element.get("startRef") or element.get("id")


def _is_exact(element: Element, is_exact: bool) -> bool:
    """Return whether white space counts in an element; else as around it."""
    stated = element.get(_SPACE)
    return stated == "preserve" if stated else is_exact


def _is_waiting(tree: XmlTree, segment: Element, target: Element | None) -> bool:
    """Return whether a segment has no translation: none at all, or its state says so."""
    if target is None or tree.is_blank(target):
        return True
    return segment.get("state") == "initial"


def without_excluded(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield parts in which what is between two marks that exclude it is one kept piece."""
    inside: list[Part] = []
    closing = ""
    for part in parts:
        name = part.name if isinstance(part, Piece) else ""
        if closing:
            inside.append(part)
            if isinstance(part, Piece) and part.kind is Kind.CLOSE and name == closing:
                yield Piece("".join(map(_raw, inside)), Kind.KEPT)
                inside = []
                closing = ""
        elif name.startswith(_UNTRANSLATED):
            inside = [part]
            closing = name.removeprefix(f"{_UNTRANSLATED} ")
        else:
            yield part
    for part in inside:
        # without an end it excludes all that follows
        yield _raw(part)


def _raw(part: Part) -> str:
    return part if isinstance(part, str) else part.raw


@dataclass(frozen=True)
class _Place:
    """A segment, its source, and its target if there is one."""

    segment: Element
    source: Element
    target: Element | None


@dataclass(frozen=True)
class _Writer:
    """Writes the targets of a unit."""

    tree: XmlTree
    unit: Element
    places: tuple[_Place, ...]
    language: str

    def edits(self, targets: Sequence[Written]) -> Iterator[Edit]:
        """Yield what puts targets into the file, with their states and notes of doubt."""
        notes = []
        for place, target in zip(self.places, targets, strict=True):
            yield from self._written(place, target)
            if target.doubt.remarks:
                notes.append(self._note(place.segment, remark_of(target.doubt)))
            for offer in target.doubt.offers:
                offered = allowed(f"Translation memory, {offer}")
                notes.append(self._note(place.segment, offered))
        if notes:
            yield self._noted(notes)

    def _written(self, place: _Place, target: Written) -> Iterator[Edit]:
        segment = place.segment
        tag = with_attribute(segment.token.raw, "state", "translated")
        doubted = _DOUBTED if target.doubt.remarks else None
        stated = with_attribute(tag, "subState", doubted)
        yield Edit(segment.start, segment.inner, stated)
        tag = self._tag(place)
        whole = f"{opened(tag)}{target.text}</{named(tag)}>"
        if place.target is None:
            after = place.source.after
            yield Edit(after, after, self.tree.indent(place.source) + whole)
        else:
            yield Edit(place.target.start, place.target.after, whole)

    def _tag(self, place: _Place) -> str:
        """Return the start tag of a target as it is, or of one that is like its source."""
        if place.target is not None:
            return place.target.token.raw
        source = place.source
        tag = f"<{prefix_of(source.token.raw)}target>"
        if self.language and source.get(_LANGUAGE):
            tag = with_attribute(tag, "xml:lang", self.language)
        if space := source.get(_SPACE):
            tag = with_attribute(tag, "xml:space", space)
        return tag

    def _note(self, segment: Element, text: str) -> str:
        prefix = prefix_of(self.unit.token.raw)
        number = segment.get("id")
        which = f"Segment {number}: " if number else ""
        remark = written_as_xml(which + text)
        return (
            f'<{prefix}note appliesTo="target" category="weft">{remark}</{prefix}note>'
        )

    def _noted(self, notes: list[str]) -> Edit:
        """Return the edit that adds notes to the unit."""
        prefix = prefix_of(self.unit.token.raw)
        there = self.unit.child("notes")
        if there is not None and there.children:
            last = there.children[-1]
            indent = self.tree.indent(last)
            written = "".join(indent + note for note in notes)
            return Edit(last.after, last.after, written)
        written = "".join(notes)
        if there is not None:
            tag = opened(there.token.raw)
            return Edit(there.start, there.after, f"{tag}{written}</{named(tag)}>")
        first = self.unit.all(*_AFTER_NOTES)[0]
        indent = self.tree.indent(first)
        start = first.start - len(indent)
        whole = f"{indent}<{prefix}notes>{written}</{prefix}notes>"
        return Edit(start, start, whole)
