"""Inline Markdown with the place of each mark, found by markdown-it, and written so that it is read
as it is meant.

The parser's rules are those of the package; each is wrapped so that the tokens that it makes say
where they stand. Source: CommonMark 0.31.2, chapter 6; strikethrough as GitHub has it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib import import_module
from typing import Any

from weft.documents.document import Kind
from weft.documents.formats.web.markup import Markup, scan
from weft.documents.inline import Piece, Syntax

Rule = Callable[[Any, bool], bool]
_SPAN = "span"
_LABEL_END = "label end"
_DELIMITERS = {
    "em_open",
    "em_close",
    "strong_open",
    "strong_close",
    "s_open",
    "s_close",
}
_KINDS = {"softbreak": Kind.EMPTY, "hardbreak": Kind.BREAK}
_KEPT_ELEMENTS = {"code", "kbd", "samp", "var", "pre", "script", "style", "svg", "math"}
_VOID = {"img", "wbr", "hr", "input", "source", "br"}
# footnotes, attributes of kramdown and Pandoc, formulas: what CommonMark has no word for
_KEPT = re.compile(
    r"\[\^[^\[\]\s]{1,100}+\]"
    r"|\{:?[ ]*+[#.][^{}\n]*+\}|\{:[^{}\n]*+\}"
    r"|\$\$[^$\n]++\$\$"
    r"|(?<![\w$\\])\$(?=[^\s$])(?=[^$\n]{0,200}[\\^_={}])[^$\n]*+(?<=\S)\$(?!\w)"
)
_LINK = re.compile(r"[^\w\s<>&\\]{1,3}")
_BACKTICK = re.compile(r"(\\`)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_UNESCAPED = re.compile(f"{_ESCAPED.pattern}|{_ENTITY.pattern}")
_WHITE = re.compile(r"(?:\s|&nbsp;)++")
_MARKS = "\\`*_[]<~&"


def _decode(raw: str) -> str:
    return _UNESCAPED.sub(lambda found: found[1] or unescape(found[0]), raw)


def _escapes_of(source: str) -> Mapping[str, str]:
    """Return how marks are written: with a backslash, or as an entity where the text has one."""
    escapes = {mark: f"\\{mark}" for mark in _MARKS}
    bare = _ENTITY.sub("", source)
    for match in _ENTITY.finditer(source):
        character = unescape(match[0])
        if len(character) == 1 and not character.isspace() and character not in bare:
            escapes[character] = match[0]
    return escapes


SYNTAX = Syntax(_WHITE, _decode, _escapes_of, collapses=True)


@cache
def parser() -> Any:
    """Return the parser; blocks have no children, inline tokens their `span` in `meta`."""
    md = import_module("markdown_it").MarkdownIt("commonmark")
    md.enable(["table", "strikethrough"])
    md.core.ruler.enableOnly(["normalize", "block"])
    # it would join tokens, each of which has its place
    md.inline.ruler2.disable(["fragments_join"])
    rules = md.inline.ruler
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        if name not in ("text", "linkify", "entity"):
            rules.at(name, _recorded(rule, name))
    rules = md.block.ruler
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        if name == "reference":
            rules.at(name, _but_footnotes(rule))
    return md


def _recorded(rule: Rule, name: str) -> Rule:
    """Return a rule whose tokens say where they stand."""

    def recorded(state: Any, silent: bool) -> bool:
        start = state.pos
        first = len(state.tokens)
        found = rule(state, silent)
        if found and not silent:
            _record(state, name, start, first)
        return found

    return recorded


def _but_footnotes(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return a rule for definitions of links that leaves footnotes alone."""

    def reference(state: Any, start: int, end: int, silent: bool) -> bool:
        place = state.bMarks[start] + state.tShift[start]
        if state.src.startswith("[^", place):
            return False
        return rule(state, start, end, silent)

    return reference


def _record(state: Any, name: str, start: int, first: int) -> None:
    """Write the places of the tokens that a rule has made into them."""
    tokens = state.tokens[first:]
    if not tokens:
        return
    last = tokens[-1]
    label_end = state.md.helpers.parseLinkLabel
    if name in ("emphasis", "strikethrough"):
        end = state.pos
        for token in reversed(tokens):
            if end <= start:
                break
            token.meta[_SPAN] = (end - len(token.content), end)
            end -= len(token.content)
    elif name == "link":
        opening = next(token for token in tokens if token.type == "link_open")
        opening.meta[_SPAN] = (start, start + 1)
        last.meta[_SPAN] = (label_end(state, start, True), state.pos)
    elif name == "image":
        last.meta[_SPAN] = (start, state.pos)
        last.meta[_LABEL_END] = label_end(state, start + 1, False)
    elif name == "autolink":
        last.type = "autolink"
        last.meta[_SPAN] = (start, state.pos)
    elif last.type in ("code_inline", "html_inline", "softbreak", "hardbreak"):
        last.meta[_SPAN] = (start, state.pos)


