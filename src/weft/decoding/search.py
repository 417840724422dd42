"""Greedy and beam search, told nothing but a cache and a step function.

A step takes the newest id of every row and the cache, and returns the logits of the next position and the
cache that now knows those ids. A row is one hypothesis; a cache can keep, reorder and repeat rows. Each
search is a state, a pure function from one state to the next, and a short loop. Every step reads one small
tensor from the device, which says who is done.

Shapes: B sentences still searched, k places for hypotheses in each, N = B × k rows, V vocabulary, T tokens so
far (the first is bos), m candidates of each row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from weft.errors import DivergedError, UsageError

C = TypeVar("C", bound="Cache")


@runtime_checkable
class Cache(Protocol):
    """What a step remembers of the past: one row for each hypothesis."""

    def select(self: C, rows: Int[Tensor, "M"]) -> C:
        """A cache of these rows in this order; a row may be left out or repeated."""
        ...

    def join(self: C, other: C) -> C:
        """A cache with the rows of `other` after its own."""
        ...


Step: TypeAlias = Callable[[Int[Tensor, "N"], C], tuple[Float[Tensor, "N V"], C]]


@dataclass(frozen=True)
class Hypothesis:
    """One found output.

    `ids` are without bos and eos; `log_prob` is the sum of `token_log_probs`, eos included; `score` is the
    log-probability divided by the length penalty; `finished` says that it ended with eos, False that it was
    cut at the limit.
    """

    ids: list[int]
    log_prob: float
    score: float
    token_log_probs: list[float]
    finished: bool


Watch: TypeAlias = Callable[[list[Hypothesis], list[Hypothesis]], None]
"""Told after a step which hypotheses go on, by log-probability, and which have just ended, best first."""


def length_penalties(alpha: float, longest: int) -> list[float]:
    """lp(n) = ((5 + n) / 6) ** alpha for n = 0 .. longest (Wu et al. 2016, equation 14); n counts eos."""
    return [((5 + n) / 6) ** alpha for n in range(longest + 1)]


def greedy_search(
    step: Step[C],
    cache: C,
    *,
    bos_id: int,
    eos_id: int,
    max_lens: Int[Tensor, "B"],
    banned_ids: Sequence[int] = (),
    length_penalty: float = 0.0,
) -> list[Hypothesis]:
    """The most probable next token, again and again, until eos or the limit: one hypothesis a sentence.

    `cache` holds one row a sentence. `max_lens` limits the number of new tokens, eos counted, and lies on
    the device where the search works. Banned ids are never chosen; the probabilities of the others stay as
    the model gave them. `length_penalty` changes the scores alone. Of equal tokens the lower id is taken.
    Raises DivergedError where the logits are not numbers, UsageError for a limit below 1.
    """
    if len(max_lens) == 0:
        return []
    rules = _Rules(bos_id, eos_id, tuple(banned_ids), 1, 1, _penalty_table(length_penalty, max_lens))
    state = _State.start(cache, max_lens, rules)
    while len(state.index):
        state = _advance_greedy(state, step, rules)
    return [state.found[i][0] for i in range(len(max_lens))]


def beam_search(
    step: Step[C],
    cache: C,
    *,
    bos_id: int,
    eos_id: int,
    max_lens: Int[Tensor, "B"],
    beam_size: int,
    length_penalty: float,
    n_best: int = 1,
    banned_ids: Sequence[int] = (),
    watch: Watch | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence by score, best first, from a beam of `beam_size`.

    The score is log_prob / lp, lp = ((5 + length) / 6) ** length_penalty, the length with eos (GNMT: Wu et
    al. 2016, equation 14). Each step keeps the `beam_size` most probable extensions of a sentence's live
    hypotheses; those that end in eos leave the beam for the sentence's pool of its `n_best` best finished
    ones. A sentence is done when no live hypothesis can still enter that pool, however its length may turn
    out, so that stopping early changes no result; or at its limit, where what is still live counts as
    unfinished and stands after everything finished. A list is shorter than `n_best` where the beam met
    fewer hypotheses. Equal candidates: the earlier hypothesis, then the lower id. The rest as in
    `greedy_search`, which a beam of 1 equals exactly. `watch` is told every step of the first sentence.
    """
    if not 1 <= n_best <= beam_size:
        raise UsageError(f"n_best = {n_best} and beam_size = {beam_size}: n_best must be from 1 to beam_size")
    if len(max_lens) == 0:
        return []
    table = _penalty_table(length_penalty, max_lens)
    rules = _Rules(bos_id, eos_id, tuple(banned_ids), beam_size, n_best, table)
    state = _State.start(cache, max_lens, rules)
    while len(state.index):
        state = _advance_beam(state, step, rules, watch)
    return [state.found[i] for i in range(len(max_lens))]


