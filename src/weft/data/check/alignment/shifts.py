"""Stretches of lines that are out of step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.data.check.alignment.lengths import Floats

SHORTEST = 4  # lines


@dataclass(frozen=True)
class Shift:
    """Pairs `first` to `last` (indices) whose source fits the target `by` lines further on better
    than its own.
    """

    first: int
    last: int
    by: int


def largest_sum(values: Floats) -> tuple[float, int, int]:
    """Return the consecutive run with the largest sum: the sum, its first and its last index."""
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    lowest = np.minimum.accumulate(total)
    end = int(np.argmax(total - lowest))
    first = int(np.argmin(total[: end + 1]))
    largest = total[end] - total[first]
    last = max(first, end - 1)
    return float(largest), first, last


def join_shifts(shifts: Sequence[Shift]) -> list[Shift]:
    """Join runs of the same shift with fewer than SHORTEST lines between them."""
    merged: list[Shift] = []
    for shift in shifts:
        last = merged[-1] if merged else None
        is_same = last is not None and shift.by == last.by
        if last and is_same and shift.first <= last.last + SHORTEST:
            end = max(shift.last, last.last)
            merged[-1] = Shift(last.first, end, shift.by)
        else:
            merged.append(shift)
    return merged
