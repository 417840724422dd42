"""The content of an element of XML as pieces: its own text, elements that are tags of the text,
and the markup, placeholders and line breaks that the text has in it.

Messages of programs often are a piece of HTML, written as text: `&lt;b&gt;`, `&amp;nbsp;`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import unescape

from weft.documents.document import Kind
from weft.documents.formats.bilingual.choices import Part, divided_choices
from weft.documents.formats.xml.tokens import Xml, decode_xml
from weft.documents.formats.xml.tree import Element, XmlTree
from weft.documents.inline import Builder, Piece, Syntax

CDATA = ("<![CDATA[", "]]>")
# a reference in the text that the XML has in it, and such a one written in XML
_ENTITY = r"(?:#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[A-Za-z]\w{1,31}+);"
_INNER = re.compile(f"&{_ENTITY}")
_REFERENCE = re.compile(f"&(?:amp;{_ENTITY}|{_ENTITY})")
_SPACES = r"(?:#0*(?:9|10|13|32|160)|#[xX]0*(?:9|[aAdD]|20|[aA]0));"
_NAMED_SPACES = r"(?:nbsp|ensp|emsp|thinsp|#160|#[xX][aA]0);"
_WHITE = re.compile(rf"(?:\s|&{_SPACES}|&amp;{_NAMED_SPACES})++")
_WHITE_OF_CDATA = re.compile(rf"(?:\s|&{_NAMED_SPACES})++")
_ALWAYS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_KEPT_NAMES = "code|kbd|samp|var|tt|pre|style|script"
_HIDDEN = ("style", "script")
_LONGEST_OTHER = 400  # characters of a comment or a document type
_BLOCK_NAMES = """
html head meta title body p div li ul ol dl dt dd table tr td th tbody thead h1 h2 h3 h4 h5 h6
hr blockquote
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_VOID = ("img", "hr", "input", "wbr")
_WRITTEN_BREAK = r"&#(?:0*10|x0*[aA]);"
_LONGEST_LINE = 60  # characters; a longer one goes on in the next
_SENTENCE_END = re.compile(r"[.!?…:;。！？：；][\"'”’»)\]」』]*\s*$")
_TAIL = 12
_BOUND = re.compile(r"[,;:.!?…)\]]++(?=\s|$)")
# a character that markup, placeholders or line breaks begin with
_SIGN = re.compile(r"[<&%\n\\]")


def _tag_pattern(less: str, greater: str, quotes: str) -> str:
    name = r"[A-Za-z][\w:.-]*+"
    value = rf"(?:{quotes}|[^\s\"'<>&=]++)"
    attributes = rf"(?:\s++[\w:.-]++(?:\s*+=\s*+{value})?+)*+\s*+"
    kept = rf"{less}({_KEPT_NAMES}){attributes}{greater}(?:(?!{less}).)*+{less}/\1{greater}"
    tag = rf"{less}(/?)({name}){attributes}(/?){greater}"
    other = rf"(?P<other>{less}!(?:(?!{greater}).){{0,{_LONGEST_OTHER}}}+{greater})"
    return f"{kept}|{tag}|{other}"


_QUOTED = r"\"[^\"<]*+\"|'[^'<]*+'|\\\"[^\"\\<]*+\\\"|\\'[^'\\<]*+\\'"
_ESCAPED_QUOTED = (
    r"&quot;(?:(?!&quot;|&lt;)[^<])*+&quot;|&apos;(?:(?!&apos;|&lt;)[^<])*+&apos;"
)
_TAGS = _tag_pattern("&lt;", "(?:&gt;|>)", f"{_QUOTED}|{_ESCAPED_QUOTED}")
_TAGS_OF_CDATA = _tag_pattern("<", ">", _QUOTED)


def _decode(raw: str) -> str:
    return _INNER.sub(lambda found: unescape(found[0]), decode_xml(raw))


def _decode_cdata(raw: str) -> str:
    text = _INNER.sub(lambda found: unescape(found[0]), raw)
    return re.sub(r"\s", " ", text)


def _escapes(
    source: str, references: re.Pattern[str], decode: Callable[[str], str]
) -> dict[str, str]:
    """Return the references by which a stretch writes characters that it has no other way."""
    if "&" not in source:
        return {}
    bare = references.sub("", source)
    escapes = {}
    for found in references.finditer(source):
        character = decode(found[0])
        if len(character) == 1 and not character.isspace() and character not in bare:
            escapes[character] = found[0]
    return escapes


def _escapes_of(source: str) -> Mapping[str, str]:
    return _ALWAYS | _escapes(source, _REFERENCE, _decode)


def _escapes_of_cdata(source: str) -> Mapping[str, str]:
    return _escapes(source, _INNER, _decode_cdata)


