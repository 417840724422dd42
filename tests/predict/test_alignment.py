"""Attention read by hand: which source token is looked at most, and which are passed over."""

import math

import numpy as np
import pytest

from weft.predict.alignment import Link, coverage, links

ATTENTION = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.3, 0.4, 0.3],
        [0.1, 0.45, 0.45],
        [0.9, 0.05, 0.05],
        [0.2, 0.3, 0.5],
    ],
    np.float32,
)


def test_each_target_token_comes_from_where_most_attention_was() -> None:
    found = links(ATTENTION, "vwxyz", "abc")
    assert found == [
        Link(t, s, "vwxyz"[t], "abc"[s]) for t, s in enumerate([0, 1, 1, 0, 2])
    ]
    later = links(ATTENTION, "vwxyz", "abc", (10, 20))
    assert [(link.target, link.source) for link in later] == [
        (10 + k.target, 20 + k.source) for k in found
    ]


def test_coverage_counts_what_was_passed_over() -> None:
    """Sums over the first two target tokens: 1.0, 0.6, 0.4; over all five, none is below 1."""
    assert coverage(ATTENTION[:2]) == pytest.approx(math.log(0.6) + math.log(0.4))
    assert coverage(ATTENTION) == 0.0
    assert coverage(np.array([[0.5, 0.5, 0.0]], np.float32)) < 2 * math.log(0.5) - 80
