"""Minimum Bayes risk by tables that can be summed by hand."""

import numpy as np
import pytest

from weft.decoding.risk import rank_by_utility


def table(gains: dict[str, dict[str, float]]):
    """A utility that reads: of the row's text, where the column's is right."""
    return lambda texts: np.array([[float(gains[a][b]) for b in texts] for a in texts])


GAINS = table({
    "a": {"a": 10, "b": 1, "c": 2},
    "b": {"a": 3, "b": 10, "c": 4},
    "c": {"a": 5, "b": 3, "c": 10},
})  # fmt: skip


def test_the_mean_is_over_the_others():
    assert rank_by_utility(["a", "b", "c"], [-1.0, -2.0, -3.0], GAINS) == [
        (2, 4.0),
        (1, 3.5),
        (0, 1.5),
    ]


def test_a_text_that_was_drawn_again_speaks_as_often():
    """a: (10 + 1 + 2) / 3, b: (3 + 3 + 4) / 3, c: (5 + 5 + 3) / 3."""
    found = rank_by_utility(["a", "b", "a", "c"], [-5.0, -6.0, -4.0, -7.0], GAINS)
    assert found == [
        (2, pytest.approx(13 / 3)),
        (3, pytest.approx(13 / 3)),
        (1, pytest.approx(10 / 3)),
    ]


def test_of_equals_the_more_probable_comes_first_then_the_earlier():
    same = table({x: dict.fromkeys("abcd", 0.1) for x in "abcd"})
    ranked = rank_by_utility(
        ["a", "b", "c", "d", "b"], [-4.0, -3.0, -2.0, -3.0, -3.0], same
    )
    assert [number for number, _ in ranked] == [2, 1, 3, 0]


def test_one_sample_is_what_it_is():
    assert rank_by_utility(["a"], [-1.0], GAINS) == [(0, 0.0)]
    assert rank_by_utility(["b", "b"], [-2.0, -1.0], GAINS) == [(1, 10.0)]
