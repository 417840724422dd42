"""Numbers of a pair contradict each other, or may both be right."""

import pytest

from weft.data.check.numbers import contradiction

BOTH_RIGHT = """
1976年（昭和51年）10月1日 | October 1, 1976
9月4日、25台 | 25 on September 4
3月28日から第1期 | the 1st from May 9
2人で3日 | 2 for three days
12人が2回 | twelve for 2 times
1476年に生まれ（1476 - 1559） | born (1476 - 1559)
98万1000円、1年 | 981,000 yen for 1 year
"""
CONTRADICT = """
1976年（昭和51年）10月1日 | October 1, 1977
9月4日、25台 | 25 on September 5
元禄4年に着手 | started in the 5th year of Genroku
5台が9月 | 5 in October 2001
7人中3人 | 3 of 3
第7話 | part B8
3 of 25人 | 3 of B26
1476年に2度 | 2 times
"""


@pytest.mark.parametrize("pair", BOTH_RIGHT.strip().split("\n"))
def test_what_is_said_in_other_forms_is_no_contradiction(pair: str) -> None:
    source, translation = pair.split(" | ")
    assert not contradiction(source, translation, ("ja", "en"))
    assert not contradiction(translation, source, ("en", "ja"))


@pytest.mark.parametrize("pair", CONTRADICT.strip().split("\n"))
def test_what_cannot_be_right_on_both_sides_is_one(pair: str) -> None:
    source, translation = pair.split(" | ")
    assert contradiction(source, translation, ("ja", "en"))
    assert contradiction(translation, source, ("en", "ja"))
