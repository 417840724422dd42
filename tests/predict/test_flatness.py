"""Weights that look at everything alike, by hand."""

import math

import numpy as np
import pytest

from weft.predict.flatness import FLAT, evenness, is_flat, is_flat_map

WEIGHTS = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0], [1, 0, 0, 0]])


def test_the_entropy_is_a_share_of_the_most_that_it_could_be() -> None:
    assert evenness(WEIGHTS).tolist() == pytest.approx([1, 0.5, 0])
    nearly = np.array([[0.3, 0.2, 0.25, 0.25]])
    by_hand = -sum(p * math.log(p) for p in nearly[0].tolist()) / math.log(4)
    assert evenness(nearly).tolist() == pytest.approx([by_hand])
    assert by_hand > FLAT
    assert is_flat(nearly).tolist() == [True]
    assert is_flat(WEIGHTS).tolist() == [True, False, False]


def test_keys_that_a_query_may_not_see_do_not_count() -> None:
    """The three rows of a decoder over itself; of one key alone none is flat."""
    causal = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4]])
    visible = np.arange(1, 4)
    assert is_flat(causal, visible).tolist() == [False, True, True]
    assert not is_flat(np.ones((2, 1))).any()


def test_a_map_is_flat_where_its_queries_are_on_average() -> None:
    flat = np.full((3, 4), 0.25)
    one_sure = flat.copy()
    one_sure[0] = [1, 0, 0, 0]
    maps = np.stack([flat, one_sure])
    assert is_flat_map(maps).tolist() == [True, False]
