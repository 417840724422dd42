"""The best next tokens of each row, in an order that nothing but their numbers decides.

Shapes: R rows of one step, V vocabulary, m candidates of each row.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import FREE, Floats, StepInput, Tokens

AnyFloats: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
_BLOCK = 64
Counts: TypeAlias = int | NDArray[np.int64]


def best_allowed(
    log_probs: Floats, inputs: StepInput, count: int
) -> tuple[Floats, Tokens]:
    """Return log-probabilities and ids of the `count` best next tokens of each row (R, V) that are
    not banned, (R, count) each; of a forced row, its forced token alone.
    """
    best, tokens = _best_unbanned(log_probs, inputs, count)
    if inputs.forced is not None:
        rows = np.flatnonzero(inputs.forced != FREE)
        forced = inputs.forced[rows]
        best[rows] = -np.inf
        best[rows, 0] = log_probs[rows, forced]
        tokens[rows, 0] = forced
    return best, tokens


def _best_unbanned(
    log_probs: Floats, inputs: StepInput, count: int
) -> tuple[Floats, Tokens]:
    """Return what `best_allowed` does where no token is forced."""
    if inputs.ban_ends is None or not len(inputs.banned):
        return best_tokens(log_probs, count)
    num_banned = np.diff(inputs.ban_ends, prepend=0)
    all_rows = np.arange(len(inputs))
    rows = np.repeat(all_rows, num_banned)
    unbanned = log_probs.copy()
    unbanned[rows, inputs.banned] = -np.inf
    return best_tokens(unbanned, count)


def best_tokens(log_probs: Floats, count: int) -> tuple[Floats, Tokens]:
    """Return the `count` largest of each row (R, V) and their ids, the largest first, the lower id
    first among equals.

    -inf where there are not so many; NaN throughout for a row that has any.
    """
    num_rows, vocab_size = log_probs.shape
    known = min(count, vocab_size)
    peaks = _peaks(log_probs, known)
    kth = peaks.shape[1] - known
    ascending = np.partition(peaks, kth, axis=1)
    # at least so many are as large as this; few more are, and these alone are sorted
    least = ascending[:, kth, None]
    rows, ids = np.nonzero(log_probs >= least)
    values = log_probs[rows, ids]
    order = np.lexsort((ids, -values, rows))
    ids = ids[order]
    values = values[order]
    num_found = np.bincount(rows, minlength=num_rows)
    start = np.cumsum(num_found) - num_found
    rank = np.arange(len(rows))
    rank = rank - np.repeat(start, num_found)
    is_best = rank < known
    row = rows[is_best]
    rank = rank[is_best]
    best = np.full((num_rows, count), -np.inf, np.float32)
    tokens = np.zeros((num_rows, count), np.int32)
    best[row, rank] = values[is_best]
    tokens[row, rank] = ids[is_best]
    is_nan = np.isnan(peaks)
    is_broken = np.any(is_nan, axis=1)
    best[is_broken] = np.nan
    return best, tokens


def _peaks(log_probs: Floats, known: int) -> Floats:
    """Return the largest number of each block of a row: at least `known` blocks, all numbers where
    there are not so many.
    """
    num_rows, vocab_size = log_probs.shape
    num_blocks = vocab_size // _BLOCK
    if num_blocks < known:
        return log_probs
    end = num_blocks * _BLOCK
    whole = log_probs[:, :end]
    blocks = whole.reshape(num_rows, num_blocks, _BLOCK)
    peaks = blocks.max(2)
    if end == vocab_size:
        return peaks
    rest = log_probs[:, end:]
    last = rest.max(1, keepdims=True)
    return np.concatenate([peaks, last], axis=1)


def first_of_row(values: AnyFloats, smallest: AnyFloats, counts: Counts) -> Flags:
    """Mark so many of each row (R, V), the largest first, down to the smallest (R, 1); of those
    equal to it, the lower ids.
    """
    is_above = values > smallest
    is_equal = values == smallest
    num_above = is_above.sum(-1, keepdims=True)
    room = counts - num_above
    number = is_equal.cumsum(-1)
    is_first_equal = is_equal & (number <= room)
    return is_above | is_first_equal


@dataclass(frozen=True)
class LogSoftmax:
    """The constants that make log-probabilities of the logits (R, V): each row's largest, and the
    logarithm of the sum of all exponentials below it; (R, 1) each.
    """

    largest: Floats
    log_total: Floats

    @classmethod
    def of(cls, logits: Floats) -> "LogSoftmax":
        """Compute them; NaN for a row that has no numbers."""
        # infinities less each other are not numbers, as they should be
        with np.errstate(invalid="ignore"):
            largest = logits.max(-1, keepdims=True)
            below = logits - largest
            np.exp(below, out=below)
            total = below.sum(-1, keepdims=True)
            return cls(largest, np.log(total))

    def log_probs(self, logits: Floats) -> Floats:
        """Return the log-probabilities of some or all logits of each row."""
        with np.errstate(invalid="ignore"):
            below = logits - self.largest
            return below - self.log_total
