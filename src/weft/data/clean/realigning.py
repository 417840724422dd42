"""Shifted stretches put in step again: each source beside the target line that fits it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.data.check.alignment import Alignment, Shift


class Joins(NamedTuple):
    """Pairs of a source and a target line, by their numbers, and the lines that are left over."""

    pairs: list[tuple[int, int]]
    sources: list[int]
    targets: list[int]


def join_again(
    alignment: Alignment, shifts: Sequence[Shift], file_of: Sequence[int]
) -> Joins:
    """Join the lines within shifts as far on as each says, within a file, all others as they stand.

    Where two sources claim a target, at the ends of a stretch, the one that fits it better has it.
    """
    size = len(file_of)
    rows = np.arange(size)
    partner = np.arange(size)
    for shift in shifts:
        inside = slice(shift.first, shift.last + 1)
        partner[inside] = rows[inside] + shift.by
    files = np.asarray(file_of)
    is_there = (partner >= 0) & (partner < size)
    is_there &= files[np.clip(partner, 0, size - 1)] == files
    src = rows[is_there]
    tgt = partner[is_there]
    scores = alignment.score(src, tgt)
    best_first = np.lexsort((-scores, tgt))
    claimed = tgt[best_first]
    is_first = np.ones(len(claimed), np.bool_)
    is_first[1:] = claimed[1:] != claimed[:-1]
    kept = np.sort(best_first[is_first])
    src = src[kept]
    tgt = tgt[kept]
    return Joins(
        list(zip(src.tolist(), tgt.tolist(), strict=True)),
        np.setdiff1d(rows, src).tolist(),
        np.setdiff1d(rows, tgt).tolist(),
    )
