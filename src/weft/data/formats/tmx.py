"""TMX, the XML exchange format of translation memories, read as a stream.

Source: TMX 1.4b specification (LISA/GALA 2005). A document type that only names the format is
passed over: what it points to is never opened. One with declarations of its own is refused as soon
as it is seen, and so is a reference to an entity that XML itself does not define: nothing is ever
expanded, and no text is lost without a word.
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn
from xml.parsers import expat

from weft.data import languages
from weft.data.formats import lines
from weft.data.formats.row import LANGUAGE_MISSING, TOO_LONG, Row
from weft.data.formats.source import read_chunks
from weft.errors import DataError

MAX_DEPTH = 64
MAX_TAG_BYTES = 16 << 20  # the parser holds one tag or comment whole
MAX_LANGUAGES = 1000
_ENCODINGS = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|us-ascii|iso-8859-\d{1,2}|windows-125\d|cp125\d",
    re.IGNORECASE,
)
# What these hold is markup of the original document: of a pair of codes, which stand around text
# and may stand in the middle of a word, and of a code that stands for something by itself.
_PAIRED, _SINGLE = {"bpt", "ept"}, {"ph", "it", "ut"}
# where a code was taken out; XML itself can hold neither character
_PAIR_MARK, _SINGLE_MARK = "\x01", "\x00"
_BETWEEN_SPACES = re.compile("(\\s)(?:[\x00\x01]+\\s)+")
_BETWEEN = re.compile("(?<=([^\x00\x01]))[\x00\x01]+(?=(.))", re.DOTALL)
_MARKS = re.compile("[\x00\x01]")
_MOST_CODE_CHARS = 80  # of a code that may be a placeholder
_PLACEHOLDER = re.compile(  # of a program's message, which puts a value there
    r"\$?\{{1,2} ?[\w.:-]+ ?\}{1,2}"  # {0}, {name}, {{name}}, ${name}
    # %s, %d, %.2f, %1$s, %(name)s, %@
    r"|%(?:\([\w.-]+\)|\d+\$)?[-#+0]*[\d.]*l{0,2}[a-z@]"
    r"|%\d{1,2}",  # %1
    re.IGNORECASE,
)
_LINE_END = re.compile(r"\r?\n")


class Contents(NamedTuple):
    """The languages of a file and how often each occurs; the header's source language if it names
    one; and whether two units begin on one line, so that a line's number would not find a unit.
    """

    languages: Counter[str]
    header: str | None
    shares_lines: bool


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
) -> Iterator[Row]:
    """Yield the line where each translation unit begins, or its number, and its text in both
    languages.

    Text of `hi` is kept. Codes in `bpt`, `ept`, `ph`, `it`, `ut` are taken out with all that they
    hold, `sub` too; the numbers of such units go into `coded`. A code that is a program's
    placeholder ({0}, %s) is text and stays. Where a code that stands by itself was between two
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


