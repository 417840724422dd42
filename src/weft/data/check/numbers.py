"""The numbers in a text, and those of a pair that contradict each other."""

import re
from collections.abc import Sequence

from weft.data.dates import Date, dates_of, era_years, in_old_calendar
from weft.data.numbers import (
    Difference,
    Number,
    Role,
    drop_same,
    left,
    numbers_of,
    telling,
    years_of,
)

_COMPARED: tuple[Role, ...] = ("", "name", "era")
Value = tuple[int, re.Match[str]]  # its value, and where it stands

_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d{1,18}")


def numbers_in(text: str) -> list[Value]:
    """Return the numbers in a text, in any script's digits, and where they stand.

    What groups their digits does not count: 1,000 is 1.000.
    """
    matches = _NUMBER.finditer(text)
    return [(_value(match[0]), match) for match in matches]


def contradiction(
    source: str, translation: str, languages: tuple[str, str]
) -> Difference:
    """Return the numbers of a pair, which has some on both sides, that cannot both be right.

    Those are numbers of each side that the other has not, whether alone or in names; and a number
    of one side alone that can be neither a word of the other nor a repetition. Years of eras are
    compared with those of the calendar, months with their names (9月, September), and dates with
    those of the old calendar. `languages` are BCP-47.
    """
    src = numbers_of(source)
    tgt = numbers_of(translation)
    src_lang, tgt_lang = languages
    dates = dates_of(source, src_lang), dates_of(translation, tgt_lang)
    old = in_old_calendar(*dates)
    missing = left(src, tgt, _COMPARED, years_of(translation))
    added = left(tgt, src, _COMPARED, years_of(source))
    drop_same(missing, added, source, translation)
    missing = _but_dates(missing, source, tgt, old[0])
    added = _but_dates(added, translation, src, old[1])
    if missing and added:
        return Difference(missing, added)
    found = Difference(
        tuple(telling(_new(missing, tgt), (), translation, tgt_lang)),
        tuple(telling(_new(added, src), (), source, src_lang)),
    )
    if found or any(old):
        return found
    src_dates, tgt_dates = dates
    src_months = _months_alone(source, src_dates, tgt_dates, tgt)
    tgt_months = _months_alone(translation, tgt_dates, src_dates, src)
    is_told = src_months and tgt_months
    return Difference(src_months, tgt_months) if is_told else found


def _but_dates(
    numbers: Sequence[Number], text: str, others: Sequence[Number], old: Sequence[Date]
) -> list[Number]:
    """Return the numbers that are no days of dates in the old calendar, and of no year of an era
    that the other side has.
    """
    there = {number.digits for number in others}
    years = set()
    for era in era_years(text):
        if there.isdisjoint(map(str, era.years)):
            starts = (n.start for n in numbers if era.start <= n.start < era.end)
            years.add(next(starts, -1))
    days = {date.day_start for date in old}
    return [
        number
        for number in numbers
        if number.start not in days and (number.role != "era" or number.start in years)
    ]


def _new(own: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    """Return the numbers, but for those in names, that do not stand among the other side's."""
    there = set[str]()
    for number in others:
        there.update((number.digits, *number.parts))
    return [n for n in own if n.is_alone and n.digits not in there]


def _months_alone(
    text: str, own: Sequence[Date], others: Sequence[Date], numbers: Sequence[Number]
) -> list[Number]:
    """Return the months of a side that the other has neither as such nor among its numbers."""
    there = {str(date.month) for date in others}
    for number in numbers:
        there.update(number.parts)
    return [
        Number(text[date.start : date.end], date.start, date.end, "month")
        for date in own
        if str(date.month) not in there
    ]


def _value(number: str) -> int:
    digits = filter(str.isdecimal, number)
    ungrouped = "".join(digits)
    return int(ungrouped)
