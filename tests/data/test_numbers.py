"""Numbers of both sides are compared whatever their form, and words are no lost numbers."""

import random

import pytest

from weft.data.numbers import difference

SAME = """
1,234.5 costs | 1.234,5 kostet
at 12:30 | um 12.30 Uhr
two dogs | zwei Hunde
2 dogs | zwei Hunde
two dogs | 2 Hunde
12 dogs | zwölf Hunde
on 2026-11-24 | am 24. November 2026
November 24, 2026 | 24.11.2026
at 5 pm | um 17 Uhr
5:30 p.m. | 17:30 Uhr
8000 people | 8 000 Leute
a hundred | 100
for 5.00 | für 5
a hundred thousand | 100.000
1.5 million | 1,5 Mio.
1.5 million people | 1.500.000 Leute
COVID-19 and SHA512 | Corona
x86_64 of 1000km | der Weg
１２ and ٣٤ | 12 und 34
the 1930s | die 1930er
between 2-3 and two | zwischen zwei und drei
"""
OTHERS = [
    ("9:30", "7 点半 9 点", ("en", "zh")),
    ("by 7:30", "7点半", ("en", "zh")),
    ("December 25", "12月25日", ("en", "zh")),
    ("the 1930s", "20世纪30年代", ("en", "zh")),
    ("1.5 million", "150万", ("en", "zh")),
    ("in 1214", "建保2年", ("en", "ja")),
    ("in 1215", "建保二年12月20日", ("en", "ja")),
    ("in the late 1950s", "昭和30年代の末", ("en", "ja")),
    ("33,000 to 34,000", "3万3000～3万4000円", ("en", "ja")),
    ("585 million", "5億8500万", ("en", "ja")),
    ("1338-58", "1338年 - 1358年", ("en", "ja")),
    ("12 dogs", "kaksitoista koiraa", ("en", "fi")),
    ("12 dogs", "douze chiens", ("", "")),
]
DIFFERENT = [
    ("512 MB", "MB", "the source has 512, the translation does not"),
    ("MB", "512 MB", "the translation has 512, the source does not"),
    ("512 MB", "52 MB", "the source has 512, the translation 52"),
    ("512 MB", "512 52 MB", "the translation has 52, the source does not"),
    ("5 euros", "9 Euro", "the source has 5, the translation 9"),
    ("45 chairs", "Stühle", "the source has 45, the translation does not"),
    ("in 1, 22 and 333", "in 1", "the source has 22 and 333, the translation does not"),
    (
        " x ".join(map(str, range(201, 213))),
        "",
        "the source has 201, 202, 203, 204, 205, 206, 207, 208, 209, 210 and 2 more, the translation does not",
    ),
    ("in 1216", "建保2年", "the source has 1216, the translation does not"),
    ("3万3000円", "23,000 yen", "the source has 3万3000, the translation 23,000"),
    ("200 and 200", "200", "the source has 200, the translation does not"),
]


@pytest.mark.parametrize("pair", SAME.strip().splitlines())
def test_what_says_the_same_is_no_difference(pair: str) -> None:
    source, translation = pair.split(" | ")
    assert not difference(source, translation, ("en", "de"))
    assert not difference(translation, source, ("de", "en"))


@pytest.mark.parametrize(("source", "translation", "languages"), OTHERS)
def test_words_of_other_languages_are_no_difference(
    source: str, translation: str, languages: tuple[str, str]
) -> None:
    assert not difference(source, translation, languages)


@pytest.mark.parametrize(("source", "translation", "said"), DIFFERENT)
def test_what_is_lost_changed_or_added_is_said(
    source: str, translation: str, said: str
) -> None:
    assert str(difference(source, translation, ("en", "de"))) == said


def test_many_and_long_numbers_take_no_long_time() -> None:
    rng = random.Random(1)
    numbers = [str(rng.randrange(10**6)) for _ in range(8_000)]
    found = difference(" x ".join(numbers), " y ".join(numbers[:4_000]))
    assert len(found.missing) > 3_500
    found = difference("111 " * 50_000 + "1111", "nichts")
    assert len(str(found)) < 150
    assert difference("9" * 10_000, "8" * 10_000).added
