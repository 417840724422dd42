"""Rows of text with their origin: the base of parallel text, documents and labelled text."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from weft.data.column import LARGE, Column

C = TypeVar("C", bound="Corpus")
_BYTES = 256  # different ones


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Rows of text, each with the file and the line that it is from.

    `COLUMNS` names the lists that a kind of text has beside these, with one value a row. `lines`
    counts from 1; `file_of` is each row's place in `files`. `dropped` counts by reason what reading
    left out, `notes` say what it took for granted. Where rows are many, texts are a `Column` on
    disk, and numbers are in an array.
    """

    COLUMNS: ClassVar[tuple[str, ...]]

    lines: MutableSequence[int]
    files: list[str]
    file_of: MutableSequence[int]
    dropped: dict[str, int]
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, i: int) -> str:
        """Say where row i begins: `file:line`."""
        number = self.file_of[i]
        file = self.files[number]
        return f"{file}:{self.lines[i]}"

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return what stands in each row."""
        columns = [getattr(self, name) for name in self.COLUMNS]
        return zip(*columns, strict=True)

    def select(self, indices: Iterable[int]) -> Self:
        """Return the rows at these indices, in this order, without what reading said of all."""
        order: Any = indices
        if not isinstance(indices, np.ndarray):
            order = list(indices)
        columns = (*self.COLUMNS, "lines", "file_of")
        rows: dict[str, Any] = {}
        for name in columns:
            values = getattr(self, name)
            rows[name] = _picked(values, order)
        return replace(self, **rows, dropped={}, notes=[])

    def sample(self, most: int) -> Self:
        """Return at most `most` rows, spread over all."""
        count = len(self)
        rows = spread(count, most)
        return self.select(rows)


def _picked(values: Any, order: Sequence[int]) -> Any:
    """Return the values at these places."""
    if isinstance(values, Column):
        return values.at(np.asarray(order))
    if isinstance(values, array):
        chosen = np.asarray(values)[order]
        return array(values.typecode, chosen.tobytes())
    return [values[i] for i in order]


def join(parts: Sequence[C], **own: Any) -> C:
    """Return one corpus of the rows of all parts, in their order.

    `own` are fields of its kind that are not those of the first part.
    """
    joined: dict[str, Any] = {"notes": []}
    for name in parts[0].COLUMNS:
        if name not in own:
            joined[name] = [value for part in parts for value in getattr(part, name)]
    files: list[str] = []
    total = sum(map(len, parts))
    lines = numbers((), total)
    file_of = numbers((), total, sum(len(part.files) for part in parts))
    dropped = Counter[str]()
    for part in parts:
        joined["notes"].extend(part.notes)
        lines.extend(part.lines)
        before = len(files)
        files.extend(part.files)
        file_of.extend(before + file for file in part.file_of)
        dropped.update(part.dropped)
    joined["lines"] = lines
    joined["files"] = files
    joined["file_of"] = file_of
    joined["dropped"] = dict(dropped)
    joined.update(own)
    return replace(parts[0], **joined)


def numbers(
    values: Iterable[int], count: int, kinds: int = 2**31
) -> MutableSequence[int]:
    """Return a number for each of `count` rows: as a list, or an array where rows are many, of
    bytes where there are few `kinds` of numbers.
    """
    held: MutableSequence[int] = []
    if count >= LARGE:
        held = array("B" if kinds <= _BYTES else "i")
    held.extend(values)
    return held


def spread(count: int, most: int) -> list[int]:
    """Return the numbers of at most `most` of `count` rows, spread over all."""
    size = min(count, most)
    return [i * count // size for i in range(size)]


def reasons(dropped: dict[str, int]) -> str:
    """List the reasons for which rows were left out, each with its count; empty without any."""
    counts = sorted(dropped.items())
    return ", ".join(f"{reason}: {count}" for reason, count in counts)
