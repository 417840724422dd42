"""Books (.epub): the pages of the spine, tables of contents, and the title.

Source: EPUB 3.3 (W3C, 2023); for tables of contents of older books OPF 2.0.1 (IDPF, 2010).
"""

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

from weft.documents.direction import is_right_to_left
from weft.documents.document import Note, Reading
from weft.documents.formats.office.archive import Archive, read_archive
from weft.documents.formats.office.package import Member, PackageDocument, Stretch
from weft.documents.formats.office.properties import read_properties, whole_text
from weft.documents.formats.office.xhtml import read_page
from weft.documents.formats.web.markup import with_value
from weft.documents.formats.xml.elements import Elements, read_elements
from weft.documents.formats.xml.tokens import XmlFile
from weft.documents.formats.xml.tree import with_attribute
from weft.errors import UsageError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CONTAINER_SPACE = "urn:oasis:names:tc:opendocument:xmlns:container"
_PACKAGE = "http://www.idpf.org/2007/opf"
_NCX_SPACE = "http://www.daisy.org/z3986/2005/ncx/"
_NCX = "application/x-dtbncx+xml"
_PAGES = {"application/xhtml+xml", "text/html", "application/html+xml"}
# ways to hide fonts from copying, which hide no text
_FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_DIRECTION = "page-progression-direction"


def open_epub(content: bytes, reading: Reading) -> PackageDocument:
    """Read a book; raises UsageError for what is none, is locked, damaged or hostile."""
    archive = read_archive(content, reading.name)
    return _Reader(content, archive, reading).document()


@dataclass(frozen=True)
class _Item:
    """A member that a package lists."""

    member: str
    kind: str
    is_navigation: bool


class _Reader:
    """Reads the members of a book in the order in which it is read."""

    def __init__(self, content: bytes, archive: Archive, reading: Reading) -> None:
        self._content = content
        self._archive = archive
        self._reading = reading
        self._members: dict[str, Member] = {}
        self._notes: list[Note] = []

    def document(self) -> PackageDocument:
        if _CONTAINER not in self._archive.members:
            raise UsageError(
                f"{self._reading.name}: is no book in EPUB; give it the ending of the format that it is in"
            )
        self._refuse_locked()
        container = self._elements(_CONTAINER)
        for place in container.named({"rootfile"}, {_CONTAINER_SPACE}):
            path = container.tokens[place].attributes.get("full-path", "")
            if path in self._archive.members and path not in self._members:
                self._package(path)
        members = list(self._members.values())
        return PackageDocument(self._content, self._archive, members, self._notes)

    def _elements(self, member: str) -> Elements:
        name = f"{self._reading.name}, {member}"
        return read_elements(self._archive.members[member], name)

    def _refuse_locked(self) -> None:
        if _ENCRYPTION not in self._archive.members:
            return
        for token in self._elements(_ENCRYPTION).tokens:
            is_method = token.opens and token.name == "EncryptionMethod"
            if is_method and token.attributes.get("Algorithm") not in _FONTS:
                raise UsageError(
                    f"{self._reading.name}: is locked against copying; only books without such a lock are read"
                )

    def _package(self, path: str) -> None:
        """Read what a package lists: its title, its pages, and tables of contents."""
        elements = self._elements(path)
        told = self._in_direction(elements)
        parts = read_properties(told, self._reading, ("title",))
        self._members[path] = Member(path, parts, told.encoding)
        items = dict(self._items(elements, posixpath.dirname(path)))
        spine = [
            elements.tokens[place].attributes.get("idref", "")
            for place in elements.named({"itemref"}, {_PACKAGE})
        ]
        pages = [key for key in spine if key in items]
        pages += [key for key, item in items.items() if item.is_navigation]
        for key in pages:
            item = items[key]
            if item.kind in _PAGES and item.member not in self._members:
                self._page(item.member)
        for item in items.values():
            if item.kind == _NCX and item.member not in self._members:
                self._contents(item.member)
        left = sum(
            item.kind in _PAGES and item.member not in self._members
            for item in items.values()
        )
        if left:
            self._notes.append(
                Note(path, f"pages outside of the reading order stay: {left}")
            )

    def _items(self, elements: Elements, folder: str) -> Iterator[tuple[str, "_Item"]]:
        for place in elements.named({"item"}, {_PACKAGE}):
            attributes = elements.tokens[place].attributes
            href = unquote(attributes.get("href", "").partition("#")[0])
            member = posixpath.normpath(posixpath.join(folder, href))
            kind = attributes.get("media-type", "")
            is_navigation = "nav" in attributes.get("properties", "").split()
            if member in self._archive.members and "://" not in href:
                yield attributes.get("id", ""), _Item(member, kind, is_navigation)
            if attributes.get("media-overlay"):
                note = "the recording that reads a page aloud stays"
                self._notes.append(Note(member, note))

    def _page(self, member: str) -> None:
        content = self._archive.members[member]
        name = self._reading.name
        page, notes = read_page(content, member, name, self._reading.target)
        self._members[member] = page
        self._notes += notes

    def _contents(self, member: str) -> None:
        """Read a table of contents of an older book: its labels and the title, not the author."""
        elements = self._elements(member)
        if self._reading.target:
            elements = _with_tag(elements, elements.root, self._named)
        parts: list[str | Stretch] = []
        done = 0
        for place in elements.named({"navLabel", "docTitle"}, {_NCX_SPACE}):
            text = elements.child(place, "text")
            if text is None or not elements.text(text):
                continue
            if any(True for _ in elements.children(text)):
                continue
            parts.append(elements.raw(done, text + 1))
            parts.append(whole_text(elements.text(text), member))
            done = elements.ends[text]
        parts.append(elements.raw(done, len(elements.tokens)))
        self._members[member] = Member(member, parts, elements.encoding)

    def _named(self, tag: str) -> str:
        return with_value(tag, ("xml:lang",), self._reading.target)

    def _in_direction(self, elements: Elements) -> Elements:
        """Return the package whose pages are turned as the language is read."""
        target = self._reading.target
        if not target:
            return elements
        for place in elements.named({"spine"}, {_PACKAGE}):
            has_one = _DIRECTION in elements.tokens[place].attributes
            if has_one or is_right_to_left(target):
                elements = _with_tag(elements, place, self._turned)
        return elements

    def _turned(self, tag: str) -> str:
        told = "rtl" if is_right_to_left(self._reading.target) else "ltr"
        return with_attribute(tag, _DIRECTION, told)


def _with_tag(elements: Elements, place: int, change: Callable[[str], str]) -> Elements:
    """Return the elements of a member, the tag of one of them changed."""
    tokens = list(elements.tokens)
    tokens[place] = replace(tokens[place], raw=change(tokens[place].raw))
    return Elements(XmlFile(tuple(tokens), elements.encoding))
