"""The best tokens of each row against a plain sort, with equals, bans and rows without numbers."""

import math

import numpy as np
import pytest

from weft.decoding.best import LogSoftmax, best_allowed, best_tokens
from weft.decoding.decoder import StepInput

ROWS = np.array([[0.1, 0.3, 0.3, -1.0, 0.3], [5.0, 4.0, 3.0, 2.0, 1.0]], np.float32)


def by_sorting(row: list[float], count: int) -> list[tuple[float, int]]:
    ranked = sorted((-value, token) for token, value in enumerate(row))
    found = [(-value, token) for value, token in ranked[:count]]
    return found + [(-math.inf, 0)] * (count - len(found))


@pytest.mark.parametrize("seed", range(30))
def test_they_are_those_of_a_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40 if seed < 20 else 999))
    rows = rng.standard_normal((4, size)).astype(np.float32)
    if seed % 2:  # many equals, some of them impossible
        rows = np.round(rows)
        rows[rows > 1] = -np.inf
    for count in (1, 2, 7, size, size + 3):
        best, ids = best_tokens(rows, count)
        assert (best.dtype, ids.dtype) == (np.float32, np.int32)
        for row, values, tokens in zip(rows, best, ids, strict=True):
            found = list(zip(values.tolist(), tokens.tolist(), strict=True))
            assert found == by_sorting(row.tolist(), count)


def test_of_equals_the_lower_ids_come_first() -> None:
    best, ids = best_tokens(ROWS, 3)
    assert ids.tolist() == [[1, 2, 4], [0, 1, 2]]
    assert best[1].tolist() == [5.0, 4.0, 3.0]


def test_what_is_banned_is_left_out_and_the_rows_stay_as_they_are() -> None:
    before = ROWS.copy()
    places = np.arange(2)
    banned = np.array([1, 4, 0], np.int32)
    table = np.zeros((2, 1), np.int32)
    inputs = StepInput(
        *(places, places, places, places.astype(np.int32), table),
        banned=banned,
        ban_ends=np.array([2, 3]),
    )
    _, ids = best_allowed(ROWS, inputs, 2)
    assert ids.tolist() == [[2, 0], [1, 2]]
    assert np.array_equal(ROWS, before)


def test_a_row_without_numbers_has_none() -> None:
    rows = np.vstack([ROWS, np.full((1, 5), np.nan, np.float32), ROWS])
    rows[3, 2] = np.nan
    best, ids = best_tokens(rows, 2)
    assert np.isnan(best).all(1).tolist() == [False, False, True, True, False]
    assert ids[[0, 1, 4]].tolist() == [[1, 2], [0, 1], [0, 1]]


def test_log_probabilities_are_those_of_the_formula() -> None:
    logits = np.array([[1e4, 1e4 - 1.0, -np.inf], [0.0, 0.0, 0.0]], np.float32)
    log_softmax = LogSoftmax.of(logits)
    found = log_softmax.log_probs(logits)
    total = math.log(1 + math.exp(-1))
    np.testing.assert_allclose(found[0, :2], [-total, -1 - total], rtol=1e-6)
    assert found[0, 2] == -np.inf
    np.testing.assert_allclose(found[1], [-math.log(3)] * 3, rtol=1e-6)
    some = logits[:, :1]
    assert np.array_equal(log_softmax.log_probs(some), found[:, :1])
    for value in (np.nan, np.inf, -np.inf):
        broken = np.full((1, 3), value, np.float32)
        assert np.isnan(LogSoftmax.of(broken).log_probs(broken)).all()
