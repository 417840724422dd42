"""Numbers that a translation has changed or lost."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from weft.documents.document import Item, Kind, Segment, Translated

# digits, and single marks between them: 1,000.5 and 12:30 and 2026-11-24
_DIGITS = r"\d++(?:[.,:/'’\u00a0\u202f-]\d++)*+"
_ANY = re.compile(_DIGITS)
# a number by itself: no part of a name such as SHA512
_NUMBER = re.compile(rf"(?<![A-Za-z_\d]){_DIGITS}(?![A-Za-z_])")
_LEAST_DIGITS = 3  # smaller numbers may well be written in words


def repair_numbers(
    segment: Segment, translated: Translated
) -> tuple[Segment, Translated]:
    """Return both so that every number of the segment will be in its translation.

    Numbers have three digits or more: smaller ones may have become words. Other marks between the
    digits make no other number: 1,000 may become 1.000. A number that the segment does not have
    stands for one that is missing; the rest of the missing ones become items.
    """
    src = _numbers(_NUMBER, segment.text)
    lost = _without(src, _numbers(_ANY, translated.text))
    if not lost:
        return segment, translated
    wrong = _without(_numbers(_NUMBER, translated.text), _numbers(_ANY, segment.text))
    translated = _replaced(translated, wrong, lost)
    runs = _runs(segment, lost[len(wrong) :])
    items = [_item(segment, run) for run in runs]
    return segment.with_items(items), translated


def _numbers(form: re.Pattern[str], text: str) -> list[re.Match[str]]:
    found = form.finditer(text)
    return [match for match in found if len(_digits(match)) >= _LEAST_DIGITS]


def _digits(number: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, number[0]))


def _without(
    numbers: Sequence[re.Match[str]], others: Sequence[re.Match[str]]
) -> list[re.Match[str]]:
    """Return the numbers that are not among the others, counted."""
    left = Counter(map(_digits, others))
    missing = []
    for number in numbers:
        left[_digits(number)] -= 1
        if left[_digits(number)] < 0:
            missing.append(number)
    return missing


def _replaced(
    translated: Translated,
    wrong: Sequence[re.Match[str]],
    right: Sequence[re.Match[str]],
) -> Translated:
    """Return a translation with numbers exchanged, the first of both sides and so on."""
    text = translated.text
    parts: list[str] = []
    starts = [0]
    shifts = [0]
    place = 0
    for old, new in zip(wrong, right, strict=False):
        parts += (text[place : old.start()], new[0])
        place = old.end()
        starts.append(old.start() + 1)
        longer = len(new[0]) - len(old[0])
        shifts.append(shifts[-1] + longer)

    def moved(place: int) -> int:
        number = bisect_right(starts, place) - 1
        return place + shifts[number]

    alignment = []
    for src_start, src_end, start, end in translated.alignment:
        alignment.append((src_start, src_end, moved(start), moved(end)))
    parts.append(text[place:])
    return Translated("".join(parts), alignment)


def _runs(segment: Segment, numbers: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """Return where numbers begin and end; those with nothing but spaces between them, as those of
    a telephone, are one.
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        start, end = number.span()
        if runs and _is_gap(segment, runs[-1][1], start):
            start, _ = runs.pop()
        runs.append((start, end))
    return runs


def _is_gap(segment: Segment, start: int, end: int) -> bool:
    """Return whether there is nothing but spaces between two places, no tag either."""
    if not segment.text[start:end].isspace():
        return False
    return not any(start <= item.start <= end for item in segment.items)


def _item(segment: Segment, run: tuple[int, int]) -> Item:
    start, end = run
    return Item(
        kind=Kind.KEPT,
        raw=segment.escape(segment.text[start:end]),
        start=start,
        end=start,
        before=" ",
        after=" ",
    )
