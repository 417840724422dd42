"""Means over seeds: values by hand, and the tails of Student's t beside their closed forms."""

import math

import numpy as np
import pytest

from weft.evaluation.seeds import (
    Component,
    both_tails,
    deviation_of,
    mean_of,
    of_rows,
    of_seeds,
    p_of,
)


def test_mean_and_deviation_by_hand() -> None:
    assert mean_of([1, 2, 6]) == 3
    assert deviation_of([1, 2, 6]) == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert deviation_of([5]) is None
    two = of_seeds([4, 8])
    assert (two.variance, two.freedom) == (pytest.approx(8 / 2), 1)


@pytest.mark.parametrize("t", [0.0, 0.1, 1.0, 2.5, 12.7, 300.0])
def test_the_tails_are_those_of_the_closed_forms(t: float) -> None:
    """Abramowitz and Stegun 1964, 26.7.3 and 26.7.4, for one to four degrees of freedom."""
    angles = [math.atan(t / math.sqrt(freedom)) for freedom in (1, 2, 3, 4)]
    sines, cosines = list(map(math.sin, angles)), list(map(math.cos, angles))
    inside = [
        2 / math.pi * angles[0],
        sines[1],
        2 / math.pi * (angles[2] + sines[2] * cosines[2]),
        sines[3] * (1 + cosines[3] ** 2 / 2),
    ]
    for freedom, share in zip((1, 2, 3, 4), inside, strict=True):
        assert both_tails(t, freedom) == pytest.approx(1 - share, abs=1e-12)
        assert both_tails(-t, freedom) == both_tails(t, freedom)


def test_the_tails_between_whole_degrees_are_the_area_below_the_density() -> None:
    def density(x: float, freedom: float) -> float:
        scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
        power = (1 + x * x / freedom) ** (-(freedom + 1) / 2)
        return math.exp(scale) / math.sqrt(freedom * math.pi) * power

    for t, freedom in ((0.7, 1.17), (2.2, 2.43), (1.3, 38.6)):
        points = np.linspace(0, t, 20_001)
        values = np.array([density(x, freedom) for x in points])
        assert both_tails(t, freedom) == pytest.approx(
            1 - 2 * np.trapezoid(values, points), abs=1e-7
        )


def test_two_means_by_hand_as_welch_has_them() -> None:
    """Variances of the means 1/3 and 4: t = 4 / sqrt(13/3), with 1.17 degrees of freedom."""
    p = p_of(4, [of_seeds([1, 2, 3]), of_seeds([4, 8])])
    freedom = (13 / 3) ** 2 / ((1 / 3) ** 2 / 2 + 4**2 / 1)
    assert p == pytest.approx(both_tails(4 / math.sqrt(13 / 3), freedom))
    assert 0.25 < p < 0.3
    assert p_of(-4, [of_seeds([4, 8]), of_seeds([1, 2, 3])]) == pytest.approx(p)


def test_with_the_rows_it_is_clarks_min_f() -> None:
    difference, of_runs, of_text = 1.5, Component(0.3, 6), Component(0.2, 99)
    first, second = difference**2 / 0.3, difference**2 / 0.2
    least = first * second / (first + second)
    freedom = (first + second) ** 2 / (first**2 / 99 + second**2 / 6)
    p = p_of(difference, [of_runs, of_text])
    assert p == pytest.approx(both_tails(math.sqrt(least), freedom))
    assert p > p_of(difference, [of_runs])


def test_no_difference_and_no_variance() -> None:
    assert p_of(0, [Component(1, 1)]) == 1
    assert p_of(2, [Component(0, 1), Component(0, 2)]) == 0


def test_of_a_mean_the_jackknife_is_the_variance_of_the_mean() -> None:
    """Its statistics are the value and 1 of each row."""
    values = np.array([1.0, 2.0, 6.0, 3.0])
    rows = np.stack([values, np.ones(4)], axis=1)
    found = of_rows(rows, lambda sums: sums[:, 0] / sums[:, 1])
    assert found.freedom == 3
    assert found.variance == pytest.approx(np.var(values, ddof=1) / 4)
