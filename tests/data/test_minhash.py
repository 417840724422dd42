"""Rows that say nearly the same are found by the words that they share."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from weft.data import minhash
from weft.data.minhash import are_near, candidates, near_rows, sketch, words_in

LETTERS = "abcdefghijklmnopqrst"


def rows_of(count: int, draw: random.Random) -> list[tuple[str, str]]:
    def text() -> str:
        return " ".join("".join(draw.choices(LETTERS, k=4)) for _ in range(12))

    return [(text(), text()) for _ in range(count)]


def changed(row: tuple[str, str], number: int) -> tuple[str, str]:
    sides = []
    for side in row:
        words = side.split(" ")
        words[number % len(words)] = "other"
        sides.append(" ".join(words))
    return sides[0], sides[1]


def found(rows: list[tuple[str, str]]) -> dict[int, int]:
    bands, sketches = sketch(list(zip(*rows, strict=True)))
    same = np.array([hash(row) % 2**63 for row in rows], np.uint64)
    pairs = candidates(lambda n: bands[:, n], sketches, same)
    near = [are_near(rows[row], rows[other]) for row, other in zip(*pairs, strict=True)]
    repeats = near_rows(*pairs, np.array(near, np.bool_))
    return dict(zip(*(side.tolist() for side in repeats), strict=True))


def test_a_word_exchanged_on_each_side_is_found_and_nothing_else() -> None:
    draw = random.Random(5)
    rows = rows_of(300, draw)
    near = [changed(row, n) for n, row in enumerate(rows)]
    other = [(src, b) for (src, _), (_, b) in pairwise(rows)]
    pairs = found([*rows, *near, *other])
    assert all(later - 300 == first for later, first in pairs.items())
    assert len(pairs) >= 290


def test_a_row_that_is_the_same_is_none() -> None:
    rows = rows_of(5, random.Random(1))
    assert found([*rows, *rows]) == {}


def test_letters_of_scripts_without_spaces_are_words() -> None:
    one = "日本の水墨画を一変させた画僧である"
    assert are_near([one], [one.replace("変", "新")])
    assert not are_near([one], ["室町時代に活躍した水墨画家禅僧で画聖"])
    rows = [(one, "x"), (one.replace("変", "新"), "x"), ("short", "x"), ("shorn", "x")]
    assert found(rows) == {1: 0}


@pytest.mark.parametrize("side", [0, 1])
def test_texts_are_divided_at_once_as_one_by_one(side: int) -> None:
    texts = [
        "one two",
        "",
        "日本の 水墨画x y",
        "größer als",
        "ab",
        "画",
        "\ud800 猫",
        "ไทย1",
    ]
    texts.append("ein 日 " * 700)
    words, letters, counts = minhash._divided(texts)
    codes = iter(letters.tolist())
    for text, own, count in zip(texts, words, counts.tolist(), strict=True):
        alone = [chr(next(codes)) for _ in range(count)]
        assert Counter(own + alone) == Counter(words_in(text))
    assert next(codes, None) is None
    hashes = minhash._hashes_of_letters(letters, side).tolist()
    expected = minhash._hashed(map(chr, letters.tolist()), side).tolist()
    assert hashes == expected
