"""Sampling: the next token of a text is drawn at random, from all of the model's distribution or
from its most probable part.

The logits decide which tokens can be drawn, and a number between 0 and 1 which of these is drawn.
`sample_tokens` feeds each row the token that it drew, and yields every new token at once.

Shapes: N rows, one text each; B of them still go on; L ids so far; V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from weft.decoding.decoder import Cache, Step
from weft.errors import DivergedError, UsageError

C = TypeVar("C", bound=Cache)


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling; the defaults draw from the model's own distribution.

    `temperature` divides the logits, 0 takes the most probable token. `top_k` keeps the k most
    probable tokens (Fan et al. 2018), `top_p` the smallest set of the most probable whose mass
    reaches p (nucleus sampling, Holtzman et al. 2020), `min_p` those at least min_p times as
    probable as the best (Nguyen et al. 2024). `repetition_penalty` above 1 makes ids that occurred
    already less probable (CTRL: Keskar et al. 2019, section 4.1). Raises UsageError for a value out
    of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        k = self.top_k
        p = self.top_p
        least = self.min_p
        penalty = self.repetition_penalty
        rules = {
            "temperature": (
                0 <= self.temperature < math.inf,
                "a finite number and at least 0",
            ),
            "top_k": (k is None or k >= 1, "at least 1"),
            "top_p": (p is None or 0 < p <= 1, "above 0 and at most 1"),
            "min_p": (least is None or 0 <= least < 1, "at least 0 and below 1"),
            "repetition_penalty": (0 < penalty < math.inf, "a finite number above 0"),
        }
        for name, (holds, range_of_it) in rules.items():
            if not holds:
                raise UsageError(
                    f"{name} = {getattr(self, name)}: it must be {range_of_it}"
                )


@dataclass(frozen=True)
class SampledToken:
    """A new token for every row.

    `log_probs` are the model's own, in nats, before any filter. `done` rows have ended with eos,
    now or before; one that had ended before repeats eos with log-probability 0, so that the
    log-probabilities of a row add up.
    """

    ids: Int[Tensor, "N"]
    log_probs: Float[Tensor, "N"]
    done: Bool[Tensor, "N"]


def sample_tokens(
    step: Step[C],
    cache: C,
    *,
    prompt: Int[Tensor, "N L"],
    max_new_tokens: int,
    eos_id: int,
    settings: Sampling,
    generators: Sequence[torch.Generator] = (),
    banned_ids: Sequence[int] = (),
) -> Iterator[SampledToken]:
    """Go on from a prompt: one token a row at a time, until all rows are done or at the limit.

    The last column of `prompt` is fed first; `cache`, one row for each of the prompt's, knows the
    ids before it. A row that has drawn eos leaves the cache; at the limit, the last token tells by
    `done` which rows did. `generators`, one a row and on the CPU, give one number for every
    token of their row: what a row becomes depends on its seed, never on the rows beside it.
    Temperature 0 needs none.

    Raises UsageError for impossible settings, at the call; DivergedError, at a step, where the
    logits of a row are not numbers or all that is left of them is banned.
    """
    num_rows = len(prompt)
    if max_new_tokens < 1:
        raise UsageError(f"max_new_tokens = {max_new_tokens}: it must be at least 1")
    if prompt.shape[1] < 1:
        raise UsageError(
            "the prompt is empty: sampling needs one id at least to start from, such as bos"
        )
    if settings.temperature > 0 and len(generators) != num_rows:
        raise UsageError(
            f"{len(generators)} generators for {num_rows} rows: each row needs one of its own"
        )
    rules = _Rules(num_rows, eos_id, tuple(banned_ids), settings, tuple(generators))
    return _stream(
        _State(cache, list(range(num_rows)), prompt), step, rules, max_new_tokens
    )


def filtered_log_probs(
    logits: Float[Tensor, "N V"],
    settings: Sampling,
    history: Int[Tensor, "N L"] | None = None,
    banned_ids: Sequence[int] = (),
) -> Float[Tensor, "N V"]:
    """Return the distribution that is drawn from: log-probabilities in double precision, -inf for
    what cannot be drawn.

    In this order: banned ids are taken out; logits of ids in `history` are penalised; the
    temperature divides; then top_k, top_p and min_p, each of what the one before has left as a
    distribution of its own. The best token always stays. Of equal tokens top_k, top_p and
    temperature 0 keep the lower ids. A row of logits that are not numbers, or all banned, becomes
    NaN.
    """
    scores = logits.double()
    if banned_ids:
        scores = scores.index_fill(
            1, torch.tensor(banned_ids, device=scores.device), -math.inf
        )
    if history is not None and settings.repetition_penalty != 1:
        scores = _penalised(scores, history, settings.repetition_penalty)
    if settings.temperature == 0:
        return _only(scores, _is_first_best(scores))
    # The best becomes 0 before the division, so that no temperature, however low, makes it
    # infinite.
    below_best = scores - scores.amax(-1, keepdim=True)
    log_probs = (below_best / settings.temperature).log_softmax(-1)
    if settings.top_k is not None and settings.top_k < logits.shape[1]:
        log_probs = _only(log_probs, _is_in_top_k(log_probs, settings.top_k))
    if settings.top_p is not None and settings.top_p < 1:
        log_probs = _only(log_probs, _is_in_nucleus(log_probs, settings.top_p))
    if settings.min_p:
        best = log_probs.amax(-1, keepdim=True)
        is_near_best = log_probs >= best + math.log(settings.min_p)
        log_probs = _only(log_probs, is_near_best)
    return log_probs


def choose(
    logits: Float[Tensor, "N V"],
    uniforms: Float[Tensor, "N"],
    settings: Sampling,
    history: Int[Tensor, "N L"] | None = None,
    banned_ids: Sequence[int] = (),
) -> tuple[Int[Tensor, "N"], Float[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return the id that each row's number from [0, 1) draws, its log-probability by the model
    itself, and whether it can be drawn.

    Nothing can be drawn where the logits are not numbers or all ids are banned.

    The number draws from the distribution of `filtered_log_probs`.
    """
    filtered = filtered_log_probs(logits, settings, history, banned_ids)
    newest = draw_ids(filtered, uniforms.to(filtered.device))
    column = newest[:, None]
    chosen = filtered.gather(1, column)[:, 0]
    log_probs = logits.float().log_softmax(-1).gather(1, column)[:, 0]
    return newest, log_probs, (chosen + log_probs).isfinite()


