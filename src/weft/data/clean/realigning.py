"""Shifted stretches put in step again: each source beside the target line that fits it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.data.check.alignment import Alignment, Shift
from weft.data.check.words import Ids

Floats = npt.NDArray[np.float64]

_NEAR = (
    8  # lines on each side of an end that is told, among which the true one is sought
)


class Joins(NamedTuple):
    """Pairs of a source and a target line of so many, by their numbers: `src` in order, and beside
    them `tgt`.
    """

    size: int
    src: Ids
    tgt: Ids

    @property
    def left_src(self) -> list[int]:
        """Return the source lines that are left over."""
        return self._without(self.src)

    @property
    def left_tgt(self) -> list[int]:
        """Return the target lines that are left over."""
        return self._without(self.tgt)

    def _without(self, joined: Ids) -> list[int]:
        is_left = np.ones(self.size, np.bool_)
        is_left[joined] = False
        return np.flatnonzero(is_left).tolist()


def join_again(
    alignment: Alignment, shifts: Sequence[Shift], file_of: Sequence[int]
) -> Joins:
    """Join the lines within shifts as far on as each says, within a file, all others as they stand.

    A stretch ends where the lines near the end that is told fit best together. Where two sources
    claim a target all the same, the one that fits it better has it.
    """
    files = np.asarray(file_of)
    rows = np.arange(len(files))
    moved = np.zeros_like(rows)
    for shift in shifts:
        stop = shift.last + 1
        moved[shift.first : stop] = shift.by
    partner = _beside(rows, moved, files)
    for end, near in _ends(moved, files):
        by_before, by_behind = moved[end - 1 : end + 1]
        before = _beside(near, by_before, files)
        behind = _beside(near, by_behind, files)
        lost = max(by_before - by_behind, 0)
        fit_before = _fit(alignment, near, before)
        fit_behind = _fit(alignment, near, behind)
        cut = _best_cut(fit_before, fit_behind, lost)
        stop = cut + lost
        partner[near[:cut]] = before[:cut]
        partner[near[cut:stop]] = -1
        partner[near[stop:]] = behind[stop:]
    src = np.flatnonzero(partner >= 0)
    tgt = partner[src]
    scores = alignment.score(src, tgt)
    kept = _best_claims(scores, tgt)
    return Joins(len(files), src[kept], tgt[kept])


def _beside(src: Ids, by: Ids, files: Ids) -> Ids:
    """Return the target lines `by` further on; -1 where the file of a source has none."""
    tgt = src + by
    last = len(files) - 1
    inside = np.clip(tgt, 0, last)
    is_there = tgt == inside
    is_there &= files[inside] == files[src]
    return np.where(is_there, tgt, -1)


def _ends(moved: Ids, files: Ids) -> Iterator[tuple[int, Ids]]:
    """Yield each line at which another stretch begins within a file, and the lines near it."""
    changes = np.flatnonzero(np.diff(moved))
    begins = changes + 1
    bounds = [0, *begins.tolist(), len(moved)]
    for number, end in enumerate(bounds[1:-1], start=1):
        last = bounds[number - 1]
        following = bounds[number + 1]
        first = max(end - _NEAR, last)
        stop = min(end + _NEAR, following)
        near = np.arange(first, stop)
        is_near = files[near] == files[end]
        if files[end - 1] == files[end]:
            yield end, near[is_near]


def _fit(alignment: Alignment, src: Ids, tgt: Ids) -> Floats:
    """Return how well the first 0, 1, 2, ... lines fit their target lines, together."""
    is_there = tgt >= 0
    scores = np.zeros(len(src))
    src = src[is_there]
    tgt = tgt[is_there]
    scores[is_there] = alignment.score(src, tgt)
    sums = np.zeros(len(scores) + 1)
    np.cumsum(scores, out=sums[1:])
    return sums


def _best_cut(before: Floats, behind: Floats, lost: int) -> int:
    """Return how many lines fit best as before an end, if `lost` ones follow and the others are as
    behind it.
    """
    size = len(before)
    most = max(size - lost, 1)
    skipped = min(lost, size - 1)
    rest = behind[-1] - behind[skipped:]
    best = np.argmax(before[:most] + rest)
    return int(best)


def _best_claims(scores: Floats, tgt: Ids) -> Ids:
    """Return in order the places of targets where each is claimed with its best score."""
    best_first = np.lexsort((-scores, tgt))
    claimed = tgt[best_first]
    is_first = np.ones(len(claimed), np.bool_)
    is_first[1:] = claimed[1:] != claimed[:-1]
    chosen = best_first[is_first]
    return np.sort(chosen)