class _Walk(ABC):
    """A walk over the tags of one TMX file, safe against declarations, depth and size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = self._declare
        self.parser.StartDoctypeDeclHandler = self._pass_doctype
        self.parser.EntityDeclHandler = self._refuse_declaration
        self.parser.SkippedEntityHandler = self._refuse_entity
        self.parser.StartElementHandler = self._open
        self.parser.EndElementHandler = self._close

    def steps(self) -> Iterator[None]:
        """Parse piece by piece, pausing after each."""
        fed = 0
        try:
            for chunk in read_chunks(self.path):
                self.parser.Parse(chunk, False)
                fed += len(chunk)
                if fed - max(self.parser.CurrentByteIndex, 0) > MAX_TAG_BYTES:
                    self._refuse(
                        f"a tag or comment of more than {MAX_TAG_BYTES:,} bytes"
                    )
                yield
            self.parser.Parse(b"", True)
            yield
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            self._refuse(
                f"malformed XML at byte {self.parser.ErrorByteIndex}: {what}",
                error.lineno,
            )

    @abstractmethod
    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""

    @abstractmethod
    def close_tag(self, name: str) -> None:
        """Take an end tag."""

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.depth == 0 and name != "tmx":
            self._refuse(f"XML with the root <{name[:40]}>, not TMX")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"tags nested deeper than {MAX_DEPTH}")
        self.open_tag(name, attributes)

    def _close(self, name: str) -> None:
        self.depth -= 1
        self.close_tag(name)

    def _declare(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            self._refuse(
                f"XML in the encoding {encoding[:40]!r}, which is not read; save it as UTF-8"
            )

    def _pass_doctype(
        self, name: str, system: str | None, public: str | None, has_declarations: bool
    ) -> None:
        if has_declarations:
            self._refuse_declaration()

    def _refuse_declaration(self, *_: object) -> NoReturn:
        self._refuse(
            "a document type with declarations of its own, which are not read; remove the contents of its [...]"
        )

    def _refuse_entity(self, name: str, *_: object) -> NoReturn:
        self._refuse(
            f"the entity &{name[:40]};, which XML does not define; write the character itself"
        )

    def _refuse(self, what: str, line: int | None = None) -> NoReturn:
        raise DataError(
            f"{self.path}:{line or self.parser.CurrentLineNumber}: {what}"
        ) from None


def _language(attributes: Mapping[str, str]) -> str:
    """Return `xml:lang` as it is since TMX 1.4, or `lang` as before; `und` where there is none or
    it is no language code.
    """
    tag = attributes.get("xml:lang") or attributes.get("lang") or ""
    return languages.canonical(tag) or languages.UNKNOWN


class _LanguageWalk(_Walk):
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
                self._refuse(f"more than {MAX_LANGUAGES} languages")
        elif name == "header":
            self.header = languages.canonical(attributes.get("srclang", ""))

    def close_tag(self, name: str) -> None:
        """Skip end tags: languages stand in start tags alone."""


class _Segment(NamedTuple):
    """The text of one language, and whether codes were taken out of it."""

    text: str
    is_coded: bool


class _UnitWalk(_Walk):
    """Collects each unit's text by language; None stands for a segment longer than a line may
    be.
    """

    def __init__(self, path: Path, by_unit: bool) -> None:
        super().__init__(path)
        self.parser.CharacterDataHandler = self._text
        self.by_unit = by_unit
        # of units so far; the number that the open one goes by
        self.count = self.number = 0
        self.ready: list[tuple[int, dict[str, _Segment | None]]] = []
        self.unit: dict[str, _Segment | None] = {}
        self.tag = languages.UNKNOWN
        self.inside = 0  # tags open within a segment, and the segment itself
        # the outermost code that is open, and how deep it stands
        self.code_name = ""
        self.code_from = 0
        self.code: list[str] = []  # its own text
        self.pieces: list[str] = []
        self.length = 0

    def take(self) -> list[tuple[int, dict[str, _Segment | None]]]:
        """Return the units completed since the last call."""
        ready = self.ready
        self.ready = []
        return ready

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.inside:
            self.inside += 1
            if not self.code_from and (name in _PAIRED or name in _SINGLE):
                self.code_name = name
                self.code_from = self.inside
                self.code = []
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
        elif self.inside == self.code_from and len(self.code) <= _MOST_CODE_CHARS:
            self.code.append(data[: _MOST_CODE_CHARS + 1])

    def _code(self) -> str:
        """Return the text that stays of the code that closes: a placeholder, or the mark of one
        that goes.
        """
        if self.code_name in _PAIRED:
            return _PAIR_MARK
        text = "".join(self.code).strip()
        if len(text) <= _MOST_CODE_CHARS and _PLACEHOLDER.fullmatch(text):
            return text
        return _SINGLE_MARK

    def _segment(self) -> _Segment | None:
        if self.length > lines.MAX_LINE_CHARS:
            return None
        text = _LINE_END.sub(" ", "".join(self.pieces))
        if _MARKS.search(text):
            return _Segment(_without_marks(text), True)
        return _Segment(text, False)


def _without_marks(text: str) -> str:
    """Return the text where codes were taken out: no two spaces for one, and no two words glued to
    one.
    """
    text = _BETWEEN_SPACES.sub(r"\1", text)
    return _MARKS.sub("", _BETWEEN.sub(_in_place_of, text))


def _in_place_of(marks: re.Match[str]) -> str:
    """Return a space for codes of which one stood by itself, in the midst of letters and digits;
    else nothing.
    """
    is_within_word = all(map(_is_of_a_word, marks.groups()))
    return " " if _SINGLE_MARK in marks[0] and is_within_word else ""


def _is_of_a_word(character: str) -> bool:
    """Return whether it is a letter, a mark on one, or a digit."""
    return unicodedata.category(character)[0] in "LMN"
