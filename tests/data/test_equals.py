"""Hashes that recur among many are found as a dictionary finds them."""

import random

import numpy as np
import pytest

from weft.data import equals
from weft.data.equals import later_of_equals, places_of, sorted_once


@pytest.mark.parametrize("block", [7, 1000])
@pytest.mark.parametrize("kinds", [1, 3, 150, 10**9])
def test_a_dictionary_finds_the_same(
    block: int, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equals, "_BLOCK", block)
    draw = random.Random(kinds)
    # those that begin alike, and the first and the last of all
    values = [n << draw.choice([0, 40]) for n in (0, 1, 2**24 - 1)]
    numbers = [draw.randrange(kinds) * (2**64 // kinds) for _ in range(200)] + values
    draw.shuffle(numbers)
    first: dict[int, int] = {}
    repeats = [(i, first.setdefault(number, i)) for i, number in enumerate(numbers)]
    expected = [(later, before) for later, before in repeats if later != before]
    hashes = np.array(numbers, np.uint64)
    found = later_of_equals(hashes)
    assert list(zip(*found, strict=True)) == expected
    nothing = numbers[expected[0][0]] if expected else 0
    kept = [pair for pair in expected if numbers[pair[0]] != nothing]
    found = later_of_equals(hashes, np.uint64(nothing))
    assert list(zip(*found, strict=True)) == kept
    assert sorted_once(hashes).tolist() == sorted(first)
    some = set(numbers[::5]) | {5}
    places = places_of(np.array(sorted(some), np.uint64), hashes)
    assert places.tolist() == [i for i, number in enumerate(numbers) if number in some]


def test_of_nothing_nothing_is_found() -> None:
    empty = np.zeros(0, np.uint64)
    one = np.array([3], np.uint64)
    for hashes in (empty, one):
        assert list(map(len, later_of_equals(hashes))) == [0, 0]
        assert len(places_of(empty, hashes)) == 0
        assert len(sorted_once(hashes)) == len(hashes)
