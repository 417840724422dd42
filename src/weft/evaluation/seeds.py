"""Is a difference of means more than chance? Settings that were each trained with several seeds.

A mean over seeds differs from that of another setting for three reasons beside the settings: the
seeds of the one, those of the other, and the rows of the text on which both are scored. Each is a
component of the variance of the difference, with its own degrees of freedom. Their sum is that of
Welch 1947, "The generalization of 'Student's' problem when several different population variances
are involved", its degrees of freedom those of Satterthwaite 1946, "An approximate distribution of
estimates of variance components". With the rows among them it is the min F' of Clark 1973, "The
language-as-fixed-effect fallacy": what is claimed is claimed of other seeds and of other rows.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 2  # seeds, without which nothing is known of how far they differ
_NODES = 200
_POWER = 4  # evens out what the integrand is not smooth in


@dataclass(frozen=True)
class Component:
    """A part of the variance of a difference, estimated with so many degrees of freedom."""

    variance: float
    freedom: float


def mean_of(scores: Sequence[float]) -> float:
    """Return the mean of scores."""
    return math.fsum(scores) / len(scores)


def deviation_of(scores: Sequence[float]) -> float | None:
    """Return the standard deviation of the seeds that these are a sample of (over n - 1); None for
    a single one.
    """
    if len(scores) < FEWEST:
        return None
    mean = mean_of(scores)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    return math.sqrt(squares / (len(scores) - 1))


def of_seeds(scores: Sequence[float]) -> Component:
    """Return the variance of the mean of some seeds' scores, of which there are two or more."""
    deviation = deviation_of(scores)
    assert deviation is not None
    count = len(scores)
    return Component(deviation**2 / count, count - 1)


def of_rows(
    statistics: NDArray[np.float64],
    difference: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Component:
    """Return the variance that a difference has by the choice of N rows, by the jackknife.

    `statistics` (N, S) are what each row adds to S sums; `difference` gives that of sums (N, S).
    Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", equation 11.5.
    """
    count = len(statistics)
    sums = statistics.sum(0)
    without = difference(sums - statistics)
    away = without - without.mean()
    variance = float((away**2).sum()) * (count - 1) / count
    return Component(variance, count - 1)


def p_of(difference: float, components: Iterable[Component]) -> float:
    """Return how probable so large a difference is, to either side, where there is none."""
    if not difference:
        return 1.0
    known = [one for one in components if one.variance > 0]
    variance = math.fsum(one.variance for one in known)
    if not variance:
        return 0.0
    parts = [one.variance**2 / one.freedom for one in known]
    freedom = variance**2 / math.fsum(parts)
    return both_tails(difference / math.sqrt(variance), freedom)


def both_tails(t: float, freedom: float) -> float:
    """Return the probability that Student's t is as far from 0 as this one.

    With t = sqrt(freedom) / tan(angle), the density is a power of a sine.
    """
    widest = math.atan2(math.sqrt(freedom), abs(t))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    places = (nodes + 1) / 2
    angles = widest * places**_POWER
    steps = widest * _POWER * places ** (_POWER - 1)
    density = np.sin(angles) ** (freedom - 1)
    area = float((weights * steps * density).sum())
    above = math.lgamma((freedom + 1) / 2)
    below = math.lgamma(freedom / 2)
    share = area * math.exp(above - below) / math.sqrt(math.pi)
    return min(share, 1.0)
