"""XLIFF 1.2: units with a source and a target, and inline elements in both.

Source: XLIFF Version 1.2 (OASIS Standard, 2008), sections 2 and 3.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.documents.document import (
    Doubt,
    Kind,
    Note,
    Offer,
    Reading,
    TextDocument,
    Written,
)
from weft.documents.formats.bilingual.content import (
    LINE,
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
from weft.documents.formats.xml.tokens import Xml, written_as_xml
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

# a target in one of these states is no translation yet
_UNTRANSLATED = ("new", "needs-translation", "needs-l10n")
_WORDING = Wording()
# elements whose content is the code of another format
_CODES = ("bpt", "ept", "ph", "it")
_SPACE = f"{XML} space"
_LANGUAGE = f"{XML} lang"
# what Angular calls the two halves of a pair
# and what tells those of one name apart, but for the closing one
_COUNT = re.compile(r"_\d+$")
# what states how a target was taken from a memory
_QUALIFIERS = {"": "leveraged-mt", "exact": "exact-match", "repaired": "fuzzy-match"}
_HALVES = {"START_": Kind.OPEN, "CLOSE_": Kind.CLOSE}


def read_xliff_1(tree: XmlTree, reading: Reading) -> Bilingual:
    """Read a file; raises UsageError if it states other languages than the reading."""
    reader = _Reader(tree, reading)
    for file in tree.root.all("file"):
        reader.read_file(file)
    return Bilingual(
        tree, tuple(reader.units), tuple(reader.stated), tuple(reader.notes)
    )


@dataclass(frozen=True)
class _Scope:
    """The settings that a unit has from the elements around it."""

    is_translated: bool = True
    is_exact: bool = False

    def within(self, element: Element) -> "_Scope":
        """Return the scope inside an element."""
        stated = element.get("translate")
        space = element.get(_SPACE)
        is_translated = stated != "no" if stated else self.is_translated
        return _Scope(is_translated, space == "preserve" if space else self.is_exact)


class _Reader:
    """Collects the units of a file that have no translation."""

    def __init__(self, tree: XmlTree, reading: Reading) -> None:
        self._tree = tree
        self._reading = reading
        self._target = reading.target
        self._has_translations = False
        self.units: list[Unit] = []
        self.stated: list[Edit] = []
        self.notes: list[Note] = []

    def read_file(self, file: Element) -> None:
        """Read a file element, which states its languages."""
        stated = file.get("target-language")
        self._target = language_of(stated, self._reading.target)
        self._has_translations = False
        self._read_units(file)
        in_use = stated if self._has_translations else ""
        source = file.get("source-language")
        line = self._tree.line(file.start)
        refuse_other_languages(self._reading, line, source, in_use)
        if self._target != stated:
            tag = with_attribute(file.token.raw, "target-language", self._target)
            self.stated.append(Edit(file.start, file.inner, tag))

    def _read_units(self, file: Element) -> None:
        waiting = [(file, _Scope().within(self._tree.root))]
        while waiting:
            element, scope = waiting.pop()
            inner = scope.within(element)
            if element.name == "trans-unit":
                self._read_unit(element, inner)
                continue
            children = element.all("body", "group", "trans-unit", "bin-unit")
            waiting += [(child, inner) for child in reversed(children)]

    def _read_unit(self, unit: Element, scope: _Scope) -> None:
        source = unit.child("source")
        if source is None or not scope.is_translated:
            return
        segmented = unit.child("seg-source")
        has_segments = segmented is not None and any(
            map(_is_segment, segmented.below())
        )
        origin = segmented if segmented is not None and has_segments else source
        target = unit.child("target")
        is_exact = scope.within(origin).is_exact
        words = _Words(self._tree, is_exact, has_segments)
        if target is None or _is_untranslated(self._tree, target):
            content = words.read(origin)
        elif has_segments:
            self._has_translations = True
            content = words.fill(target, origin)
        else:
            self._has_translations = True
            return
        self._add(unit, source, target, content, is_whole=not has_segments)
        if words.has_hidden:
            self._note(unit, "text in <sub> is not translated")
        if words.lost:
            self._note(unit, f"the target has no place for the segment {words.lost[0]}")

    def _add(
        self,
        unit: Element,
        source: Element,
        target: Element | None,
        content: TextDocument,
        is_whole: bool,
    ) -> None:
        """Add a unit, unless it is approved or there is nothing to write."""
        if unit.get("approved") == "yes":
            if content.segments and (target is None or self._tree.is_blank(target)):
                self._note(unit, "is approved, though it has no translation; it stays")
            return
        if not content.segments and not "".join(content.skeleton).strip():
            return
        if (
            not content.segments
            and target is not None
            and not self._tree.is_blank(target)
        ):
            return
        place = unit.child("seg-source") or source
        is_copy = not content.segments
        writer = _Writer(
            self._tree, source, place, target, self._target, is_whole, is_copy
        )
        self.units.append(Unit((content,), unit.start, writer.edits))

    def _note(self, unit: Element, text: str) -> None:
        place = f"line {self._tree.line(unit.start)}, unit {unit.get('id')[:80]}"
        self.notes.append(Note(place, text))


def _is_segment(element: Element) -> bool:
    return element.name == "mrk" and element.get("mtype") == "seg"


def _is_hidden(element: Element) -> bool:
    return element.name == "sub"


def _is_untranslated(tree: XmlTree, target: Element) -> bool:
    """Return whether a target has no translation: nothing in it, or its state says so."""
    if target.get("state") in _UNTRANSLATED:
        return True
    for token in tree.tokens_in(target):
        is_mark = token.name == "mrk" or token.kind is Xml.OTHER
        if not is_mark and token.raw.strip():
            return False
    return True


class _Words:
    """Reads the content of sources as that of targets."""

    def __init__(self, tree: XmlTree, is_exact: bool, has_segments: bool) -> None:
        self._tree = tree
        self._is_exact = is_exact
        self._has_segments = has_segments
        self.has_hidden = False
        self.lost: list[str] = []

    def read(self, origin: Element) -> TextDocument:
        """Read a whole source."""
        builder = self._builder(origin)
        if self._has_segments:
            self._walk(builder, origin, {})
        else:
            self._run(builder, origin)
        return builder.document()

    def fill(self, target: Element, origin: Element) -> TextDocument:
        """Read a target that lacks the translations of some segments."""
        sources = {}
        for element in filter(_is_segment, origin.below()):
            sources[element.get("mid")] = element
        builder = self._builder(origin)
        found = filter(_is_segment, target.below())
        mids = {element.get("mid") for element in found}
        self.lost = [mid for mid in sources if mid not in mids]
        self._walk(builder, target, sources)
        return builder.document()

    def _builder(self, origin: Element) -> Builder:
        return Builder(syntax_of(self._tree, origin, _WORDING, self._is_exact))

    def _run(self, builder: Builder, origin: Element) -> None:
        parts = parts_of(self._tree, origin, self._role, _WORDING, self._is_exact)
        read_parts(builder, parts)

    def _walk(
        self, builder: Builder, element: Element, sources: Mapping[str, Element]
    ) -> None:
        """Read the segments in an element, and keep what is between them.

        With `sources`, only those that are blank are read, from the source of the same number.
        """
        place = element.inner
        for child in element.children:
            builder.keep(self._tree.text[place : child.start])
            place = child.after
            if not _is_segment(child):
                builder.keep(self._tree.text[child.start : child.inner])
                self._walk(builder, child, sources)
                builder.keep(self._tree.text[child.end : child.after])
            elif not sources:
                self._segment(builder, child, child)
            elif child.get("mid") in sources and self._tree.is_blank(child):
                self._segment(builder, child, sources[child.get("mid")])
            else:
                builder.keep(self._tree.raw(child))
        builder.keep(self._tree.text[place : element.end])

    def _segment(self, builder: Builder, mark: Element, origin: Element) -> None:
        tag = mark.token.raw
        builder.keep(opened(tag))
        self._run(builder, origin)
        builder.keep(f"</{named(tag)}>")

    def _role(self, element: Element) -> Piece:
        """Return the part that an inline element is of its text."""
        raw = self._tree.raw(element)
        name = element.name
        if name in _CODES and any(map(_is_hidden, element.below())):
            self.has_hidden = True
        if name == "ph" or element.get("mtype") == "protected":
            return Piece(raw, Kind.KEPT)
        if name in ("bpt", "bx"):
            return Piece(raw, Kind.OPEN, _number(element))
        if name in ("ept", "ex"):
            return Piece(raw, Kind.CLOSE, _number(element))
        if name == "it":
            return Piece(raw, Kind.EMPTY)
        return _placeholder(element, raw) if name == "x" else pair(element)


def _number(element: Element) -> str:
    return f"pair {element.get('rid') or element.get('id')}"


def _placeholder(element: Element, raw: str) -> Piece:
    """Return what an `x` is: a line break, a half of a pair, or what stands for words."""
    if element.get("ctype") == "lb":
        return Piece(raw, Kind.BREAK, LINE)
    number = element.get("id")
    kind = _HALVES.get(number[:6])
    if kind:
        return Piece(raw, kind, f"half {_COUNT.sub('', number[6:])}")
    return Piece(raw, Kind.KEPT)


@dataclass(frozen=True)
class _Writer:
    """Writes the target of a unit after `place`, or into the one that there is.

    With `is_whole` it has no segments of its own, with `is_copy` no word.
    """

    tree: XmlTree
    source: Element
    place: Element
    target: Element | None
    language: str
    is_whole: bool
    is_copy: bool

    def edits(self, targets: Sequence[Written]) -> Iterator[Edit]:
        """Yield what puts a target into the file, with its state and notes of doubt."""
        (written,) = targets
        text = written.text
        doubt = written.doubt
        state = "needs-review-translation" if doubt.remarks else "translated"
        tag = self._tag()
        tag = with_attribute(tag, "state", state)
        if not self.is_copy:
            tag = with_attribute(tag, "state-qualifier", _QUALIFIERS[doubt.taken])
        whole = f"{opened(tag)}{text}</{named(tag)}>"
        indent = self.tree.indent(self.source)
        after = "".join(self._after(text, doubt, indent))
        if self.target is None:
            place = self.place.after
            yield Edit(place, place, f"{indent}{whole}{after}")
        else:
            yield Edit(self.target.start, self.target.after, whole + after)

    def _tag(self) -> str:
        """Return the start tag of the target as it is, or of one that is like the source."""
        if self.target is not None:
            return self.target.token.raw
        tag = f"<{prefix_of(self.source.token.raw)}target>"
        if self.language and self.source.get(_LANGUAGE):
            tag = with_attribute(tag, "xml:lang", self.language)
        if space := self.source.get(_SPACE):
            tag = with_attribute(tag, "xml:space", space)
        return tag

    def _after(self, text: str, doubt: Doubt, indent: str) -> Iterator[str]:
        """Yield what stands after a target: a note of doubt, and what a memory offers."""
        if doubt.remarks:
            yield from self._noted(text, doubt, indent)
        if self.is_whole:
            for offer in doubt.offers:
                yield self._offered(offer, indent)

    def _offered(self, offer: Offer, indent: str) -> str:
        prefix = prefix_of(self.source.token.raw)
        tag = f"<{prefix}alt-trans>"
        tag = with_attribute(tag, "match-quality", f"{offer.score:.0%}")
        tag = with_attribute(tag, "origin", allowed(offer.where))
        source = written_as_xml(allowed(offer.source))
        target = written_as_xml(allowed(offer.target))
        return (
            f"{indent}{tag}<{prefix}source>{source}</{prefix}source>"
            f"<{prefix}target>{target}</{prefix}target></{prefix}alt-trans>"
        )

    def _noted(self, text: str, doubt: Doubt, indent: str) -> Iterator[str]:
        prefix = prefix_of(self.source.token.raw)
        remark = written_as_xml(remark_of(doubt))
        yield f'{indent}<{prefix}note from="Weft" annotates="target">{remark}</{prefix}note>'
        if doubt.confidence is not None and self.is_whole:
            yield f'{indent}<{prefix}alt-trans match-quality="{doubt.confidence:.0%}" origin="Weft">'
            yield f"<{prefix}target>{text}</{prefix}target></{prefix}alt-trans>"
