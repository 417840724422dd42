"""The cleaning of pairs.

Texts are mended one by one; then what the check finds is acted on until it finds nothing more: a
row that is dropped changes what is usual in the text. So to clean what was cleaned changes nothing.
A large text lies on disk, and is mended and checked in stretches.
"""

import itertools
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from weft.console import stages
from weft.data.base import numbers
from weft.data.check.finding import Finding
from weft.data.check.pairs import PairText, look_over_pairs
from weft.data.clean.cleaned import Cleaned, doomed
from weft.data.clean.mended import Mended, Pair, mended_pair
from weft.data.clean.realigning import Joins, join_again
from weft.data.clean.record import Record
from weft.data.clean.rules import SHIFTED, SWAPPED, Choice
from weft.data.clean.stretches import InStretches, mended_in_stretches
from weft.data.column import Growing
from weft.data.corpus import (
    ParallelText,
    join_pairs,
    measured,
    open_pairs,
    split_at_comma,
)
from weft.data.equals import places_of, sorted_once
from weft.data.formats.aligned import read_padded
from weft.data.formats.pairs import OpenPairs
from weft.data.formats.row import BOTH_EMPTY, EMPTY_LINE, PairRow, on_one_line
from weft.data.formats.shards import shards_of
from weft.data.measures import hash_texts
from weft.data.split import fold
from weft.errors import DataError

HeldOut = Mapping[str, ParallelText]
"""Dev and test, by the rules that keep them apart from training text."""


def clean_pairs(
    data: Sequence[str],
    languages: tuple[str | None, str | None],
    choice: Choice,
    held_out: HeldOut,
) -> Cleaned[ParallelText]:
    """Read and clean pairs. Raises DataError as reading does, and where no pair is left."""
    record = Record()
    parts: list[ParallelText] = []
    seconds: dict[int, str] = {}
    for item in itertools.chain.from_iterable(map(_files_of, data)):
        stages.enter(f"reading {item}")
        first_file = sum(len(part.files) for part in parts)
        part = _read(item, languages, record)
        if len(part.files) > 1:
            seconds[first_file] = part.files[1]
        parts.append(part)
    text = join_pairs(parts, None, None)
    num_read = len(text) + record.unlisted.total()
    cleaner = _Cleaner(text, choice, record, seconds)
    stages.enter("mending the text")
    cleaner.mend()
    for name, part in held_out.items():
        if choice.does(name, "drop"):
            cleaner.drop_those_in(part, name)
    left = cleaner.resolve()
    return Cleaned(cleaner.text, record, left, num_read, text.notes)


def _files_of(item: str) -> list[str]:
    """Return one DATA; of a folder of shards each of its files."""
    paths = split_at_comma(item)
    shards = shards_of(paths[0]) if len(paths) == 1 else []
    return list(map(str, shards)) or [item]


def _read(
    item: str, languages: tuple[str | None, str | None], record: Record
) -> ParallelText:
    """Read all pairs of one DATA, also those with an empty side; what cannot be read is
    recorded.
    """
    paths = split_at_comma(item)
    opened = open_pairs(item, *languages)
    sides = Growing(2)
    lines = array("i")
    for line, *texts in stages.counted(_rows(paths, opened), "pairs"):
        sides.append(*map(on_one_line, texts))
        lines.append(line)
    if blank := opened.dropped.pop(EMPTY_LINE, 0):
        opened.dropped[BOTH_EMPTY] += blank
    record.unlisted.update(opened.dropped)
    src, tgt = sides.done()
    return ParallelText(
        src=src,
        tgt=tgt,
        lines=numbers(lines, len(lines)),
        files=list(map(str, paths)),
        file_of=numbers(itertools.repeat(0, len(lines)), len(lines), 1),
        dropped={},
        notes=[f"{item}: {note}" for note in opened.notes],
        src_lang=opened.languages[0],
        tgt_lang=opened.languages[1],
        by_unit=frozenset({0} if opened.by_unit else ()),
    )


def _rows(paths: Sequence[Path], opened: OpenPairs) -> Iterator[PairRow]:
    """Return the rows; of two files of nearly equal length, all lines of both."""
    if len(paths) == 1:
        return opened.rows
    src, tgt = paths
    return read_padded(src, tgt, opened.dropped)


class _Whole:
    """A text in memory as the check looks at it."""

    def __init__(self, text: ParallelText) -> None:
        self.text = text
        self._pairs = PairText(text)

    @cached_property
    def findings(self) -> list[Finding]:
        """Return what the check finds."""
        return look_over_pairs(self._pairs)

    @property
    def has_shifts(self) -> bool:
        """Return whether lines are out of step."""
        return bool(self._pairs.shifts)

    def joins(self) -> Joins:
        """Return the partners of all lines, of shifted ones others than those that they have."""
        pairs = self._pairs
        return join_again(pairs.alignment, pairs.shifts, self.text.file_of)


def _looked_at(text: ParallelText) -> InStretches | _Whole:
    return InStretches(text) if text.is_large else _Whole(text)


