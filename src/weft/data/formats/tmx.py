"""TMX, the XML exchange format of translation memories, read as a stream.

Source: TMX 1.4b specification (LISA/GALA 2005).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from weft.data import languages
from weft.data.formats import codes, lines
from weft.data.formats.pairs import OpenPairs, Sides, other_way
from weft.data.formats.row import LANGUAGE_MISSING, TOO_LONG, PairRow
from weft.data.formats.xml_walk import XmlWalk
from weft.errors import DataError

MAX_LANGUAGES = 1000


class Contents(NamedTuple):
    """The languages of a file and how often each occurs; the header's source language if it names
    one; and whether two units begin on one line, so that a line's number would not find a unit.
    """

    languages: Counter[str]
    header: str | None
    shares_lines: bool


def open_tmx(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open a translation memory, in the languages asked for; else in those of the file's name, if
    the file holds both; else in the two that it holds.
    """
    contents = read_contents(path)
    is_asked = any(asked)
    if not is_asked and all(named) and _holds(contents, named):
        asked = named
    pair = choose_languages(path, contents.languages, contents.header, *asked)
    against = against_header(contents, *pair, is_asked=is_asked)
    by_unit = contents.shares_lines
    dropped = Counter[str]()
    coded: set[int] = set()
    marked: list[str] = []
    return OpenPairs(
        rows=read_tmx(path, *pair, dropped, coded, by_unit, marked),
        languages=pair,
        dropped=dropped,
        notes=[f"{against}; {other_way(pair)}"] if against else [],
        coded=coded,
        marked=marked,
        by_unit=by_unit,
    )


def _holds(contents: Contents, named: Sides) -> bool:
    """Return whether the file has segments in the languages that its name says."""
    held = set(map(languages.primary, contents.languages))
    return all(tag and languages.primary(tag) in held for tag in named)


def read_contents(path: Path) -> Contents:
    """Read the whole file, for its languages alone. Raises DataError as `read_tmx` does."""
    walk = _LanguageWalk(path)
    for _ in walk.steps():
        pass
    return Contents(walk.found, walk.header, walk.shares_lines)


def choose_languages(
    path: Path,
    found: Mapping[str, int],
    header: str | None,
    src: str | None,
    tgt: str | None,
) -> tuple[str, str]:
    """Choose the two languages to read: those asked for, or the only two there are, the header's
    source first.

    A language asked for matches by its primary subtag if not exactly. Raises DataError listing what
    there is.
    """
    free = _labels(found)
    listing = ", ".join(f"{tag} ({n})" for tag, n in sorted(found.items())) or "none"
    for asked in (src, tgt):
        if asked is not None:
            match = _matching(asked, free)
            if match is None:
                raise DataError(
                    f"{path}: no segments in {asked}; the languages are {listing}"
                )
            free.remove(match)
    if len(free) != (src is None) + (tgt is None) and (src is None or tgt is None):
        raise DataError(
            f"{path}: choose two languages with data.src_lang and data.tgt_lang from {listing}"
        )
    if src is None and tgt is None and header and _matching(header, free) == free[1]:
        free.reverse()
    return src or free.pop(0), tgt or free.pop(0)


def against_header(
    contents: Contents, src: str, tgt: str, is_asked: bool
) -> str | None:
    """Say how the direction that is read differs from the source language that the header names, if
    it does.

    Where no language is asked for the header decides: then, how the units differ from it.
    """
    header = contents.header
    if header is None:
        return None
    key: Callable[[str], str] = languages.primary
    if key(src) == key(tgt):
        key = str
    named = f"its header names {header} as the source language"
    if key(header) != key(src):
        return f"{named}, but it is read as {src} to {tgt}"
    first = next(
        (tag for tag in contents.languages if key(tag) in (key(src), key(tgt))), src
    )
    if not is_asked and key(first) != key(src):
        return f"{named}, though its units begin with {first}: it is read as {src} to {tgt}"
    return None


def read_tmx(
    path: Path,
    src: str,
    tgt: str,
    dropped: Counter[str],
    coded: set[int],
    by_unit: bool = False,
    marked: list[str] | None = None,
) -> Iterator[PairRow]:
    """Yield the line where each translation unit begins, or its number, and its text in both
    languages.

    Text of `hi` is kept. Codes in `bpt`, `ept`, `ph`, `it`, `ut` are taken out with all that they
    hold, `sub` too; the numbers of such units go into `coded`, and each one's sides with the marks
    of codes into `marked` as long as it is the last. A code that is a program's placeholder ({0},
    %s) is text and stays. Where a code that stands by itself was between two
    letters or digits, a space takes its place. Line ends become spaces. Raises DataError with the
    line for malformed XML, declarations and encodings that are not read.
    """
    walk = _UnitWalk(path, by_unit)
    for _ in walk.steps():
        for number, unit in walk.take():
            src_tag = _matching(src, unit, without=tgt)
            tgt_tag = _matching(tgt, unit, without=src_tag)
            if src_tag is None or tgt_tag is None:
                dropped[LANGUAGE_MISSING] += 1
                continue
            src_text = unit[src_tag]
            tgt_text = unit[tgt_tag]
            if src_text is None or tgt_text is None:
                dropped[TOO_LONG] += 1
            else:
                if src_text.is_coded or tgt_text.is_coded:
                    coded.add(number)
                if marked is not None:
                    marked[:] = codes.marked_sides(src_text, tgt_text)
                yield number, src_text.text, tgt_text.text


