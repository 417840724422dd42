"""Properties of the documents of office programs, and notes on what stays in them."""

from collections.abc import Sequence

from weft.documents.document import Note, Reading, Written
from weft.documents.formats.office.opc import Package
from weft.documents.formats.office.package import Member, Parts, Stretch, WriteParts
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tokens import SYNTAX, Xml, written_as_xml
from weft.documents.inline import Builder, Piece

_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def read_properties(
    elements: Elements, reading: Reading, translated: tuple[str, ...]
) -> Parts:
    """Read the properties of a document: some are translated, and the language is set."""
    parts: list[str | Stretch] = []
    kept: list[str] = []
    place = 0
    while place < len(elements.tokens):
        token = elements.tokens[place]
        kept.append(token.raw)
        is_core = token.kind is Xml.START and token.space == _DUBLIN_CORE
        end = elements.ends.get(place, place)
        if is_core and token.name in translated:
            parts += ("".join(kept), whole_text(elements.text(place), token.name))
            kept = []
            place = end
            continue
        if is_core and token.name == "language" and reading.target:
            kept.append(written_as_xml(reading.target))
            place = end
            continue
        place += 1
    parts.append("".join(kept))
    return parts


def whole_text(raw: str, place: str) -> Stretch:
    """Return a stretch that is text without any tags."""
    builder = Builder(SYNTAX)
    builder.run([Piece(raw)])
    return Stretch([raw], builder.document(), place, _as_it_is)


def _as_it_is(
    notation: str, _written: Sequence[Written], _write_parts: WriteParts
) -> str:
    return notation


def core_properties(package: Package, reading: Reading) -> list[Member]:
    """Read the title and the subject that a package has."""
    members = []
    for part in package.related("", "core-properties"):
        elements = package.elements(part)
        parts = read_properties(elements, reading, ("title", "subject"))
        members.append(Member(part, parts, elements.encoding))
    return members


def notes_on_package(package: Package) -> list[Note]:
    """List what of a package is not as a reader might expect it."""
    notes = []
    if package.related("", "origin"):
        note = "the document is signed; the signature does not hold for the translation"
        notes.append(Note("document", note))
    return notes


def notes_on_pictures(elements: Elements, place: str) -> list[Note]:
    """Say how many pictures and shapes have an alternative text, which stays."""
    described = sum(
        bool(token.attributes.get("descr"))
        for token in elements.tokens
        if token.name in ("docPr", "cNvPr")
    )
    if not described:
        return []
    return [Note(place, f"alternative texts of pictures stay: {described}")]
