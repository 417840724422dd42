"""Documents of OpenDocument (.odt, .ods, .odp), as LibreOffice writes them.

Source: Open Document Format for Office Applications 1.3 (OASIS, 2021), parts 2 and 3.
"""

from collections.abc import Iterator

from weft.documents.document import Note, Reading
from weft.documents.formats.office.archive import Archive, read_archive
from weft.documents.formats.office.odf_text import OFFICE, OdfReader
from weft.documents.formats.office.odf_tongue import in_tongue
from weft.documents.formats.office.package import Member, PackageDocument
from weft.documents.formats.office.properties import read_properties
from weft.documents.formats.xml.elements import Elements, read_elements
from weft.errors import UsageError

_MANIFEST = "META-INF/manifest.xml"
_KINDS = {"text", "spreadsheet", "presentation"}
_SIGNED = "META-INF/documentsignatures.xml"


def open_odf(content: bytes, reading: Reading) -> PackageDocument:
    """Read a document of OpenDocument; raises UsageError for what is none, or is damaged."""
    archive = read_archive(content, reading.name)
    return _Reader(content, archive, reading).document()


class _Reader:
    """Reads the members of a document, whose names the standard gives."""

    def __init__(self, content: bytes, archive: Archive, reading: Reading) -> None:
        self._content = content
        self._archive = archive
        self._reading = reading
        self._members: list[Member] = []
        self._notes: list[Note] = []

    def document(self) -> PackageDocument:
        self._refuse_encrypted()
        content = self._elements("content.xml")
        if content is None:
            raise self._no_document()
        kind = _kind(content)
        if kind not in _KINDS:
            raise self._no_document()
        styles = self._elements("styles.xml")
        self._paragraphs("content.xml", content, kind)
        if styles is not None:
            self._paragraphs("styles.xml", styles, "styles")
        meta = self._elements("meta.xml")
        if meta is not None:
            parts = read_properties(meta, self._reading, ("title", "subject"))
            self._members.append(Member("meta.xml", parts, meta.encoding))
        self._notes += self._notes_on_members()
        return PackageDocument(self._content, self._archive, self._members, self._notes)

    def _elements(self, member: str) -> Elements | None:
        content = self._archive.members.get(member)
        if content is None:
            return None
        return read_elements(content, f"{self._reading.name}, {member}")

    def _paragraphs(self, member: str, elements: Elements, kind: str) -> None:
        told = in_tongue(elements, self._reading.target)
        reader = OdfReader(told, kind)
        self._members.append(Member(member, reader.parts(), told.encoding))
        self._notes += reader.notes

    def _refuse_encrypted(self) -> None:
        manifest = self._elements(_MANIFEST)
        if manifest and any(t.name == "encryption-data" for t in manifest.tokens):
            raise UsageError(
                f"{self._reading.name}: is encrypted; save it without a password"
            )

    def _no_document(self) -> UsageError:
        return UsageError(
            f"{self._reading.name}: is no document of LibreOffice; give it the ending of the format that it is in"
        )

    def _notes_on_members(self) -> Iterator[Note]:
        for name in self._archive.members:
            if name.endswith("/content.xml"):
                told = name.removesuffix("/content.xml")
                yield Note("document", f"an embedded object stays as it is: {told}")
        if _SIGNED in self._archive.members:
            note = "the document is signed; the signature does not hold for the translation"
            yield Note("document", note)


def _kind(elements: Elements) -> str:
    """Return what the body of a document is; "" where it has none."""
    root = elements.root
    if elements.tokens[root].space != OFFICE:
        return ""
    body = elements.child(root, "body")
    if body is None:
        return ""
    names = (elements.tokens[place].name for place in elements.children(body))
    return next(names, "")
