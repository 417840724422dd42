"""TBX, the XML exchange format of term bases, read as a stream.

Sources: ISO 30042:2008 (TBX 2, `martif`, with `termEntry`, `langSet`, and `tig` or `ntig`) and ISO
30042:2019 (TBX 3, `tbx`, with `conceptEntry`, `langSec` and `termSec`). A term whose administrative
status is deprecated, superseded or rejected must not be used.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from weft.data.formats.source import read_head
from weft.data.formats.xml_walk import XmlWalk
from weft.data.languages import primary
from weft.errors import DataError

_ENTRIES = {"termEntry", "conceptEntry"}
_LANGUAGES = {"langSet", "langSec"}
_TERMS = {"tig", "ntig", "termSec"}
_STATUS = {"administrativeStatus", "normativeAuthorization"}
_AVOIDED = ("deprecated", "superseded", "rejected", "obsolete", "forbidden")

TermRow = tuple[int, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The line of an entry, its terms in the source, in the target, and those to avoid there."""


def read_tbx(path: Path, src_lang: str, tgt_lang: str) -> Iterator[TermRow]:
    """Yield the entries that have a term in both languages (BCP-47), or one to avoid.

    Languages match by their primary subtag. Raises DataError with file and line.
    """
    walk = _walk(path)
    num_entries = 0
    languages: set[str] = set()
    for _ in walk.steps():
        while walk.done:
            line, terms = walk.done.pop(0)
            num_entries += 1
            languages.update(terms)
            sources = _good(terms.get(primary(src_lang), []))
            targets = _good(terms.get(primary(tgt_lang), []))
            avoided = _avoided(terms.get(primary(tgt_lang), []))
            if sources and (targets or avoided):
                yield line, sources, targets, avoided
    if not num_entries:
        raise DataError(f"{path}: there is no entry in it")
    for code in (src_lang, tgt_lang):
        if primary(code) not in languages:
            listed = ", ".join(sorted(languages))
            raise DataError(f"{path}: no terms in {code}; the languages are {listed}")


def languages_in_tbx(path: Path) -> set[str]:
    """Return the primary subtags of the languages that a term base has terms in. Raises DataError
    with file and line.
    """
    walk = _walk(path)
    languages: set[str] = set()
    for _ in walk.steps():
        while walk.done:
            languages.update(walk.done.pop(0)[1])
    return languages


def _good(terms: list[tuple[str, bool]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text, is_avoided in terms if not is_avoided))


def _avoided(terms: list[tuple[str, bool]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text, is_avoided in terms if is_avoided))


class _Walk(XmlWalk):
    """Collects the terms of each entry by their language."""

    format_name = "a term base (TBX)"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.done: list[tuple[int, dict[str, list[tuple[str, bool]]]]] = []
        self._line = 0
        self._terms: dict[str, list[tuple[str, bool]]] = {}
        self._language = ""
        self._is_avoided = False
        self._term: list[str] = []
        self._status: list[str] | None = None
        self._text: list[str] | None = None
        self.parser.CharacterDataHandler = self._take

    def open_tag(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _ENTRIES:
            self._line = self.parser.CurrentLineNumber
            self._terms = {}
        elif name in _LANGUAGES:
            self._language = primary(attributes.get("xml:lang", ""))
        elif name in _TERMS:
            self._term = []
            self._is_avoided = False
        elif name == "term":
            self._text = self._term
        elif name == "termNote" and attributes.get("type") in _STATUS:
            self._status = self._text = []

    def close_tag(self, name: str) -> None:
        if name in ("term", "termNote"):
            self._text = None
        if name == "termNote" and self._status is not None:
            status = "".join(self._status).lower()
            self._is_avoided = any(word in status for word in _AVOIDED)
            self._status = None
        elif name in _TERMS:
            text = " ".join("".join(self._term).split())
            if text:
                kept = self._terms.setdefault(self._language, [])
                kept.append((text, self._is_avoided))
        elif name in _ENTRIES:
            self.done.append((self._line, self._terms))

    def _take(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


class _Martif(_Walk):
    root = "martif"


class _Tbx(_Walk):
    root = "tbx"


def _walk(path: Path) -> _Walk:
    """Return the walk of the version that a file begins with."""
    return _Martif(path) if b"<martif" in read_head(path) else _Tbx(path)
