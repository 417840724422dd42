"""Dates are read by the calendars and the names that texts write them in."""

import pytest

from weft.data.dates import Date, dates_of, era_years, in_old_calendar


@pytest.mark.parametrize(
    ("text", "stretch", "years"),
    [
        ("建保2年（1214年）に", "建保2年", {1214, 1215}),
        ("大化元年", "大化元年", {645, 646}),
        ("明治四十年", "明治四十年", {1907, 1908}),
        ("大正廿三年", "大正廿三年", {1934, 1935}),
        ("天文 (元号)12年", "天文 (元号)12年", {1543, 1544}),
        ("昭和30年代", "昭和30年代", {1950, 1960}),
        ("（文明13）", "文明13", {1481, 1482}),
        ("長和2年5月25日 (旧暦)条", "長和2年5月25日", {1013, 1014}),
        ("推古天皇12年（604年）", "12年", {604}),
        ("同5年", "同5年", set()),
    ],
)
def test_years_of_eras(text: str, stretch: str, years: set[int]) -> None:
    (found,) = era_years(text)
    assert text[found.start : found.end] == stretch
    assert found.years == years


def test_the_same_era_is_that_of_the_year_before() -> None:
    first, second = era_years("寛弘二年より、同八年頃まで")
    assert first.years == {1005, 1006}
    assert second.years == {1011, 1012}
    assert not era_years("2年間、20年、年金")


@pytest.mark.parametrize(
    ("text", "language", "dates"),
    [
        ("on Sep. 9, 2001 and in May 1999", "en", [(9, 9), (5, 0)]),
        ("on the 3rd of March", "en", [(3, 3)]),
        ("he may have 5; may 7", "en", []),
        ("am 9. September, in Sept. 2001", "de", [(9, 9), (9, 0)]),
        ("le 1er août", "fr", [(8, 1)]),
        ("10 de septiembre de 1810", "es", [(9, 10)]),
        ("12 июня", "ru", [(6, 12)]),
        ("9月4日、12 月", "ja", [(9, 4), (12, 0)]),
        ("5월 4일", "ko", [(5, 4)]),
        ("on 4 September", "yo", []),
    ],
)
def test_months_by_number_and_by_name(
    text: str, language: str, dates: list[tuple[int, int]]
) -> None:
    assert [(one.month, one.day) for one in dates_of(text, language)] == dates


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("9月14日", "October 28", True),  # 44 days
        ("12月22日", "January 25", True),  # 34 days, into the next year
        ("9月14日", "September 15", False),
        ("9月14日", "August 1", False),
        ("8月の", "September 1804", True),
    ],
)
def test_the_old_calendar_is_some_weeks_behind(
    old: str, new: str, is_same: bool
) -> None:
    src, tgt = dates_of(old, "ja"), dates_of(new, "en")
    assert in_old_calendar(src, tgt) == ((src, tgt) if is_same else ([], []))
    assert in_old_calendar(tgt, src) == ((tgt, src) if is_same else ([], []))
    named = [Date(date.month, 0, 1, date.day, 2, False) for date in src]
    assert in_old_calendar(named, tgt) == ([], [])
