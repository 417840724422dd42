"""Messages of ICU among the parts of a text: `{n, plural, one {# day} other {# days}}`.

Source: Unicode ICU, "Formatting Messages", and the message syntax of its `MessageFormat`.
"""

import re
from collections.abc import Iterator
from enum import Enum

from weft.documents.document import Kind
from weft.documents.inline import Piece

Part = Piece | str
"""A piece, or a stretch that stays where it is and ends what is before it."""

_HEAD = re.compile(r"\{\s*+[\w.]++\s*+,\s*+(?:plural|select|selectordinal)\s*+,")
_BRACE = re.compile(r"[{}]")
_NUMBER = re.compile(r"((?<!\w)#(?!\w))")


class _Inside(Enum):
    """The places that braces make: a choice, a text of it, anything else."""

    CHOICE = "choice"
    BRANCH = "branch"
    OTHER = "other"


def divided_choices(parts: list[Part]) -> list[Part]:
    """Return parts in which the texts that a message chooses from stand by themselves.

    A choice amid other words stays, and so does one whose braces do not fit together.
    """
    if not any(isinstance(part, Piece) and _HEAD.search(part.raw) for part in parts):
        return parts
    divider = _Divider()
    for part in parts:
        divider.add(part)
    if divider.opened or divider.has_words_outside:
        return parts
    return list(_numbered(divider.parts))


class _Divider:
    """Goes through the parts of a text once."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._words: list[str] = []
        self.opened: list[_Inside] = []
        self.num_branches = 0  # that are open
        self.has_words_outside = False

    @property
    def parts(self) -> list[Part]:
        """Return the parts that were added, divided."""
        self._end_words()
        return self._parts

    def add(self, part: Part) -> None:
        """Add a part."""
        if isinstance(part, str):
            self._stay(part)
        elif part.kind is not None and self.opened[-1:] == [_Inside.CHOICE]:
            self._stay(part.raw)
        elif part.kind is not None:
            self._end_words()
            self._parts.append(part)
        else:
            self._add_text(part.raw)

    def _add_text(self, raw: str) -> None:
        place = 0
        while found := _BRACE.search(raw, place):
            self._add_between(raw[place : found.start()])
            head = _HEAD.match(raw, found.start())
            place = head.end() if head else found.end()
            self._add_brace(raw[found.start() : place], head is not None)
        self._add_between(raw[place:])

    def _add_brace(self, raw: str, is_head: bool) -> None:
        inside = self.opened[-1] if self.opened else _Inside.OTHER
        if raw == "}":
            closed = self.opened.pop() if self.opened else _Inside.OTHER
            self.num_branches -= closed is _Inside.BRANCH
        else:
            closed = _Inside.CHOICE if is_head else _Inside.OTHER
            if inside is _Inside.CHOICE:
                closed = _Inside.BRANCH
            self.opened.append(closed)
            self.num_branches += closed is _Inside.BRANCH
        if closed is _Inside.OTHER:
            self._words.append(raw)
        else:
            self._stay(raw)

    def _add_between(self, raw: str) -> None:
        """Add text without braces."""
        if self.opened[-1:] == [_Inside.CHOICE]:
            self._stay(raw)
            return
        if not self.num_branches:
            self.has_words_outside |= any(map(str.isalpha, raw))
        self._words.append(raw)

    def _stay(self, raw: str) -> None:
        self._end_words()
        if raw:
            self._parts.append(raw)

    def _end_words(self) -> None:
        if words := "".join(self._words):
            self._parts.append(Piece(words))
        self._words = []


def _numbered(parts: list[Part]) -> Iterator[Part]:
    """Yield parts of a choice in which `#`, which stands for its number, is no word."""
    for part in parts:
        if isinstance(part, str) or part.kind is not None:
            yield part
            continue
        for raw in filter(None, _NUMBER.split(part.raw)):
            yield Piece(raw, Kind.KEPT if raw == "#" else None)
