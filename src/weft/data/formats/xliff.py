"""XLIFF, the exchange format of localisation, read as a stream of pairs.

Sources: XLIFF 1.2 (OASIS, 2008); XLIFF 2.1 (OASIS, 2018).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft.data import languages
from weft.data.formats import codes, lines
from weft.data.formats.pairs import OpenPairs, Sides, other_way
from weft.data.formats.row import LANGUAGE_MISSING, TOO_LONG, PairRow
from weft.data.formats.xml_walk import XmlWalk
from weft.errors import DataError

NOT_TRANSLATED = "unit without a translation"
TO_BE_REVIEWED = "unit to be translated or reviewed"
MACHINE_MADE = "unit by a machine that nobody has approved"
# what states that a machine wrote a target, and that a person takes it as it is
_MACHINES = ("leveraged-mt", "mt-suggestion")
_APPROVED = ("final", "signed-off")
_UNITS = ("trans-unit", "segment")  # of 1.2, of 2
_SIDES = ("source", "target")
# what has sources and targets of its own beside a unit: proposals, other material
_BESIDE = (
    "alt-trans",
    "matches",
    "mtc:matches",
    "glossary",
    "gls:glossary",
    "bin-unit",
)
# inline elements of both versions that have text of their own in them
_AROUND = ("g", "pc")
_POINTS = ("x", "ph", "it")
_ENDS = ("bx", "ex", "sc", "ec")
_OPENING = ("bpt", "bx", "sc")
_VALUES = ("equiv-text", "equiv", "disp")
_MOST_PAIRS = 1000  # of languages


@dataclass
class _Side:
    """The text of a source or target as it is read, and of its segments by their ids."""

    pieces: list[str] = field(default_factory=list)
    segments: dict[str, list[str]] = field(default_factory=dict)
    length: int = 0

    @property
    def whole(self) -> codes.MarkedText:
        return codes.text_of(self.pieces)


@dataclass
class _Unit:
    """A unit as it is read: where it begins, its languages, its sides and its state."""

    number: int
    languages: Sides
    is_translated: bool
    sides: dict[str, _Side] = field(default_factory=dict)
    state: str = ""
    qualifier: str = ""
    is_approved: bool = False

    @property
    def is_of_machine(self) -> bool:
        """Return whether its target is one that no person has approved."""
        is_approved = self.is_approved or self.state in _APPROVED
        return self.qualifier in _MACHINES and not is_approved

    def pairs(self) -> Iterator[tuple[codes.MarkedText, codes.MarkedText]]:
        """Yield its segments where both sides have the same, else the whole."""
        source = self.sides.get("source", _Side())
        target = self.sides.get("target", _Side())
        divided = self.sides.get("seg-source", source)
        if target.segments and list(divided.segments) == list(target.segments):
            for name, pieces in target.segments.items():
                yield codes.text_of(divided.segments[name]), codes.text_of(pieces)
        else:
            yield source.whole, target.whole


def open_xliff(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open a file in the languages asked for, from the source to the target or the other way round;
    else in those that it says, else in those of its name.
    """
    contents = _LanguageWalk(path)
    for _ in contents.steps():
        pass
    own = _own_languages(path, list(contents.found), asked)
    src, tgt = own[0] or named[0], own[1] or named[1]
    is_turned = _is_same(asked[0], tgt) or _is_same(asked[1], src)
    if is_turned:
        src, tgt = tgt, src
    pair = (
        asked[0] or src or languages.UNKNOWN,
        asked[1] or tgt or languages.UNKNOWN,
    )
    dropped = Counter[str]()
    coded: set[int] = set()
    marked: list[str] = []
    rows = read_xliff(path, own, dropped, coded, contents.shares_lines, marked)
    if is_turned:
        rows = _turned(rows, marked)
    notes = []
    if not any(asked) and languages.UNKNOWN not in pair:
        notes.append(f"read as {pair[0]} to {pair[1]}; {other_way(pair)}")
    return OpenPairs(
        rows=rows,
        languages=pair,
        dropped=dropped,
        notes=notes,
        coded=coded,
        marked=marked,
        by_unit=contents.shares_lines,
    )


def _turned(rows: Iterator[PairRow], marked: list[str]) -> Iterator[PairRow]:
    """Yield rows the other way round, and turn the marked sides of the last one."""
    for number, src, tgt in rows:
        marked.reverse()
        yield number, tgt, src


