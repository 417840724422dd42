"""Documents of several members of an archive, in which some stretches are written anew.

A member is stretches that stay and others that a translation changes. Where nothing of a member
changes it is the same to the last byte.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol, Union

from weft.documents.document import (
    Note,
    Segment,
    TextDocument,
    Written,
    refuse_other_number,
)
from weft.documents.formats.office.archive import Archive
from weft.documents.formats.xml.tokens import XmlToken

# what XML cannot hold, not even by a reference
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

Parts = Sequence[Union[str, "Stretch"]]
WriteParts = Callable[[Parts], str]
# how a stretch is written, by its text with the translations in it and what they are
Render = Callable[[str, Sequence[Written], WriteParts], str]


@dataclass(frozen=True)
class Stretch:
    """A stretch of a member that its translation changes.

    `parts` is how it stands, with the stretches inside it. `text` is a notation of it with its
    segments, which `render` writes as the format does; without `render` it is the stretch itself.
    """

    parts: Parts
    text: TextDocument
    place: str
    render: Render | None = None

    def place_of(self, number: int) -> str:
        """Return where one of its segments stands; in a whole text, on which line."""
        return self.place if self.render else f"{self.place}, {self.text.place(number)}"


@dataclass(frozen=True)
class Member:
    """A member of an archive in which something is translated, or changed for the language."""

    name: str
    parts: Parts
    encoding: str = "utf-8"


class Additions(Protocol):
    """Members that change by how others are written."""

    def begin(self) -> None:
        """Make ready for a writing of the document."""

    def members(self) -> Mapping[str, bytes]:
        """Return what the writing has added."""


class PackageDocument:
    """A document that is an archive."""

    def __init__(
        self,
        content: bytes,
        archive: Archive,
        members: Sequence[Member],
        notes: Sequence[Note] = (),
        additions: Additions | None = None,
    ) -> None:
        """Take the members in the order in which a reader meets them."""
        self._content = content
        self._archive = archive
        self._members = members
        self._additions = additions
        self.notes = tuple(notes)
        self._stretches = [
            stretch for member in members for stretch in _stretches(member.parts)
        ]
        self.segments: tuple[Segment, ...] = tuple(
            segment for stretch in self._stretches for segment in stretch.text.segments
        )
        self._firsts = list(
            accumulate(
                (len(stretch.text.segments) for stretch in self._stretches), initial=0
            )
        )

    def place(self, number: int) -> str:
        """Return where a segment stands."""
        which = bisect_right(self._firsts, number) - 1
        return self._stretches[which].place_of(number - self._firsts[which])

    def write(self, translations: Sequence[Written]) -> bytes:
        """Return the archive with each segment's source replaced."""
        refuse_other_number(translations, self.segments)
        if self._additions:
            self._additions.begin()
        writer = _Writer(self._stretches, translations)
        changed = {}
        for member in self._members:
            text = writer.write(member.parts)
            content = text.encode(member.encoding, "xmlcharrefreplace")
            if content != self._archive.members[member.name]:
                changed[member.name] = content
        if self._additions:
            changed.update(self._additions.members())
        return self._archive.written(changed) if changed else self._content


class _Writer:
    """Writes stretches with their translations."""

    def __init__(
        self, stretches: Sequence[Stretch], translations: Sequence[Written]
    ) -> None:
        self._own: dict[int, Sequence[Written]] = {}
        place = 0
        for stretch in stretches:
            after = place + len(stretch.text.segments)
            self._own[id(stretch)] = translations[place:after]
            place = after

    def write(self, parts: Parts) -> str:
        return "".join(
            part if isinstance(part, str) else self._stretch(part) for part in parts
        )

    def _stretch(self, stretch: Stretch) -> str:
        own = self._own[id(stretch)]
        sources = [segment.source for segment in stretch.text.segments]
        if [written.text for written in own] == sources:
            return self.write(stretch.parts)
        own = [
            written if written.text == source else _cleaned(written)
            for written, source in zip(own, sources, strict=True)
        ]
        notation = stretch.text.write(own)
        if stretch.render is None:
            return notation
        return stretch.render(notation, own, self.write)


def _cleaned(written: Written) -> Written:
    return replace(written, text=_NO_XML.sub("", written.text))


def parts_of(
    tokens: Sequence[XmlToken],
    found: Mapping[int, tuple[int, Stretch]],
    start: int,
    stop: int,
) -> Parts:
    """Return some tokens as what stays and what is translated.

    A stretch is found by the place of its first token, with the place after its last.
    """
    parts: list[str | Stretch] = []
    kept: list[str] = []
    place = start
    while place < stop:
        if place in found:
            parts.append("".join(kept))
            kept = []
            place, stretch = found[place]
            parts.append(stretch)
        else:
            kept.append(tokens[place].raw)
            place += 1
    parts.append("".join(kept))
    return parts


def _stretches(parts: Parts) -> Iterator[Stretch]:
    """Yield the stretches of a member, each before those in it."""
    for part in parts:
        if isinstance(part, Stretch):
            yield part
            yield from _stretches(part.parts)
