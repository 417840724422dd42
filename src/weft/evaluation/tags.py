"""The right words of a translation, by its reference; and how well a number tells them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def right_words(words: Sequence[str], reference: Sequence[str]) -> list[bool]:
    """Return whether each word is one that the least edits leave as it is.

    These are the tags OK and BAD of WMT's word-level quality estimation: TER's alignment without
    shifts. Of several ways with equally few edits, the one that pairs words latest.
    """
    costs = _costs(words, reference)
    is_right = [False] * len(words)
    i, j = len(words), len(reference)
    while i and j:
        above = costs[i - 1]
        cost = costs[i][j]
        is_same = words[i - 1] == reference[j - 1]
        replaced = above[j - 1] + (not is_same)
        if cost == replaced:
            i -= 1
            j -= 1
            is_right[i] = is_same
        elif cost == above[j] + 1:
            i -= 1
        else:
            j -= 1
    return is_right


def _costs(words: Sequence[str], reference: Sequence[str]) -> list[list[int]]:
    """Return the fewest edits between each beginning of one and each of the other."""
    costs = [list(range(len(reference) + 1))]
    for number, word in enumerate(words, start=1):
        above = costs[-1]
        row = [number]
        for j, other in enumerate(reference):
            replaced = above[j] + (word != other)
            deleted = above[j + 1] + 1
            inserted = row[j] + 1
            cheapest = min(replaced, deleted, inserted)
            row.append(cheapest)
        costs.append(row)
    return costs


def area_under_curve(scores: ArrayLike, is_positive: ArrayLike) -> float:
    """Return the chance that a positive has a higher score than a negative; equal ones count half.

    0.5 where there are none of one kind.
    """
    values = np.asarray(scores, np.float64)
    positive = np.asarray(is_positive, np.bool_)
    num_positive = int(positive.sum())
    num_negative = len(positive) - num_positive
    if not num_positive or not num_negative:
        return 0.5
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = last - (counts - 1) / 2
    in_all = ranks[place][positive].sum()
    least = num_positive * (num_positive + 1) / 2
    above = in_all - least
    return float(above / (num_positive * num_negative))