class _Cleaner:
    """Pairs that are cleaned as wholes; `seconds` are the second files of two, by the number of the
    first.
    """

    def __init__(
        self,
        text: ParallelText,
        choice: Choice,
        record: Record,
        seconds: Mapping[int, str],
    ) -> None:
        self.text = text
        self._choice = choice
        self._record = record
        self._seconds = seconds
        self._swapped: set[tuple[int, int]] = set()

    def mend(self) -> None:
        """Change each pair to what was meant; drop one with an empty side, or of which letters are
        lost.
        """
        sides = Growing(2)
        kept = array("q")
        pairs = zip(self.text.src, self.text.tgt, strict=True)
        for i, (pair, mended) in enumerate(zip(pairs, self._mended(), strict=True)):
            after: Pair | None = pair
            if mended is not None:
                rules, after = mended
                self._note(i, rules, pair, after)
            if after is not None:
                sides.append(*after)
                kept.append(i)
        self._replace(kept, sides)

    def _mended(self) -> Iterator[Mended | None]:
        """Yield what becomes of each pair."""
        text = self.text
        if text.is_large:
            return mended_in_stretches(text, self._choice)
        pairs = zip(text.src, text.tgt, strict=True)
        return (mended_pair(pair, self._choice) for pair in pairs)

    def _replace(self, kept: Iterable[int], sides: Growing) -> None:
        """Put other texts in the place of these pairs'; the rest goes."""
        src, tgt = sides.done()
        chosen = self.text.select(kept)
        self.text = replace(chosen, src=src, tgt=tgt, measures=None)

    def drop_those_in(self, part: ParallelText, rule: str) -> None:
        """Drop the pairs that a part has, but for case, spaces and marks."""
        folded = map(_folded, zip(part.src, part.tgt, strict=True))
        self.text = text = measured(self.text)
        if text.measures is not None:
            hashes = hash_texts(map("\t".join, folded))
            found = places_of(sorted_once(hashes), text.measures.row).tolist()
        else:
            held = set(folded)
            pairs = enumerate(zip(text.src, text.tgt, strict=True))
            found = [i for i, pair in pairs if _folded(pair) in held]
        self._drop(dict.fromkeys(found, rule))

    def resolve(self) -> list[Finding]:
        """Check and change the text until there is nothing to do; return what is found then."""
        while True:
            self._refuse_nothing()
            stages.enter("checking the text")
            looked = _looked_at(self.text)
            self.text = looked.text
            if self._choice.does(SHIFTED, "mend") and looked.has_shifts:
                self._realign(looked.joins())
                continue
            findings = looked.findings
            rows = doomed(findings, self._choice)
            swapped = self._swap(findings, rows)
            if not rows and not swapped:
                return findings
            self._drop(rows)

    def _refuse_nothing(self) -> None:
        if not len(self.text):
            files = ", ".join(self.text.files)
            counts = self._record.counts()
            listed = ", ".join(f"{n['dropped']:,} {name}" for name, n in counts.items())
            raise DataError(
                f"{files}: no pair is left (dropped: {listed}); weft check says what is wrong with the text"
            )

    def _realign(self, joins: Joins) -> None:
        """Put shifted stretches in step; lines that are left over are dropped.

        As many are left on each side, and a source and a target are one row less.
        """
        text = self.text
        left_tgt = set(joins.left_tgt)
        for i in joins.left_src:
            tgt = text.tgt[i] if i in left_tgt else ""
            left_tgt.discard(i)
            self._note(i, (SHIFTED,), (text.src[i], tgt), None)
        for i in sorted(left_tgt):
            row = ("", text.tgt[i])
            where = self._where_tgt(i)
            self._record.drop(self._place(i), where, SHIFTED, row, other_half=True)
        moved = np.flatnonzero(joins.src != joins.tgt)
        for i, j in zip(
            joins.src[moved].tolist(), joins.tgt[moved].tolist(), strict=True
        ):
            before = (text.src[i], text.tgt[i])
            self._note(i, (SHIFTED,), before, (text.src[i], text.tgt[j]))
        joined = text.select(joins.src.tolist())
        beside = text.select(joins.tgt.tolist())
        self.text = replace(joined, tgt=beside.tgt, measures=None)

    def _swap(self, findings: Sequence[Finding], rows: dict[int, str]) -> bool:
        """Turn round pairs that are the wrong way round; one that was before is dropped.

        Returns whether any was turned.
        """
        if not self._choice.does(SWAPPED, "mend"):
            return False
        text = self.text
        found = [f for f in findings if f.code == SWAPPED]
        turned: set[int] = set()
        for i in found[0].rows if found else ():
            place = self._place(i)
            if place in self._swapped:
                rows.setdefault(i, SWAPPED)
            elif i not in rows:
                self._swapped.add(place)
                pair = (text.src[i], text.tgt[i])
                self._note(i, (SWAPPED,), pair, (pair[1], pair[0]))
                turned.add(i)
        if turned:
            self._turn(turned)
        return bool(turned)

    def _turn(self, turned: Collection[int]) -> None:
        """Put source and target of these pairs in each other's place."""
        sides = Growing(2)
        for i, (src, tgt) in enumerate(zip(self.text.src, self.text.tgt, strict=True)):
            if i in turned:
                sides.append(tgt, src)
            else:
                sides.append(src, tgt)
        self._replace(range(len(self.text)), sides)

    def _drop(self, rows: Mapping[int, str]) -> None:
        text = self.text
        for i in sorted(rows):
            self._note(i, (rows[i],), (text.src[i], text.tgt[i]), None)
        self.text = text.select(i for i in range(len(text)) if i not in rows)

    def _note(
        self, i: int, rules: Sequence[str], before: Pair, after: Pair | None
    ) -> None:
        """Record what became of a pair."""
        place = self._place(i)
        where = self.text.where(i)
        if after is None:
            self._record.drop(place, where, rules[0], before)
        else:
            self._record.mend(place, where, rules, before, after)

    def _place(self, i: int) -> tuple[int, int]:
        return self.text.file_of[i], self.text.lines[i]

    def _where_tgt(self, i: int) -> str:
        """Say where a target line stands: of two files in the second."""
        second = self._seconds.get(self.text.file_of[i])
        return (
            self.text.where(i) if second is None else f"{second}:{self.text.lines[i]}"
        )


def _folded(pair: Pair) -> Pair:
    return fold(pair[0]), fold(pair[1])