@dataclass(frozen=True)
class _Rules:
    """What stays the same during one search."""

    bos_id: int
    eos_id: int
    banned_ids: tuple[int, ...]
    beam_size: int
    n_best: int
    penalties: Float[Tensor, "lengths"]


def _penalty_table(alpha: float, max_lens: Int[Tensor, "B"]) -> Float[Tensor, "lengths"]:
    if int(max_lens.min()) < 1:
        raise UsageError(f"the output limit is {int(max_lens.min())} tokens; it must be at least 1")
    return torch.tensor(length_penalties(alpha, int(max_lens.max()) + 1), device=max_lens.device)


@dataclass(frozen=True)
class _Beam:
    """k hypotheses for each of B sentences; an empty place has log_prob and score -inf."""

    ids: Int[Tensor, "B k T"]
    token_log_probs: Float[Tensor, "B k T"]
    log_probs: Float[Tensor, "B k"]
    scores: Float[Tensor, "B k"]

    @classmethod
    def start(cls, num_sentences: int, places: int, value: float, rules: _Rules) -> "_Beam":
        """Hypotheses of bos alone, all with log_prob and score `value`."""
        zeros = torch.zeros(num_sentences, places, 1, device=rules.penalties.device)
        return cls(zeros.long() + rules.bos_id, zeros, zeros[..., 0] + value, zeros[..., 0] + value)

    def pick(self, places: Int[Tensor, "B j"]) -> "_Beam":
        """The hypotheses in these places of their sentence, in this order."""
        deep = places[:, :, None].expand(-1, -1, self.ids.shape[2])
        return _Beam(
            self.ids.gather(1, deep),  # B k T -> B j T
            self.token_log_probs.gather(1, deep),
            self.log_probs.gather(1, places),
            self.scores.gather(1, places),
        )

    def extended(self, newest: Int[Tensor, "B k"], log_probs: Float[Tensor, "B k"], rules: _Rules) -> "_Beam":
        """Every hypothesis with one more token, and the score of its new length."""
        totals = self.log_probs + log_probs
        return _Beam(
            torch.cat([self.ids, newest[:, :, None]], 2),  # B k T -> B k T+1
            torch.cat([self.token_log_probs, log_probs[:, :, None]], 2),
            totals,
            totals / rules.penalties[self.ids.shape[2]],  # T columns with bos: T tokens with the new one
        )

    def waiting(self, rules: _Rules) -> "_Beam":
        """One more column and nothing in it, for what is finished already."""
        ids = pad(self.ids, (0, 1), value=rules.eos_id)
        return replace(self, ids=ids, token_log_probs=pad(self.token_log_probs, (0, 1)))

    def only(self, where: Bool[Tensor, "B k"]) -> "_Beam":
        """The same places, emptied where `where` is False."""
        log_probs, scores = (x.where(where, -inf) for x in (self.log_probs, self.scores))
        return replace(self, log_probs=log_probs, scores=scores)

    def joined(self, other: "_Beam") -> "_Beam":
        """The places of both, side by side."""
        pairs = zip(self.tensors(), other.tensors(), strict=True)
        return _Beam(*(torch.cat(pair, 1) for pair in pairs))

    def by_score(self, places: int) -> "_Beam":
        """The highest scores first, the earlier place among equals; `places` of them."""
        return self.pick(self.scores.sort(dim=1, descending=True, stable=True).indices[:, :places])

    def of(self, rows: Int[Tensor, "M"]) -> "_Beam":
        """The beams of these sentences."""
        return _Beam(*(x[rows] for x in self.tensors()))

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.ids, self.token_log_probs, self.log_probs, self.scores


@dataclass(frozen=True)
class _State(Generic[C]):
    """The sentences that go on, each with its live beam and its pool; and what was found for the others.

    `index` numbers the sentences as they came; `cache` has the N rows of the live beam, sentence by sentence.
    """

    cache: C
    index: Int[Tensor, "B"]
    max_lens: Int[Tensor, "B"]
    live: _Beam
    pool: _Beam
    found: Mapping[int, list[Hypothesis]]

    @classmethod
    def start(cls, cache: C, max_lens: Int[Tensor, "B"], rules: _Rules) -> "_State[C]":
        count = len(max_lens)
        index = torch.arange(count, device=max_lens.device)
        live = _Beam.start(count, 1, 0.0, rules)
        return cls(cache, index, max_lens, live, _Beam.start(count, rules.n_best, -inf, rules), {})


