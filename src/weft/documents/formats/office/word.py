"""Paragraphs of WordprocessingML: what of them is text, and how it is written again.

Source: ECMA-376, part 1, section 17.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from weft.documents.document import Kind, Note, Written
from weft.documents.formats.office.flow import (
    Edge,
    Event,
    Flow,
    Look,
    Point,
    Words,
    read_flow,
)
from weft.documents.formats.office.package import Parts, Stretch, WriteParts, parts_of
from weft.documents.formats.office.word_fields import (
    FieldMark,
    keeps_result,
    with_fields,
)
from weft.documents.formats.office.word_tongue import Tongue
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tokens import XmlToken
from weft.documents.formats.xml.tree import prefix_of

WORD = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
}
_SPACE = "http://www.w3.org/XML/1998/namespace space"
# what surrounds runs, and its own properties
_AROUND = {"hyperlink", "smartTag", "customXml", "ins", "moveTo", "fldSimple"}
_AROUND |= {"sdt", "dir", "bdo"}
_PROPERTIES = {"smartTagPr", "customXmlPr", "sdtPr", "sdtEndPr"}
_DELETED = {"del", "moveFrom"}
_CHOSEN = {"dropDownList", "comboBox", "date"}
# marks of the program's own, which no one sees
_IDLE = {
    "proofErr",
    "lastRenderedPageBreak",
    "softHyphen",
    "rPr",
    "pPr",
    "rubyPr",
    "rt",
}
_KEPT = {"sym", "pgNum", "oMath", "oMathPara", "dayLong", "dayShort", "monthLong"}
_KEPT |= {"monthShort", "yearLong", "yearShort"}
# what makes no difference to the eye
_UNSEEN = {"lang", "noProof"}
_LONGEST_SHOWN = 40


# a paragraph's content with a remark on its translation, which may be doubtful
Remark = Callable[[str, Sequence[Written], str], str]


@dataclass(frozen=True)
class _Paragraph:
    """A paragraph as it is written again; `head` are its properties."""

    head: str
    flow: Flow
    prefix: str
    remark: Remark | None

    def render(
        self, notation: str, written: Sequence[Written], write_parts: WriteParts
    ) -> str:
        content = self.flow.write(notation, self._words, write_parts)
        if self.remark:
            content = self.remark(content, written, self.prefix)
        return self.head + content

    def _words(self, raw: str) -> str:
        is_bare = raw == raw.strip() and "  " not in raw
        space = "" if is_bare else ' xml:space="preserve"'
        return f"<{self.prefix}t{space}>{raw}</{self.prefix}t>"


class WordReader:
    """Reads the paragraphs of a part."""

    def __init__(
        self,
        elements: Elements,
        tongue: Tongue,
        where: str = "",
        remark: Remark | None = None,
    ) -> None:
        """Read all; `where` is said before a paragraph's number."""
        self._remark = remark
        self._elements = elements
        self._tongue = tongue
        self._where = where
        self._looks: dict[str, Look] = {}
        self._stretches: dict[int, tuple[int, Stretch]] = {}
        self._pairs = count()
        self._ranges: dict[tuple[str, str], int] = {}
        self._place = ""
        self.notes: list[Note] = []
        places = _places(elements, where)
        starts = list(places)
        self._inner = elements.within(starts)
        # the inner ones first
        for start in sorted(starts, key=elements.ends.__getitem__):
            self._place = places[start]
            self._paragraph(start)
        order = {place: number for number, place in enumerate(places.values())}
        self.notes.sort(key=lambda note: order[note.place])

    def parts(self) -> Parts:
        """Return the part as what stays and what is translated."""
        return self._parts(0, len(self._elements.tokens))

    def _parts(self, start: int, stop: int) -> Parts:
        return parts_of(self._elements.tokens, self._stretches, start, stop)

    def _paragraph(self, start: int) -> None:
        """Read a paragraph, and remember it if it has something to translate."""
        self._ranges = {}
        events = with_fields(self._inside(start), self._note_result)
        flow = read_flow(events)
        if not flow.text.segments:
            return
        elements = self._elements
        first = start + 1
        end = elements.ends[start]
        prefix = prefix_of(elements.tokens[start].raw)
        properties = elements.child(start, "pPr")
        head = ""
        if properties is not None:
            tokens = elements.tokens[properties : elements.after(properties)]
            head = "".join(token.raw for token in tokens)
        head = self._tongue.paragraph(head, prefix)
        # there are no comments in a text box
        remark = None if start in self._inner else self._remark
        paragraph = _Paragraph(head, flow, prefix, remark)
        self._stretches[first] = (
            end,
            Stretch(self._parts(first, end), flow.text, self._place, paragraph.render),
        )

    def _inside(self, place: int) -> Iterator[Event]:
        """Yield what is in a paragraph, or in what surrounds runs."""
        for child in self._elements.children(place):
            yield from self._beside_runs(child)

    def _beside_runs(self, place: int) -> Iterable[Event]:
        token = self._elements.tokens[place]
        if token.space not in WORD:
            kind = Kind.KEPT if token.name in _KEPT else Kind.EMPTY
            return [self._point(place, kind)]
        if token.name == "r":
            return self._run(place)
        if token.name in _IDLE or token.name in _PROPERTIES:
            return []
        if token.name in _AROUND:
            return self._around(place)
        if token.name in _DELETED:
            self._note_deleted(place)
        elif token.name.endswith(("Start", "End")):
            return [self._range(place)]
        return [self._point(place)]

    def _around(self, place: int) -> Iterator[Event]:
        """Yield what surrounds runs, and these; or what stands for a choice or a number."""
        elements = self._elements
        token = elements.tokens[place]
        code = _attribute(token, "instr")
        if token.name == "fldSimple" and keeps_result(code):
            yield self._point(place, Kind.KEPT)
            return
        inner = place
        if token.name == "sdt":
            content = elements.child(place, "sdtContent")
            if content is None or self._is_chosen(place):
                yield self._point(place, Kind.KEPT)
                return
            inner = content
        if inner == elements.ends[inner]:
            yield self._point(place)
            return
        first = self._after_properties(inner)
        pair = next(self._pairs)
        yield Edge(elements.raw(place, first), pair)
        yield from self._inside(inner)
        yield Edge(
            elements.raw(elements.ends[inner], elements.after(place)), pair, True
        )

    def _after_properties(self, place: int) -> int:
        first = place + 1
        for child in self._elements.children(place):
            if self._elements.tokens[child].name in _PROPERTIES:
                first = self._elements.after(child)
        return first

    def _is_chosen(self, place: int) -> bool:
        """Return whether a content control has a date, or an entry of a list."""
        properties = self._elements.child(place, "sdtPr")
        if properties is None:
            return False
        names = {
            self._elements.tokens[child].name
            for child in self._elements.children(properties)
        }
        if "dataBinding" in names:
            note = "a content control shows data of the document, which stays, and may show it again"
            self.notes.append(Note(self._place, note))
        return bool(names & _CHOSEN)

    def _range(self, place: int) -> Edge | Point:
        """Return the start or the end of a bookmark or of another range."""
        token = self._elements.tokens[place]
        name = token.name.removesuffix("Start").removesuffix("End")
        number = _attribute(token, "id")
        raw = self._elements.raw(place, self._elements.after(place))
        is_end = token.name.endswith("End")
        if not is_end:
            self._ranges[name, number] = next(self._pairs)
        pair = self._ranges.get((name, number))
        if pair is None:
            return Point((raw,))
        return Edge(raw, pair, is_end, may_part=True)

    def _point(
        self, place: int, kind: Kind | None = Kind.EMPTY, look: Look | None = None
    ) -> Point:
        return Point(self._parts(place, self._elements.after(place)), kind, look)

    def _run(self, place: int) -> Iterator[Event]:
        look = self._look(place)
        for child in self._elements.children(place):
            yield from self._in_run(child, look)

    def _in_run(self, place: int, look: Look) -> Iterable[Event]:
        elements = self._elements
        token = elements.tokens[place]
        if token.space not in WORD:
            return [self._point(place, look=look)]
        if token.name in _IDLE:
            return []
        if token.name == "ruby":
            return self._ruby(place)
        if token.name in ("t", "noBreakHyphen"):
            return self._words(place, look)
        parts = self._parts(place, elements.after(place))
        if token.name in ("fldChar", "instrText"):
            told = _attribute(token, "fldCharType")
            code = elements.plain(place)
            return [FieldMark(parts, Kind.EMPTY, look, told=told, code=code)]
        return [Point(parts, _kind(token.name, token.attributes), look)]

    def _words(self, place: int, look: Look) -> Iterable[Event]:
        token = self._elements.tokens[place]
        if token.name == "noBreakHyphen":
            return [Words("-", look)]
        raw = self._elements.text(place)
        if token.attributes.get(_SPACE) != "preserve":
            raw = raw.strip(" \t\r\n")
        return [Words(raw, look)] if raw else []

    def _ruby(self, place: int) -> Iterator[Event]:
        """Yield the words that a reading is above; the reading goes where they are translated."""
        note = "how to read words stands above them (ruby); where they are translated it goes"
        if not any(entry == Note(self._place, note) for entry in self.notes[-1:]):
            self.notes.append(Note(self._place, note))
        base = self._elements.child(place, "rubyBase")
        if base is not None:
            yield from self._inside(base)

    def _look(self, place: int) -> Look:
        """Return the look of a run."""
        elements = self._elements
        token = elements.tokens[place]
        properties = elements.child(place, "rPr")
        raw = (
            ""
            if properties is None
            else elements.raw(properties, elements.after(properties))
        )
        known = token.raw + raw
        if known not in self._looks:
            prefix = prefix_of(token.raw)
            start = token.raw + self._tongue.run(raw, prefix)
            key = "" if properties is None else self._key(properties)
            self._looks[known] = Look(key, start, f"</{prefix}r>")
        return self._looks[known]

    def _key(self, properties: int) -> str:
        """Return what of a run's properties can be seen."""
        found = []
        for child in self._elements.children(properties):
            token = self._elements.tokens[child]
            if token.name not in _UNSEEN:
                inside = self._elements.raw(child + 1, self._elements.ends[child])
                told = sorted(
                    entry
                    for entry in token.attributes.items()
                    if "hint" not in entry[0]
                )
                found.append(f"{token.name} {told} {inside}")
        return "\n".join(found)

    def _note_deleted(self, place: int) -> None:
        inside = range(place, self._elements.ends[place])
        tokens = self._elements.tokens
        text = "".join(
            self._elements.plain(n)
            for n in inside
            if tokens[n].name in ("delText", "t") and tokens[n].opens
        )
        if text.strip():
            self._note_text("deleted text stays", text)

    def _note_result(self, text: str) -> None:
        self._note_text("the result of a field stays", text)

    def _note_text(self, what: str, text: str) -> None:
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
        self.notes.append(Note(self._place, f"{what}: {shown}"))