def draw_ids(
    log_probs: Float[Tensor, "N V"], uniforms: Float[Tensor, "N"]
) -> Int[Tensor, "N"]:
    """Return the first id of each row whose cumulative probability is above a number from [0, 1).

    An id of probability 0 is never drawn, however the sums are rounded.
    """
    probs = log_probs.exp()
    cumulative = probs.cumsum(-1).where(probs > 0, 0.0)
    targets = uniforms[:, None] * cumulative.amax(-1, keepdim=True)
    # of equal values argmax gives the first
    return (cumulative > targets).int().argmax(-1)


def _penalised(
    scores: Float[Tensor, "N V"], history: Int[Tensor, "N L"], penalty: float
) -> Float[Tensor, "N V"]:
    """Divide the logits of ids in the history by the penalty.

    Negative ones are multiplied, so that they too become smaller.
    """
    seen = torch.zeros_like(scores, dtype=torch.bool).scatter(1, history.long(), True)
    return torch.where(scores > 0, scores / penalty, scores * penalty).where(
        seen, scores
    )


def _only(
    scores: Float[Tensor, "N V"], keep: Bool[Tensor, "N V"]
) -> Float[Tensor, "N V"]:
    return scores.where(keep, -math.inf).log_softmax(-1)


def _is_first_best(scores: Float[Tensor, "N V"]) -> Bool[Tensor, "N V"]:
    best = scores.argmax(-1, keepdim=True)  # of equal values argmax gives the first
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, best, True)


