"""Documents of two languages: units with a source, and a target that may still be missing.

The text of the file stays; a unit that is translated is a few edits of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

from weft.data.languages import canonical, primary
from weft.documents.document import (
    Doubt,
    FileDocument,
    Kind,
    Note,
    Reading,
    Segment,
    TextDocument,
    Written,
    refuse_other_number,
)
from weft.documents.formats.bilingual.content import CDATA
from weft.documents.formats.xml.tree import Edit, XmlTree, allowed, edited
from weft.documents.placeholders import find_choices
from weft.errors import UsageError

Edits = Callable[[Sequence[Written]], Iterable[Edit]]


@dataclass(frozen=True)
class Unit:
    """A unit without a translation.

    `contents` are what its targets will be, with the source's words as segments; `place` is where
    it stands in the file. `edits` puts the targets into the file, with the doubts of them.
    """

    contents: tuple[TextDocument, ...]
    place: int
    edits: Edits

    @property
    def segments(self) -> Iterator[Segment]:
        """Yield the segments of its contents."""
        for content in self.contents:
            yield from content.segments

    def written(
        self, translations: Iterator[Written], encoding: str
    ) -> Iterator[Written]:
        """Yield its targets, with as many translations as there are segments in each."""
        for content in self.contents:
            own = list(islice(translations, len(content.segments)))
            pairs = zip(content.segments, own, strict=True)
            safe = [safely_written(*pair, encoding) for pair in pairs]
            yield Written(content.write(safe), joined(own))


@dataclass(frozen=True)
class Bilingual:
    """A document of two languages.

    `stated` are the edits by which the file says its languages. As long as no unit has a
    translation other than its source, the file stays as it is; a unit of which nothing is left
    does so, too.
    """

    tree: XmlTree
    units: tuple[Unit, ...]
    stated: tuple[Edit, ...] = ()
    own_notes: tuple[Note, ...] = ()

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes of its reader, and those on words that are kept amid others."""
        return (*self.own_notes, *self._kept_words())

    def _kept_words(self) -> Iterator[Note]:
        """Yield notes on words that are kept within a segment."""
        for number, segment in enumerate(self.segments):
            kept = [item.raw for item in segment.items if item.kind is Kind.KEPT]
            if any(any(find_choices(raw)) for raw in kept):
                yield Note(self.place(number), "the choice in it is not translated")
            if any(raw.startswith(CDATA[0]) for raw in kept):
                yield Note(self.place(number), "its section of CDATA is not translated")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of all units."""
        return tuple(chain.from_iterable(unit.segments for unit in self.units))

    @cached_property
    def _places(self) -> list[int]:
        """Return where the unit of each segment stands."""
        found: list[int] = []
        for unit in self.units:
            found += [unit.place for _ in unit.segments]
        return found

    def place(self, number: int) -> str:
        """Return the line in which a segment's unit begins."""
        return f"line {self.tree.line(self._places[number])}"

    def write(self, translations: Sequence[Written]) -> bytes:
        """Return the file's bytes with the targets of all units."""
        refuse_other_number(translations, self.segments)
        text = self.tree.text
        pairs = zip(translations, self.segments, strict=True)
        if any(written != Written(segment.source) for written, segment in pairs):
            text = edited(text, self._edits(translations))
        whole = TextDocument((), (text,))
        return FileDocument(whole, self.tree.encoding, has_references=True).write([])

    def _edits(self, translations: Sequence[Written]) -> list[Edit]:
        edits = list(self.stated)
        waiting = iter(translations)
        for unit in self.units:
            targets = list(unit.written(waiting, self.tree.encoding))
            if any(target.text.strip() for target in targets):
                edits += unit.edits(targets)
        return edits


def safely_written(segment: Segment, written: Written, encoding: str) -> Written:
    """Return what is written without what would end the text that it is in.

    A section of CDATA has no references: for a character that the encoding lacks it is interrupted.
    """
    text = allowed(written.text)
    is_cdata = "<" not in segment.escapes
    if is_cdata and written.text != segment.source:
        text = text.replace(CDATA[1], f"]]{CDATA[1]}{CDATA[0]}>")
        lacking = {character for character in text if not _has(encoding, character)}
        for character in lacking:
            reference = f"{CDATA[1]}&#{ord(character)};{CDATA[0]}"
            text = text.replace(character, reference)
    return replace(written, text=text)


def _has(encoding: str, character: str) -> bool:
    """Return whether an encoding has a character."""
    return character.isascii() or bool(character.encode(encoding, "ignore"))


def joined(translations: Sequence[Written]) -> Doubt:
    """Return the doubt of a unit: all remarks, and the least confidence; what a memory offers for
    parts of a unit is not offered for the whole.
    """
    if len(translations) == 1:
        return translations[0].doubt
    remarks = chain.from_iterable(written.doubt.remarks for written in translations)
    found = [written.doubt.confidence for written in translations]
    known = [confidence for confidence in found if confidence is not None]
    taken = {written.doubt.taken for written in translations}
    return Doubt(
        tuple(dict.fromkeys(remarks)),
        min(known, default=None),
        taken=taken.pop() if len(taken) == 1 else "",
    )


def remark_of(doubt: Doubt) -> str:
    """Return what is said of a doubtful translation."""
    remarks = list(doubt.remarks)
    if doubt.confidence is not None:
        remarks.append(f"Confidence: {doubt.confidence:.0%}.")
    return allowed(" ".join(remarks))


def is_other(stated: str, asked: str) -> bool:
    """Return whether two known languages differ by more than script and region."""
    if not canonical(stated) or not canonical(asked):
        return False
    return primary(stated) != primary(asked)


def language_of(stated: str, asked: str) -> str:
    """Return the language that a file is to state: that which is asked for, unless it states it."""
    return asked if asked and (not stated or is_other(stated, asked)) else stated


def refuse_other_languages(
    reading: Reading, line: int, source: str, target: str
) -> None:
    """Raise UsageError where a file states other languages than those of the translation.

    What it states is "" where it states nothing, and the target where it has nothing in it yet.
    """
    where = f"{reading.name}:{line}"
    if is_other(source, reading.source):
        raise UsageError(
            f"{where}: is in {source}, not in {reading.source}; translate it from {source}"
        )
    if is_other(target, reading.target):
        raise UsageError(
            f"{where}: has translations into {target}, not into {reading.target}; translate the file of {reading.target}"
        )
