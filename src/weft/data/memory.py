"""Translation memories: sources with the targets that they were given before.

A source is found again exactly, or with other numbers, or near another one. White space at its ends
and how much of it stands between words does not count, nor does the form of Unicode; case does.
"""

import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.console import stages
from weft.data.base import reasons
from weft.data.corpus import ParallelText, open_pairs, split_at_comma
from weft.data.formats import po, xliff
from weft.data.formats.pairs import OpenPairs, other_way
from weft.data.formats.row import EMPTY_SIDE, on_one_line
from weft.data.languages import UNKNOWN
from weft.data.near_index import NearIndex
from weft.data.nearness import nearness
from weft.data.substitution import form_of, has_slots, substituted
from weft.errors import DataError

Kind: TypeAlias = Literal["exact", "repaired", "near"]
_NEAREST = 0.99  # the score of what is the same but for case
_STATES = (xliff.TO_BE_REVIEWED, xliff.MACHINE_MADE, po.TO_BE_REVIEWED)
_MOST_DOUBTS = 5  # that are named one by one


@dataclass(frozen=True)
class Match:
    """A unit of a memory that was found for a text.

    `score` is how near its source is, from 0 to 1 (`nearness`): 1 for an exact match, at most 0.99
    for any other. `where` is its file and line. The target of a `repaired` one has the numbers and
    placeholders of the text in the place of its own; `source` is the unit's. `number` counts the
    units of a memory from 0.
    """

    source: str
    target: str
    score: float
    where: str
    kind: Kind
    number: int

    def to_json(self) -> dict[str, str | float]:
        """Return all but its number as a plain dictionary."""
        return {
            "source": self.source,
            "target": self.target,
            "score": self.score,
            "kind": self.kind,
            "where": self.where,
        }


class Texts:
    """Any number of texts, as bytes one after the other: a third of what Python's own take."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> str:
        found = self._bytes[self._ends[number] : self._ends[number + 1]]
        return found.decode("utf-8", "surrogatepass")

    def append(self, text: str) -> None:
        """Add a text."""
        self._bytes += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))

    def extend(self, others: "Texts") -> None:
        """Add other texts."""
        before = len(self._bytes)
        self._bytes += others._bytes
        self._ends.extend(before + end for end in others._ends[1:])


@dataclass(frozen=True)
class UnitPart:
    """A part of a unit that is a unit, too: without the markup that it has where it stands."""

    source: str
    target: str
    raw_source: str
    raw_target: str


PartsOf: TypeAlias = Callable[[str, str], Iterable[UnitPart]]
"""Returns the parts of a unit's source and target."""


