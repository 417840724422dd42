"""Sampling: the next token of a text is drawn at random, from all of the model's distribution or
from its most probable part.

The logits decide which tokens can be drawn, and a number between 0 and 1 which of these is drawn.
`sample_tokens` feeds a text the token that was drawn, and yields every new token at once.
`choose_together` draws the next tokens of several texts, each with settings of its own.

Shapes: N rows, one text each; L ids so far; V vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.decoding.best import first_of_row
from weft.decoding.draws import Draws
from weft.errors import DivergedError, UsageError

C = TypeVar("C")

_NO_NUMBERS = "decoding: no token has a finite probability (NaN or infinite logits)"

Doubles: TypeAlias = NDArray[np.float64]
Logits: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]

Steps: TypeAlias = Callable[[Sequence[int], C], tuple[Logits, C]]
"""Takes the newest ids of one text and the cache; returns the logits after each of them (L, V), and
the longer cache.
"""


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling; the defaults draw from the model's own distribution.

    `temperature` divides the logits, 0 takes the most probable token. `top_k` keeps the k most
    probable tokens (Fan et al. 2018), `top_p` the smallest set of the most probable whose mass
    reaches p (nucleus sampling, Holtzman et al. 2020), `min_p` those at least min_p times as
    probable as the best (Nguyen et al. 2024). `repetition_penalty` above 1 makes ids that occurred
    already less probable (CTRL: Keskar et al. 2019, section 4.1).

    Three settings have the meaning of OpenAI's API: `logit_bias` has pairs of an id and what is
    added to its logit; `frequency_penalty` is subtracted as often as a token was chosen before, the
    prompt left out, `presence_penalty` once. Raises UsageError for a value out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

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
            "presence_penalty": (math.isfinite(self.presence_penalty), "finite"),
            "frequency_penalty": (math.isfinite(self.frequency_penalty), "finite"),
        }
        for name, (holds, range_of_it) in rules.items():
            if not holds:
                raise UsageError(
                    f"{name} = {getattr(self, name)}: it must be {range_of_it}"
                )


class Choice(NamedTuple):
    """A token that was chosen, and its log-probability by the model itself, in nats, before any
    filter.
    """

    token: int
    log_prob: float


@dataclass(frozen=True)
class Place:
    """The place of a token that is to be chosen: after all of `text`, of which the model sees the
    part from `first` on; the last `number` of its ids were chosen, those before are the prompt.
    """

    text: Sequence[int]
    first: int
    number: int


class Chooser:
    """The next token as a function of the logits, the settings and the number of its place."""

    def __init__(
        self, settings: Sampling, draws: Draws, banned_ids: Sequence[int] = ()
    ) -> None:
        self.settings = settings
        self.draws = draws
        self.banned_ids = banned_ids

    def __call__(self, logits: Logits, place: Place) -> Choice:
        """Choose the token at a place by its logits (V).

        Ids in sight fall under the repetition penalty. Raises DivergedError where there is none:
        the logits are not numbers, or all are banned.
        """
        (choice,) = choose_together([self], logits[None], [place])
        if isinstance(choice, DivergedError):
            raise choice
        return choice


def choose_together(
    choosers: Sequence[Chooser], logits: Logits, places: Sequence[Place]
) -> list[Choice | DivergedError]:
    """Choose the next token of each row (N, V), by its own chooser: what this chooses alone.

    A row whose logits are not numbers has an error in its place.
    """
    alike: dict[tuple[Sampling, tuple[int, ...]], list[int]] = {}
    for row, chooser in enumerate(choosers):
        key = chooser.settings, tuple(chooser.banned_ids)
        alike.setdefault(key, []).append(row)
    tokens = np.zeros(len(choosers), np.int64)
    chances = np.zeros(len(choosers))
    for (settings, banned_ids), rows in alike.items():
        there = [places[row] for row in rows]
        scores = _scores(logits[rows], settings, there, banned_ids)
        if settings.temperature == 0:
            # of equal values argmax gives the first
            chosen = scores.argmax(-1)
        else:
            scores = _drawn_from(scores, settings)
            numbers = [choosers[row].draws.at(places[row].number) for row in rows]
            chosen = draw_ids(scores, np.array(numbers))
        tokens[rows] = chosen
        chances[rows] = scores[np.arange(len(rows)), chosen]
    log_probs = log_probs_of(logits, tokens[:, None])[:, 0]
    is_sound = np.isfinite(chances) & np.isfinite(log_probs)
    every = zip(tokens.tolist(), log_probs.tolist(), is_sound.tolist(), strict=True)
    return [
        Choice(token, log_prob) if sound else DivergedError(_NO_NUMBERS)
        for token, log_prob, sound in every
    ]


def sample_tokens(
    steps: Steps[C],
    cache: C,
    choose: Chooser,
    *,
    text: Sequence[int],
    first: int = 0,
    place: int = 0,
    max_new_tokens: int,
    eos_id: int,
) -> Iterator[tuple[int, float]]:
    """Go on from a text, one token a step: new tokens and their log-probabilities, until eos.

    `cache` knows the text from `first` on but for its last token; the last `place` of its tokens
    are new already.
    """
    text = list(text)
    for new in range(max_new_tokens):
        logits, cache = steps(text[-1:], cache)
        token, log_prob = choose(logits[-1], Place(text, first, place + new))
        yield token, log_prob
        if token == eos_id:
            return
        text.append(token)


def filtered_log_probs(
    logits: Logits | Doubles,
    settings: Sampling,
    history: NDArray[np.int64] | None = None,
    banned_ids: Sequence[int] = (),
) -> Doubles:
    """Return the distribution that is drawn from (N, V): log-probabilities in double precision,
    -inf for what cannot be drawn.

    In this order: banned ids are taken out; the bias is added; logits of ids in `history` (N, L)
    are penalised; the temperature divides; then top_k, top_p and min_p, each of what the one before
    has left as a distribution of its own. The best token always stays. Of equal tokens top_k, top_p
    and temperature 0 keep the lower ids. A row of logits (N, V) that are not numbers, or all
    banned, becomes NaN.
    """
    rows = np.zeros((len(logits), 0), np.int64) if history is None else history
    places = [Place(ids, 0, 0) for ids in rows.tolist()]
    scores = _scores(logits, settings, places, banned_ids)
    if settings.temperature == 0:
        return _only(scores, _is_first_best(scores))
    return _drawn_from(scores, settings)


def _scores(
    logits: Logits | Doubles,
    settings: Sampling,
    places: Sequence[Place],
    banned_ids: Sequence[int],
) -> Doubles:
    """Return the logits (N, V) with all that is added to them and taken out, -inf for banned
    ids.
    """
    scores = logits.astype(np.float64)
    scores[:, list(banned_ids)] = -np.inf
    for token, bias in settings.logit_bias:
        scores[:, token] += bias
    if settings.repetition_penalty != 1:
        scores = _penalised(scores, places, settings.repetition_penalty)
    presence = settings.presence_penalty
    frequency = settings.frequency_penalty
    if presence or frequency:
        for row, place in zip(scores, places, strict=True):
            start = len(place.text) - place.number
            ids, counts = np.unique(place.text[start:], return_counts=True)
            ids = ids.astype(np.int64)
            row[ids] -= frequency * counts + presence
    return scores


def _drawn_from(scores: Doubles, settings: Sampling) -> Doubles:
    """Return the distribution (N, V) that temperature and filters make of scores."""
    # The best becomes 0 before the division, so that no temperature, however low, makes it
    # infinite.
    with np.errstate(invalid="ignore", over="ignore"):
        below_best = scores - scores.max(-1, keepdims=True)
        log_probs = log_softmax(below_best / settings.temperature)
    if settings.top_k is not None and settings.top_k < scores.shape[1]:
        log_probs = _only(log_probs, _is_in_top_k(log_probs, settings.top_k))
    if settings.top_p is not None and settings.top_p < 1:
        log_probs = _only(log_probs, _is_in_nucleus(log_probs, settings.top_p))
    if settings.min_p:
        best = log_probs.max(-1, keepdims=True)
        is_near_best = log_probs >= best + math.log(settings.min_p)
        log_probs = _only(log_probs, is_near_best)
    return log_probs


def draw_ids(log_probs: Doubles, uniforms: Doubles) -> NDArray[np.int64]:
    """Return the first id of each row (N, V) whose cumulative probability is above its number (N)
    from [0, 1).

    An id of probability 0 is never drawn, however the sums are rounded.
    """
    probs = np.exp(log_probs)
    cumulative = np.where(probs > 0, probs.cumsum(-1), 0.0)
    targets = uniforms[:, None] * cumulative.max(-1, keepdims=True)
    # of equal values argmax gives the first
    return (cumulative > targets).argmax(-1)


def log_softmax(scores: Doubles) -> Doubles:
    """Return the log-probabilities of each row (N, V); NaN for a row that has no numbers."""
    # infinities less each other are not numbers, as they should be
    with np.errstate(invalid="ignore"):
        below_best = scores - scores.max(-1, keepdims=True)
        return below_best - np.log(np.exp(below_best).sum(-1, keepdims=True))


def log_probs_of(logits: Logits, ids: NDArray[np.int64]) -> Doubles:
    """Return the model's own log-probabilities of some ids of each row (N, K), in double precision;
    NaN for a row of logits (N, V) that are not numbers.
    """
    scores = logits.astype(np.float64)
    # infinities less each other are not numbers, as they should be
    with np.errstate(invalid="ignore"):
        scores -= scores.max(-1, keepdims=True)
        chosen: Doubles = np.take_along_axis(scores, ids, 1)
        np.exp(scores, out=scores)
        return chosen - np.log(scores.sum(-1, keepdims=True))


def _penalised(scores: Doubles, places: Sequence[Place], penalty: float) -> Doubles:
    """Divide the logits of ids in sight by the penalty.

    Negative ones are multiplied, so that they too become smaller.
    """
    is_seen = np.zeros(scores.shape, np.bool_)
    for row, place in zip(is_seen, places, strict=True):
        row[np.asarray(place.text[place.first :], np.int64)] = True
    penalised = np.where(scores > 0, scores / penalty, scores * penalty)
    return np.where(is_seen, penalised, scores)


def _only(scores: Doubles, keep: Flags) -> Doubles:
    return log_softmax(np.where(keep, scores, -np.inf))


def _is_first_best(scores: Doubles) -> Flags:
    is_best = np.zeros(scores.shape, np.bool_)
    # of equal values argmax gives the first
    np.put_along_axis(is_best, scores.argmax(-1)[:, None], True, -1)
    return is_best


def _is_in_top_k(log_probs: Doubles, k: int) -> Flags:
    """Mark the k most probable tokens; of those equal to the k-th, the lower ids."""
    smallest = np.partition(log_probs, -k, axis=-1)[:, -k, None]
    return first_of_row(log_probs, smallest, k)


def _is_in_nucleus(log_probs: Doubles, p: float) -> Flags:
    """Mark the tokens before which, from the most probable on, the mass has not yet reached p."""
    falling = -np.sort(-log_probs, axis=-1)
    masses = np.exp(falling)
    mass_before = np.zeros(masses.shape)
    mass_before[:, 1:] = masses.cumsum(-1)[:, :-1]
    counts = (mass_before < p).sum(-1, keepdims=True)
    smallest = np.take_along_axis(falling, counts - 1, -1)
    return first_of_row(log_probs, smallest, counts)
