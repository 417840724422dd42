"""The cleaning of pairs.

Texts are mended one by one; then what the check finds is acted on until it finds nothing more: a
row that is dropped changes what is usual in the text. So to clean what was cleaned changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weft.console import stages
from weft.data.check.finding import Finding
from weft.data.check.pairs import PairText, look_over_pairs
from weft.data.clean.cleaned import Cleaned, doomed
from weft.data.clean.mending import has_lost
from weft.data.clean.realigning import join_again
from weft.data.clean.record import Record
from weft.data.clean.rules import EMPTY, LOST, SHIFTED, SWAPPED, Choice
from weft.data.corpus import ParallelText, join_pairs, open_pairs, split_at_comma
from weft.data.formats.aligned import read_padded
from weft.data.formats.pairs import OpenPairs
from weft.data.formats.row import BOTH_EMPTY, EMPTY_LINE, PairRow, on_one_line
from weft.data.split import fold
from weft.errors import DataError

Pair = tuple[str, str]
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
    for item in data:
        stages.enter(f"reading {item}")
        first_file = sum(len(part.files) for part in parts)
        part = _Reader(item, languages, choice, record, first_file).read()
        if len(part.files) > 1:
            seconds[first_file] = part.files[1]
        parts.append(part)
    text = join_pairs(parts, None, None)
    cleaner = _Cleaner(text, choice, record, seconds)
    num_read = len(text) + record.num_dropped
    for name, part in held_out.items():
        if choice.does(name, "drop"):
            cleaner.drop_those_in(part, name)
    left = cleaner.resolve()
    return Cleaned(cleaner.text, record, left, num_read, text.notes)


class _Reader:
    """Reads the pairs of one DATA and mends them one by one."""

    def __init__(
        self,
        item: str,
        languages: tuple[str | None, str | None],
        choice: Choice,
        record: Record,
        first_file: int,
    ) -> None:
        self._item = item
        self._paths = split_at_comma(item)
        self._opened = open_pairs(item, *languages)
        self._choice = choice
        self._record = record
        self._first_file = first_file

    def read(self) -> ParallelText:
        """Return the pairs with text on both sides; the others are recorded."""
        src: list[str] = []
        tgt: list[str] = []
        lines: list[int] = []
        opened = self._opened
        for line, *sides in stages.counted(self._rows(opened), "pairs"):
            pair = self._mended(line, (on_one_line(sides[0]), on_one_line(sides[1])))
            if pair is not None:
                src.append(pair[0])
                tgt.append(pair[1])
                lines.append(line)
        if blank := opened.dropped.pop(EMPTY_LINE, 0):
            opened.dropped[BOTH_EMPTY] += blank
        self._record.unlisted.update(opened.dropped)
        return ParallelText(
            src=src,
            tgt=tgt,
            lines=lines,
            files=list(map(str, self._paths)),
            file_of=[0] * len(src),
            dropped={},
            notes=[f"{self._item}: {note}" for note in opened.notes],
            src_lang=opened.languages[0],
            tgt_lang=opened.languages[1],
            by_unit=frozenset({0} if opened.by_unit else ()),
        )

    def _rows(self, opened: OpenPairs) -> Iterator[PairRow]:
        """Return the rows; of two files of nearly equal length, all lines of both."""
        if len(self._paths) == 1:
            return opened.rows
        src, tgt = self._paths
        return read_padded(src, tgt, opened.dropped)

    def _mended(self, line: int, before: Pair) -> Pair | None:
        """Return a pair as it was meant; None for one that is dropped."""
        (src, tgt), rules = self._choice.mend_row(before)
        rule = self._choice.reason_to_drop(rules)
        unit = " unit " if self._opened.by_unit else ""
        where = f"{self._paths[0]}:{unit}{line}"
        place = (self._first_file, line)
        if not src or not tgt:
            rule = EMPTY
        elif self._choice.does(LOST, "mend") and has_lost(src + tgt):
            rule = LOST
        if rule:
            self._record.drop(place, where, rule, before)
            return None
        if rules:
            self._record.mend(place, where, rules, before, (src, tgt))
        return src, tgt


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

    def drop_those_in(self, part: ParallelText, rule: str) -> None:
        """Drop the pairs that a part has, but for case, spaces and marks."""
        held = set(map(_folded, zip(part.src, part.tgt, strict=True)))
        pairs = zip(self.text.src, self.text.tgt, strict=True)
        self._drop({i: rule for i, pair in enumerate(pairs) if _folded(pair) in held})

    def resolve(self) -> list[Finding]:
        """Check and change the text until there is nothing to do; return what is found then."""
        while True:
            self._refuse_nothing()
            stages.enter("checking the text")
            pairs = PairText(self.text)
            if self._choice.does(SHIFTED, "mend") and pairs.shifts:
                self._realign(pairs)
                continue
            findings = look_over_pairs(pairs)
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

    def _realign(self, pairs: PairText) -> None:
        """Put shifted stretches in step; lines that are left over are dropped.

        As many are left on each side, and a source and a target are one row less.
        """
        text = self.text
        joins = join_again(pairs.alignment, pairs.shifts, text.file_of)
        left_tgt = set(joins.targets)
        for i in joins.sources:
            tgt = text.tgt[i] if i in left_tgt else ""
            left_tgt.discard(i)
            row = (text.src[i], tgt)
            self._record.drop(self._place(i), text.where(i), SHIFTED, row)
        for i in sorted(left_tgt):
            row = ("", text.tgt[i])
            where = self._where_tgt(i)
            self._record.drop(self._place(i), where, SHIFTED, row, other_half=True)
        for i, j in joins.pairs:
            if i != j:
                before = (text.src[i], text.tgt[i])
                after = (text.src[i], text.tgt[j])
                self._record.mend(
                    self._place(i), text.where(i), [SHIFTED], before, after
                )
        joined = text.select([i for i, _ in joins.pairs])
        self.text = replace(joined, tgt=[text.tgt[j] for _, j in joins.pairs])

    def _swap(self, findings: Sequence[Finding], rows: dict[int, str]) -> bool:
        """Turn round pairs that are the wrong way round; one that was before is dropped.

        Returns whether any was turned.
        """
        if not self._choice.does(SWAPPED, "mend"):
            return False
        text = self.text
        src, tgt = list(text.src), list(text.tgt)
        found = [f for f in findings if f.code == SWAPPED]
        swapped = False
        for i in found[0].rows if found else ():
            place = self._place(i)
            if place in self._swapped:
                rows.setdefault(i, SWAPPED)
            elif i not in rows:
                self._swapped.add(place)
                pair = (text.src[i], text.tgt[i])
                self._record.mend(place, text.where(i), [SWAPPED], pair, pair[::-1])
                src[i], tgt[i] = reversed(pair)
                swapped = True
        if swapped:
            self.text = replace(text, src=src, tgt=tgt)
        return swapped

    def _drop(self, rows: Mapping[int, str]) -> None:
        text = self.text
        for i in sorted(rows):
            row = (text.src[i], text.tgt[i])
            self._record.drop(self._place(i), text.where(i), rows[i], row)
        self.text = text.select(i for i in range(len(text)) if i not in rows)

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
