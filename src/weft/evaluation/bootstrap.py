"""Is a difference more than chance? Two systems on the same rows, drawn again and again.

Shapes: N rows, M resamples, C labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Figure:
    """A figure of two systems, and half the width of its 95 % interval for each.

    `p_value`: how probable so large a difference is where both are equally good. `signature` says
    how it was computed, in sacreBLEU's form: `bs` resamples, drawn from `seed`.
    """

    name: str
    first: float
    second: float
    first_ci: float
    second_ci: float
    p_value: float
    lower_is_better: bool = False
    signature: str = ""

    @property
    def verdict(self) -> str:
        """Say whether the difference is more than chance; it is below p = 0.05."""
        if self.p_value >= 0.05:
            return "no difference beyond chance"
        return (
            "the first is better"
            if (self.first < self.second) == self.lower_is_better
            else "the second is better"
        )

    def cells(self) -> tuple[str, ...]:
        """Return a row for a person: name, both figures, their difference."""
        first, second = (
            f"{self.first:.3f} ± {self.first_ci:.3f}",
            f"{self.second:.3f} ± {self.second_ci:.3f}",
        )
        return self.name, first, second, f"{self.second - self.first:+.3f}"


def paired_bootstrap(
    name: str,
    systems: tuple[NDArray[np.float64], NDArray[np.float64]],
    sizes: NDArray[np.float64],
    *,
    samples: int = 1000,
    seed: int = 1,
    lower_is_better: bool = False,
) -> Figure:
    """Return the sums of (N,) numbers of each system over the sum of (N,) `sizes`, from M =
    `samples` draws of N rows.

    Where the systems' rows have different sizes, `sizes` are (2, N).

    Intervals are those between the 2.5 % and 97.5 % quantiles; p is the share of draws in which the
    difference lies as far from its mean as it is from 0, the real one counted (Efron and Tibshirani
    1993, chapter 16; the pairing is Koehn's, 2004, "Statistical Significance Tests for Machine
    Translation Evaluation").
    """
    first, second = systems

    def figures(rows: Rows) -> NDArray[np.float64]:
        sums = np.array([first[rows].sum(), second[rows].sum()])
        totals: NDArray[np.float64] = sizes[..., rows].sum(-1)
        return sums / totals

    drawn = _drawn(figures, len(first), samples, seed)
    whole = figures(np.arange(len(first)))
    figure = _figure(name, whole, drawn, lower_is_better)
    return replace(figure, signature=_signature(samples, seed))


def paired_macro_f1(
    wanted: NDArray[np.bool_],
    systems: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    *,
    samples: int = 1000,
    seed: int = 1,
) -> Figure:
    """Return the macro-F1 of the labels (N, C) that two classifiers give, beside the wanted ones.

    The rows drawn are those of `paired_bootstrap`; a label that no row drawn has or was given
    counts in neither mean, as in `weft.evaluation.classification`.
    """

    def figures(rows: Rows) -> NDArray[np.float64]:
        return np.array([_macro_f1(wanted[rows], given[rows]) for given in systems])

    drawn = _drawn(figures, len(wanted), samples, seed)
    figure = _figure("macro-F1", figures(np.arange(len(wanted))), drawn)
    return replace(figure, signature=_signature(samples, seed))


def _signature(samples: int, seed: int) -> str:
    """Return the number of resamples and the seed as sacreBLEU writes them."""
    return f"bs:{samples}|seed:{seed}"


def _macro_f1(wanted: NDArray[np.bool_], given: NDArray[np.bool_]) -> float:
    """Return the mean over labels of 2 * right / (wanted + given)."""
    right = np.count_nonzero(wanted & given, axis=0)
    total = np.count_nonzero(wanted, axis=0) + np.count_nonzero(given, axis=0)
    occurs = total > 0
    return float(np.mean(2 * right[occurs] / total[occurs])) if occurs.any() else 0.0


def _drawn(
    figures: Callable[[Rows], NDArray[np.float64]], count: int, samples: int, seed: int
) -> NDArray[np.float64]:
    """Return both systems' figures (M, 2) on M draws of as many rows as there are."""
    draw = np.random.default_rng(seed)
    return np.array([figures(draw.integers(count, size=count)) for _ in range(samples)])


def _figure(
    name: str,
    values: NDArray[np.float64],
    drawn: NDArray[np.float64],
    lower_is_better: bool = False,
) -> Figure:
    """Return the figure of both systems' `values` (2,), by what was `drawn` (M, 2)."""
    samples = len(drawn)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    differences = drawn[:, 1] - drawn[:, 0]
    as_far = np.abs(differences - differences.mean()) >= abs(values[1] - values[0])
    score, other = values.tolist()
    margin, other_margin = ((high - low) / 2).tolist()
    return Figure(
        name,
        score,
        other,
        margin,
        other_margin,
        p_value=(1 + int(as_far.sum())) / (1 + samples),
        lower_is_better=lower_is_better,
    )
