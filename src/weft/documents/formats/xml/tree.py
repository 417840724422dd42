"""XML as a tree over its tokens, and edits of its text at the places that the tree knows."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.documents.formats.xml.tokens import Xml, XmlToken, read_xml, written_as_xml

_ATTRIBUTE = re.compile(r"\s+([^\s=/>]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_TAG_NAME = re.compile(r"</?((?:[^\s:/>]+:)?)([^\s:/>]+)")
_TAG_END = re.compile(r"\s*/?>$")
# what XML 1.0 cannot hold, not even as a reference
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
XML = "http://www.w3.org/XML/1998/namespace"


class Edit(NamedTuple):
    """A stretch of a text, from where to where, and what takes its place."""

    start: int
    end: int
    text: str


@dataclass(eq=False)
class Element:
    """An element: its tags and its content, as places in the text and as numbers of tokens.

    The start tag is from `start` to `inner`, the end tag from `end` to `after`; an element that is
    one tag has all three latter at the same place.
    """

    token: XmlToken
    number: int
    start: int
    inner: int
    end: int = 0
    after: int = 0
    last: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return its name without prefix."""
        return self.token.name

    @property
    def is_tag(self) -> bool:
        """Return whether it is one tag."""
        return self.token.kind is Xml.EMPTY

    def get(self, name: str) -> str:
        """Return the value of an attribute, "" where it has none."""
        return self.token.attributes.get(name, "")

    def all(self, *names: str) -> list["Element"]:
        """List its children of some names that are of its own namespace."""
        space = self.token.space
        found = [child for child in self.children if child.token.space == space]
        return [child for child in found if child.name in names]

    def child(self, name: str) -> "Element | None":
        """Return the first child of a name that is of its own namespace."""
        return next(iter(self.all(name)), None)

    def below(self) -> Iterator["Element"]:
        """Yield all elements in it, each before those in it."""
        waiting = self.children[::-1]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += element.children[::-1]


@dataclass(frozen=True)
class XmlTree:
    """A file of XML: its text, the tokens of it, and the elements."""

    name: str
    text: str
    encoding: str
    tokens: tuple[XmlToken, ...]
    root: Element
    line_starts: tuple[int, ...]

    def line(self, place: int) -> int:
        """Return the number of the line that a place is in."""
        return bisect_right(self.line_starts, place)

    def content(self, element: Element) -> str:
        """Return what is between the tags of an element."""
        return self.text[element.inner : element.end]

    def raw(self, element: Element) -> str:
        """Return an element with its tags."""
        return self.text[element.start : element.after]

    def tokens_in(self, element: Element) -> tuple[XmlToken, ...]:
        """Return the tokens between the tags of an element."""
        return self.tokens[element.number + 1 : element.last]

    def is_blank(self, element: Element) -> bool:
        """Return whether an element has neither elements nor text but white space in it."""
        for token in self.tokens_in(element):
            raw = token.raw
            if token.kind is Xml.CDATA:
                raw = raw[len("<![CDATA[") : -len("]]>")]
            if token.kind is not Xml.OTHER and raw.strip():
                return False
        return True

    def indent(self, element: Element) -> str:
        """Return the line end and the spaces before an element; "" where it begins no line."""
        place = element.start
        while place and self.text[place - 1] in " \t":
            place -= 1
        if not place or self.text[place - 1] != "\n":
            return ""
        place -= 1
        if self.text[place - 1 : place] == "\r":
            place -= 1
        return self.text[place : element.start]


def read_tree(content: bytes, name: str) -> XmlTree:
    """Read a file of XML; `name` is what messages call it. Raises UsageError as `read_xml` does."""
    file = read_xml(content, name)
    text = "".join(token.raw for token in file.tokens)
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    root = _root(file.tokens)
    return XmlTree(name, text, file.encoding, file.tokens, root, tuple(starts))


def _root(tokens: Iterable[XmlToken]) -> Element:
    top = Element(XmlToken(Xml.OTHER, ""), 0, 0, 0)
    opened = [top]
    place = 0
    for number, token in enumerate(tokens):
        after = place + len(token.raw)
        if token.opens:
            element = Element(token, number, place, after, after, after, number)
            opened[-1].children.append(element)
            if token.kind is Xml.START:
                opened.append(element)
        elif token.kind is Xml.END:
            element = opened.pop()
            element.end = place
            element.after = after
            element.last = number
        place = after
    return top.children[0]


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits that do not overlap; those at one place keep their order."""
    parts: list[str] = []
    place = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += (text[place : edit.start], edit.text)
        place = edit.end
    parts.append(text[place:])
    return "".join(parts)


def with_attribute(tag: str, name: str, value: str | None) -> str:
    """Return a start tag with another value of an attribute, which it may not have had.

    None takes the attribute away.
    """
    written = "" if value is None else f' {name}="{written_as_xml(value)}"'
    for found in _ATTRIBUTE.finditer(tag):
        if found[1] == name:
            return tag[: found.start()] + written + tag[found.end() :]
    end = _TAG_END.search(tag)
    assert end is not None
    return tag[: end.start()] + written + tag[end.start() :]


def prefix_of(tag: str) -> str:
    """Return the prefix of a tag's name with its colon, "" where it has none."""
    found = _TAG_NAME.match(tag)
    assert found is not None
    return found[1]


def named(tag: str) -> str:
    """Return the name of a tag as it is written, with its prefix."""
    found = _TAG_NAME.match(tag)
    assert found is not None
    return found[1] + found[2]


def opened(tag: str) -> str:
    """Return a tag that is an element by itself as a start tag; any other stays."""
    return re.sub(r"\s*/>$", ">", tag)


def allowed(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
