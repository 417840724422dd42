"""The split of a large text by the hashes of its rows, the same as `split.hold_out` makes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.data.measures import Hashes, Measures, Positions
from weft.data.split import GROUP_DIVISORS

Flags = npt.NDArray[np.bool_]


def hold_out_rows(
    measures: Measures, dev_size: int, test_size: int, made: Sequence[bool] = ()
) -> tuple[Positions, Positions, Positions]:
    """Return the rows of training, dev and test, each in rising order."""
    roots = roots_of([measures.side(n) for n in range(measures.num_sides)])
    count = len(roots)
    counted = np.ones(count, np.bool_)
    if made:
        counted = ~np.array(made, np.bool_)
    sizes = np.bincount(roots[counted], minlength=count)
    last = np.iinfo(np.uint64).max
    first = np.full(count, last, np.uint64)
    places = measures.order
    np.minimum.at(first, roots[counted], places[counted])
    groups = np.flatnonzero(sizes)
    by_first = np.argsort(first[groups], kind="stable")
    order = groups[by_first]
    test, order = _take(order, sizes, test_size)
    dev, order = _take(order, sizes, dev_size)
    is_test = _is_in(test, roots)
    is_dev = _is_in(dev, roots)
    return (
        np.flatnonzero(~(is_test | is_dev)),
        np.flatnonzero(is_dev & counted),
        np.flatnonzero(is_test & counted),
    )


def _is_in(groups: Sequence[int], roots: Positions) -> Flags:
    """Return whether each row is of one of these groups."""
    is_taken = np.zeros(len(roots), np.bool_)
    is_taken[list(groups)] = True
    return is_taken[roots]


def roots_of(sides: Sequence[Hashes]) -> Positions:
    """Find for each row the smallest among those that it shares a side with, directly or through
    others.
    """
    count = len(sides[0])
    groups = [np.unique(side, return_inverse=True)[1] for side in sides]
    roots = np.arange(count)
    while True:
        before = roots
        for group in groups:
            least = np.full(count, count)
            np.minimum.at(least, group, roots)
            roots = least[group]
        roots = roots[roots]
        if (roots == before).all():
            return roots


def _take(order: Positions, sizes: Positions, size: int) -> tuple[list[int], Positions]:
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
