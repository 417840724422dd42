"""Numbers that a translation has changed, lost or torn apart, put right."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.data.numbers import (
    Difference,
    Number,
    difference,
    how_they_differ,
    listed,
    numbers_of,
)
from weft.documents.document import Item, Kind, Segment, Translated
from weft.documents.kept import without_kept

_LEAST_DIGITS = 2  # a number of one may well have become a word
_SURE_DIGITS = 3  # so many are exchanged in their order, without an alignment
_LEAST_OF_TELEPHONE = 6  # digits
_SPACES = re.compile(r"\s+")
_APART = re.compile(r"[\s/-]+")  # what is between the numbers of a telephone
_TOGETHER = re.compile(r"\d[\d\s()/.,-]*")
_NO_DIGIT = re.compile(r"\D+")

_Pair = tuple[Number, Number]
_Run = tuple[int, int]


@dataclass(frozen=True)
class Numbers:
    """The numbers of a segment that differ in its translation: those that were `put_back`, and
    those that are `missing` there or `added`.
    """

    put_back: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put_back or self.missing or self.added)

    def remarks(self) -> Iterator[str]:
        """Yield what a person should check, each a sentence."""
        if self.put_back:
            were = "Numbers were" if len(self.put_back) > 1 else "A number was"
            yield f"{were} put back: {listed(self.put_back)}."
        if self.missing or self.added:
            yield f"Numbers differ: {how_they_differ(self.missing, self.added)}."


NO_NUMBERS = Numbers()


def repair_numbers(
    segment: Segment, translated: Translated
) -> tuple[Segment, Translated, Numbers]:
    """Return both so that every number of the segment will be in its translation, and what that
    took.

    A number that the segment does not have stands for one that is missing, where they are aligned,
    or else are of three digits, or as many; the rest of the missing ones become items. So does a
    telephone number whose parts do not stand together.
    """
    gaps = _Gaps(segment)
    torn = list(_torn(gaps, translated.text))
    inside = {number for run in torn for number in run}
    translated = _without(translated, inside)
    found = _difference(segment, translated)
    missing = [one for one in found.missing if one not in inside]
    pairs = _exchanged(missing, found.added, translated)
    right = {new for _, new in pairs}
    wrong = {old for old, _ in pairs}
    lost = [one for one in missing if one not in right]
    large = [one for one in lost if one.size >= _LEAST_DIGITS]
    runs = sorted([*map(gaps.with_sign, torn), *gaps.runs(large)])
    numbers = Numbers(
        put_back=(*_texts(right), *(segment.text[slice(*run)] for run in runs)),
        missing=_texts(one for one in lost if one.size < _LEAST_DIGITS),
        added=_texts(one for one in found.added if one not in wrong),
    )
    edits = [(old.start, old.end, new.text) for old, new in pairs]
    items = [_item(segment, run) for run in runs]
    return segment.with_items(items), translated.edited(edits), numbers


def differing(segment: Segment, translated: Translated) -> Numbers:
    """Return the numbers that differ where all stays as it is."""
    found = _difference(segment, translated)
    return Numbers(missing=_texts(found.missing), added=_texts(found.added))


def _difference(segment: Segment, translated: Translated) -> Difference:
    """Compare the numbers of both, but for those of placeholders."""
    source = without_kept(segment.text, segment.kept)
    translation = without_kept(translated.text, segment.kept)
    return difference(source, translation, translated.languages)


def _texts(numbers: Iterable[Number]) -> tuple[str, ...]:
    return tuple(number.text for number in sorted(numbers, key=_start))


def _start(number: Number) -> int:
    return number.start


def _exchanged(
    missing: Sequence[Number], added: Sequence[Number], translated: Translated
) -> list[_Pair]:
    """Return what is wrong with what is right in its place, in the order of the translation."""
    new_of: dict[Number, Number] = {}
    done: set[Number] = set()
    for old, new in _linked(missing, added, translated):
        if old not in new_of and new not in done:
            new_of[old] = new
            done.add(new)
    rights = [one for one in missing if one not in done]
    wrongs = [one for one in added if one not in new_of]
    if len(rights) != len(wrongs):
        rights = list(filter(_is_sure, rights))
        wrongs = list(filter(_is_sure, wrongs))
    new_of |= zip(wrongs, rights, strict=False)
    return sorted(new_of.items(), key=lambda pair: pair[0].start)


def _is_sure(number: Number) -> bool:
    return number.size >= _SURE_DIGITS


def _linked(
    missing: Sequence[Number], added: Sequence[Number], translated: Translated
) -> Iterator[_Pair]:
    """Yield the wrong numbers that the alignment has come from missing ones, and these."""
    if not missing or not added:
        return
    src_ends = [number.end for number in missing]
    tgt_ends = [number.end for number in added]
    for src_start, src_end, tgt_start, tgt_end in translated.alignment:
        new = bisect_right(src_ends, src_start)
        old = bisect_right(tgt_ends, tgt_start)
        if new == len(missing) or old == len(added):
            continue
        if missing[new].start < src_end and added[old].start < tgt_end:
            yield added[old], missing[new]


def _torn(gaps: "_Gaps", translation: str) -> Iterator[list[Number]]:
    """Yield the telephone numbers of a segment that do not stand together in its translation."""
    telephones = list(gaps.telephones())
    if not telephones:
        return
    together = [_NO_DIGIT.sub("", run[0]) for run in _TOGETHER.finditer(translation)]
    for run in telephones:
        digits = "".join(number.digits for number in run)
        if not any(digits in one for one in together):
            yield run


def _without(translated: Translated, numbers: Iterable[Number]) -> Translated:
    """Return a translation without some numbers, each once, and without the space before each."""
    wanted = [number.digits for number in numbers]
    if not wanted:
        return translated
    text = translated.text
    edits = []
    for number in numbers_of(text):
        if number.digits in wanted:
            wanted.remove(number.digits)
            start = number.start - text.endswith("+", 0, number.start)
            start -= text.endswith(" ", 0, start)
            edits.append((start, number.end, ""))
    return translated.edited(edits)


class _Gaps:
    """Finds numbers of a segment that stand side by side."""

    def __init__(self, segment: Segment) -> None:
        self._text = without_kept(segment.text, segment.kept)
        self._items = [item.start for item in segment.items]

    def telephones(self) -> Iterator[list[Number]]:
        """Yield the numbers of each telephone number that has several."""
        run: list[Number] = []
        for number in numbers_of(self._text):
            if run and not self._are_near(run[-1].end, number.start, _APART):
                if self._is_telephone(run):
                    yield run
                run = []
            run.append(number)
        if self._is_telephone(run):
            yield run

    def runs(self, numbers: Sequence[Number]) -> list[_Run]:
        """Return where numbers begin and end; those with nothing but spaces between them, as those
        of a telephone, are one.
        """
        runs: list[_Run] = []
        for number in numbers:
            start = number.start
            if runs and self._are_near(runs[-1][1], start, _SPACES):
                start, _ = runs.pop()
            runs.append((start, number.end))
        return runs

    def with_sign(self, run: Sequence[Number]) -> _Run:
        """Return where a telephone number begins and ends, with its plus."""
        start = run[0].start
        return start - self._has_plus(start), run[-1].end

    def _is_telephone(self, run: Sequence[Number]) -> bool:
        if len(run) < 2 or not all(number.is_alone for number in run):
            return False
        begins = run[0].digits[0] == "0" or self._has_plus(run[0].start)
        return begins and sum(len(one.digits) for one in run) >= _LEAST_OF_TELEPHONE

    def _has_plus(self, start: int) -> bool:
        return self._text.endswith("+", 0, start)

    def _are_near(self, start: int, end: int, form: re.Pattern[str]) -> bool:
        """Return whether there is nothing of another form between two places, no tag either."""
        if not form.fullmatch(self._text, start, end):
            return False
        number = bisect_left(self._items, start)
        return number == len(self._items) or self._items[number] > end


def _item(segment: Segment, run: _Run) -> Item:
    start, end = run
    return Item(
        kind=Kind.KEPT,
        raw=segment.escape(segment.text[start:end]),
        start=start,
        end=start,
        before=" ",
        after=" ",
    )
