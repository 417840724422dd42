"""Packages of Office Open XML: their parts are found by relationships, not by their names.

A relationship to what is outside of the package is never followed.
Source: ECMA-376, part 2, Open Packaging Conventions.
"""

import posixpath
from dataclasses import dataclass
from urllib.parse import unquote

from weft.documents.formats.office.archive import Archive, read_archive
from weft.documents.formats.xml.elements import Elements, read_elements
from weft.errors import UsageError

_TYPES = "[Content_Types].xml"
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"


@dataclass(frozen=True)
class Relation:
    """A relationship within a package; `kind` is the last part of its type's address."""

    key: str
    kind: str
    target: str


class Package:
    """The parts of a package, by the names of the archive's members."""

    def __init__(self, content: bytes, name: str) -> None:
        """Read the archive; raises UsageError where `read_archive` does."""
        self.content = content
        self.name = name
        self.archive: Archive = read_archive(content, name)
        self._relations: dict[str, list[Relation]] = {}
        self._spelled = {member.lower(): member for member in self.archive.members}

    def elements(self, part: str) -> Elements:
        """Read a part as XML."""
        return read_elements(self.archive.members[part], f"{self.name}, {part}")

    def relations(self, part: str = "") -> list[Relation]:
        """List the relationships of a part, or of the package, to parts that are there."""
        if part not in self._relations:
            self._relations[part] = self._read_relations(part)
        return self._relations[part]

    def _read_relations(self, part: str) -> list[Relation]:
        folder, base = posixpath.split(part)
        rels = self._member(posixpath.join(folder, "_rels", f"{base}.rels"))
        if rels is None:
            return []
        elements = self.elements(rels)
        found = []
        for place in elements.children(elements.root):
            attributes = elements.tokens[place].attributes
            if attributes.get("TargetMode", "").lower() == "external":
                continue
            named = unquote(attributes.get("Target", ""))
            target = self._member(posixpath.join("/", folder, named))
            kind = attributes.get("Type", "").rpartition("/")[2]
            if target is not None:
                found.append(Relation(attributes.get("Id", ""), kind, target))
        return found

    def related(self, part: str, *kinds: str) -> list[str]:
        """List the parts that one has relationships of some kinds to, each once."""
        found = [
            relation.target
            for relation in self.relations(part)
            if relation.kind in kinds
        ]
        return list(dict.fromkeys(found))

    def main_part(self, told: str, program: str) -> str:
        """Return the part that the document begins with.

        Raises UsageError if there is none, or its type does not have `told` in it.
        """
        found = self.related("", "officeDocument")
        if not found or told not in self.type_of(found[0]):
            raise UsageError(
                f"{self.name}: is no document of {program}; give it the ending of the format that it is in"
            )
        if "macroenabled" in self.type_of(found[0]).lower():
            raise UsageError(
                f"{self.name}: may have macros; save it in the format without them"
            )
        return found[0]

    def type_of(self, part: str) -> str:
        """Return the type of a part's content."""
        if _TYPES not in self.archive.members:
            return ""
        elements = self.elements(_TYPES)
        by_ending = ""
        for place in elements.children(elements.root):
            attributes = elements.tokens[place].attributes
            told = attributes.get("ContentType", "")
            if attributes.get("PartName", "").lower() == f"/{part}".lower():
                return told
            ending = attributes.get("Extension", "").lower()
            if ending and part.lower().endswith(f".{ending}"):
                by_ending = told
        return by_ending

    def _member(self, path: str) -> str | None:
        """Return a part by its path; parts' names do not differ by capitals alone."""
        return self._spelled.get(posixpath.normpath(path).lstrip("/").lower())
