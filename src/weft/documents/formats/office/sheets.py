"""Sheets of SpreadsheetML, gone through once: which cell has which string, and what names texts.

A sheet may have a million cells, so that none of its tags is kept.
Source: ECMA-376, part 1, section 18.3.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from weft.documents.formats.xml.tokens import MAX_DEPTH, decode_xml_file
from weft.errors import UsageError

_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_NUMBER = re.compile("[0-9]{1,9}")
_FORMULAS = {"f", "formula", "formula1", "formula2"}
_COLLECTED = {*_FORMULAS, "v"}
_HEADER = re.compile(r"(?:odd|even|first)(?:Header|Footer)")


@dataclass
class Sheet:
    """A sheet: the first cell of each shared string, and what is found besides.

    `named` are texts that formulas, lists of allowed values and filters have in them.
    """

    cells: dict[int, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    has_inline: bool = False
    has_text_results: bool = False
    has_headers: bool = False
    has_prompts: bool = False


def literals(formula: str) -> set[str]:
    """Return the texts that stand in a formula between quotes."""
    return {text.replace('""', '"') for text in _LITERAL.findall(formula)}


def walk_sheet(content: bytes, name: str) -> Sheet:
    """Go through a sheet; raises UsageError, with the line, for what is not well-formed."""
    return _Walk(name).read(content)


class _Walk:
    """Collects what a sheet has, element by element."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sheet = Sheet()
        self._depth = 0
        self._cell: Mapping[str, str] = {}
        self._has_formula = False
        self._text: list[str] | None = None  # of the element that is collected
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        self._parser = parser

    def read(self, content: bytes) -> Sheet:
        text, _ = decode_xml_file(content, self._name)
        try:
            self._parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            raise UsageError(
                f"{self._name}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
            ) from None
        return self._sheet

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"elements are nested more than {MAX_DEPTH} deep")
        local = name.rpartition(" ")[2]
        if local == "c":
            self._cell = attributes
            self._has_formula = False
            self._sheet.has_inline |= attributes.get("t") == "inlineStr"
        elif local in _COLLECTED or _HEADER.fullmatch(local):
            self._text = []
        elif local == "filter":
            self._sheet.named.add(attributes.get("val", ""))
        elif local == "dataValidation":
            self._sheet.has_prompts |= not {"prompt", "error"}.isdisjoint(attributes)
        self._has_formula |= local == "f"

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._text is None:
            return
        local = name.rpartition(" ")[2]
        text = "".join(self._text)
        self._text = None
        if local in _FORMULAS:
            self._add_named(text, is_list=local == "formula1")
        elif local == "v":
            self._value(text)
        else:
            # a code such as &P or &"Arial" has a letter, too
            words = re.sub(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|.)', "", text)
            self._sheet.has_headers |= any(map(str.isalpha, words))

    def _add_named(self, formula: str, *, is_list: bool) -> None:
        for text in literals(formula):
            self._sheet.named.add(text)
            if is_list:
                self._sheet.named.update(map(str.strip, text.split(",")))

    def _value(self, text: str) -> None:
        kind = self._cell.get("t")
        if kind == "s" and _NUMBER.fullmatch(text.strip()):
            self._sheet.cells.setdefault(int(text), self._cell.get("r", ""))
        self._sheet.has_text_results |= kind == "str" and self._has_formula

    def _data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _refuse_declaration(self, *_: object) -> None:
        self._refuse("the document type has declarations, which are not read")

    def _refuse(self, what: str) -> NoReturn:
        line = self._parser.CurrentLineNumber
        raise UsageError(f"{self._name}:{line}: {what}; remove that")
