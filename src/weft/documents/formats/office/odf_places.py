"""The paragraphs of a document of OpenDocument: which are translated, and where they stand."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weft.documents.document import Note
from weft.documents.formats.office.sheets import literals
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tokens import Xml, XmlToken

_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE = f"{_NAMES}office:1.0"
_TEXT = f"{_NAMES}text:1.0"
_TABLE = f"{_NAMES}table:1.0"
_DRAW = f"{_NAMES}drawing:1.0"
_HEADERS = {
    "header",
    "footer",
    "header-left",
    "footer-left",
    "header-first",
    "footer-first",
}
_LETTERS = 26
_NUMBER = re.compile("[0-9]{1,8}")
_LONGEST_SHOWN = 40


class Places:
    """Goes through a member once.

    `paragraphs` has where each that is translated stands, by its tag; `deleted` the text of tracked
    changes by their numbers.
    """

    def __init__(self, elements: Elements, kind: str) -> None:
        """Find all paragraphs of a member of a kind."""
        self._elements = elements
        self._kind = kind
        self.paragraphs: dict[int, str] = {}
        self.deleted: dict[str, str] = {}
        self.notes: list[Note] = []
        self._cursor = _Cursor()
        self._counts = {"comments": 0, "described": 0}
        self._named = _named_texts(elements) if kind == "spreadsheet" else set()
        self._walk()
        self._add_notes()

    def is_named(self, paragraph: int) -> bool:
        """Return whether formulas know a cell by this text, which stays."""
        text = self._elements.plain(paragraph)
        if text not in self._named:
            return False
        note = f"stays, as a formula or a filter names it: {text[:_LONGEST_SHOWN]}"
        self.notes.append(Note(self.paragraphs[paragraph], note))
        return True

    def _walk(self) -> None:
        elements = self._elements
        place = 0
        header_end = -1
        while place < len(elements.tokens):
            token = elements.tokens[place]
            place += 1
            if not token.opens:
                continue
            if self._is_left_out(place - 1, token):
                place = elements.after(place - 1)
                continue
            self._cursor.meet(token)
            if token.name in _HEADERS:
                header_end = elements.ends[place - 1]
            is_text = token.space == _TEXT and token.name in ("p", "h")
            if is_text and (self._kind != "styles" or place <= header_end):
                self.paragraphs[place - 1] = self._where()

    def _is_left_out(self, place: int, token: XmlToken) -> bool:
        """Return whether an element's paragraphs are not translated."""
        if token.space == _TEXT and token.name == "tracked-changes":
            self._find_deleted(place)
            return True
        if token.space == _OFFICE and token.name == "annotation":
            self._counts["comments"] += 1
            return True
        if token.name in ("title", "desc") and "svg" in token.space:
            self._counts["described"] += bool(self._elements.plain(place).strip())
            return True
        if token.space != _TABLE or token.name not in (
            "table-cell",
            "covered-table-cell",
        ):
            return False
        if _is_text_cell(token):
            return False
        self._cursor.meet(token)
        return True

    def _find_deleted(self, place: int) -> None:
        elements = self._elements
        for region in elements.children(place):
            attributes = elements.tokens[region].attributes
            deletion = elements.child(region, "deletion")
            if deletion is None:
                continue
            paragraphs = (
                elements.plain(child)
                for child in elements.children(deletion)
                if elements.tokens[child].space == _TEXT
            )
            text = " ".join(filter(None, paragraphs))
            keys = [value for name, value in attributes.items() if name.endswith(" id")]
            self.deleted.update(dict.fromkeys(keys, text))

    def _where(self) -> str:
        number = len(self.paragraphs) + 1
        return {
            "spreadsheet": self._cursor.cell,
            "presentation": self._cursor.slide,
            "styles": f"header or footer, paragraph {number}",
        }.get(self._kind, f"paragraph {number}")

    def _add_notes(self) -> None:
        if self._counts["comments"]:
            self.notes.append(Note("document", "comments stay as they are"))
        if number := self._counts["described"]:
            note = f"alternative texts of pictures stay: {number}"
            self.notes.append(Note("document", note))
        names = [name for name in self._cursor.sheets if not _is_given(name)]
        if self._kind == "spreadsheet" and names:
            note = f"names of sheets stay, as formulas name them: {', '.join(names)}"
            self.notes.append(Note("workbook", note))


@dataclass
class _Cursor:
    """Counts slides, sheets, rows and columns as they are met."""

    slides: int = 0
    in_notes: bool = False
    row: int = 0
    column: int = 0
    next_row: int = 1
    next_column: int = 1

    def __post_init__(self) -> None:
        self.sheets: list[str] = []

    @property
    def slide(self) -> str:
        """Return where a slide's text stands."""
        return f"slide {self.slides}" + (", notes" if self.in_notes else "")

    @property
    def cell(self) -> str:
        """Return where a cell's text stands."""
        sheet = self.sheets[-1] if self.sheets else ""
        return f"sheet {sheet}, cell {_letters(self.column)}{self.row}"

    def meet(self, token: XmlToken) -> None:
        """Go on to an element."""
        if token.space == _DRAW and token.name == "page":
            self.slides += 1
            self.in_notes = False
        elif token.name == "notes" and "presentation" in token.space:
            self.in_notes = True
        elif token.space == _TABLE:
            self._meet_table(token)

    def _meet_table(self, token: XmlToken) -> None:
        if token.name == "table":
            self.sheets.append(token.attributes.get(f"{_TABLE} name", ""))
            self.next_row = 1
        elif token.name == "table-row":
            self.row = self.next_row
            self.next_row += _repeated(token, "rows")
            self.next_column = 1
        elif token.name in ("table-cell", "covered-table-cell"):
            self.column = self.next_column
            self.next_column += _repeated(token, "columns")


def _repeated(token: XmlToken, what: str) -> int:
    number = token.attributes.get(f"{_TABLE} number-{what}-repeated", "1")
    return int(number) if _NUMBER.fullmatch(number) else 1


def _letters(column: int) -> str:
    found = ""
    while column > 0:
        column, letter = divmod(column - 1, _LETTERS)
        found = chr(ord("A") + letter) + found
    return found


def _is_text_cell(token: XmlToken) -> bool:
    """Return whether a cell has text of its own: no number, no date, no result of a formula."""
    attributes: Mapping[str, str] = token.attributes
    if f"{_TABLE} formula" in attributes or f"{_OFFICE} string-value" in attributes:
        return False
    return attributes.get(f"{_OFFICE} value-type", "string") == "string"


def _is_given(name: str) -> bool:
    """Return whether a sheet has the name that the program gave it."""
    return name.startswith("Sheet") and name.removeprefix("Sheet").isdecimal()


def _named_texts(elements: Elements) -> set[str]:
    """Return the texts that formulas, conditions, filters and pivot tables name cells by."""
    named: set[str] = set()
    for token in elements.tokens:
        if token.kind in (Xml.START, Xml.EMPTY):
            named.update(_named_in(token))
    return named


def _named_in(token: XmlToken) -> Iterator[str]:
    for name in ("formula", "condition", "expression"):
        yield from literals(token.attributes.get(f"{_TABLE} {name}", ""))
    if token.name in ("filter-condition", "filter-set-item"):
        yield token.attributes.get(f"{_TABLE} value", "")
    if token.name == "data-pilot-field":
        yield token.attributes.get(f"{_TABLE} source-field-name", "")
