"""The hypotheses of beams after one more token: chosen among candidates, or each with its own.

Shapes: A beams, k hypotheses in the widest, m candidates of each.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import Floats, Indices, Tokens

Flags: TypeAlias = NDArray[np.bool_]

FAR = np.iinfo(np.int64).max
"""A number of tokens that comes after any other."""


@dataclass(frozen=True)
class Extensions:
    """The k hypotheses of each beam after a step (A k): the beam index of each one's parent, the
    log-probability of its new token, this token, and the log-probability of all its tokens.

    `is_broken` (A) says where there is none, because the logits are not numbers.
    """

    parents: Indices
    log_probs: Floats
    tokens: Tokens
    totals: Floats
    is_broken: Flags

    def of(self, beams: Flags) -> "Extensions":
        """Return those of some beams."""
        return Extensions(
            self.parents[beams],
            self.log_probs[beams],
            self.tokens[beams],
            self.totals[beams],
            self.is_broken[beams],
        )

    def put(self, beams: Flags, others: "Extensions") -> None:
        """Set those of some beams, which may be narrower."""
        width = others.tokens.shape[1]
        self.parents[beams, :width] = others.parents
        self.log_probs[beams, :width] = others.log_probs
        self.tokens[beams, :width] = others.tokens
        self.totals[beams, :width] = others.totals
        self.is_broken[beams] = others.is_broken


def no_extensions(num_beams: int, width: int) -> Extensions:
    """Return extensions of probability 0, to be set."""
    shape = num_beams, width
    return Extensions(
        np.zeros(shape, np.int64),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.int32),
        np.full(shape, -np.inf, np.float32),
        np.zeros(num_beams, np.bool_),
    )


def best_extensions(
    log_probs: Floats, top_log_probs: Floats, top_ids: Tokens, sizes: Indices
) -> Extensions:
    """Choose the most probable extensions of each beam: as many as its size (A), the others get
    probability 0.

    `log_probs` (A k) are those of the hypotheses, the others (A k m) those of the candidates.
    """
    num_beams, width, count = top_log_probs.shape
    totals = log_probs[:, :, None] + top_log_probs  # A k m
    totals = totals.reshape(num_beams, -1)
    # NaN where any candidate is
    is_broken = ~np.isfinite(totals.max(1))
    # stable: of equals the earlier hypothesis, then the lower id, on every device
    order = np.argsort(-totals, axis=1, kind="stable")
    chosen = order[:, :width]
    kept = np.take_along_axis(totals, chosen, 1)
    parents = chosen // count
    flat_log_probs = top_log_probs.reshape(totals.shape)
    token_log_probs = np.take_along_axis(flat_log_probs, chosen, 1)
    flat_ids = top_ids.reshape(totals.shape)
    tokens = np.take_along_axis(flat_ids, chosen, 1)
    is_narrow = sizes < width
    if is_narrow.any():
        kept[np.arange(width) >= sizes[:, None]] = -np.inf
    return Extensions(parents, token_log_probs, tokens, kept, is_broken)


def own_extensions(
    log_probs: Floats, drawn_log_probs: Floats, drawn: Tokens
) -> Extensions:
    """Extend each sample by the token that it drew (A k)."""
    num_beams, width = log_probs.shape
    is_live = log_probs > -np.inf
    is_missing = is_live & ~np.isfinite(drawn_log_probs)
    samples = np.arange(width)
    parents = np.tile(samples, (num_beams, 1))
    totals = log_probs + drawn_log_probs
    is_broken = np.any(is_missing, axis=1)
    return Extensions(parents, drawn_log_probs, drawn, totals, is_broken)


def in_turns(totals: Floats, left: Indices) -> Indices:
    """Return the order of candidates (B C): in turns, the best that is left of each group of those
    with equally many tokens left, the group with the fewest first; what is impossible comes last.
    """
    is_out = totals == -np.inf
    group = np.where(is_out, FAR, left)
    order = np.lexsort((-totals, group), axis=-1)
    group = at_places(group, order)
    place = np.arange(group.shape[1])
    is_first = np.ones(group.shape, np.bool_)
    is_first[:, 1:] = group[:, 1:] != group[:, :-1]
    start = np.maximum.accumulate(np.where(is_first, place, 0), axis=1)
    turn = np.where(group == FAR, FAR, place - start)
    by_turn = np.lexsort((group, turn), axis=-1)
    return at_places(order, by_turn)


def at_places(values: NDArray[Any], places: Indices) -> NDArray[Any]:
    """Take the values at some places of each row."""
    return np.take_along_axis(values, places, 1)