@dataclass(frozen=True)
class Image:
    """An image: how it stands in the text of its block, its words, and what follows these."""

    raw: str
    words: str
    closing: str


@dataclass(frozen=True)
class _Mark:
    """A stretch that is no text, and where it stands."""

    start: int
    end: int
    kind: Kind
    raw: str
    name: str = ""


class Inline:
    """Inline Markdown, read: `references` are the definitions of links in its file."""

    def __init__(self, text: str, references: Mapping[str, object]) -> None:
        """Parse a text; line ends in it that are no hard breaks are spaces."""
        self._text = text
        self._tokens: list[Any] = []
        self._images: list[Image] = []
        md = parser()
        md.inline.parse(text, md, {"references": references}, self._tokens)
        # where the words of a link begin, by where they end
        self._openings = _openings(self._tokens)

    def pieces(self) -> tuple[list[Piece], list[Image]]:
        """Return the pieces of a segment, and the images among them, which are kept."""
        marks = sorted(self._marks(), key=lambda mark: mark.start)
        marks = _with_kept_elements(_with_kept(marks, self._text), self._text)
        found: list[Piece] = []
        place = 0
        for mark in marks:
            if mark.start < place:
                continue
            if mark.start > place:
                found += _text_pieces(self._text[place : mark.start])
            if mark.raw == " ":
                found.append(Piece(" "))
            else:
                found.append(Piece(mark.raw, mark.kind, mark.name))
            place = mark.end
        if place < len(self._text):
            found += _text_pieces(self._text[place:])
        raws = {piece.raw for piece in found}
        return _with_links(found), [
            image for image in self._images if image.raw in raws
        ]

    def _marks(self) -> Iterator[_Mark]:
        for token in self._tokens:
            if _SPAN not in token.meta or token.type == "text":
                continue
            start, end = token.meta[_SPAN]
            if token.type == "strong_open":
                start -= 1  # the first of both characters belongs to an empty token
            elif token.type == "strong_close":
                end += 1
            elif token.type == "hardbreak":
                while start and self._text[start - 1] == " ":
                    start -= 1
            yield self._mark(token, start, end)

    def _mark(self, token: Any, start: int, end: int) -> _Mark:
        raw = self._text[start:end]
        if token.type in _DELIMITERS or token.type == "link_open":
            kind = Kind.OPEN if token.nesting > 0 else Kind.CLOSE
            return _Mark(start, end, kind, raw, token.tag)
        if token.type == "link_close":
            return _Mark(start, end, Kind.CLOSE, self._closing(start, raw), "a")
        if token.type == "image":
            return self._image(token, start, end)
        if token.type == "html_inline":
            return _html_mark(start, end, raw)
        if token.type == "softbreak":
            raw = " "
        return _Mark(start, end, _KINDS.get(token.type, Kind.KEPT), raw)

    def _closing(self, label_end: int, raw: str) -> str:
        """Return the end of a link, which names its definition where the words did."""
        if raw not in ("]", "][]"):
            return raw
        opening = self._openings[label_end]
        return f"][{' '.join(self._text[opening:label_end].split())}]"

    def _image(self, token: Any, start: int, end: int) -> _Mark:
        label_end = token.meta[_LABEL_END]
        words = self._text[start + 2 : label_end]
        closing = self._text[label_end:end]
        if closing in ("]", "][]"):
            closing = f"][{' '.join(words.split())}]"
        raw = self._text[start:end]
        self._images.append(Image(raw, words, closing))
        return _Mark(start, end, Kind.KEPT, raw)

    def held_spaces(self) -> list[int]:
        """Return where spaces are at which no line may end: inside code, addresses and tags."""
        marks = _with_kept(
            sorted(self._marks(), key=lambda mark: mark.start), self._text
        )
        return [
            place
            for mark in marks
            for place in range(mark.start, mark.end)
            if self._text[place] == " " and mark.kind is not Kind.BREAK
        ]

    def shape(self) -> Counter[tuple[object, ...]]:
        """Return all that is no text, counted."""
        found: Counter[tuple[object, ...]] = Counter()
        for token in self._tokens:
            if token.type in ("text", "softbreak", "text_special"):
                continue
            attributes = tuple(sorted(token.attrs.items()))
            attributes = tuple(pair for pair in attributes if pair[0] != "alt")
            content = "" if token.type == "image" else token.content
            found[(token.type, token.tag, attributes, " ".join(content.split()))] += 1
        return found

    def words(self) -> str:
        """Return all text, without marks and white space."""
        texts = [t.content for t in self._tokens if t.type in ("text", "text_special")]
        return "".join("".join(texts).split())

    def loose_marks(self) -> list[tuple[int, int]]:
        """Return where marks of emphasis stand that open or close nothing, neighbours as one."""
        found: list[tuple[int, int]] = []
        for token in self._tokens:
            if token.type != "text" or not token.content or _SPAN not in token.meta:
                continue
            start, end = token.meta[_SPAN]
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return found


