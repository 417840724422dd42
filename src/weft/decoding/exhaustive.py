"""Exhaustive search: every output up to a limit is scored.

In small vocabularies it tells what a beam misses.

Outputs of the same length grow together, at most `rows_per_step` in one step; where a length has
more of them, the continuations of some are followed to their end before the others' turn comes. So
memory holds max_len caches of that many rows, whatever the number of outputs.

Shapes: N outputs of one length, M that grow out of them, T tokens so far (the first is bos), V
vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.decoding.best import LogSoftmax
from weft.decoding.decoder import (
    Cache,
    Floats,
    Hypothesis,
    Indices,
    Step,
    length_penalties,
)
from weft.errors import DivergedError, UsageError

C = TypeVar("C", bound=Cache)


def exhaustive_search(
    step: Step[C],
    cache: C,
    *,
    bos_id: int,
    eos_id: int,
    max_len: int,
    length_penalty: float = 0.0,
    n_best: int = 1,
    banned_ids: Sequence[int] = (),
    max_sequences: int = 1_000_000,
    rows_per_step: int = 4096,
) -> list[Hypothesis]:
    """Return the `n_best` of all outputs of one sentence, best first, by the score and order of
    `beam_search`.

    `cache` holds the one row of the sentence. An output is up to `max_len` new tokens, eos counted;
    one that reaches `max_len` without eos is unfinished and stands after everything finished.
    Tokens of probability 0 and banned ones are not followed. A list is shorter than `n_best` where
    fewer outputs are possible.

    Raises UsageError for impossible settings, and after the first step, which tells the
    vocabulary's size, where more than `max_sequences` outputs may be possible; DivergedError where
    the logits are not numbers or nothing is possible at all.
    """
    for name, value in {
        "max_len": max_len,
        "n_best": n_best,
        "rows_per_step": rows_per_step,
    }.items():
        if value < 1:
            raise UsageError(f"{name} = {value}: it must be at least 1")
    penalties = np.array(length_penalties(length_penalty, max_len), np.float32)
    rules = _Rules(
        eos_id,
        tuple(banned_ids),
        max_len,
        n_best,
        max_sequences,
        rows_per_step,
        penalties,
    )
    best: list[tuple[_Rank, Hypothesis]] = []
    start = _Outputs.start(bos_id)
    for outputs, finished in _all_outputs(step, cache, start, rules):
        ranked = [*best, *_ranked(outputs, finished, rules)]
        ranked.sort(key=itemgetter(0))
        best = ranked[:n_best]
    if not best:
        raise DivergedError(
            "decoding: no token has a finite probability (NaN or infinite logits)"
        )
    return [hypothesis for _, hypothesis in best]


@dataclass(frozen=True)
class _Rules:
    """The settings of one search."""

    eos_id: int
    banned_ids: tuple[int, ...]
    max_len: int
    n_best: int
    max_sequences: int
    rows_per_step: int
    penalties: Floats  # by length


@dataclass(frozen=True)
class _Outputs:
    """Outputs of one length, from bos on: `ids`, `token_log_probs` and `totals`, their running
    sums, (N, T) each.
    """

    ids: Indices
    token_log_probs: Floats
    totals: Floats

    @classmethod
    def start(cls, bos_id: int) -> "_Outputs":
        """Return the one output of bos alone."""
        zero = np.zeros((1, 1), np.float32)
        return cls(np.full((1, 1), bos_id), zero, zero)

    @property
    def length(self) -> int:
        """Count the new tokens, bos left out."""
        return self.ids.shape[1] - 1

    def extended(self, log_probs: Floats) -> tuple["_Outputs", Indices]:
        """Extend each output by each possible token (N, V); return the row of each one's parent
        (M) too.
        """
        parents, newest = np.nonzero(np.isfinite(log_probs))
        added = log_probs[parents, newest]
        total = self.totals[parents, -1] + added
        grown = _Outputs(
            ids=_with_column(self.ids[parents], newest),
            token_log_probs=_with_column(self.token_log_probs[parents], added),
            totals=_with_column(self.totals[parents], total),
        )
        return grown, parents

    def of(self, rows: Indices | NDArray[np.bool_]) -> "_Outputs":
        """Take these rows alone."""
        return _Outputs(self.ids[rows], self.token_log_probs[rows], self.totals[rows])


_Numbers = TypeVar("_Numbers", Indices, Floats)


def _with_column(matrix: _Numbers, column: _Numbers) -> _Numbers:
    """Append a column (M) to a matrix (M, T)."""
    return np.concatenate([matrix, column[:, None]], axis=1)


@dataclass(frozen=True)
class _Branch(Generic[C]):
    """Outputs whose turn is still to come, and the rows (N) of a cache that knows all but their
    newest ids.
    """

    outputs: _Outputs
    cache: C
    rows: Indices


def _all_outputs(
    step: Step[C], cache: C, start: _Outputs, rules: _Rules
) -> Iterator[tuple[_Outputs, bool]]:
    """Yield every output once, those of one branch and length together, and whether they ended
    with eos; else they were cut at the limit.
    """
    waiting = [_Branch(start, cache, np.zeros(1, np.int64))]
    while waiting:
        branch = waiting.pop()
        log_probs, longer = _next_log_probs(step, branch, rules)
        grown, parents = branch.outputs.extended(log_probs)
        has_ended = grown.ids[:, -1] == rules.eos_id
        yield grown.of(has_ended), True
        if grown.length == rules.max_len:
            yield grown.of(~has_ended), False
            continue
        going_on = np.flatnonzero(~has_ended)
        for first in range(0, len(going_on), rules.rows_per_step):
            rows = going_on[first : first + rules.rows_per_step]
            waiting.append(_Branch(grown.of(rows), longer, parents[rows]))


def _next_log_probs(
    step: Step[C], branch: _Branch[C], rules: _Rules
) -> tuple[Floats, C]:
    """Take one step of the model: log-probabilities (N, V), -inf for banned ids, and the cache."""
    cache = branch.cache.select(branch.rows)
    logits, longer = step(branch.outputs.ids[:, -1], cache)
    if branch.outputs.length == 0:
        _refuse_too_many(logits.shape[1], rules)
    log_probs = LogSoftmax.of(logits).log_probs(logits)
    if np.isnan(log_probs).any():
        raise DivergedError(
            "decoding: no token has a finite probability (NaN or infinite logits)"
        )
    log_probs[:, list(rules.banned_ids)] = -np.inf
    return log_probs, longer


def _refuse_too_many(vocab_size: int, rules: _Rules) -> None:
    """Raise UsageError where the outputs that may be possible are too many to look at."""
    choices = max(0, vocab_size - len({*rules.banned_ids, rules.eos_id}))
    endings = int(rules.eos_id not in rules.banned_ids)

    def count(length: int) -> int:
        """Count the outputs that end up to this length and those that go on: a geometric series."""
        ended = length if choices == 1 else (choices**length - 1) // (choices - 1)
        return endings * ended + choices**length

    lengths = range(1, rules.max_len + 1)
    longest = sum(
        1
        for _ in takewhile(lambda length: count(length) <= rules.max_sequences, lengths)
    )
    if longest == rules.max_len:
        return
    # the number itself may have a million digits
    exponent = rules.max_len * math.log10(max(choices, 1))
    size = (
        f"{count(rules.max_len):,}"
        if exponent < 15
        else f"over 10^{math.floor(exponent)}"
    )
    raise UsageError(
        f"exhaustive search of {choices} ids in addition to eos, at most {rules.max_len} tokens with eos, "
        f"has {size} outputs to score, more than {rules.max_sequences:,}; "
        + (f"lower the limit to {longest} tokens" if longest else "use a beam")
    )


_Rank: TypeAlias = tuple[bool, float, int, list[float], list[tuple[float, int]]]


def _ranked(
    outputs: _Outputs, finished: bool, rules: _Rules
) -> list[tuple[_Rank, Hypothesis]]:
    """Return the best of these outputs, at least `n_best` where there are so many, each with its
    rank.
    """
    if not len(outputs.ids):
        return []
    scores = outputs.totals[:, -1] / rules.penalties[outputs.length]
    least = max(len(scores) - rules.n_best, 0)
    last_place = np.partition(scores, least)[least]
    # with its equals, among which the rank decides
    is_best = scores >= last_place
    best = outputs.of(is_best)
    arrays = (best.ids, best.token_log_probs, best.totals, scores[is_best])
    rows = zip(*(array.tolist() for array in arrays), strict=True)
    return [
        _as_ranked(ids, added, totals, score, finished)
        for ids, added, totals, score in rows
    ]


def _as_ranked(
    ids: list[int],
    log_probs: list[float],
    totals: list[float],
    score: float,
    finished: bool,
) -> tuple[_Rank, Hypothesis]:
    """Return a hypothesis and its rank, of which the lowest is the best.

    The lists that are given begin with bos; those of the hypothesis do not.

    Equal scores are ordered as in a beam of unlimited width. The shorter hypothesis came first to
    the pool. Of the same length, the one with the higher log-probability did; if these are equal,
    the one whose beginning had the higher, and so on back to where the two part. There the more
    probable token decides, then the lower id.
    """
    falling = [-total for total in reversed(totals)]
    tokens = [(-log_prob, i) for log_prob, i in zip(log_probs, ids, strict=True)]
    inner = ids[1:-1] if finished else ids[1:]
    hypothesis = Hypothesis(inner, totals[-1], score, log_probs[1:], finished)
    return (not finished, -score, len(ids), falling, tokens), hypothesis