TEXT = Syntax(_WHITE, _decode, _escapes_of, collapses=True)
CDATA_TEXT = Syntax(_WHITE_OF_CDATA, _decode_cdata, _escapes_of_cdata, collapses=True)


@dataclass(frozen=True)
class Wording:
    """The way in which the messages of a format are written.

    `breaks` finds line breaks and `exact_breaks` those of a text whose white space counts; `kept`
    placeholders that only this format has. `text` and `cdata` say how words are written.
    """

    text: Syntax = TEXT
    cdata: Syntax = CDATA_TEXT
    breaks: str = rf"\r?\n(?![ \t]++\S|[ \t]*+$)|{_WRITTEN_BREAK}"
    exact_breaks: str = rf"\r?\n|{_WRITTEN_BREAK}"
    kept: str = (
        r"(?<!%)%L?\d{1,2}+(?:%(?!\w))?+(?![0-9$A-Za-z]|\.\d)|(?<!%)%n(?![A-Za-z$])"
    )

    @cache  # noqa: B019 - of a few wordings
    def pattern(self, is_cdata: bool, is_exact: bool) -> re.Pattern[str]:
        """Return what finds all that is not words."""
        tags = _TAGS_OF_CDATA if is_cdata else _TAGS
        breaks = self.exact_breaks if is_exact else self.breaks
        return re.compile(f"{tags}|(?P<line>{breaks})|(?P<kept>{self.kept})", re.DOTALL)


# An element as a part of a text: a pair of tags, or a stretch that is kept as a whole.
Role = Callable[[Element], Piece]
LINE = "line"


def parts_of(
    tree: XmlTree,
    element: Element,
    role: Role,
    wording: Wording,
    is_exact: bool = False,
) -> Iterator[Part]:
    """Yield the parts of an element's content.

    `role` answers an element with a piece: one that is open has the element's end tag as partner,
    and its content is read; any other stands for the element as a whole.
    """
    is_cdata = is_all_cdata(tree, element)
    pattern = wording.pattern(is_cdata, is_exact)
    yield from _parts(tree, element, role, pattern, is_cdata)


def _parts(
    tree: XmlTree,
    element: Element,
    role: Role,
    pattern: re.Pattern[str],
    is_cdata: bool,
) -> Iterator[Part]:
    children = iter(element.children)
    number = element.number + 1
    while number < element.last:
        token = tree.tokens[number]
        if token.opens:
            child = next(children)
            yield from _element(tree, child, role, pattern, is_cdata)
            number = child.last
        elif token.kind is Xml.TEXT:
            yield from _words(token.raw, pattern)
        elif token.kind is Xml.CDATA and is_cdata:
            yield CDATA[0]
            yield from _words(token.raw[len(CDATA[0]) : -len(CDATA[1])], pattern)
            yield CDATA[1]
        elif token.kind is Xml.CDATA:
            yield Piece(token.raw, Kind.KEPT)
        else:
            yield Piece(token.raw, Kind.EMPTY)
        number += 1


def _element(
    tree: XmlTree, child: Element, role: Role, pattern: re.Pattern[str], is_cdata: bool
) -> Iterator[Part]:
    piece = role(child)
    if piece.kind is not Kind.OPEN or piece.raw:
        yield piece
        return
    name = f"<{piece.name}"
    start: Part = Piece(child.token.raw, Kind.OPEN, name)
    end: Part = Piece(tree.tokens[child.last].raw, Kind.CLOSE, name)
    if piece.name.lower() in _BLOCKS:
        start = child.token.raw
        end = tree.tokens[child.last].raw
    yield start
    yield from _parts(tree, child, role, pattern, is_cdata)
    yield end


def pair(element: Element) -> Piece:
    """Return the role of an element that has words in it."""
    if element.is_tag:
        return Piece(element.token.raw, Kind.EMPTY)
    return Piece("", Kind.OPEN, element.name)


def is_all_cdata(tree: XmlTree, element: Element) -> bool:
    """Return whether all words of an element are in sections of CDATA."""
    kinds = set()
    for token in tree.tokens_in(element):
        if token.raw.strip():
            kinds.add(token.kind)
    return Xml.CDATA in kinds and Xml.TEXT not in kinds


def _words(raw: str, pattern: re.Pattern[str]) -> Iterator[Part]:
    """Divide text into words and what is not."""
    if not _SIGN.search(raw):
        yield Piece(raw)
        return
    place = 0
    for found in pattern.finditer(raw):
        if found.start() > place:
            yield Piece(raw[place : found.start()])
        place = found.end()
        yield from _mark(found)
        if found["kept"] and (bound := _BOUND.match(raw, place)):
            # a mark that belongs to the placeholder, not to the words after it
            yield Piece(bound[0])
            place = bound.end()
    if place < len(raw):
        yield Piece(raw[place:])


