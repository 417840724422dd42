"""Strings of Android programs: the messages of a file of resources, in their place.

Sources: Android Developers, "String resources"; aapt2 of the Android Open Source Project,
`ResourceUtils.cpp`, for white space, quotes and what a backslash stands for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from weft.documents.document import Kind, Note, Reading, Written
from weft.documents.formats.bilingual.choices import Part
from weft.documents.formats.bilingual.content import (
    CDATA_TEXT,
    LINE,
    TEXT,
    Wording,
    pair,
    parts_of,
    read_parts,
    syntax_of,
)
from weft.documents.formats.bilingual.plurals import plural_categories
from weft.documents.formats.bilingual.units import Bilingual, Unit
from weft.documents.formats.xml.tree import (
    Edit,
    Element,
    XmlTree,
    read_tree,
    with_attribute,
)
from weft.documents.inline import Builder, Piece, Syntax
from weft.errors import UsageError

_PLACEHOLDER = "urn:oasis:names:tc:xliff:document:1.2"
_LOCALE = "http://schemas.android.com/tools locale"
_GROUPS = ("string-array", "plurals")
# another resource in place of a text
_REFERENCE = re.compile(
    r"\s*(?:@[+*]?(?:[\w.]+:)?\w+/[\w.]+|@null|@empty|\?(?:[\w.]+:)?(?:\w+/)?[\w.]+)\s*"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(&quot;|&apos;|&#3[49];|.))", re.DOTALL)
_MARKS = {
    "&quot;": '"',
    "&apos;": "'",
    "&#34;": '"',
    "&#39;": "'",
    "n": "\n",
    "t": "\t",
}
_SPACES = r"\\u00[aA]0|\\u0020|\\u200[2-9]|\\u202[fF]|\\t"
# what a program fills in, whatever follows it: %sMio.
_FORMAT = r"%\d++\$[-+#0,( ]?\d*+(?:\.\d++)?[A-Za-z]|(?<![\d%])%[sdf]"
_QUOTED = {'"': '\\"', "\\": "\\\\"}
_BARE = _QUOTED | {"'": "\\'"}
# all of a string between quotes, in which white space counts
_QUOTES = re.compile(
    r'(\s*(?:<!\[CDATA\[)?")((?:[^"\\]|\\.)*+)("(?:\]\]>)?\s*)', re.DOTALL
)
_QUOTE = re.compile(r'\\.|"', re.DOTALL)
# what would be read as a reference
_HEAD = re.compile(r'((?:\s|"|<!\[CDATA\[)*+)([@?])')


def _unescape(raw: str) -> str:
    text = _ESCAPE.sub(_character, raw)
    if text.isascii():
        return text
    # two halves that were escaped are one character
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return _MARKS.get(found[2], found[2])


def _with_backslashes(syntax: Syntax, always: Mapping[str, str]) -> Syntax:
    """Return a syntax that has Android's escapes besides its own."""
    white = re.compile(rf"(?:{syntax.white.pattern}|{_SPACES})++")

    def decode(raw: str) -> str:
        return syntax.decode(_unescape(raw)).replace("%%", "%")

    def escapes_of(source: str) -> dict[str, str]:
        own = {
            mark: raw
            for mark, raw in syntax.escapes_of(source).items()
            if mark not in _BARE
        }
        for found in _ESCAPE.finditer(source):
            character = _character(found)
            is_named = bool(found[1]) or character in _BARE or character in "@?#"
            if is_named and not character.isspace() and found[2] not in _MARKS:
                own[character] = found[0]
        if "%%" in source and "%" not in source.replace("%%", ""):
            own["%"] = "%%"
        return {**always, **own}

    return Syntax(white, decode, escapes_of, collapses=True)


def _wording(always: Mapping[str, str]) -> Wording:
    breaks = r"(?<!\\)(?:\\\\)*+\\n"
    address = r"(?:https?|ftp)://(?:[^\s<>\"'\\&]|&amp;)*[^\s<>\"'\\&.,;:!?)]"
    return Wording(
        text=_with_backslashes(TEXT, always),
        cdata=_with_backslashes(CDATA_TEXT, always),
        breaks=breaks,
        exact_breaks=rf"{breaks}|\r?\n",
        kept=rf"\\[@#]\w++|{address}|{_FORMAT}",
    )


