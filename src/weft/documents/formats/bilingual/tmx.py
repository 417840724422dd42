"""TMX, the exchange format of translation memories, as a document: units that lack the language of
the target get it.

Source: TMX 1.4b specification (LISA/GALA, 2005).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.data.languages import primary
from weft.documents.document import Doubt, Kind, Note, Reading, TextDocument, Written
from weft.documents.formats.bilingual.content import (
    Wording,
    pair,
    parts_of,
    read_parts,
    syntax_of,
)
from weft.documents.formats.bilingual.units import Bilingual, Unit, remark_of
from weft.documents.formats.xml.tokens import written_as_xml
from weft.documents.formats.xml.tree import (
    XML,
    Edit,
    Element,
    XmlTree,
    named,
    opened,
    prefix_of,
    read_tree,
    with_attribute,
)
from weft.documents.inline import Builder, Piece
from weft.errors import UsageError

_WORDING = Wording()
_ANY = "*all*"
_LANGUAGE = f"{XML} lang"
_SPACE = f"{XML} space"
_MOST_NAMED = 8  # languages in a message
_CODES = ("bpt", "ept", "ph", "it", "ut")


def open_tmx_document(content: bytes, reading: Reading) -> Bilingual:
    """Read a translation memory as a document.

    Without languages in the reading they are those that the file has. Raises UsageError for what is
    no TMX, and where the languages are not known.
    """
    tree = read_tree(content, reading.name)
    root = tree.root
    if root.name != "tmx":
        raise UsageError(
            f"{reading.name}:{tree.line(root.start)}: begins with <{root.name}>; TMX begins with <tmx>"
        )
    body = root.child("body")
    units = [] if body is None else body.all("tu")
    reader = _Reader(tree, *_languages(tree, units, reading))
    for unit in units:
        reader.read_unit(unit)
    return Bilingual(tree, tuple(reader.units), own_notes=tuple(reader.notes()))


def _language(element: Element) -> str:
    """Return the language of a translation: `xml:lang` since TMX 1.4, `lang` before."""
    return element.get(_LANGUAGE) or element.get("lang")


def _languages(
    tree: XmlTree, units: Sequence[Element], reading: Reading
) -> tuple[str, str]:
    """Return the languages to translate from and to."""
    found = Counter[str]()
    for unit in units:
        found.update(map(_language, unit.all("tuv")))
    header = tree.root.child("header")
    stated = header.get("srclang") if header is not None else ""
    if stated == _ANY:
        stated = ""
    source = reading.source or stated
    if not source and reading.target:
        source = _only(found, reading.target)
    target = reading.target or (_only(found, source) if source else "")
    if units and not (source and target):
        listed = ", ".join(sorted(found)[:_MOST_NAMED]) or "none"
        raise UsageError(
            f"{reading.name}: say the languages to translate from and to; the file has {listed}"
        )
    return source, target


def _only(found: Counter[str], other: str) -> str:
    """Return the only language besides another, "" where there is none or several."""
    rest = [tag for tag in found if tag and primary(tag) != primary(other)]
    return rest[0] if len(set(map(primary, rest))) == 1 else ""


def _matching(
    tuvs: Sequence[Element], tag: str, other: Element | None
) -> Element | None:
    """Return the translation into a language, by its primary subtag where there is no exact one."""
    rest = [tuv for tuv in tuvs if tuv is not other]
    for tuv in rest:
        if _language(tuv).lower() == tag.lower():
            return tuv
    for tuv in rest:
        if primary(_language(tuv)) == primary(tag):
            return tuv
    return None


class _Reader:
    """Collects the units that lack a translation."""

    def __init__(self, tree: XmlTree, source: str, target: str) -> None:
        self._tree = tree
        self._source = source
        self._target = target
        self._foreign: list[Element] = []
        self._hidden: list[Element] = []
        self.units: list[Unit] = []

    def notes(self) -> Iterator[Note]:
        """Yield what is not translated, with the line of the first unit."""
        for units, text in (
            (self._foreign, f"the unit has no text in {self._source}"),
            (self._hidden, "text in <sub> is not translated"),
        ):
            if units:
                more = f" (and {len(units) - 1:,} more)" if len(units) > 1 else ""
                yield Note(f"line {self._tree.line(units[0].start)}", text + more)

    def read_unit(self, unit: Element) -> None:
        """Read a unit that has the source language and lacks the other."""
        tuvs = unit.all("tuv")
        source = _matching(tuvs, self._source, None)
        seg = None if source is None else source.child("seg")
        if source is None or seg is None:
            self._foreign.append(unit)
            return
        target = _matching(tuvs, self._target, source)
        filled = None if target is None else target.child("seg")
        if filled is not None and not self._tree.is_blank(filled):
            return
        content = self._content(unit, source, seg)
        if not content.segments and not "".join(content.skeleton).strip():
            return
        writer = _Writer(self._tree, self._target, source, seg, target, filled)
        self.units.append(Unit((content,), unit.start, writer.edits))

    def _content(self, unit: Element, source: Element, seg: Element) -> TextDocument:
        is_exact = "preserve" in (source.get(_SPACE), unit.get(_SPACE), seg.get(_SPACE))
        builder = Builder(syntax_of(self._tree, seg, _WORDING, is_exact))
        read_parts(builder, parts_of(self._tree, seg, self._role, _WORDING, is_exact))
        if any(element.name == "sub" for element in seg.below()):
            self._hidden.append(unit)
        return builder.document()

    def _role(self, element: Element) -> Piece:
        """Return the part that an inline element is of its text."""
        raw = self._tree.raw(element)
        if element.name not in _CODES:
            return pair(element)
        if element.name == "bpt":
            return Piece(raw, Kind.OPEN, f"pair {element.get('i')}")
        if element.name == "ept":
            return Piece(raw, Kind.CLOSE, f"pair {element.get('i')}")
        return Piece(raw, Kind.EMPTY if element.name == "it" else Kind.KEPT)


@dataclass(frozen=True)
class _Writer:
    """Writes the translation of a unit after its source, or into what there is of one."""

    tree: XmlTree
    language: str
    source: Element
    seg: Element
    target: Element | None
    filled: Element | None

    def edits(self, targets: Sequence[Written]) -> Iterator[Edit]:
        """Yield what puts a translation into the file, with a note of doubt."""
        (written,) = targets
        seg = self._seg(written.text)
        noted = self._noted(written.doubt)
        if self.filled is not None:
            yield Edit(self.filled.start, self.filled.after, f"{noted}{seg}")
        elif self.target is not None and not self.target.is_tag:
            place = self.target.end
            yield Edit(place, place, f"{noted}{seg}")
        elif self.target is not None:
            tag = self.target.token.raw
            whole = f"{opened(tag)}{noted}{seg}</{named(tag)}>"
            yield Edit(self.target.start, self.target.after, whole)
        else:
            place = self.source.after
            yield Edit(place, place, self._tuv(noted + seg))

    def _seg(self, text: str) -> str:
        tag = (self.filled or self.seg).token.raw
        return f"{opened(tag)}{text}</{named(tag)}>"

    def _tuv(self, inner: str) -> str:
        """Return a translation that is laid out like the source."""
        before = self.tree.indent(self.seg)
        space = self.tree.text[self.seg.after : self.source.end]
        after = space if before and not space.strip() else ""
        name = named(self.source.token.raw)
        attribute = "xml:lang" if self.source.get(_LANGUAGE) else "lang"
        tag = with_attribute(f"<{name}>", attribute, self.language)
        return f"{self.tree.indent(self.source)}{tag}{before}{inner}{after}</{name}>"

    def _noted(self, doubt: Doubt) -> str:
        if not doubt.remarks:
            return ""
        prefix = prefix_of(self.source.token.raw)
        return f"<{prefix}note>{written_as_xml(remark_of(doubt))}</{prefix}note>"