@dataclass
class Units:
    """Sources and targets, and where each unit stands: the place of its file among `files`, and its
    line, or in the files `by_unit` its own number. The first units may be parts of later ones; of
    these there is what they are with their markup. Units that codes were taken out of are `coded`,
    and their sides are there with the marks of these, too.
    """

    files: list[str] = field(default_factory=list)
    by_unit: set[int] = field(default_factory=set)
    sources: Texts = field(default_factory=Texts)
    targets: Texts = field(default_factory=Texts)
    file_of: "array[int]" = field(default_factory=lambda: array("i"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    raw_sources: Texts = field(default_factory=Texts)
    raw_targets: Texts = field(default_factory=Texts)
    coded: "array[int]" = field(default_factory=lambda: array("q"))
    coded_sources: Texts = field(default_factory=Texts)
    coded_targets: Texts = field(default_factory=Texts)

    @property
    def num_parts(self) -> int:
        """Return how many of the units are parts of later ones."""
        return len(self.raw_sources)

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, source: str, target: str, file: int, line: int) -> None:
        """Add a unit."""
        self.sources.append(source)
        self.targets.append(target)
        self.file_of.append(file)
        self.lines.append(line)

    def add_marked(self, source: str, target: str) -> None:
        """Add the sides of the last unit with the marks of its codes."""
        self.coded.append(len(self) - 1)
        self.coded_sources.append(source)
        self.coded_targets.append(target)

    def with_parts(self, parts_of: PartsOf) -> "Units":
        """Return the units behind their parts, if they have any."""
        parts = Units(self.files, self.by_unit)
        coded = 0
        for number in range(len(self)):
            found = parts_of(self.sources[number], self.targets[number])
            parts._add_parts(found, self, number)
            if coded < len(self.coded) and self.coded[coded] == number:
                sides = self.coded_sources[coded], self.coded_targets[coded]
                parts._add_parts(parts_of(*sides), self, number)
                coded += 1
        if not parts.num_parts:
            return self
        parts.sources.extend(self.sources)
        parts.targets.extend(self.targets)
        parts.file_of.extend(self.file_of)
        parts.lines.extend(self.lines)
        return parts

    def _add_parts(
        self, found: Iterable[UnitPart], units: "Units", number: int
    ) -> None:
        """Add the parts of another one's unit."""
        for part in found:
            self.add(
                part.source, part.target, units.file_of[number], units.lines[number]
            )
            self.raw_sources.append(part.raw_source)
            self.raw_targets.append(part.raw_target)

    def where(self, number: int) -> str:
        """Say where a unit stands, as `ParallelText.where` does."""
        file = self.file_of[number]
        unit = " unit " if file in self.by_unit else ""
        return f"{self.files[file]}:{unit}{self.lines[number]}"


class ByHash:
    """Numbers of texts, found by hashes of these; two texts may have the same one."""

    def __init__(self, numbers: Iterable[tuple[int, str]]) -> None:
        hashes = array("q")
        own = array("i")
        for number, text in numbers:
            hashes.append(hash(text))
            own.append(number)
        order = np.argsort(np.frombuffer(hashes, np.int64), kind="stable")
        self.hashes = np.frombuffer(hashes, np.int64)[order]
        self.numbers = np.frombuffer(own, np.int32)[order]

    def find(self, text: str) -> list[int]:
        """Return the texts that may be this one, the last first."""
        key = hash(text)
        first = int(np.searchsorted(self.hashes, key, side="left"))
        last = int(np.searchsorted(self.hashes, key, side="right"))
        found: list[int] = self.numbers[first:last].tolist()
        return found[::-1]


class Memory:
    """Units: sources with their targets.

    Where a source has several targets the latest counts; `doubts` says where. `notes` are what was
    taken for granted in reading. The index of what is near is made when it is first needed.
    """

    def __init__(
        self, units: Units, tgt_lang: str = "", notes: Sequence[str] = ()
    ) -> None:
        self._units = units
        self._tgt_lang = tgt_lang
        self.notes = tuple(notes)
        sources = map(units.sources.__getitem__, range(len(units)))
        self._exact = ByHash(enumerate(map(normal, sources)))
        self._latest = self._find_latest()
        # the units that count, which have different sources
        self._kept = np.flatnonzero(self._latest == np.arange(len(self)))
        self.doubts = tuple(self._doubts())

    @classmethod
    def from_text(cls, text: ParallelText) -> "Memory":
        """Make a memory of pairs; unit n is pair n."""
        units = Units(text.files, set(text.by_unit))
        for row in zip(text.src, text.tgt, text.file_of, text.lines, strict=True):
            units.add(*row)
        return cls(units, text.tgt_lang)

    def __len__(self) -> int:
        return len(self._units)

    @property
    def num_whole(self) -> int:
        """Return how many units its files have: without the parts that became units, too."""
        return len(self) - self._units.num_parts

    def prepare(self) -> None:
        """Make all that queries need, which otherwise the first one of each kind makes."""
        for index in (self._by_form, self._index):
            assert index is not None

    def unit(self, number: int) -> Match:
        """Return a unit by its number, as an exact match of its source."""
        return self._match(number, 1.0, "exact")

    def exact(self, text: str) -> Match | None:
        """Return the latest unit whose source is the text."""
        wanted = normal(text)
        for number in self._exact.find(wanted):
            if normal(self._units.sources[number]) == wanted:
                return self._match(number, 1.0, "exact")
        return None

    def in_files(self, text: str) -> list[tuple[str, str]]:
        """Return the parts of units whose source is the text as they stand in their files, with
        markup, source and target: the latest first.
        """
        wanted = normal(text)
        units = self._units
        return [
            (units.raw_sources[number], units.raw_targets[number])
            for number in self._exact.find(wanted)
            if number < units.num_parts and self._source(number) == wanted
        ]

    def repaired(self, text: str) -> Match | None:
        """Return the latest unit whose source is the text but for numbers and placeholders, with
        those of the text in its target; None where that is not safe (`substituted`).
        """
        wanted = normal(text)
        form = form_of(wanted)
        if form == wanted:
            return None
        for number in self._by_form.find(form):
            source = normal(self._units.sources[number])
            target = self._units.targets[number]
            if form_of(source) != form:
                continue
            new = substituted(source, target, wanted, self._tgt_lang)
            if new is not None:
                score = min(nearness(source, wanted), _NEAREST)
                return replace(self._match(number, score, "repaired"), target=new)
        return None

    def near(
        self, text: str, count: int = 3, least: float = 0.5, exclude: int | None = None
    ) -> list[Match]:
        """Return at most `count` units whose sources are near a text, by a score of at least
        `least`: the nearest first, and of equally near ones the latest.

        The unit numbered `exclude` is left out, and so are others with the same source.
        """
        without = [] if exclude is None else [self._row_of(exclude)]
        found = self._index.find(text, count, least, without)
        return [self._near(int(self._kept[row]), text, score) for row, score in found]

    def best(
        self, text: str, least: float = 0.5, exclude: int | None = None
    ) -> Match | None:
        """Return the exact match of a text, else the nearest unit. `exclude` as in `near`."""
        exact = self.exact(text)
        is_excluded = exclude is not None and (
            exact is not None and exact.number == self._latest[exclude]
        )
        if exact is not None and not is_excluded:
            return exact
        return next(iter(self.near(text, 1, least, exclude)), None)

    def best_of_each(
        self,
        texts: Iterable[str],
        least: float = 0.5,
        exclude: Iterable[int | None] | None = None,
    ) -> Iterator[Match | None]:
        """Yield the best match of each text; `exclude` has the unit to leave out for each."""
        if exclude is None:
            return (self.best(text, least) for text in texts)
        pairs = zip(texts, exclude, strict=True)
        return (self.best(text, least, number) for text, number in pairs)

    def _match(self, number: int, score: float, kind: Kind) -> Match:
        source = self._units.sources[number]
        target = self._units.targets[number]
        return Match(source, target, score, self._units.where(number), kind, number)

    def _near(self, number: int, text: str, score: float) -> Match:
        if normal(self._units.sources[number]) == normal(text):
            return self._match(number, 1.0, "exact")
        return self._match(number, min(score, _NEAREST), "near")

    def _row_of(self, number: int) -> int:
        """Return the place of a unit in the index, or of the one that counts in its stead."""
        return int(np.searchsorted(self._kept, self._latest[number]))

    def _kept_sources(self) -> Iterator[str]:
        return map(self._units.sources.__getitem__, self._kept.tolist())

    @cached_property
    def _index(self) -> NearIndex:
        stages.enter(f"indexing {self.num_whole:,} units of memory")
        return NearIndex(self._kept_sources())

    @cached_property
    def _by_form(self) -> ByHash:
        """Find the units with numbers and placeholders by their sources without these."""
        sources = zip(self._kept.tolist(), self._kept_sources(), strict=True)
        return ByHash(
            (number, form_of(normal(source)))
            for number, source in sources
            if has_slots(source)
        )

    def _find_latest(self) -> NDArray[np.int32]:
        """Return for each unit the latest one with the same source, most often itself."""
        latest = np.arange(len(self), dtype=np.int32)
        hashes = self._exact.hashes
        numbers = self._exact.numbers
        for place in np.flatnonzero(hashes[1:] == hashes[:-1])[::-1].tolist():
            number = numbers[place]
            later = latest[numbers[place + 1]]
            if self._source(number) == self._source(later):
                latest[number] = later
        return latest

    def _source(self, number: int) -> str:
        return normal(self._units.sources[number])

    def _doubts(self) -> Iterator[str]:
        """Say where sources have several targets: of the first few, and of how many."""
        count = 0
        targets = self._units.targets
        for number in np.flatnonzero(self._latest != np.arange(len(self))).tolist():
            latest = int(self._latest[number])
            is_part = number < self._units.num_parts
            if is_part or targets[number] == targets[latest]:
                continue
            count += 1
            if count <= _MOST_DOUBTS:
                where = self._units.where(number)
                yield f"{where}: {self._units.where(latest)} has another target for its source, which is taken"
        if count > _MOST_DOUBTS:
            yield f"{count - _MOST_DOUBTS:,} more units have later targets for their sources"


def read_memory(
    data: Sequence[str],
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    parts_of: PartsOf | None = None,
) -> Memory:
    """Read a memory for two languages (BCP-47) from files of pairs, each as `read_pairs` does.

    The units of a later file are later ones. `parts_of` units become units, too, and count less.

    Raises DataError for what cannot be read as pairs, and for files without a unit.
    """
    units, read, notes = read_units(data, src_lang, tgt_lang)
    if parts_of is not None:
        units = units.with_parts(parts_of)
    return Memory(units, read, notes)


def read_units(
    data: Sequence[str], src_lang: str | None = None, tgt_lang: str | None = None
) -> tuple[Units, str, list[str]]:
    """Read the units of files of pairs; return them with the language of their targets and what
    reading took for granted. Raises as `read_memory`.
    """
    units = Units()
    notes: list[str] = []
    read = UNKNOWN
    for item in data:
        stages.enter(f"reading {item}")
        pairs = open_pairs(item, src_lang, tgt_lang)
        read = pairs.languages[1]
        notes += _read_units(item, pairs, units)
    return units, read, notes


def _read_units(item: str, pairs: OpenPairs, units: Units) -> Iterator[str]:
    """Add the units of a file, and yield what reading took for granted."""
    file = len(units.files)
    before = len(units)
    units.files.append(",".join(map(str, split_at_comma(item))))
    if pairs.by_unit:
        units.by_unit.add(file)
    empty = 0
    for line, source, target in stages.counted(pairs.rows, "units"):
        src = on_one_line(source)
        tgt = on_one_line(target)
        if src and tgt:
            units.add(src, tgt, file, line)
            if pairs.marked:
                units.add_marked(*pairs.marked)
        else:
            empty += 1
    if len(units) == before:
        dropped = dict(pairs.dropped) | {EMPTY_SIDE: empty}
        raise DataError(f"{item}: no unit with text on both sides ({reasons(dropped)})")
    states = {reason: pairs.dropped[reason] for reason in _STATES}
    skipped = {reason: count for reason, count in states.items() if count}
    if skipped:
        yield f"{item}: left out for their state: {reasons(skipped)}"
    to_train = f"; {other_way(pairs.languages)}"  # which a memory does not
    for note in pairs.notes:
        yield f"{item}: {note.removesuffix(to_train)}"


def normal(text: str) -> str:
    """Return a text in the form by which exact matches are found."""
    text = " ".join(text.split())
    return text if text.isascii() else unicodedata.normalize("NFC", text)