def _advance_greedy(state: _State[C], step: Step[C], rules: _Rules) -> _State[C]:
    log_probs, cache = _next_log_probs(state, step, rules)
    best, newest = log_probs.max(-1)  # B 1 V -> B 1; of equal values max gives the first
    live = state.live.extended(newest, best, rules)
    status = _status(newest[:, 0] == rules.eos_id, live, state.max_lens)
    move = _Move(torch.zeros_like(newest), live, state.pool.waiting(rules), live, status)
    return _go_on(state, cache, move, _read(status), rules)


def _next_log_probs(state: _State[C], step: Step[C], rules: _Rules) -> tuple[Float[Tensor, "B k V"], C]:
    """One step of the model, as float32 log-probabilities with -inf for what is banned."""
    newest = state.live.ids[:, :, -1]
    logits, cache = step(newest.flatten(), state.cache)  # B k -> N V
    log_probs = logits.float().log_softmax(-1)
    if rules.banned_ids:
        log_probs[:, list(rules.banned_ids)] = -inf
    return log_probs.reshape(*newest.shape, -1), cache  # N V -> B k V


def _advance_beam(state: _State[C], step: Step[C], rules: _Rules, watch: Watch | None) -> _State[C]:
    log_probs, cache = _next_log_probs(state, step, rules)
    move = _expand(state, log_probs, rules, top)
    status = _read(move.status)
    if max(status) >= _TIED:
        move = _expand(state, log_probs, rules, top_among_equals)
        status = _read(move.status)
    if watch is not None and int(state.index[0]) == 0:
        watch(_listed(move.live, 0, rules), _listed(move.ended.by_score(rules.beam_size), 0, rules))
    return _go_on(state, cache, move, status, rules)


_DONE, _DIVERGED, _TIED = 1, 2, 4


class _Move(NamedTuple):
    """The beams after one step, before anything has left; `parents` are places in the beam before it.

    `ended` has what has just become eos, of which the pool keeps the best.
    """

    parents: Int[Tensor, "B k"]
    live: _Beam
    pool: _Beam
    ended: _Beam
    status: Int[Tensor, "B"]  # a sum of _DONE, _DIVERGED, _TIED


def _expand(state: _State[C], log_probs: Float[Tensor, "B k V"], rules: _Rules, top: "_TopFunction") -> _Move:
    """Keep the most probable extensions of each sentence; those that end in eos go to the pool."""
    m = min(rules.beam_size, log_probs.shape[2])
    best, newest, tied = top(log_probs, m)  # B k V -> B k m
    totals = (state.live.log_probs[:, :, None] + best).flatten(1)
    chosen = totals.sort(dim=1, descending=True, stable=True).indices[:, : rules.beam_size]
    newest, best = (x.flatten(1).gather(1, chosen) for x in (newest, best))  # B k m -> B k'
    parents = chosen // m
    extended = state.live.pick(parents).extended(newest, best, rules)
    ended = newest == rules.eos_id
    live, done = extended.only(~ended), extended.only(ended)
    pool = state.pool.waiting(rules).joined(done).by_score(rules.n_best)
    status = _status(_is_settled(live, pool, state.max_lens, rules), extended, state.max_lens)
    return _Move(parents, live, pool, done, status + _TIED * tied.any(1))


def _is_settled(live: _Beam, pool: _Beam, max_lens: Int[Tensor, "B"], rules: _Rules) -> Bool[Tensor, "B"]:
    """Whether no live hypothesis can still enter the pool.

    A log-probability only falls as tokens are added, and the penalty is largest at one end of the lengths
    that are left: the best live log-probability over the larger of the two bounds every score to come.
    """
    next_length = live.ids.shape[2]  # T columns with bos: T-1 tokens now, T at the next step
    most_favourable = rules.penalties[max_lens].maximum(rules.penalties[next_length])
    return live.log_probs.amax(1) / most_favourable <= pool.scores[:, -1]


