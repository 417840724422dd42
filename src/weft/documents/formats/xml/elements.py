"""The elements of an XML file: where each ends, what is in it, its tag with other attributes."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from weft.documents.formats.xml.tokens import (
    Xml,
    XmlFile,
    XmlToken,
    decode_xml,
    read_xml,
    written_as_xml,
)

_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_TAG_END = re.compile(r"\s*/?>\Z")


class Elements:
    """The tokens of a file; an element is known by the place of its start tag among them."""

    def __init__(self, file: XmlFile) -> None:
        """Find where each element ends."""
        self.tokens = file.tokens
        self.encoding = file.encoding
        self.ends = _ends(file.tokens)

    @property
    def root(self) -> int:
        """Return the place of the root."""
        return next(n for n, token in enumerate(self.tokens) if token.opens)

    def children(self, place: int) -> Iterator[int]:
        """Yield the places of the elements directly in one."""
        end = self.ends[place]
        place += 1
        while place < end:
            if self.tokens[place].opens:
                yield place
                place = self.ends[place]
            place += 1

    def named(self, names: Collection[str], spaces: Collection[str]) -> Iterator[int]:
        """Yield the places of all elements of some names."""
        for place, token in enumerate(self.tokens):
            if token.opens and token.name in names and token.space in spaces:
                yield place

    def child(self, place: int, name: str) -> int | None:
        """Return the place of the first element of a name directly in one."""
        found = (n for n in self.children(place) if self.tokens[n].name == name)
        return next(found, None)

    def after(self, place: int) -> int:
        """Return the place after an element."""
        return self.ends[place] + 1

    def within(self, starts: Iterable[int]) -> set[int]:
        """Return those of some elements, in their order, that are inside of another one."""
        inner = set()
        outer_end = -1
        for start in starts:
            if start < outer_end:
                inner.add(start)
            else:
                outer_end = self.ends[start]
        return inner

    def raw(self, start: int, stop: int) -> str:
        """Return a stretch of the file."""
        return "".join(token.raw for token in self.tokens[start:stop])

    def text(self, place: int) -> str:
        """Return the text in an element, with references as the file has them."""
        inside = self.tokens[place + 1 : self.ends[place]]
        return "".join(map(text_of, inside))

    def plain(self, place: int) -> str:
        """Return the text in an element as it is read."""
        return decode_xml(self.text(place))


def read_elements(content: bytes, name: str) -> Elements:
    """Read a file of XML; raises UsageError as `read_xml` does."""
    return Elements(read_xml(content, name))


def text_of(token: XmlToken) -> str:
    """Return the text that a token is, written with references; "" of any other token."""
    if token.kind is Xml.TEXT:
        return token.raw
    if token.kind is Xml.CDATA:
        return _CDATA.sub(lambda found: written_as_xml(found[1]), token.raw)
    return ""


def _ends(tokens: Sequence[XmlToken]) -> dict[int, int]:
    ends = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind is Xml.EMPTY:
            ends[place] = place
        elif token.kind is Xml.START:
            opened.append(place)
        elif token.kind is Xml.END:
            ends[opened.pop()] = place
    return ends
