"""The language of each side: finds swapped pairs, and lines in the other side's language.

Learned from the text itself, without knowing the languages: letters, and three letters in a row,
that are frequent on one side and rare on the other speak for the first (Cavnar and Trenkle 1994,
"N-gram-based text categorization"). Where the sides are in one language nothing tells them apart,
and nothing is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from weft.data.check.characters import blocks
from weft.data.check.words import GOLDEN, Hashes, Ids

Floats = npt.NDArray[np.float64]

_BITS = 18  # of a hash of three letters
_LEAST_SEEN = 4  # times; what is rarer may be of this one line alone
# nats a letter between the middles of both sides, below which they are in one language
_APART = 1.0
_MARGIN = 0.25  # of that distance: how far over to the other side a line must be
_ENOUGH_PAIRS = 100_000  # evenly spaced, of a larger text, to learn from
_LEAST_EVIDENCE = 12.0  # nats, of all letters of a line together
_LEAST_TOGETHER = (
    24.0  # nats, of both lines of a pair that would be likelier the other way round
)
_FIRST = np.uint64(GOLDEN)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)


class SideModel:
    """The log ratios of how often each letter, and each three in a row, occur in source and target,
    in nats.
    """

    def __init__(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        every = -(-len(src) // _ENOUGH_PAIRS) or 1
        src = src[::every]
        tgt = tgt[::every]
        self._weights = list(map(_weigh, _count(src), _count(tgt)))
        self.src_middle = self._middle(src)
        self.tgt_middle = self._middle(tgt)

    def to_array(self) -> Floats:
        """Return the model as one array."""
        middles = [self.src_middle, self.tgt_middle]
        return np.concatenate([*self._weights, middles])

    @classmethod
    def from_array(cls, flat: Floats) -> Self:
        """Read what `to_array` gave."""
        model = cls.__new__(cls)
        model._weights = np.split(flat[:-2], 2)
        model.src_middle, model.tgt_middle = flat[-2:].tolist()
        return model

    @property
    def apart(self) -> bool:
        """Return whether the two sides are different enough to be told apart."""
        return self.src_middle - self.tgt_middle > _APART

    def scores(self, texts: Sequence[str]) -> tuple[Floats, Floats]:
        """Score each text by its letters, in nats: the mean of a letter, and the sum.

        High is like the source, low is like the target.
        """
        means, sums = np.zeros((2, len(texts)))
        letter_weights, three_weights = self._weights
        for block in blocks(texts):
            letters, threes = _features(block.codes)
            evidence = letter_weights[letters] + three_weights[threes]
            bounds = np.append(block.starts, len(block.codes))
            lengths = np.diff(bounds)
            part = slice(block.first, block.last)
            sums[part] = np.add.reduceat(evidence, block.starts)
            means[part] = sums[part] / lengths
        return means, sums

    def _middle(self, texts: Sequence[str]) -> float:
        means, _ = self.scores(texts)
        return float(np.median(means))


@dataclass(frozen=True)
class Sides:
    """Pairs that stand the wrong way round, and pairs of which one side is in the other's
    language.
    """

    swapped: list[int]
    same_language: list[int]


def judge_sides(model: SideModel, src: Sequence[str], tgt: Sequence[str]) -> Sides:
    """Find swapped pairs and pairs in one language, by the model of this text or of the training
    text.

    A pair is swapped if each line is plainly in the other side's language; or if each is a little
    more so than not, and both together are far likelier the other way round: so it is with short
    lines, and with names on both sides.
    """
    if not model.apart:
        return Sides([], [])
    middle = (model.src_middle + model.tgt_middle) / 2
    margin = _MARGIN * (model.src_middle - model.tgt_middle)
    src_mean, src_sum = model.scores(src)
    tgt_mean, tgt_sum = model.scores(tgt)
    is_sure = np.abs(src_sum) > _LEAST_EVIDENCE
    is_sure &= np.abs(tgt_sum) > _LEAST_EVIDENCE

    src_like_src = src_mean > middle + margin
    src_like_tgt = src_mean < middle - margin
    tgt_like_src = tgt_mean > middle + margin
    tgt_like_tgt = tgt_mean < middle - margin
    both_like_src = src_like_src & tgt_like_src
    both_like_tgt = src_like_tgt & tgt_like_tgt
    is_alike = is_sure & (both_like_src | both_like_tgt)
    is_swapped = is_sure & src_like_tgt & tgt_like_src
    are_crossed = (src_sum < 0) & (tgt_sum > 0)
    is_swapped |= are_crossed & (tgt_sum - src_sum > _LEAST_TOGETHER)
    return Sides(
        swapped=np.flatnonzero(is_swapped).tolist(),
        same_language=np.flatnonzero(is_alike & ~is_swapped).tolist(),
    )


def _weigh(src_counts: Floats, tgt_counts: Floats) -> Floats:
    """Compute the log ratio of each feature's shares in source and target; 0 where it is too rare
    to tell.
    """
    ratio = _share(src_counts) / _share(tgt_counts)
    is_told = src_counts + tgt_counts >= _LEAST_SEEN
    return np.where(is_told, np.log(ratio), 0.0)


def _share(counts: Floats) -> Floats:
    """Divide counts by their sum, with half a count added to each."""
    total = counts.sum() + 0.5 * len(counts)
    return (counts + 0.5) / total


def _count(texts: Sequence[str]) -> list[Floats]:
    size = 1 << _BITS
    letter_counts = np.zeros(size)
    three_counts = np.zeros(size)
    for block in blocks(texts):
        letters, threes = _features(block.codes)
        letter_counts += np.bincount(letters, minlength=size)
        three_counts += np.bincount(threes, minlength=size)
    return [letter_counts, three_counts]


def _features(
    codes: npt.NDArray[np.uint32],
) -> tuple[Ids, Ids]:
    """Hash each letter alone, and together with the letters before and after it; an LF stands at
    the ends.
    """
    letters: Hashes = codes.astype(np.uint64)
    before = np.roll(letters, 1)
    after = np.roll(letters, -1)
    threes = (letters * _FIRST + before) * _SECOND + after * _FIRST
    low_bits = letters & np.uint64((1 << _BITS) - 1)
    high_bits = threes >> np.uint64(64 - _BITS)
    return low_bits.astype(np.int64), high_bits.astype(np.int64)
