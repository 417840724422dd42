"""Tags, comments and text of HTML, told apart as a browser does.

No tree is built and nothing is mended: every character belongs to one token, in the text's order.
Source: the HTML Living Standard, section 13.2.5, "Tokenization".
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum


class Markup(Enum):
    """The kinds of tokens; OTHER is a comment, a doctype or what else is not shown."""

    TEXT = "text"
    START = "start"
    END = "end"
    OTHER = "other"


@dataclass(frozen=True)
class Token:
    """A stretch of HTML; `name` is that of a tag, in small letters."""

    kind: Markup
    raw: str
    name: str = ""


# elements whose content is text without tags
RAW = {
    "script",
    "style",
    "textarea",
    "iframe",
    "noembed",
    "noframes",
    "xmp",
    "plaintext",
}
_NAME = re.compile(r"</?([A-Za-z][^\t\n\f\r />]*+)")
_VALUE = r"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >]*+)"
_ATTRIBUTE = (
    r"([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rf"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+({_VALUE}))?+"
)
_NEXT_ATTRIBUTE = re.compile(rf"[\t\n\f\r /]*+(?:{_ATTRIBUTE})?+")


def scan(text: str, *, is_xml: bool = False) -> Iterator[Token]:
    """Yield the tokens of HTML, in time proportional to its length.

    With `is_xml`, a tag such as `<script/>` is an element by itself, of the kind OTHER.
    """
    place = 0
    shown = 0  # where the text begins that is not yet yielded
    finder = _Finder(text)
    while (start := text.find("<", place)) >= 0:
        token = _token_at(text, start, finder)
        if token is None:
            place = start + 1
            continue
        if start > shown:
            yield Token(Markup.TEXT, text[shown:start])
        if is_xml and token.raw.endswith("/>") and token.kind is Markup.START:
            token = Token(Markup.OTHER, token.raw, token.name)
        yield token
        place = shown = start + len(token.raw)
        if token.kind is Markup.START and token.name in RAW:
            end = _end_of_raw(text, place, token.name)
            yield Token(Markup.OTHER, text[place:end])
            place = shown = end
    if shown < len(text):
        yield Token(Markup.TEXT, text[shown:])


def attributes(tag: str) -> dict[str, str]:
    """Return the attributes of a start tag; of a repeated one the first counts."""
    found: dict[str, str] = {}
    name = _NAME.match(tag)
    for match in _attributes(tag, name.end() if name else 0):
        value = match[2] or ""
        if value[:1] in ('"', "'"):
            value = value[1:-1]
        found.setdefault(match[1].lower(), value)
    return found


def with_value(tag: str, names: Collection[str], value: str) -> str:
    """Return a start tag whose attributes of some names have another value; none is added."""
    name = _NAME.match(tag)
    parts: list[str] = []
    done = 0
    for match in _attributes(tag, name.end() if name else 0):
        if match[2] and match[1].lower() in names:
            parts += (tag[done : match.start(2)], f'"{value}"')
            done = match.end(2)
    return "".join([*parts, tag[done:]])


def _attributes(text: str, place: int) -> Iterator[re.Match[str]]:
    """Yield the attributes of the tag whose name ends at a place."""
    while (match := _NEXT_ATTRIBUTE.match(text, place)) and match[1]:
        place = match.end()
        yield match


class _Finder:
    """Finds marks after a place of a text, and remembers those that do not come any more."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._gone: set[str] = set()

    def end(self, mark: str, place: int) -> int | None:
        """Return where the next one ends; None where there is none."""
        if mark in self._gone:
            return None
        found = self._text.find(mark, place)
        if found < 0:
            self._gone.add(mark)
            return None
        return found + len(mark)


def _token_at(text: str, start: int, finder: _Finder) -> Token | None:
    """Return the tag or comment that begins at a `<`; None where it is text."""
    if name := _NAME.match(text, start):
        return _tag(text, start, name)
    if text.startswith(("<!", "<?", "</"), start):
        return Token(Markup.OTHER, text[start : _end_of_comment(text, start, finder)])
    return None


def _tag(text: str, start: int, name: re.Match[str]) -> Token:
    """Return a tag; one that never ends hides all that follows."""
    end = name.end()
    for match in _attributes(text, end):
        end = match.end()
    end = text.find(">", end)  # nothing but white space and slashes is before it
    if end < 0:
        return Token(Markup.OTHER, text[start:])
    kind = Markup.END if text[start + 1] == "/" else Markup.START
    return Token(kind, text[start : end + 1], name[1].lower())


def _end_of_comment(text: str, start: int, finder: _Finder) -> int:
    if text.startswith("<!--", start):
        for short in ("<!-->", "<!--->"):
            if text.startswith(short, start):
                return start + len(short)
        ends = [finder.end("-->", start + 4), finder.end("--!>", start + 4)]
    elif text.startswith("<![CDATA[", start):
        ends = [finder.end("]]>", start) or finder.end(">", start)]
    else:
        ends = [finder.end(">", start)]
    return min((end for end in ends if end), default=len(text))


def _end_of_raw(text: str, place: int, name: str) -> int:
    """Return where the content of an element ends that has no tags; at the text's end without end
    tag.
    """
    match = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, place)
    return match.start() if match else len(text)