def _labels(found: Mapping[str, int]) -> list[str]:
    """List the languages to choose from, in file order: full tags if there are two, else one a
    primary subtag.
    """
    if len(found) == 2:
        return list(found)
    groups: dict[str, list[str]] = {}
    for tag in found:
        groups.setdefault(languages.primary(tag), []).append(tag)
    labels = []
    for primary, tags in groups.items():
        labels.append(tags[0] if len(tags) == 1 else primary)
    return labels


def _matching(
    tag: str, tags: Collection[str], without: str | None = None
) -> str | None:
    """Return the tag itself if it is among the tags, else the first of the same primary subtag.

    That one is not `without`.
    """
    if tag in tags:
        return tag
    for other in tags:
        if other != without and languages.primary(other) == languages.primary(tag):
            return other
    return None


def _language(attributes: Mapping[str, str]) -> str:
    """Return `xml:lang` as it is since TMX 1.4, or `lang` as before; `und` where there is none or
    it is no language code.
    """
    tag = attributes.get("xml:lang") or attributes.get("lang") or ""
    return languages.canonical(tag) or languages.UNKNOWN


class _TmxWalk(XmlWalk):
    """A walk over TMX."""

    root = "tmx"
    format_name = "TMX"


class _LanguageWalk(_TmxWalk):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.found: Counter[str] = Counter()
        self.header: str | None = None
        self.shares_lines = False
        self._last_line = 0  # where a unit began

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "tu":
            line = self.parser.CurrentLineNumber
            self.shares_lines = self.shares_lines or line == self._last_line
            self._last_line = line
        elif name == "tuv":
            self.found[_language(attributes)] += 1
            if len(self.found) > MAX_LANGUAGES:
                self.refuse(f"more than {MAX_LANGUAGES} languages")
        elif name == "header":
            self.header = languages.canonical(attributes.get("srclang", ""))

    def close_tag(self, name: str) -> None:
        """Skip end tags: languages stand in start tags alone."""


class _UnitWalk(_TmxWalk):
    """Collects each unit's text by language; None stands for a segment longer than a line may
    be.
    """

    def __init__(self, path: Path, by_unit: bool) -> None:
        super().__init__(path)
        self.parser.CharacterDataHandler = self._text
        self.by_unit = by_unit
        # of units so far; the number that the open one goes by
        self.count = self.number = 0
        self.ready: list[tuple[int, dict[str, codes.MarkedText | None]]] = []
        self.unit: dict[str, codes.MarkedText | None] = {}
        self.tag = languages.UNKNOWN
        self.inside = 0  # tags open within a segment, and the segment itself
        # the outermost code that is open, and how deep it stands
        self.code_name = ""
        self.code_from = 0
        self.code: list[str] = []  # its own text
        self.code_label = ""
        self.pieces: list[str] = []
        self.length = 0

    def take(self) -> list[tuple[int, dict[str, codes.MarkedText | None]]]:
        """Return the units completed since the last call."""
        ready = self.ready
        self.ready = []
        return ready

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.inside:
            self.inside += 1
            if not self.code_from and name in codes.CODES:
                self.code_name = name
                self.code_from = self.inside
                self.code = []
                self.code_label = attributes.get("i") or attributes.get("x") or ""
            elif name == "hi" and not self.code_from:
                self.pieces.append(codes.pair_mark(True, name, is_quiet=True))
        elif name == "seg":
            self.inside = 1
            self.pieces = []
            self.length = 0
        elif name == "tuv":
            self.tag = _language(attributes)
        elif name == "tu":
            self.count += 1
            self.unit = {}
            self.number = self.count if self.by_unit else self.parser.CurrentLineNumber

    def close_tag(self, name: str) -> None:
        if self.inside:
            if self.inside == self.code_from:
                self.pieces.append(self._code())
                self.code_from = 0
            elif name == "hi" and not self.code_from:
                self.pieces.append(codes.pair_mark(False, name, is_quiet=True))
            self.inside -= 1
            if not self.inside:
                self.unit.setdefault(self.tag, self._segment())
        elif name == "tu":
            self.ready.append((self.number, self.unit))

    def _text(self, data: str) -> None:
        if not self.inside:
            return
        if not self.code_from:
            if self.length <= lines.MAX_LINE_CHARS:
                self.pieces.append(data)
                self.length += len(data)
        elif self.inside == self.code_from and len(self.code) <= codes.MOST_CODE_CHARS:
            self.code.append(data[: codes.MOST_CODE_CHARS + 1])

    def _code(self) -> str:
        """Return what stays of the code that ends."""
        if codes.is_paired(self.code_name):
            return codes.pair_mark(self.code_name == "bpt", self.code_label)
        return codes.replace_code("".join(self.code), self.code_label)

    def _segment(self) -> codes.MarkedText | None:
        if self.length > lines.MAX_LINE_CHARS:
            return None
        return codes.text_of(self.pieces)
