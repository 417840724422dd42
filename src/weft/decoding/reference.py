"""Greedy and beam search in plain Python, one sentence after the other: the reference.

`search.py` finds the same for many sentences at once; tests hold the two together. A row of the
cache is one hypothesis; a step reads the newest id of each and gives the logits of the next.

Shapes: B sentences, N rows (the hypotheses of one sentence that go on), V vocabulary.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias, TypeVar

import numpy as np

from weft.decoding.best import LogSoftmax
from weft.decoding.decoder import (
    Cache,
    Floats,
    Hypothesis,
    Step,
    length_penalties,
)
from weft.errors import DivergedError, UsageError

C = TypeVar("C", bound=Cache)

Watch: TypeAlias = Callable[[list[Hypothesis], list[Hypothesis]], None]
"""Told after a step which hypotheses go on, by log-probability, and which have just ended, best
first.
"""


def greedy_search(
    step: Step[C],
    cache: C,
    *,
    bos_id: int,
    eos_id: int,
    max_lens: Sequence[int],
    banned_ids: Sequence[int] = (),
    length_penalty: float = 0.0,
) -> list[Hypothesis]:
    """Take the most probable next token, again and again, until eos or the limit: one hypothesis
    per sentence.

    `cache` holds one row per sentence. `max_lens` limits the number of new tokens, eos counted.
    Banned ids are never chosen; the probabilities of the others stay as the model gave them.
    `length_penalty` changes the scores alone. Of equal tokens the lower id is taken. Raises
    DivergedError where the logits are not numbers, UsageError for a limit below 1.
    """
    penalties = _penalties(length_penalty, max_lens)
    rules = _Rules(
        bos_id,
        eos_id,
        tuple(banned_ids),
        beam_size=1,
        n_best=1,
        penalties=penalties,
    )
    return [
        _greedy_alone(step, _row(cache, i), limit, rules)
        for i, limit in enumerate(max_lens)
    ]


def _greedy_alone(step: Step[C], cache: C, limit: int, rules: "_Rules") -> Hypothesis:
    """Search for one sentence, whose row the cache holds."""
    hypothesis = NOTHING
    while not hypothesis.finished and len(hypothesis.token_log_probs) < limit:
        log_probs, cache = _next_log_probs(step, [hypothesis], cache, rules)
        best = int(log_probs[0].argmax())
        hypothesis = _extended(hypothesis, best, log_probs[0, best], rules)
    return hypothesis


def beam_search(
    step: Step[C],
    cache: C,
    *,
    bos_id: int,
    eos_id: int,
    max_lens: Sequence[int],
    beam_size: int,
    length_penalty: float,
    n_best: int = 1,
    banned_ids: Sequence[int] = (),
    watch: Watch | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence by score, best first, from a beam of
    `beam_size`.

    - Score: log_prob / lp, with lp = ((5 + length) / 6) ** length_penalty; the length counts eos
      (GNMT: Wu et al. 2016, equation 14).
    - Step: the beam keeps the `beam_size` most probable extensions of its hypotheses. Those that
      end in eos leave it for the pool, which holds the sentence's `n_best` best finished ones.
    - Stop: a sentence is done when no live hypothesis can still enter the pool, whatever its
      length will be. So stopping early changes no result.
    - Limit: what is still live at the limit is unfinished. It stands after everything finished,
      whatever the scores.
    - Ties: of equal candidates the one that extends the earlier hypothesis, then the lower id.

    A list is shorter than `n_best` where the beam met fewer hypotheses. All else is as in
    `greedy_search`, which a beam of 1 equals exactly. `watch` is told every step of the first
    sentence.
    """
    if not 1 <= n_best <= beam_size:
        raise UsageError(
            f"n_best = {n_best} and beam_size = {beam_size}: n_best must be from 1 to beam_size"
        )
    penalties = _penalties(length_penalty, max_lens)
    rules = _Rules(bos_id, eos_id, tuple(banned_ids), beam_size, n_best, penalties)
    found = []
    for i, limit in enumerate(max_lens):
        watch_this = watch if i == 0 else None
        found.append(_beam_alone(step, _row(cache, i), limit, rules, watch_this))
    return found