def _text_pieces(raw: str) -> Iterator[Piece]:
    """Yield text; an escaped backtick, which has no code after it, is a piece of its own."""
    for part in _BACKTICK.split(raw):
        if part:
            yield Piece(part)


def _with_links(pieces: Sequence[Piece]) -> list[Piece]:
    """Make one of what is kept and has nothing but a mark between: `a`/`b`."""
    found: list[Piece] = []
    for piece in pieces:
        is_link = len(found) > 1 and _LINK.fullmatch(found[-1].raw) is not None
        is_text = is_link and found[-1].kind is None
        if is_text and piece.kind is found[-2].kind is Kind.KEPT:
            mark = found.pop()
            found[-1] = Piece(found[-1].raw + mark.raw + piece.raw, Kind.KEPT)
        else:
            found.append(piece)
    return found


def _openings(tokens: Sequence[Any]) -> dict[int, int]:
    found: dict[int, int] = {}
    opened: list[int] = []
    for token in tokens:
        if token.type == "link_open" and _SPAN in token.meta:
            opened.append(token.meta[_SPAN][1])
        elif token.type == "link_close" and _SPAN in token.meta:
            found[token.meta[_SPAN][0]] = opened.pop()
    return found


def _html_mark(start: int, end: int, raw: str) -> _Mark:
    """Return the mark of a tag or comment of HTML."""
    token = next(scan(raw))
    if token.name == "br":
        return _Mark(start, end, Kind.BREAK, raw)
    name = f"<{token.name}"
    if token.kind is Markup.END:
        return _Mark(start, end, Kind.CLOSE, raw, name)
    is_empty = token.name in _VOID or raw.endswith("/>")
    if token.kind is Markup.START and not is_empty:
        return _Mark(start, end, Kind.OPEN, raw, name)
    return _Mark(start, end, Kind.EMPTY, raw)


def _with_kept(marks: Sequence[_Mark], text: str) -> list[_Mark]:
    """Add what is kept for its form; marks inside of it are its own."""
    found: list[_Mark] = []
    waiting = list(marks)
    waiting.reverse()
    for match in _KEPT.finditer(text):
        while waiting and waiting[-1].end <= match.start():
            found.append(waiting.pop())
        if waiting and waiting[-1].start < match.start():
            continue
        while waiting and waiting[-1].end <= match.end():
            waiting.pop()
        found.append(_Mark(*match.span(), Kind.KEPT, match[0]))
    return [*found, *reversed(waiting)]


def _with_kept_elements(marks: Sequence[_Mark], text: str) -> list[_Mark]:
    """Make one mark of each element of HTML whose words are not translated."""
    closing: dict[str, list[int]] = {}
    for mark in reversed(marks):
        if mark.kind is Kind.CLOSE and mark.name[1:] in _KEPT_ELEMENTS:
            closing.setdefault(mark.name, []).append(mark.end)
    found: list[_Mark] = []
    place = 0
    for mark in marks:
        if mark.start < place:
            continue
        ends = closing.get(mark.name, []) if mark.kind is Kind.OPEN else []
        while ends and ends[-1] <= mark.start:
            ends.pop()
        if ends:
            place = ends[-1]
            found.append(_Mark(mark.start, place, Kind.KEPT, text[mark.start : place]))
        else:
            found.append(mark)
    return found