def _mark(found: re.Match[str]) -> Iterator[Part]:
    """Yield what is not words: a line break, a placeholder, a tag."""
    raw = found[0]
    if found["other"] or found[1] in _HIDDEN:
        yield raw
    elif found["line"]:
        yield Piece(raw, Kind.BREAK, LINE)
    elif found["kept"] or found[1]:
        yield Piece(raw, Kind.KEPT)
    else:
        yield _tag(raw, found[2] == "/", found[3].lower(), found[4] == "/")


def _tag(raw: str, closes: bool, name: str, is_whole: bool) -> Part:
    if name in _BLOCKS:
        return raw
    if name == "br":
        return Piece(raw, Kind.BREAK, LINE)
    if is_whole or name in _VOID:
        return Piece(raw, Kind.EMPTY)
    return Piece(raw, Kind.CLOSE if closes else Kind.OPEN, name)


def read_parts(builder: Builder, parts: Iterable[Part]) -> None:
    """Hand parts to a builder, divided at line breaks but where a line goes on in the next."""
    listed = divided_choices(list(parts))
    following = _following(listed)
    run: list[Piece] = []
    line = ""
    for number, part in enumerate(listed):
        is_line = isinstance(part, Piece) and part.name == LINE
        if isinstance(part, Piece) and not (is_line and _ends(line, following[number])):
            run.append(part)
            line = "" if is_line else (line + _shown(part))[-_LONGEST_LINE:]
            continue
        builder.run(nested(run))
        builder.keep(part if isinstance(part, str) else part.raw)
        run = []
        line = ""
    builder.run(nested(run))


def _shown(part: Piece) -> str:
    """Return the words of a part."""
    return part.raw if part.kind is None else ""


def _ends(line: str, following: str) -> bool:
    """Return whether a line is one by itself: the next one does not go on with its sentence."""
    if not line.strip() or _SENTENCE_END.search(line[-_TAIL:]):
        return True
    return len(line) < _LONGEST_LINE and not following.islower()


def _following(parts: list[Part]) -> list[str]:
    """Return for each part the first letter or mark after it on the next line, "" for none."""
    found = [""] * len(parts)
    first = ""
    for number in reversed(range(len(parts))):
        part = parts[number]
        found[number] = first
        if isinstance(part, str) or part.name == LINE:
            first = ""
        elif part.kind is None and part.raw.strip():
            first = part.raw.strip()[0]
        elif part.kind is Kind.KEPT:
            first = "{"
    return found


def nested(pieces: list[Piece]) -> list[Piece]:
    """Return pieces in which tags without partners, and pairs that cross others, are points.

    Elements, whose names begin with `<`, stay as they are.
    """
    pieces = list(pieces)
    frames = [_Frame()]
    for place, piece in enumerate(pieces):
        is_element = piece.name.startswith("<")
        if piece.kind is Kind.OPEN and is_element:
            frames.append(_Frame())
        elif piece.kind is Kind.OPEN:
            frames[-1].open(place, piece.name)
        elif piece.kind is Kind.CLOSE and is_element:
            frames[-1].end(pieces)
            frames.pop()
            frames = frames or [_Frame()]
        elif piece.kind is Kind.CLOSE and not frames[-1].close(piece.name, pieces):
            pieces[place] = _point(piece)
    for frame in frames:
        frame.end(pieces)
    return pieces


def _point(piece: Piece) -> Piece:
    return replace(piece, kind=Kind.EMPTY, name="")


class _Frame:
    """The tags that are open within an element."""

    def __init__(self) -> None:
        self._opened: list[tuple[int, str]] = []
        self._names: dict[str, int] = {}

    def open(self, place: int, name: str) -> None:
        self._opened.append((place, name))
        self._names[name] = self._names.get(name, 0) + 1

    def close(self, name: str, pieces: list[Piece]) -> bool:
        """Close a tag, and make points of those that it would cross; return whether it is open."""
        if not self._names.get(name):
            return False
        while True:
            place, other = self._opened.pop()
            self._names[other] -= 1
            if other == name:
                return True
            pieces[place] = _point(pieces[place])

    def end(self, pieces: list[Piece]) -> None:
        for place, _ in self._opened:
            pieces[place] = _point(pieces[place])
        self._opened = []


def syntax_of(
    tree: XmlTree, element: Element, wording: Wording, is_exact: bool
) -> Syntax:
    """Return how the words of an element are written.

    White space that counts and is more than single spaces stays white space for the model.
    """
    syntax = wording.cdata if is_all_cdata(tree, element) else wording.text
    if not is_exact:
        return syntax
    is_wide = re.search(r"[ \t]{2}|\t", tree.content(element)) is not None
    return replace(syntax, collapses=not is_wide)