def _is_same(asked: str | None, other: str | None) -> bool:
    if asked is None or other is None:
        return False
    return languages.primary(asked) == languages.primary(other)


def _own_languages(path: Path, found: list[Sides], asked: Sides) -> Sides:
    """Return the languages that the file says; of several pairs the one that is asked for.

    Raises DataError where none or more than one of several is.
    """
    if len(found) > 1:
        chosen = [pair for pair in found if _fits(pair, asked)]
        if not any(asked) or len(chosen) != 1:
            listing = ", ".join(f"{src} to {tgt}" for src, tgt in found)
            raise DataError(
                f"{path}: choose the languages with data.src_lang and data.tgt_lang from {listing}"
            )
        return chosen[0]
    return found[0] if found else (None, None)


def _fits(pair: Sides, asked: Sides) -> bool:
    """Return whether a pair of languages is asked for, in either direction."""
    return any(
        all(
            want is None or _is_same(want, has)
            for want, has in zip(asked, way, strict=True)
        )
        for way in (pair, pair[::-1])
    )


def read_xliff(
    path: Path,
    own: Sides,
    dropped: Counter[str],
    coded: set[int],
    by_unit: bool = False,
    marked: list[str] | None = None,
) -> Iterator[PairRow]:
    """Yield the line where each unit of these languages begins, or its number, and both texts.

    Left out are units without a translation, those whose state says that they are to be translated
    or reviewed or that a machine wrote them, and those that are not to be translated. Codes are
    taken out as those of TMX are; of an element around text the text stays. As long as a row is the
    last, `marked` has its sides with the marks of codes. Raises DataError with the line for
    malformed XML.
    """
    walk = _UnitWalk(path, by_unit)
    for _ in walk.steps():
        for unit in walk.take():
            if unit.languages != own:
                dropped[LANGUAGE_MISSING] += 1
                continue
            for number, src, tgt in _rows(unit, dropped):
                if src.is_coded or tgt.is_coded:
                    coded.add(number)
                if marked is not None:
                    marked[:] = codes.marked_sides(src, tgt)
                yield number, src.text, tgt.text


def _rows(
    unit: _Unit, dropped: Counter[str]
) -> Iterator[tuple[int, codes.MarkedText, codes.MarkedText]]:
    if not unit.is_translated:
        return
    if unit.state in ("new", "initial") or unit.state.startswith("needs-"):
        dropped[TO_BE_REVIEWED] += 1
        return
    if unit.is_of_machine:
        dropped[MACHINE_MADE] += 1
        return
    if any(side.length > lines.MAX_LINE_CHARS for side in unit.sides.values()):
        dropped[TOO_LONG] += 1
        return
    for src, tgt in unit.pairs():
        if not tgt.text.strip():
            dropped[NOT_TRANSLATED] += 1
            continue
        yield unit.number, src, tgt


