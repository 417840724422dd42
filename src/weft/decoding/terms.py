"""Terms that an output must have: which of them each hypothesis has written, and how a beam goes on
with them.

A hypothesis is idle, or inside of a form of a term, which it then writes to its end. Hypotheses
that have different amounts of their terms before them do not compete for the same places of the
beam (Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation for
Neural Machine Translation"). What is new here is the binding: a form begins where the decoder
looks at the source tokens that it translates, or says it itself.

Shapes: S sentences, k hypotheses of each; B sentences of a step that have terms, N tokens of all
forms of one, E forms; m candidates of each hypothesis, C of all; R rows of a step, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import Floats, Indices, Tokens
from weft.decoding.extensions import FAR, Extensions, Flags, at_places, in_turns
from weft.decoding.forms import IDLE, Terms

_Rows = TypeVar("_Rows", Indices, Tokens, Flags)

LEAST_LOOK = 0.15
"""The attention to the tokens of a term from which on one of its forms may begin."""
MOST_TERMS = 60


@dataclass(frozen=True)
class TermStep:
    """The hypotheses of the B sentences of a step that have terms, and what it found.

    `log_probs` (B k) are those of the hypotheses, `rows` (B k) their rows in the step, -1 for none.
    `top_log_probs` and `top_ids` (B k m) are the candidates; `every` (R V) has the
    log-probabilities of all tokens, `attention` (R, source tokens) says where the rows looked, if
    known. `room` (B) is how many tokens may follow the next one. In `bound` (B k) rows nothing but
    the candidates comes next. `has_ended` (B) says that a hypothesis is finished.
    """

    log_probs: Floats
    rows: Indices
    top_log_probs: Floats
    top_ids: Tokens
    every: Floats
    attention: Floats | None
    room: Indices
    eos_ids: Tokens
    sizes: Indices
    bound: Flags
    has_ended: Flags


State: TypeAlias = tuple[Indices, Indices, Indices, Flags]
"""Places, terms that are written, as bits, tokens left at least, and whether the newest token ended
a form, (B k) each.
"""


class TermBeams:
    """The terms of the sentences of a running batch, and what their hypotheses have of them."""

    def __init__(self, num_sentences: int, beam_size: int) -> None:
        shape = num_sentences, beam_size
        self.places = np.full(shape, IDLE)
        self.met = np.zeros(shape, np.int64)
        self.left = np.zeros(shape, np.int64)
        # whether the newest token ended a form, and with it the word
        self.is_behind = np.zeros(shape, np.bool_)

    def start(self, index: int, terms: Terms | None) -> None:
        """Begin a sentence, of which nothing is written."""
        self.places[index] = IDLE
        self.is_behind[index] = False
        self.met[index] = 0
        self.left[index] = 0 if terms is None else sum(terms.lengths)

    def state(self, active: Indices, width: int) -> State:
        """Return what the first `width` hypotheses of some sentences have."""
        return (
            self.places[active, :width],
            self.met[active, :width],
            self.left[active, :width],
            self.is_behind[active, :width],
        )

    def keep(self, active: Indices, chosen: "Chosen") -> None:
        """Set what the hypotheses of some sentences have now."""
        width = chosen.places.shape[1]
        self.places[active, :width] = chosen.places
        self.met[active, :width] = chosen.met
        self.left[active, :width] = chosen.left
        self.is_behind[active, :width] = chosen.is_behind


@dataclass(frozen=True)
class Chosen:
    """The k hypotheses of each sentence after a step, and what they have of their terms (B k)."""

    extensions: Extensions
    places: Indices
    met: Indices
    left: Indices
    is_behind: Flags


class TermMix:
    """The sentences of a step that have terms, their forms filled up to arrays (B N) and (B E)."""

    def __init__(self, all_terms: Sequence[Terms]) -> None:
        forms = [terms.forms for terms in all_terms]

        def filled(name: str, value: int | bool) -> Any:
            return _filled([getattr(each, name) for each in forms], value)

        self.tokens: Tokens = filled("tokens", 0)
        self.bits: Indices = 1 << filled("terms", MOST_TERMS + 1)
        self.is_last: Flags = filled("is_last", False)
        self.is_closed: Flags = filled("is_closed", False)
        self.rest: Indices = filled("rest", 0)
        self.least: Indices = filled("least", 0)
        self.first: Indices = filled("first", IDLE)
        self.is_inner: Flags = filled("is_inner", False)
        self.begins: Indices = filled("begins", 0)
        self.ends: Indices = filled("ends", -1)
        # terms that begin only where the decoder looks at their source
        bits = np.where(self.ends > 0, self._of_form(self.bits), 0)
        self.bound_bits = np.bitwise_or.reduce(bits, axis=1)

    def choose(self, step: TermStep, state: State) -> Chosen:
        """Choose the hypotheses that the beams go on with.

        Of those with equally many tokens of terms before them the most probable come first; in
        turns, each such group gives one, the group with fewest before it begins.
        """
        totals, log_probs, tokens, after = self._candidates(step, state)
        places, met, left, behind = after
        order = in_turns(totals, left)
        width = step.log_probs.shape[1]
        chosen = order[:, :width]
        kept = at_places(totals, chosen)
        by_total = np.argsort(-kept, axis=1, kind="stable")
        chosen = at_places(chosen, by_total)
        kept = at_places(totals, chosen)
        is_beyond = np.arange(width) >= step.sizes[:, None]
        kept[is_beyond] = -np.inf
        num_candidates = totals.shape[1] // width
        parents = chosen // num_candidates
        # NaN where the logits are no numbers; -inf where nothing more is possible
        most = totals.max(1)
        is_stuck = (most == -np.inf) & ~step.has_ended
        extensions = Extensions(
            parents,
            at_places(log_probs, chosen),
            at_places(tokens, chosen),
            kept,
            np.isnan(most) | is_stuck,
        )
        return Chosen(
            extensions,
            at_places(places, chosen),
            at_places(met, chosen),
            at_places(left, chosen),
            at_places(behind, chosen),
        )

    def _candidates(
        self, step: TermStep, state: State
    ) -> tuple[Floats, Floats, Tokens, tuple[Indices, Indices, Indices, Flags]]:
        """Return log-probabilities of all tokens and of the new one, it, and what the hypothesis
        then has: place, terms, tokens left, and whether a form has just ended; (B, k C) each.
        """
        places, met, left, _ = state
        is_idle = (places == IDLE) & (step.rows >= 0)
        unmet = ~met
        has_bound = (self.bound_bits[:, None] & unmet) != 0
        must = is_idle & has_bound & self._wants_to_end(step) & ~step.bound
        may_late = must & self._is_last_hope(step, left)
        # there is room for terms alone: nothing else may come, so they begin wherever that is
        is_full = is_idle & (left > step.room[:, None])
        may_begin = is_idle & ~step.bound & (~must | may_late | is_full)
        parts = [
            self._free(step, state, is_idle & ~must),
            self._begun(step, state, may_begin, must | is_full),
            self._gone_on(step, state),
        ]
        log_probs, tokens, is_possible, then, terms, rest, behind = (
            np.concatenate([part[column] for part in parts], axis=2)
            for column in range(7)
        )
        fits = rest <= step.room[:, None, None]
        fits |= rest == 0
        fits |= step.bound[:, :, None]
        is_number = ~np.isnan(log_probs)  # what is none stays none
        is_out = is_number & ~(is_possible & fits)
        log_probs = np.where(is_out, np.float32(-np.inf), log_probs)
        with np.errstate(invalid="ignore"):
            totals = step.log_probs[:, :, None] + log_probs
        flat = len(places), -1
        after = tuple(part.reshape(flat) for part in (then, terms, rest, behind))
        return (
            totals.reshape(flat),
            log_probs.reshape(flat),
            tokens.reshape(flat),
            after,  # type: ignore[return-value]
        )

    def _wants_to_end(self, step: TermStep) -> Flags:
        """Return which hypotheses would end here, if they were let (B k)."""
        eos_log_probs = step.every[step.rows, step.eos_ids[:, None]]
        is_best: Flags = eos_log_probs >= step.top_log_probs[:, :, 0]
        return is_best

    def _is_last_hope(self, step: TermStep, left: Indices) -> Flags:
        """Return which hypotheses have no more tokens left than any other, finished ones included
        (B k): the others need not write at their end what was not looked at.
        """
        least = np.where(step.rows >= 0, left, FAR).min(1, keepdims=True)
        is_last: Flags = (left <= least) & ~step.has_ended[:, None]
        return is_last

    def _free(self, step: TermStep, state: State, is_free: Flags) -> "_Part":
        """Return the candidates: tokens of no term."""
        shape = step.top_ids.shape
        places, met, left = (np.broadcast_to(x[:, :, None], shape) for x in state[:3])
        return (
            step.top_log_probs,
            step.top_ids,
            np.broadcast_to(is_free[:, :, None], shape),
            places,
            met,
            left,
            np.zeros(shape, np.bool_),
        )

    def _begun(
        self, step: TermStep, state: State, is_idle: Flags, must: Flags
    ) -> "_Part":
        """Return the first tokens of forms, possible where a term may begin (B k E)."""
        _, met, left = (x[:, :, None] for x in state[:3])
        would_go_on = state[3][:, :, None] & self.is_inner[:, None]
        first = np.maximum(self.first, 0)
        tokens = self._of_form(self.tokens)[:, None]
        is_last = self._of_form(self.is_last)[:, None]
        is_closed = self._of_form(self.is_closed)[:, None]
        bits, rest, least = (
            self._of_form(x)[:, None] for x in (self.bits, self.rest, self.least)
        )
        log_probs = step.every[step.rows[:, :, None], tokens]
        is_said = tokens == step.top_ids[:, :, :1]
        may_begin = self._is_lookedat_places(step) | is_said | must[:, :, None]
        is_unmet = (met & bits) == 0
        is_one = (self.first >= 0)[:, None]
        shape = log_probs.shape
        is_possible = is_idle[:, :, None] & is_unmet & is_one
        then = np.where(is_last, IDLE, first[:, None] + 1)
        return (
            log_probs,
            np.broadcast_to(tokens, shape),
            is_possible & may_begin & ~would_go_on,
            np.broadcast_to(then, shape),
            met | np.where(is_last, bits, 0),
            left + rest - least,
            np.broadcast_to(is_closed, shape),
        )

    def _of_form(self, of_tokens: _Rows) -> _Rows:
        """Return what belongs to the first token of each form (B E)."""
        number = np.arange(len(self.first))[:, None]
        return of_tokens[number, np.maximum(self.first, 0)]

    def _is_lookedat_places(self, step: TermStep) -> Flags:
        """Return where the decoder looks at the source tokens of each form's term (B k E)."""
        is_anywhere = (self.ends < 0)[:, None]
        if step.attention is None:
            shape = (*step.rows.shape, self.ends.shape[1])
            return np.broadcast_to(np.True_, shape)
        sums = np.cumsum(step.attention, axis=1)
        sums = np.pad(sums, ((0, 0), (1, 0)))
        rows = step.rows[:, :, None]
        width = sums.shape[1] - 1
        ends = np.clip(self.ends, 0, width)[:, None]
        begins = self.begins[:, None]
        looks = sums[rows, ends] - sums[rows, begins]
        is_looked_at: Flags = is_anywhere | (looks >= LEAST_LOOK)
        return is_looked_at

    def _gone_on(self, step: TermStep, state: State) -> "_Part":
        """Return the next token of the form that a hypothesis is inside of (B k 1)."""
        places, met, left, _ = state
        number = np.arange(len(places))[:, None]
        here = np.maximum(places, 0)
        tokens, bits, is_last, is_closed = (
            x[number, here]
            for x in (self.tokens, self.bits, self.is_last, self.is_closed)
        )
        columns = (
            step.every[step.rows, tokens],
            tokens,
            (places != IDLE) & (step.rows >= 0) & ~step.bound,
            np.where(is_last, IDLE, here + 1),
            met | np.where(is_last, bits, 0),
            left - 1,
            is_closed,
        )
        return tuple(column[:, :, None] for column in columns)


_Part: TypeAlias = tuple[NDArray[Any], ...]


def _filled(rows: Sequence[_Rows], value: int | bool) -> _Rows:
    """Return rows as one array, the shorter ones filled up."""
    width = max(map(len, rows))
    filled = np.full((len(rows), width), value, rows[0].dtype)
    for row, numbers in zip(filled, rows, strict=True):
        row[: len(numbers)] = numbers
    return filled