_WORDING = _wording(_BARE)
_WORDING_IN_QUOTES = _wording(_QUOTED)


def open_android(content: bytes, reading: Reading) -> Bilingual:
    """Read a file of resources; raises UsageError for XML of any other kind."""
    tree = read_tree(content, reading.name)
    root = tree.root
    if root.name != "resources":
        raise UsageError(
            f"{reading.name}:{tree.line(root.start)}: begins with <{root.name}>; of .xml, strings of Android"
            " are read, which begin with <resources>"
        )
    stated = []
    if reading.target and root.get(_LOCALE) and "tools:locale" in root.token.raw:
        tag = with_attribute(root.token.raw, "tools:locale", reading.target)
        stated.append(Edit(root.start, root.inner, tag))
    units = [unit for element in _strings(root) for unit in _units(tree, element)]
    notes = tuple(_notes(tree, reading.target))
    return Bilingual(tree, tuple(units), tuple(stated), notes)


def _is_excluded(element: Element) -> bool:
    return element.get("translatable") == "false"


def _strings(root: Element) -> Iterator[Element]:
    """Yield the elements that hold a message."""
    for element in root.children:
        if _is_excluded(element):
            continue
        is_item = element.name == "item" and element.get("type") == "string"
        if element.name == "string" or is_item:
            yield element
        elif element.name in _GROUPS:
            yield from element.all("item")


def _notes(tree: XmlTree, language: str) -> Iterator[Note]:
    """Yield the plurals that lack a category of the language."""
    if not language:
        return
    for element in tree.root.all("plurals"):
        there = {item.get("quantity") for item in element.all("item")}
        missing = [name for name in plural_categories(language) if name not in there]
        if missing and not _is_excluded(element):
            place = f"line {tree.line(element.start)}, {element.get('name')[:80]}"
            yield Note(
                place, f"has no form for {', '.join(missing)}, which {language} has"
            )


def _units(tree: XmlTree, element: Element) -> Iterator[Unit]:
    """Yield the unit of a message; none where nothing of it is translated."""
    raw = tree.content(element)
    if _REFERENCE.fullmatch(raw):
        return
    is_quoted = _QUOTES.fullmatch(raw) is not None
    wording = _WORDING_IN_QUOTES if is_quoted else _WORDING
    builder = Builder(syntax_of(tree, element, wording, is_quoted))
    role = partial(_role, tree)
    parts = list(parts_of(tree, element, role, wording, is_quoted))
    if is_quoted:
        parts = [inner for part in parts for inner in _without_quotes(part)]
    read_parts(builder, parts)
    content = builder.document()
    if content.segments:
        yield Unit((content,), element.start, _Writer(element, raw).edits)


def _role(tree: XmlTree, element: Element) -> Piece:
    """Return the part that an element is of its text."""
    if element.token.space == _PLACEHOLDER:
        return Piece(tree.raw(element), Kind.KEPT)
    if element.name == "br" and element.is_tag:
        return Piece(element.token.raw, Kind.BREAK, LINE)
    return pair(element)


def _without_quotes(part: Part) -> Iterator[Part]:
    """Yield a part with the quotes apart that stand around the string."""
    if isinstance(part, str) or part.kind is not None:
        yield part
        return
    place = 0
    for found in _QUOTE.finditer(part.raw):
        if found[0] == '"':
            yield Piece(part.raw[place : found.start()])
            yield found[0]
            place = found.end()
    yield Piece(part.raw[place:])


@dataclass(frozen=True)
class _Writer:
    """Writes a message in its place."""

    element: Element
    raw: str

    def edits(self, targets: Sequence[Written]) -> Iterator[Edit]:
        """Yield the edit of the message; its beginning is no reference unless it was one."""
        (written,) = targets
        text = written.text
        head = _HEAD.match(text)
        if head and not _HEAD.match(self.raw):
            text = f"{head[1]}\\{text[head.end(1) :]}"
        yield Edit(self.element.inner, self.element.end, text)