def _places(elements: Elements, where: str) -> dict[int, str]:
    """Return where each paragraph stands: its number, or its table, row and cell; of tables in
    each other, the outermost.
    """
    places = {}
    paragraphs = tables = rows = cells = 0
    end = inner_end = -1
    for place in elements.named({"p", "tbl", "tr", "tc"}, WORD):
        name = elements.tokens[place].name
        if name == "p":
            paragraphs += 1
            found = f"paragraph {paragraphs}"
            if place < end:
                found = f"table {tables}, row {rows}, cell {cells}"
            places[place] = where + found
        elif place < inner_end:
            continue
        elif name == "tbl" and place < end:
            inner_end = elements.ends[place]
        elif name == "tbl":
            tables += 1
            rows = 0
            end = elements.ends[place]
        elif name == "tr":
            rows += 1
            cells = 0
        else:
            cells += 1
    return places


def _attribute(token: XmlToken, name: str) -> str:
    """Return an attribute of WordprocessingML; "" where there is none."""
    for space in WORD:
        if (value := token.attributes.get(f"{space} {name}")) is not None:
            return value
    return ""


def _kind(name: str, attributes: Mapping[str, str]) -> Kind | None:
    """Return what a thing in a run is; None where it divides the text."""
    if name in ("tab", "ptab"):
        return None
    if name == "br":
        divides = {"page", "column"} & set(attributes.values())
        return None if divides else Kind.BREAK
    if name == "cr":
        return Kind.BREAK
    return Kind.KEPT if name in _KEPT else Kind.EMPTY
