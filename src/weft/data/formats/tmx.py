"""TMX, the XML exchange format of translation memories, read as a stream.

Source: TMX 1.4b specification (LISA/GALA 2005). Document type and entity declarations are refused as soon as
they are seen, so that nothing is expanded and nothing outside the file is ever opened.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from weft.data import languages
from weft.data.formats import lines
from weft.data.formats.row import LANGUAGE_MISSING, TOO_LONG, Row
from weft.data.formats.source import read_chunks
from weft.errors import DataError

MAX_DEPTH = 64
MAX_TAG_BYTES = 16 << 20  # the parser holds one tag or comment whole
MAX_LANGUAGES = 1000
_ENCODINGS = {"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii"}
_NATIVE_CODE = {"bpt", "ept", "ph", "it", "ut"}  # what they hold is markup of the original document
_LINE_END = re.compile(r"\r?\n")


def read_languages(path: Path) -> tuple[Counter[str], str | None]:
    """How often each language occurs, and the header's source language if it names one."""
    walk = _LanguageWalk(path)
    for _ in walk.steps():
        pass
    return walk.found, walk.header


def choose_languages(
    path: Path, found: Mapping[str, int], header: str | None, src: str | None, tgt: str | None
) -> tuple[str, str]:
    """The two languages to read: those asked for, or the only two there are, the header's source first.

    A language asked for matches by its primary subtag if not exactly. Raises DataError listing what there is.
    """
    free = _labels(found)
    listing = ", ".join(f"{tag} ({n})" for tag, n in sorted(found.items())) or "none"
    for asked in (src, tgt):
        if asked is not None:
            match = asked if asked in free else _same_primary(asked, free)
            if match is None:
                raise DataError(f"{path}: no segments in {asked}; the languages are {listing}")
            free.remove(match)
    if len(free) != (src is None) + (tgt is None) and (src is None or tgt is None):
        raise DataError(f"{path}: choose two languages with data.src_lang and data.tgt_lang from {listing}")
    if (
        src is None
        and tgt is None
        and header
        and (header if header in free else _same_primary(header, free)) == free[1]
    ):
        free.reverse()
    return src or free.pop(0), tgt or free.pop(0)


def read_tmx(path: Path, src: str, tgt: str, dropped: Counter[str]) -> Iterator[Row]:
    """Unit number and text in both languages of every translation unit that has them.

    Text of `hi` and `sub` is kept, native codes in `bpt`, `ept`, `ph`, `it`, `ut` are left out, line ends
    become spaces. Raises DataError with the line for malformed XML, declarations and encodings other than
    UTF-8 and UTF-16.
    """
    walk = _UnitWalk(path)
    for _ in walk.steps():
        for number, unit in walk.take():
            src_tag = src if src in unit else _same_primary(src, [tag for tag in unit if tag != tgt])
            tgt_tag = tgt if tgt in unit else _same_primary(tgt, [tag for tag in unit if tag != src_tag])
            if src_tag is None or tgt_tag is None:
                dropped[LANGUAGE_MISSING] += 1
                continue
            src_text, tgt_text = unit[src_tag], unit[tgt_tag]
            if src_text is None or tgt_text is None:
                dropped[TOO_LONG] += 1
            else:
                yield number, src_text, tgt_text


def _labels(found: Mapping[str, int]) -> list[str]:
    """Languages to choose from, in file order: full tags if there are two, else one a primary subtag."""
    if len(found) == 2:
        return list(found)
    groups: dict[str, list[str]] = {}
    for tag in found:
        groups.setdefault(languages.primary(tag), []).append(tag)
    return [tags[0] if len(tags) == 1 else primary for primary, tags in groups.items()]


def _same_primary(tag: str, others: list[str]) -> str | None:
    return next((other for other in others if languages.primary(other) == languages.primary(tag)), None)


class _Walk(ABC):
    """A walk over the tags of one TMX file, safe against declarations, depth and size."""

    def __init__(self, path: Path) -> None:
        self.path, self.depth = path, 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = self._declare
        self.parser.StartDoctypeDeclHandler = self._refuse_declaration
        self.parser.EntityDeclHandler = self._refuse_declaration
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
                    self._refuse(f"a tag or comment of more than {MAX_TAG_BYTES:,} bytes")
                yield
            self.parser.Parse(b"", True)
            yield
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            self._refuse(f"malformed XML at byte {self.parser.ErrorByteIndex}: {what}", error.lineno)

    @abstractmethod
    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        """Called at each start tag."""

    @abstractmethod
    def close_tag(self, name: str) -> None:
        """Called at each end tag."""

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
        if encoding and encoding.lower() not in _ENCODINGS:
            self._refuse(f"XML in the encoding {encoding!r}; save it as UTF-8")

    def _refuse_declaration(self, *_: object) -> NoReturn:
        self._refuse("a document type or entity declaration, which is not read; delete the <!DOCTYPE ...>")

    def _refuse(self, what: str, line: int | None = None) -> NoReturn:
        raise DataError(f"{self.path}:{line or self.parser.CurrentLineNumber}: {what}") from None


def _language(attributes: Mapping[str, str]) -> str:
    """`xml:lang` since TMX 1.4, `lang` before; `und` where there is none or it is no language code."""
    return languages.canonical(attributes.get("xml:lang") or attributes.get("lang") or "") or languages.UNKNOWN


class _LanguageWalk(_Walk):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.found: Counter[str] = Counter()
        self.header: str | None = None

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "tuv":
            self.found[_language(attributes)] += 1
            if len(self.found) > MAX_LANGUAGES:
                self._refuse(f"more than {MAX_LANGUAGES} languages")
        elif name == "header":
            self.header = languages.canonical(attributes.get("srclang", ""))

    def close_tag(self, name: str) -> None:
        """Languages stand in start tags alone."""


class _UnitWalk(_Walk):
    """Collects each unit's text by language; None stands for a segment longer than a line may be."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.parser.CharacterDataHandler = self._text
        self.number = 0
        self.ready: list[tuple[int, dict[str, str | None]]] = []
        self.unit: dict[str, str | None] = {}
        self.tag = languages.UNKNOWN
        self.keep: list[bool] = []  # one for `seg` and each tag open in it: is text wanted here?
        self.pieces: list[str] = []
        self.length = 0

    def take(self) -> list[tuple[int, dict[str, str | None]]]:
        """The units completed since the last call."""
        ready, self.ready = self.ready, []
        return ready

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.keep:
            self.keep.append(name == "sub" or (self.keep[-1] and name not in _NATIVE_CODE))
        elif name == "seg":
            self.keep, self.pieces, self.length = [True], [], 0
        elif name == "tuv":
            self.tag = _language(attributes)
        elif name == "tu":
            self.number, self.unit = self.number + 1, {}

    def close_tag(self, name: str) -> None:
        if self.keep:
            self.keep.pop()
            if not self.keep:
                self.unit.setdefault(self.tag, self._segment())
        elif name == "tu":
            self.ready.append((self.number, self.unit))

    def _text(self, data: str) -> None:
        if self.keep and self.keep[-1] and self.length <= lines.MAX_LINE_CHARS:
            self.pieces.append(data)
            self.length += len(data)

    def _segment(self) -> str | None:
        if self.length > lines.MAX_LINE_CHARS:
            return None
        return _LINE_END.sub(" ", "".join(self.pieces))
