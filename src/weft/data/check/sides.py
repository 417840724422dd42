"""Which side a line belongs to by its look: swapped pairs, and lines in the other side's language.

Learned from the text itself, without knowing the languages: letters, and three letters in a row,
that are frequent on one side and rare on the other speak for the first (Cavnar and Trenkle 1994,
"N-gram-based text categorization"). Where the sides are in one language nothing tells them apart,
and nothing is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.data.check.characters import blocks
from weft.data.check.words import Hashes

Floats = npt.NDArray[np.float64]

_BITS = 18  # of a hash of three letters
_LEAST_SEEN = 4  # times; what is rarer may be of this one line alone
# nats a letter between the middles of both sides, below which they are in one language
_APART = 1.0
_MARGIN = 0.25  # of that distance: how far over to the other side a line must be
_LEAST_EVIDENCE = 12.0  # nats, of all letters of a line together
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class SideModel:
    """What tells source from target: how much likelier each letter, and each three, are in the
    source, in nats.
    """

    def __init__(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        here, there = _count(src), _count(tgt)
        self._weights = [_weigh(a, b) for a, b in zip(here, there, strict=True)]
        self.src_middle, self.tgt_middle = (
            float(np.median(self.scores(side)[0])) for side in (src, tgt)
        )

    @property
    def apart(self) -> bool:
        """Whether the sides can be told apart at all."""
        return self.src_middle - self.tgt_middle > _APART

    def scores(self, texts: Sequence[str]) -> tuple[Floats, Floats]:
        """Of each text the mean over its letters, in nats, high where it looks like the source; and
        the sum.
        """
        means, sums = np.zeros((2, len(texts)))
        for block in blocks(texts):
            letters = sum(
                w[codes]
                for w, codes in zip(self._weights, _features(block.codes), strict=True)
            )
            lengths = np.diff([*block.starts.tolist(), len(block.codes)])
            part = slice(block.first, block.last)
            sums[part] = np.add.reduceat(letters, block.starts)
            means[part] = sums[part] / lengths
        return means, sums


@dataclass(frozen=True)
class Sides:
    """Pairs that stand the wrong way round, and pairs of which one side is in the other's
    language.
    """

    swapped: list[int]
    same_language: list[int]


def judge_sides(model: SideModel, src: Sequence[str], tgt: Sequence[str]) -> Sides:
    """What the model of a text (this one, or the training text) says of each pair."""
    if not model.apart:
        return Sides([], [])
    middle = (model.src_middle + model.tgt_middle) / 2
    margin = _MARGIN * (model.src_middle - model.tgt_middle)
    (here, here_sum), (there, there_sum) = model.scores(src), model.scores(tgt)
    told = (np.abs(here_sum) > _LEAST_EVIDENCE) & (np.abs(there_sum) > _LEAST_EVIDENCE)
    src_over, tgt_over = here < middle - margin, there > middle + margin
    src_own, tgt_own = here > middle + margin, there < middle - margin
    alike = (src_own & tgt_over) | (src_over & tgt_own)
    return Sides(
        np.flatnonzero(told & src_over & tgt_over).tolist(),
        np.flatnonzero(told & alike).tolist(),
    )


def _weigh(here: Floats, there: Floats) -> Floats:
    """How much likelier each feature is in the source, in nats; 0 where it is too rare to tell."""
    src_share = (here + 0.5) / (here.sum() + 0.5 * len(here))
    tgt_share = (there + 0.5) / (there.sum() + 0.5 * len(there))
    return np.where(here + there >= _LEAST_SEEN, np.log(src_share / tgt_share), 0.0)


def _count(texts: Sequence[str]) -> list[Floats]:
    counts = [np.zeros(1 << _BITS), np.zeros(1 << _BITS)]
    for block in blocks(texts):
        for number, codes in enumerate(_features(block.codes)):
            counts[number] += np.bincount(codes, minlength=1 << _BITS)
    return counts


def _features(
    codes: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Small hashes of each letter, and of it with the one before and the one after; LF stands at
    the ends.
    """
    letters: Hashes = codes.astype(np.uint64)
    threes = (letters * _FIRST + np.roll(letters, 1)) * _SECOND + np.roll(
        letters, -1
    ) * _FIRST
    return (letters & np.uint64((1 << _BITS) - 1)).astype(np.int64), (
        threes >> np.uint64(64 - _BITS)
    ).astype(np.int64)