def _beam_alone(
    step: Step[C], cache: C, limit: int, rules: "_Rules", watch: Watch | None
) -> list[Hypothesis]:
    """Search for one sentence, whose row the cache holds."""
    live = [NOTHING]
    pool: list[Hypothesis] = []
    for length in range(1, limit + 1):
        log_probs, cache = _next_log_probs(step, live, cache, rules)
        # each with the row of the hypothesis that it extends
        extensions: list[tuple[int, Hypothesis]] = []
        for row, hypothesis in enumerate(live):
            most_probable = np.argsort(-log_probs[row], kind="stable")[
                : rules.beam_size
            ].tolist()
            extensions += [
                (row, _extended(hypothesis, i, log_probs[row, i], rules))
                for i in most_probable
            ]
        # of equals the earlier one stays first
        extensions.sort(key=lambda extension: -extension[1].log_prob)
        kept = [
            (row, new)
            for row, new in extensions[: rules.beam_size]
            if isfinite(new.log_prob)
        ]
        live = [new for _, new in kept if not new.finished]
        ended = by_score(new for _, new in kept if new.finished)
        pool = by_score([*pool, *ended])[: rules.n_best]
        if watch is not None:
            watch(live, ended)
        if not live or (
            len(pool) == rules.n_best
            and _bound(live[0], length, limit, rules) <= pool[-1].score
        ):
            break
        going_on = [row for row, new in kept if not new.finished]
        cache = cache.select(np.array(going_on))
    return [*pool, *by_score(live)][: rules.n_best]


NOTHING = Hypothesis([], 0.0, 0.0, [], False)


@dataclass(frozen=True)
class _Rules:
    """The settings of one search; `penalties` by the number of tokens, eos counted."""

    bos_id: int
    eos_id: int
    banned_ids: tuple[int, ...]
    beam_size: int
    n_best: int
    penalties: Floats


def by_score(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Sort by score, the best first, the earlier one among equals."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def _penalties(alpha: float, limits: Sequence[int]) -> Floats:
    """Return the penalty of every length that can occur. Raises UsageError for a limit below 1."""
    if min(limits, default=1) < 1:
        raise UsageError(
            f"the output limit is {min(limits)} tokens; it must be at least 1"
        )
    # one more than the limit: after the last step `_bound` reads the length after it
    return np.asarray(length_penalties(alpha, max(limits, default=0) + 1), np.float32)


def _row(cache: C, number: int) -> C:
    """Return the cache of one sentence."""
    return cache.select(np.array([number]))


def _next_log_probs(
    step: Step[C], live: Sequence[Hypothesis], cache: C, rules: _Rules
) -> tuple[Floats, C]:
    """Take one step; return (N, V) log-probabilities, -inf for what is banned. Raises
    DivergedError.
    """
    newest = [
        hypothesis.ids[-1] if hypothesis.ids else rules.bos_id for hypothesis in live
    ]
    logits, cache = step(np.array(newest), cache)
    log_probs = LogSoftmax.of(logits).log_probs(logits)
    log_probs[:, list(rules.banned_ids)] = -np.inf
    if np.isnan(log_probs).any() or not np.isfinite(log_probs).any():
        raise DivergedError(
            "decoding: no token has a finite probability (NaN or infinite logits)"
        )
    return log_probs, cache


def _extended(
    before: Hypothesis, token: int, log_prob: np.float32, rules: _Rules
) -> Hypothesis:
    """Return a hypothesis with one more token, which ends it if it is eos."""
    is_end = token == rules.eos_id
    ids = before.ids if is_end else [*before.ids, token]
    token_log_probs = [*before.token_log_probs, float(log_prob)]
    total = np.float32(before.log_prob) + log_prob
    score = total / rules.penalties[len(token_log_probs)]
    return Hypothesis(ids, float(total), float(score), token_log_probs, is_end)


def _bound(best: Hypothesis, length: int, limit: int, rules: _Rules) -> float:
    """Return what no extension of a live hypothesis can score above.

    A log-probability is negative, and only falls as tokens are added. So no extension scores above
    the best one of now over the largest penalty. The largest is at one end of the lengths that are
    left: at the limit, or at the next token where `length_penalty` is negative.
    """
    largest = max(rules.penalties[limit], rules.penalties[length + 1])
    return float(np.float32(best.log_prob) / largest)