def _status(done: Bool[Tensor, "B"], extended: _Beam, max_lens: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Who is done, now or at the limit, and whose best extension is no number (NaN sorts first)."""
    at_limit = max_lens <= extended.ids.shape[2] - 1
    return _DONE * (done | at_limit) + _DIVERGED * ~extended.log_probs[:, 0].isfinite()


def _read(status: Int[Tensor, "B"]) -> list[int]:
    """The one read of a step from the device. Raises DivergedError."""
    flags = [int(flag) for flag in status.tolist()]
    if any(flag & _DIVERGED for flag in flags):
        raise DivergedError("decoding: no token has a finite probability (NaN or infinite logits)")
    return flags


def _go_on(state: _State[C], cache: C, move: _Move, status: list[int], rules: _Rules) -> _State[C]:
    """Put the cache in the order of the new beams; where sentences are done, let them leave the batch."""
    width = state.live.ids.shape[1]
    rows = move.parents + width * torch.arange(len(status), device=state.index.device)[:, None]
    if not any(flag & _DONE for flag in status):
        if rows.shape[1] > 1:  # one row a sentence stays where it is
            cache = cache.select(rows.flatten())
        return replace(state, cache=cache, live=move.live, pool=move.pool)
    gone, left = (
        torch.tensor([i for i, flag in enumerate(status) if flag & _DONE == done], device=rows.device).long()
        for done in (_DONE, 0)
    )
    found = _harvest(state.index[gone], move.live.of(gone), move.pool.of(gone), rules)
    return _State(
        cache.select(rows[left].flatten()) if len(left) else cache,
        state.index[left],
        state.max_lens[left],
        move.live.of(left),
        move.pool.of(left),
        {**state.found, **found},
    )


_Top: TypeAlias = tuple[Float[Tensor, "B k m"], Int[Tensor, "B k m"], Bool[Tensor, "B k"]]
_TopFunction: TypeAlias = Callable[[Float[Tensor, "B k V"], int], _Top]


def top(values: Float[Tensor, "B k V"], m: int) -> _Top:
    """The m largest values of each row, largest first, the lower id first among equals; and their ids.

    The flag says that the smallest of them has equals that were left out: topk promises no order among
    equals, so the choice has to be made anew by `top_among_equals`.
    """
    best, ids = values.topk(min(m + 1, values.shape[2]))
    tied = (best[..., m - 1 : m] == best[..., m:]) & best[..., m:].isfinite()
    return *_lower_id_first(best[..., :m], ids[..., :m]), tied.any(-1)


def top_among_equals(values: Float[Tensor, "B k V"], m: int) -> _Top:
    """As `top`, and exact among equals, for one more search through the vocabulary."""
    best, ids = values.topk(m)
    larger = best > best[..., -1:]
    all_ids = torch.arange(values.shape[2], device=values.device)
    equals = all_ids.where(values == best[..., -1:], values.shape[2]).topk(m, largest=False, sorted=True).values
    place = torch.arange(m, device=values.device) - larger.sum(-1, keepdim=True)
    ids = ids.where(larger, equals.gather(-1, place.clamp(min=0)))
    return *_lower_id_first(best, ids), torch.zeros_like(larger[..., 0])


def _lower_id_first(
    best: Float[Tensor, "B k m"], ids: Int[Tensor, "B k m"]
) -> tuple[Float[Tensor, "B k m"], Int[Tensor, "B k m"]]:
    by_id = ids.sort(dim=-1)
    by_value = best.gather(-1, by_id.indices).sort(dim=-1, descending=True, stable=True)
    return by_value.values, by_id.values.gather(-1, by_value.indices)


def _harvest(index: Int[Tensor, "B"], live: _Beam, pool: _Beam, rules: _Rules) -> dict[int, list[Hypothesis]]:
    """What these sentences found, by sentence: the pool, then what was cut, each by score."""
    beams = pool.joined(live.by_score(rules.beam_size))
    return {sentence: _listed(beams, b, rules)[: rules.n_best] for b, sentence in enumerate(index.tolist())}


def _listed(beam: _Beam, sentence: int, rules: _Rules) -> list[Hypothesis]:
    """What stands in a sentence's places, the empty ones left out."""
    ids, token_log_probs, log_probs, scores = (tensor[sentence].tolist() for tensor in beam.tensors())
    return [
        _as_hypothesis(ids[j], token_log_probs[j], log_probs[j], scores[j], rules)
        for j in range(len(scores))
        if scores[j] > -inf
    ]


def _as_hypothesis(
    ids: list[int], token_log_probs: list[float], log_prob: float, score: float, rules: _Rules
) -> Hypothesis:
    """From a row that starts with bos and, if it is finished, goes on with eos to its end."""
    finished = rules.eos_id in ids[1:]
    length = ids.index(rules.eos_id, 1) if finished else len(ids)
    return Hypothesis(ids[1:length], log_prob, score, token_log_probs[1 : length + 1], finished)
