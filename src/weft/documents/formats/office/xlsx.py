"""Workbooks of Excel (.xlsx): the texts of cells and shapes; what formulas name stays.

Source: ECMA-376, part 1, sections 12 and 18.
"""

import re
from collections.abc import Iterator

from weft.documents.document import Note, Reading
from weft.documents.formats.office.drawing import read_drawings
from weft.documents.formats.office.opc import Package
from weft.documents.formats.office.package import Member, PackageDocument, Stretch
from weft.documents.formats.office.properties import core_properties, notes_on_package
from weft.documents.formats.office.sheets import Sheet, literals, walk_sheet
from weft.documents.formats.office.strings import (
    is_read_aloud,
    plain_string,
    read_string,
)
from weft.documents.formats.xml.elements import Elements

_GIVEN_NAME = re.compile(r"(?:Sheet|Chart)\d+")
_LONGEST_SHOWN = 40


def open_xlsx(content: bytes, reading: Reading) -> PackageDocument:
    """Read a workbook; raises UsageError for what is none, or is damaged or hostile."""
    return _Reader(Package(content, reading.name), reading).document()


class _Reader:
    """Reads the sheets of a workbook, in its order, and the strings that they share."""

    def __init__(self, package: Package, reading: Reading) -> None:
        self._package = package
        self._reading = reading
        self._main = package.main_part("spreadsheetml", "Excel")
        self._members: list[Member] = []
        self._notes: list[Note] = []
        self._sheets: dict[str, tuple[str, Sheet]] = {}  # by part, with its name
        self._named: dict[str, str] = {}  # texts that stay, and why

    def document(self) -> PackageDocument:
        package = self._package
        self._find_sheets()
        self._find_names()
        for part in package.related(self._main, "sharedStrings"):
            self._shared(part)
        for part, (name, sheet) in self._sheets.items():
            if sheet.has_inline:
                self._inline(part, name)
            found = read_drawings(package, [part], self._reading, f"sheet {name}")
            self._members += found[0]
            self._notes += found[1]
            self._notes += self._notes_on_sheet(part, name, sheet)
        self._members += core_properties(package, self._reading)
        self._notes += notes_on_package(package)
        return PackageDocument(
            package.content, package.archive, self._members, self._notes
        )

    def _find_sheets(self) -> None:
        elements = self._package.elements(self._main)
        sheets = {}
        for relation in self._package.relations(self._main):
            if relation.kind == "worksheet":
                sheets[relation.key] = relation.target
        for place in elements.named({"definedName"}, _spaces(elements)):
            self._name_all(literals(elements.plain(place)))
        names = []
        for place in elements.named({"sheet"}, _spaces(elements)):
            attributes = elements.tokens[place].attributes
            name = attributes.get("name", "")
            names.append(name)
            for key in attributes.values():
                if key in sheets:
                    part = sheets[key]
                    self._sheets[part] = (name, self._sheet(part))
        told = [name for name in names if not _GIVEN_NAME.fullmatch(name)]
        if told:
            note = f"names of sheets stay, as formulas name them: {', '.join(told)}"
            self._notes.append(Note("workbook", note))

    def _sheet(self, part: str) -> Sheet:
        content = self._package.archive.members[part]
        return walk_sheet(content, f"{self._package.name}, {part}")

    def _find_names(self) -> None:
        """Find the texts of cells that formulas, tables and filters know cells by."""
        package = self._package
        for part, (_, sheet) in self._sheets.items():
            self._name_all(sheet.named)
            reason = "it heads a column of a table"
            for table in package.related(part, "table"):
                self._name_columns(table, "tableColumn", reason)
        for cache in package.related(self._main, "pivotCacheDefinition"):
            self._name_columns(cache, "cacheField", "a pivot table names it")

    def _name_all(self, texts: set[str]) -> None:
        for text in texts:
            self._named.setdefault(text, "a formula or a filter names it")

    def _name_columns(self, part: str, element: str, reason: str) -> None:
        elements = self._package.elements(part)
        for place in elements.named({element}, _spaces(elements)):
            name = elements.tokens[place].attributes.get("name", "")
            self._named.setdefault(name.replace("_x000a_", " "), reason)
        for place in elements.named({"calculatedColumnFormula"}, _spaces(elements)):
            self._name_all(literals(elements.plain(place)))

    def _shared(self, part: str) -> None:
        """Read the strings that cells share; one that no cell has is not shown."""
        elements = self._package.elements(part)
        places: dict[int, str] = {}
        for name, sheet in self._sheets.values():
            for number, cell in sheet.cells.items():
                places.setdefault(number, f"sheet {name}, cell {cell}")
        strings = [
            place
            for place in elements.children(elements.root)
            if elements.tokens[place].name == "si"
        ]
        chosen = {
            place: places[number]
            for number, place in enumerate(strings)
            if number in places
        }
        self._members.append(self._strings(part, elements, chosen))

    def _inline(self, part: str, name: str) -> None:
        """Read the strings that cells have for themselves."""
        elements = self._package.elements(part)
        chosen = {}
        for place in elements.named({"c"}, _spaces(elements)):
            string = elements.child(place, "is")
            if string is not None:
                cell = elements.tokens[place].attributes.get("r", "")
                chosen[string] = f"sheet {name}, cell {cell}"
        self._members.append(self._strings(part, elements, chosen))

    def _strings(self, part: str, elements: Elements, chosen: dict[int, str]) -> Member:
        """Read some strings of a part, by where they are shown."""
        parts: list[str | Stretch] = []
        done = 0
        for place, where in chosen.items():
            stretch = read_string(elements, place, where)
            if stretch is None or self._is_named(elements, place, where):
                continue
            if is_read_aloud(elements, place):
                note = "how the text is read aloud goes where it is translated"
                self._notes.append(Note(where, note))
            parts += (elements.raw(done, place + 1), stretch)
            done = elements.ends[place]
        parts.append(elements.raw(done, len(elements.tokens)))
        return Member(part, parts, elements.encoding)

    def _is_named(self, elements: Elements, place: int, where: str) -> bool:
        text = plain_string(elements, place)
        reason = self._named.get(text)
        if reason is None:
            return False
        self._notes.append(Note(where, f"stays, as {reason}: {text[:_LONGEST_SHOWN]}"))
        return True

    def _notes_on_sheet(self, part: str, name: str, sheet: Sheet) -> Iterator[Note]:
        where = f"sheet {name}"
        if sheet.has_text_results:
            note = "results of formulas that are text change when the program calculates them again"
            yield Note(where, note)
        if sheet.has_headers:
            yield Note(where, "headers and footers of pages stay as they are")
        if sheet.has_prompts:
            yield Note(where, "messages on what may be entered stay as they are")
        if self._package.related(part, "comments", "threadedComment"):
            yield Note(where, "comments stay as they are")
        if self._package.related(part, "pivotTable"):
            yield Note(where, "names in pivot tables stay as they are")


def _spaces(elements: Elements) -> set[str]:
    """Return the namespace of a part."""
    return {elements.tokens[elements.root].space}
