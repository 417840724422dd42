"""Paired bootstrap: what it draws can be counted."""

import itertools

import numpy as np
import pytest

from weft.evaluation.bootstrap import Figure, paired_bootstrap, paired_macro_f1


def test_values_are_the_sums_over_the_sizes() -> None:
    values = np.array([2.0, 4.0, 6.0]), np.array([1.0, 1.0, 1.0])
    found = paired_bootstrap("f", values, np.array([1.0, 2.0, 3.0]), samples=50)
    assert (found.first, found.second) == (2.0, 0.5)
    assert found.first_ci == 0.0  # every row alone has the same
    assert found.second_ci > 0


def test_three_rows_are_drawn_in_all_ways_alike() -> None:
    """Interval and p against all 27 draws of three rows."""
    first, second, sizes = (
        np.array([0.0, 1.0, 0.0]),
        np.array([1.0, 1.0, 0.0]),
        np.array([1.0, 2.0, 4.0]),
    )
    draws = [list(row) for row in itertools.product(range(3), repeat=3)]
    figures = np.array(
        [[x[row].sum() / sizes[row].sum() for x in (first, second)] for row in draws]
    )
    differences = figures[:, 1] - figures[:, 0]
    real = (second.sum() - first.sum()) / sizes.sum()
    found = paired_bootstrap("f", (first, second), sizes, samples=20_000)
    assert found.p_value == pytest.approx(
        (abs(differences - differences.mean()) >= real).mean(), abs=0.02
    )
    for ci, column in zip((found.first_ci, found.second_ci), figures.T, strict=True):
        low, high = np.quantile(column, [0.025, 0.975], method="inverted_cdf")
        assert ci == pytest.approx((high - low) / 2, abs=0.05)


def test_equal_systems_do_not_differ_and_unlike_ones_do() -> None:
    draw = np.random.default_rng(3)
    first = draw.integers(0, 2, 400).astype(float)
    ones, noise = np.ones(400), draw.permutation(first)
    assert paired_bootstrap("f", (first, first), ones).p_value == 1.0
    assert paired_bootstrap("f", (first, noise), ones).p_value > 0.05
    better = np.maximum(first, draw.integers(0, 8, 400) == 0)
    assert paired_bootstrap("f", (first, better), ones).p_value < 0.01


def test_under_chance_alone_p_is_below_a_tenth_in_a_tenth_of_cases() -> None:
    draw = np.random.default_rng(4)
    found = [
        paired_bootstrap(
            "f", tuple(draw.normal(size=(2, 60))), np.ones(60), samples=200
        ).p_value  # type: ignore[arg-type]
        for _ in range(300)
    ]
    assert np.mean(np.array(found) < 0.1) == pytest.approx(0.1, abs=0.05)


def test_the_same_seed_draws_the_same() -> None:
    values = np.arange(20.0), np.arange(20.0)[::-1].copy()
    assert paired_bootstrap("f", values, np.ones(20)) == paired_bootstrap(
        "f", values, np.ones(20)
    )
    assert paired_bootstrap("f", values, np.ones(20), seed=2) != paired_bootstrap(
        "f", values, np.ones(20)
    )


@pytest.mark.parametrize(
    ("first", "second", "p", "lower", "verdict"),
    [
        (1.0, 2.0, 0.01, False, "the second is better"),
        (1.0, 2.0, 0.01, True, "the first is better"),
        (2.0, 1.0, 0.049, False, "the first is better"),
        (2.0, 1.0, 0.01, True, "the second is better"),
        (2.0, 1.0, 0.05, True, "no difference beyond chance"),
    ],
)
def test_the_verdict(
    first: float, second: float, p: float, lower: bool, verdict: str
) -> None:
    figure = Figure("f", first, second, 0.1, 0.2, p, lower)
    assert figure.verdict == verdict
    assert figure.cells() == (
        "f",
        f"{first:.3f} ± 0.100",
        f"{second:.3f} ± 0.200",
        f"{second - first:+.3f}",
    )


def test_macro_f1_by_hand() -> None:
    """Of labels a, b and c: a has 2 rows, b 1; the first gives a, a, a, the second a, b, b."""
    wanted = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], bool)
    first = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0]], bool)
    second = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], bool)
    found = paired_macro_f1(wanted, (first, second), samples=200)
    # nobody has or gives c; F1 of a is 4/5 and of b 0, then both 2/3
    assert (found.first, found.second) == (pytest.approx(0.4), pytest.approx(2 / 3))
    assert found.first_ci > 0


def test_a_rare_label_counts_as_much_as_a_frequent_one() -> None:
    """Of 200 rows 12 have the rare label, which the first never gives."""
    rare = np.arange(200) < 12
    wanted = np.stack([~rare, rare], axis=1)
    never = np.stack([np.ones(200, bool), np.zeros(200, bool)], axis=1)
    found = paired_macro_f1(wanted, (never, wanted))
    assert found.verdict == "the second is better"
    assert paired_macro_f1(wanted, (never, never)).p_value == 1.0
