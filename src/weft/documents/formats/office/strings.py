"""Strings of SpreadsheetML, those that cells share and those in a cell: plain ones, and of runs.

Source: ECMA-376, part 1, section 18.4.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.documents.document import Kind, Written
from weft.documents.formats.office.flow import Event, Flow, Look, divided, read_flow
from weft.documents.formats.office.package import Stretch, WriteParts
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tree import prefix_of

# a line's end within a cell, or a character as this format writes what XML cannot
_MARK = re.compile(r"\r?\n|&#(?:10|x0*[aA]|13|x0*[dD]);|_x[0-9A-Fa-f]{4}_")
_LINE_ENDS = {"_x000d_", "_x000a_"}


@dataclass(frozen=True)
class _String:
    """A string as it is written again."""

    flow: Flow
    prefix: str

    def render(
        self, notation: str, _written: Sequence[Written], write_parts: WriteParts
    ) -> str:
        return self.flow.write(notation, self._words, write_parts)

    def _words(self, raw: str) -> str:
        # always as text: what begins with = is no formula here
        is_bare = raw == raw.strip() and "\n" not in raw and "  " not in raw
        space = "" if is_bare else ' xml:space="preserve"'
        return f"<{self.prefix}t{space}>{raw}</{self.prefix}t>"


def read_string(elements: Elements, place: int, where: str) -> Stretch | None:
    """Read what is in a string; None where nothing of it is translated."""
    if elements.ends[place] == place:
        return None
    flow = read_flow(list(_events(elements, place)))
    if not flow.text.segments:
        return None
    prefix = prefix_of(elements.tokens[place].raw)
    string = _String(flow, prefix)
    parts = [elements.raw(place + 1, elements.ends[place])]
    return Stretch(parts, flow.text, where, string.render)


def plain_string(elements: Elements, place: int) -> str:
    """Return the text of a string, without how it is read aloud."""
    found = []
    for child in elements.children(place):
        name = elements.tokens[child].name
        if name == "r":
            text = elements.child(child, "t")
            found.append("" if text is None else elements.plain(text))
        elif name == "t":
            found.append(elements.plain(child))
    return "".join(found)


def is_read_aloud(elements: Elements, place: int) -> bool:
    """Return whether a string says how it is read aloud, in Japanese."""
    return elements.child(place, "rPh") is not None


def _events(elements: Elements, place: int) -> Iterator[Event]:
    for child in elements.children(place):
        name = elements.tokens[child].name
        if name == "t":
            yield from divided(elements.text(child), Look(), _MARK, _kind)
            continue
        text = elements.child(child, "t") if name == "r" else None
        if text is not None:
            look = _look(elements, child)
            yield from divided(elements.text(text), look, _MARK, _kind)


def _look(elements: Elements, place: int) -> Look:
    """Return the look of a run."""
    tag = elements.tokens[place].raw
    properties = elements.child(place, "rPr")
    raw = ""
    if properties is not None:
        raw = elements.raw(properties, elements.after(properties))
    end = f"</{prefix_of(tag)}r>"
    return Look(f"run {raw}", tag + raw, end)


def _kind(mark: str) -> Kind:
    is_character = mark.startswith("_") and mark.lower() not in _LINE_ENDS
    return Kind.KEPT if is_character else Kind.BREAK