def _is_in_top_k(log_probs: Float[Tensor, "N V"], k: int) -> Bool[Tensor, "N V"]:
    """Mark the k most probable tokens; of those equal to the k-th, the lower ids."""
    smallest = log_probs.topk(k).values[:, -1:]
    above = log_probs > smallest
    equal = log_probs == smallest
    # topk promises no order among equals, so results could differ between devices
    room = k - above.sum(-1, keepdim=True)
    return above | (equal & (equal.cumsum(-1) <= room))


def _is_in_nucleus(log_probs: Float[Tensor, "N V"], p: float) -> Bool[Tensor, "N V"]:
    """Mark the tokens before which, from the most probable on, the mass has not yet reached p."""
    falling = log_probs.sort(dim=-1, descending=True, stable=True)
    mass_before = pad(falling.values.exp().cumsum(-1)[:, :-1], (1, 0))
    none = torch.zeros_like(log_probs, dtype=torch.bool)
    return none.scatter(1, falling.indices, mass_before < p)


@dataclass(frozen=True)
class _Rules:
    """The settings that stay the same while texts grow."""

    num_rows: int
    eos_id: int
    banned_ids: tuple[int, ...]
    settings: Sampling
    generators: tuple[torch.Generator, ...]


@dataclass(frozen=True)
class _State(Generic[C]):
    """The rows that go on, by their numbers, and their ids; `cache` knows all of these but the last
    column.
    """

    cache: C
    rows: list[int]
    ids: Int[Tensor, "B L"]


def _stream(
    state: _State[C], step: Step[C], rules: _Rules, limit: int
) -> Iterator[SampledToken]:
    for _ in range(limit):
        if not state.rows:
            return
        token, state = _advance(state, step, rules)
        yield token


def _advance(
    state: _State[C], step: Step[C], rules: _Rules
) -> tuple[SampledToken, _State[C]]:
    logits, cache = step(state.ids[:, -1], state.cache)  # B -> B V
    uniforms = _uniforms(state.rows, rules)
    newest, log_probs, is_number = choose(
        logits, uniforms, rules.settings, state.ids, rules.banned_ids
    )
    ended = newest == rules.eos_id
    possible, gone = torch.stack([is_number, ended]).tolist()  # the one read of a step
    if not all(possible):
        raise DivergedError(
            "decoding: no token has a finite probability (NaN or infinite logits)"
        )
    token = _for_all_rows(state.rows, newest, log_probs, ended, rules)
    grown = torch.cat([state.ids, newest[:, None]], 1)  # B L -> B L+1
    return token, _without(_State(cache, state.rows, grown), gone)


def _uniforms(rows: list[int], rules: _Rules) -> Float[Tensor, "B"]:
    """Draw a number from [0, 1) from each row's own generator."""
    if rules.settings.temperature == 0:
        return torch.zeros(len(rows), dtype=torch.float64)
    draws = [
        torch.rand((), generator=rules.generators[row], dtype=torch.float64)
        for row in rows
    ]
    return torch.stack(draws)


def _for_all_rows(
    rows: list[int],
    newest: Int[Tensor, "B"],
    log_probs: Float[Tensor, "B"],
    ended: Bool[Tensor, "B"],
    rules: _Rules,
) -> SampledToken:
    """Fill up to all rows: those that were done before get eos."""
    places = torch.tensor(rows, device=newest.device)
    return SampledToken(
        newest.new_full((rules.num_rows,), rules.eos_id).index_copy(0, places, newest),
        log_probs.new_zeros(rules.num_rows).index_copy(0, places, log_probs),
        ended.new_ones(rules.num_rows).index_copy(0, places, ended),
    )


def _without(state: _State[C], gone: list[bool]) -> _State[C]:
    """Return the rows that are not gone."""
    left = [i for i, is_gone in enumerate(gone) if not is_gone]
    if len(left) == len(gone):
        return state
    places = torch.tensor(left, device=state.ids.device, dtype=torch.long)
    cache = state.cache.select(places) if left else state.cache
    return _State(cache, [state.rows[i] for i in left], state.ids[places])