class _XliffWalk(XmlWalk):
    """A walk over XLIFF that knows the languages of where it is."""

    root = "xliff"
    format_name = "XLIFF"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.languages: Sides = (None, None)

    def see_languages(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note what a file element of 1.2, or the root of 2, says."""
        if name == "file" and "source-language" in attributes:
            self.languages = (
                languages.canonical(attributes["source-language"]),
                languages.canonical(attributes.get("target-language", "")),
            )
        elif name == "xliff" and "srcLang" in attributes:
            self.languages = (
                languages.canonical(attributes["srcLang"]),
                languages.canonical(attributes.get("trgLang", "")),
            )


class _LanguageWalk(_XliffWalk):
    """Finds the pairs of languages, and whether two units begin on one line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.found: dict[Sides, None] = {}
        self.shares_lines = False
        self._last_line = 0

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        self.see_languages(name, attributes)
        if name in _UNITS:
            line = self.parser.CurrentLineNumber
            self.shares_lines = self.shares_lines or line == self._last_line
            self._last_line = line
            self.found[self.languages] = None
            if len(self.found) > _MOST_PAIRS:
                self.refuse(f"more than {_MOST_PAIRS} pairs of languages")

    def close_tag(self, name: str) -> None:
        """Skip end tags: languages stand in start tags alone."""


class _UnitWalk(_XliffWalk):
    """Collects the sides of each unit."""

    def __init__(self, path: Path, by_unit: bool) -> None:
        super().__init__(path)
        self.parser.CharacterDataHandler = self._text
        self.by_unit = by_unit
        self.count = 0
        self.ready: list[_Unit] = []
        self.unit: _Unit | None = None
        self.side: _Side | None = None
        # depths at which elements began: proposals, a code, units that stay as they are
        self.beside = self.code_from = 0
        self.kept: list[int] = []
        self.code: list[str] = []
        self.code_name = self.code_label = ""
        self.around: list[str] = []  # the elements around text that are open
        # the segments that are open, each with the depth at which it began
        self.segments: list[tuple[int, str]] = []

    def take(self) -> list[_Unit]:
        """Return the units completed since the last call."""
        ready = self.ready
        self.ready = []
        return ready

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        self.see_languages(name, attributes)
        if self.beside or name in _BESIDE:
            self.beside = self.beside or self.depth
        elif self.side is not None:
            self._open_inline(name, attributes)
        elif name in (*_SIDES, "seg-source") and self.unit is not None:
            self.side = self.unit.sides.setdefault(name, _Side())
            if name == "target":
                self.unit.state = attributes.get("state", self.unit.state)
                self.unit.qualifier = attributes.get("state-qualifier", "")
        else:
            self._open_unit(name, attributes)

    def _open_unit(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take an element around units, or a unit."""
        if attributes.get("translate") == "no":
            self.kept.append(self.depth)
        if name in _UNITS:
            self.count += 1
            number = self.count if self.by_unit else self.parser.CurrentLineNumber
            is_translated = not self.kept
            self.unit = _Unit(number, self.languages, is_translated)
            self.unit.state = attributes.get("state", "")
            self.unit.is_approved = attributes.get("approved") == "yes"

    def _open_inline(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.code_from:
            return
        if name == "mrk" and attributes.get("mtype") == "seg":
            assert self.side is not None
            self.segments.append((self.depth, attributes.get("mid", "")))
            self.side.segments.setdefault(attributes.get("mid", ""), [])
        elif name in _AROUND:
            self.around.append(f"{name} {attributes.get('id', '')}")
            self._add(codes.pair_mark(True, self.around[-1]))
        elif name in codes.CODES or name in (*_POINTS, *_ENDS):
            self.code_name = name
            ids = map(attributes.get, ("rid", "startRef", "id"))
            self.code_label = next(filter(None, ids), "")
            self.code_from = self.depth
            shown = next(filter(None, map(attributes.get, _VALUES)), "")
            self.code = [shown]
        elif name == "cp":  # a character that XML cannot hold
            self._add(" ")

    def close_tag(self, name: str) -> None:
        # the depth is that of the element around the closed one
        inner = self.depth + 1
        if self.beside:
            self.beside = 0 if inner == self.beside else self.beside
        elif inner == self.code_from:
            self.code_from = 0
            self._close_code()
        elif self.side is not None and not self.code_from:
            self._close_inline(name, inner)
        elif name in _UNITS and self.unit is not None:
            self.ready.append(self.unit)
            self.unit = None
        if self.kept and self.kept[-1] == inner:
            self.kept.pop()

    def _close_code(self) -> None:
        """Put what stays of a code in its place: nothing of an end of a pair."""
        if self.code_name in _ENDS or codes.is_paired(self.code_name):
            opens = self.code_name in _OPENING
            self._add(codes.pair_mark(opens, self.code_label))
            return
        text = "".join(self.code)[: codes.MOST_CODE_CHARS + 1]
        self._add(codes.replace_code(text, self.code_label))

    def _close_inline(self, name: str, inner: int) -> None:
        if self.segments and self.segments[-1][0] == inner:
            self.segments.pop()
        elif name in _AROUND:
            self._add(codes.pair_mark(False, self.around.pop()))
        elif name in (*_SIDES, "seg-source"):
            self.side = None

    def _text(self, data: str) -> None:
        if self.side is None or self.beside:
            return
        if not self.code_from:
            self._add(data)
        elif self.depth == self.code_from and len(self.code) <= codes.MOST_CODE_CHARS:
            self.code.append(data[: codes.MOST_CODE_CHARS + 1])

    def _add(self, text: str) -> None:
        side = self.side
        assert side is not None
        if side.length > lines.MAX_LINE_CHARS:
            return
        side.length += len(text)
        side.pieces.append(text)
        for _, name in self.segments:
            side.segments[name].append(text)
