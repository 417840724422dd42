"""Equal hashes among very many, such as those of a text's rows: which recur, and where.

Arrays may lie on disk and be mapped: each is read from its beginning to its end. What is kept in
memory is a copy of one of them while it is sorted, and of the rest what recurs alone.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]
N = TypeVar("N", np.uint64, np.int64)

_BLOCK = 1 << 18  # hashes that are looked up at a time
_BITS = 24  # of a hash that are its beginning
_OTHER_BITS = np.uint64(64 - _BITS)


def sorted_once(numbers: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return numbers in their order, each once; of NumPy's own ways some are slow, and others take
    much memory.
    """
    ordered = np.sort(np.asarray(numbers))
    return ordered[_begin_runs(ordered)]


def places_of(some: Hashes, hashes: Hashes) -> Positions:
    """Return the places of all hashes that are among `some`, which are in their order."""
    found = [np.zeros(0, np.int64)]
    # most have not even the beginning of one
    begins_one = np.zeros(1 << _BITS, np.bool_)
    begins_one[some >> _OTHER_BITS] = True
    for start in range(0, len(hashes), _BLOCK):
        end = start + _BLOCK
        block = np.asarray(hashes[start:end])
        is_likely = begins_one[block >> _OTHER_BITS]
        places = np.flatnonzero(is_likely)
        likely = block[places]
        nearest = np.searchsorted(some, likely)
        is_behind = nearest == len(some)
        nearest[is_behind] = 0
        is_one = some[nearest] == likely
        found.append(start + places[is_one])
    return np.concatenate(found)


def later_of_equals(
    hashes: Hashes, nothing: np.uint64 | None = None
) -> tuple[Positions, Positions]:
    """Find the places whose hash stands at an earlier one, too; return them, in their order, and
    for each the first place of its hash. One that is `nothing` is equal to none.
    """
    again = _recurring(hashes)
    if nothing is not None:
        again = again[again != nothing]
    places = places_of(again, hashes)
    found = np.asarray(hashes[places])
    order = np.argsort(found, kind="stable")
    found = found[order]
    places = places[order]
    is_first = _begin_runs(found)
    run = np.cumsum(is_first) - 1
    first = places[is_first]
    first = first[run[~is_first]]
    later = places[~is_first]
    by_place = np.argsort(later)
    return later[by_place], first[by_place]


def _recurring(hashes: Hashes) -> Hashes:
    """Return the hashes that are there more than once, in their order."""
    ordered = np.sort(np.asarray(hashes))
    is_first = _begin_runs(ordered)
    return ordered[~is_first]


def _begin_runs(ordered: npt.NDArray[N]) -> npt.NDArray[np.bool_]:
    """Say of each of sorted numbers whether it is the first of those that are equal."""
    is_first = np.ones(len(ordered), np.bool_)
    before = ordered[:-1]
    after = ordered[1:]
    np.not_equal(before, after, out=is_first[1:])
    return is_first
