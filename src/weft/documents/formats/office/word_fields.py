"""Fields of WordprocessingML: their code stays, and their result is text or stands for a number.

Source: ECMA-376, part 1, section 17.16.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from weft.documents.document import Kind
from weft.documents.formats.office.flow import NO_LOOK, Edge, Event, Look, Point, Words
from weft.documents.formats.office.package import Parts, Stretch
from weft.documents.formats.xml.tokens import decode_xml

# whose results are words of the document, or of its title
_TRANSLATED = {"HYPERLINK", "REF", "TOC", "INDEX", "QUOTE", "IF", "FORMTEXT"}
_TRANSLATED |= {"TITLE", "SUBJECT", "STYLEREF"}
# whose results are words that another place of the document, or a program, has
_SHOWN = {"DOCVARIABLE", "DOCPROPERTY", "INCLUDETEXT", "AUTOTEXT", "FILLIN", "COMMENTS"}
_WORD = re.compile(r"\s*(\w+)")


@dataclass(frozen=True)
class FieldMark(Point):
    """A mark of a field: where it begins, is separated from its result or ends, or some code."""

    told: str = ""
    code: str = ""


@dataclass
class _Field:
    """A field that is open: the places of its first event, and of that after its code."""

    begin: int
    code: str = ""
    result: int | None = None
    edges: int = 0


def keeps_result(code: str) -> bool:
    """Return whether the result of a field is not translated: a number, a date, a name."""
    found = _WORD.match(code)
    return found is None or found[1].upper() not in _TRANSLATED


def with_fields(
    events: Iterable[Event], note: Callable[[str], None]
) -> Sequence[Event]:
    """Make one point of each field whose result is kept, and a pair around that of another.

    Marks of a field that does not end in the paragraph stay points. `note` is called with a kept
    result that is words.
    """
    return _FieldReader(note).read(events)


class _FieldReader:
    """Goes through the events of a paragraph once."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._events: list[Event] = []
        self._fields: list[_Field] = []
        self._edges = [-1]  # the pairs that are open
        self._pairs = count(-2, -1)  # the reader of the paragraph counts from 0 up

    def read(self, events: Iterable[Event]) -> Sequence[Event]:
        for event in events:
            if isinstance(event, Edge) and not event.may_part:
                if event.is_end:
                    self._edges.pop()
                else:
                    self._edges.append(event.pair)
            self._events.append(event)
            if isinstance(event, FieldMark):
                self._mark(event)
        return self._events

    def _mark(self, mark: FieldMark) -> None:
        if mark.told == "begin":
            begin = len(self._events) - 1
            self._fields.append(_Field(begin, edges=self._edges[-1]))
        if not self._fields:
            return
        field = self._fields[-1]
        if mark.told == "separate":
            field.result = len(self._events)
        elif mark.told == "end":
            self._fields.pop()
            self._end(field)
        elif field.result is None:
            field.code += mark.code

    def _end(self, field: _Field) -> None:
        """Replace the events of a field that ends here; not of one that begins elsewhere."""
        if field.edges != self._edges[-1]:
            return
        events = self._events[field.begin :]
        if field.result is None or keeps_result(field.code):
            self._note_result(field)
            self._events[field.begin :] = [Point(_parts(events), Kind.KEPT)]
            return
        code = self._events[field.begin : field.result]
        result = self._events[field.result : -1]
        if not all(isinstance(part, str) for part in _parts(code)):
            return
        pair = next(self._pairs)
        first = Edge(_raw(code), pair, may_part=True)
        last = Edge(_raw(events[-1:]), pair, True, may_part=True)
        self._events[field.begin :] = [first, *result, last]

    def _note_result(self, field: _Field) -> None:
        found = _WORD.match(field.code)
        if found is None or found[1].upper() not in _SHOWN:
            return
        result = self._events[field.result :]
        raw = "".join(event.raw for event in result if isinstance(event, Words))
        if any(map(str.isalpha, text := decode_xml(raw))):
            self._note(text)


def _raw(events: Sequence[Event]) -> str:
    return "".join(part for part in _parts(events) if isinstance(part, str))


def _parts(events: Sequence[Event]) -> Parts:
    """Write events as they stood, each in a run of its own."""
    parts: list[str | Stretch] = []
    for event in events:
        if isinstance(event, Edge):
            parts.append(event.raw)
            continue
        look = event.look or NO_LOOK
        parts.append(look.start)
        if isinstance(event, Words):
            parts.append(_text(event.raw, look))
        else:
            parts += event.parts
        parts.append(look.end)
    return parts


def _text(raw: str, look: Look) -> str:
    prefix = look.end.removeprefix("</").removesuffix("r>")
    return f'<{prefix}t xml:space="preserve">{raw}</{prefix}t>'
