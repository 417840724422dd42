"""Word documents (.docx): body, headers, footers and notes.

Source: ECMA-376, part 1, sections 11 and 17.
"""

from collections.abc import Iterator

from weft.documents.document import Note, Reading
from weft.documents.formats.office.drawing import read_drawings
from weft.documents.formats.office.opc import Package
from weft.documents.formats.office.package import Member, PackageDocument
from weft.documents.formats.office.properties import (
    core_properties,
    notes_on_package,
    notes_on_pictures,
)
from weft.documents.formats.office.word import WORD, WordReader
from weft.documents.formats.office.word_comments import WordComments
from weft.documents.formats.office.word_tongue import Tongue
from weft.documents.formats.xml.elements import Elements

# parts that have paragraphs, and what they are called
_PARTS = {"header": "header", "footer": "footer"}
_PARTS |= {"footnotes": "footnotes", "endnotes": "endnotes"}
_KEPT = {
    "comments": "comments stay as they are",
    "aFChunk": "a file within the document stays as it is",
    "package": "an embedded document stays as it is",
    "oleObject": "an embedded object stays as it is",
}


def open_docx(content: bytes, reading: Reading) -> PackageDocument:
    """Read a Word document; raises UsageError for what is none, or is damaged or hostile."""
    return _Reader(Package(content, reading.name), reading).document()


class _Reader:
    """Reads the parts of a document in the order in which a reader thinks of them."""

    def __init__(self, package: Package, reading: Reading) -> None:
        self._package = package
        self._reading = reading
        self._tongue = Tongue(reading.target)
        self._members: list[Member] = []
        self._notes: list[Note] = []
        self._main = package.main_part("wordprocessingml", "Word")
        self._comments = WordComments(package, self._main)

    def document(self) -> PackageDocument:
        package = self._package
        self._words(self._main, "")
        for kind, called in _PARTS.items():
            found = package.related(self._main, kind)
            for number, part in enumerate(found, 1):
                name = called if len(found) == 1 else f"{called} {number}"
                self._words(part, f"{name}, ")
        read = [member.name for member in self._members]
        drawings, notes = read_drawings(package, read, self._reading)
        self._members += drawings
        self._notes += notes
        self._styles()
        self._members += core_properties(package, self._reading)
        self._notes += self._notes_on_parts(read)
        self._notes += notes_on_package(package)
        return PackageDocument(
            package.content,
            package.archive,
            self._members,
            self._notes,
            self._comments,
        )

    def _words(self, part: str, where: str) -> None:
        elements = self._package.elements(part)
        remark = self._comments.around if part == self._main else None
        reader = WordReader(elements, self._tongue, where, remark)
        self._members.append(Member(part, reader.parts(), elements.encoding))
        self._notes += reader.notes
        self._notes += notes_on_pictures(elements, where.rstrip(", ") or "document")
        entries = sum(map(_is_entry, _codes(elements)))
        if entries:
            note = f"entries of an index in the codes of fields stay: {entries}"
            self._notes.append(Note(where.rstrip(", ") or "document", note))

    def _styles(self) -> None:
        """Let the styles say the language of the translation."""
        if not self._reading.target:
            return
        for part in self._package.related(self._main, "styles"):
            elements = self._package.elements(part)
            raws = [token.raw for token in elements.tokens]
            for place in elements.named({"lang"}, WORD):
                prefix = raws[place].removeprefix("<").partition("lang")[0]
                raws[place] = self._tongue.told(raws[place], prefix)
            self._members.append(Member(part, ["".join(raws)], elements.encoding))

    def _notes_on_parts(self, read: list[str]) -> Iterator[Note]:
        for kind, note in _KEPT.items():
            if any(self._package.related(part, kind) for part in read):
                yield Note("document", note)


def _codes(elements: Elements) -> Iterator[str]:
    for place in elements.named({"instrText"}, WORD):
        yield elements.plain(place)


def _is_entry(code: str) -> bool:
    return code.split()[:1] in (["XE"], ["TC"])
