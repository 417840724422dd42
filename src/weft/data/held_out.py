"""The split of a large text by the hashes of its rows, the same as `split.hold_out` makes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.data.equals import Hashes, Positions, later_of_equals, sorted_once
from weft.data.measures import Measures
from weft.data.split import GROUP_DIVISORS

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]

_LAST = np.uint64(2**64 - 1)  # in the order, of what is not held out


def hold_out_rows(
    measures: Measures, dev_size: int, test_size: int, made: bytes = b""
) -> tuple[Positions, Positions, Positions]:
    """Return the rows of training, dev and test, each in rising order."""
    roots = roots_of([measures.side(n) for n in range(measures.num_sides)])
    counted = np.ones(len(roots), np.bool_)
    if made:
        counted = np.frombuffer(made, np.uint8) == 0
    sizes = _sizes_of(roots, counted)
    order = _in_order(measures.order, roots, counted)
    order = order[sizes[order] > 0]
    test, order = _take(order, sizes, test_size)
    dev, order = _take(order, sizes, dev_size)
    is_test = _is_in(test, roots)
    is_dev = _is_in(dev, roots)
    return (
        np.flatnonzero(~(is_test | is_dev)),
        np.flatnonzero(is_dev & counted),
        np.flatnonzero(is_test & counted),
    )


def _sizes_of(roots: Numbers, counted: Flags) -> Numbers:
    """Count the rows of each group, at its root; elsewhere it is 0."""
    sizes = counted.astype(np.int32)
    joined = _joined(roots)
    np.add.at(sizes, roots[joined], sizes[joined])
    sizes[joined] = 0
    return sizes


def _in_order(places: Hashes, roots: Numbers, counted: Flags) -> Positions:
    """Return all rows, roots in the order of the first place that a row of their group has."""
    first = np.array(places)
    first[~counted] = _LAST
    joined = _joined(roots)
    np.minimum.at(first, roots[joined], first[joined])
    return np.argsort(first, kind="stable")


def _joined(roots: Numbers) -> Positions:
    """Return the rows that are not their own root, mostly few."""
    return np.flatnonzero(roots != np.arange(len(roots), dtype=np.int32))


def _is_in(groups: Sequence[int], roots: Numbers) -> Flags:
    """Return whether each row is of one of these groups."""
    is_taken = np.zeros(len(roots), np.bool_)
    is_taken[list(groups)] = True
    return is_taken[roots]


def roots_of(sides: Sequence[Hashes]) -> Numbers:
    """Find for each row the smallest among those that it shares a side with, directly or through
    others.
    """
    equals = list(map(later_of_equals, sides))
    # all others stay alone
    rows = sorted_once(np.concatenate([row for side in equals for row in side]))
    roots = np.arange(len(sides[0]), dtype=np.int32)
    while True:
        before = roots[rows]
        for later, first in equals:
            np.minimum.at(roots, first, roots[later])
            roots[later] = roots[first]
        roots[rows] = roots[roots[rows]]
        if (roots[rows] == before).all():
            return roots


def _take(order: Positions, sizes: Numbers, size: int) -> tuple[list[int], Positions]:
    """Fill one part with groups from the front; return these, and the groups that are left."""
    taken: list[int] = []
    room = size
    for divisor in GROUP_DIVISORS:
        largest = max(1, size // divisor)
        is_left = np.ones(len(order), np.bool_)
        for place, group in enumerate(order):
            if not room:
                break
            size_of_group = int(sizes[group])
            if size_of_group <= min(largest, room):
                taken.append(int(group))
                room -= size_of_group
                is_left[place] = False
        order = order[is_left]
    return taken, order
