"""The sentences of a running batch beside its arrays: what each has of its own, and their mixture.

Shapes: A active sentences.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from weft.decoding.decoder import Floats, Hypothesis, Indices, Tokens, length_penalties
from weft.decoding.extensions import Flags
from weft.decoding.samples import Drawing
from weft.decoding.sentences import BeamSettings, Sentence
from weft.decoding.terms import TermMix
from weft.errors import DivergedError, UsageError

Outcome: TypeAlias = "list[Hypothesis] | DivergedError | UsageError | MemoryError"
"""What becomes of a sentence: its `n_best` hypotheses, best first (fewer where the beam met fewer),
or samples in the order of their numbers; or why there are none.
"""


@dataclass
class Slot:
    """The part of a sentence under way that is in no array.

    `pool` has the hypotheses that ended, best first, or `samples` those, by their numbers.
    """

    sentence: Sentence
    settings: BeamSettings
    banned: Tokens
    drawing: Drawing | None
    pool: list[Hypothesis] = field(default_factory=list)
    samples: dict[int, Hypothesis] = field(default_factory=dict)

    @property
    def bans_by_row(self) -> bool:
        """Return whether the ids that may not come next differ between its hypotheses."""
        sentence = self.sentence
        has_own = sentence.stem is not None or sentence.terms is not None
        return has_own or bool(sentence.avoided or self.settings.no_repeat_ngrams)

    def forced(self, beam: int, position: int) -> int:
        """Return the token that comes next inside of its prefix, or at a branch behind it."""
        prefix = self.sentence.prefix
        if position < len(prefix):
            return prefix[position]
        return self.sentence.branches[beam]

    def banned_after(self, tokens: Tokens) -> list[Tokens]:
        """List the ids that may not come after these tokens; some may be in several parts.

        Terms ban more, see `banned_by_terms`.
        """
        banned = [self.banned]
        if n := self.settings.no_repeat_ngrams:
            banned.append(_repeating(tokens.tolist(), n))
        if self.sentence.avoided:
            banned.append(_completing(tokens.tolist(), self.sentence.avoided))
        stem = self.sentence.stem
        num_forced = len(self.sentence.prefix)
        if stem is not None and len(tokens) >= num_forced:
            impossible = stem.banned(tokens[num_forced:].tolist())
            if impossible is not None:
                banned.append(impossible)
        return banned

    def begins_freely(self, tokens: Tokens) -> bool:
        """Return whether what follows these tokens is neither in the prefix nor in the stem."""
        num_forced = len(self.sentence.prefix)
        stem = self.sentence.stem
        if len(tokens) < num_forced or stem is None:
            return len(tokens) >= num_forced
        return stem.banned(tokens[num_forced:].tolist()) is None

    def banned_by_terms(self, left: int, is_behind: bool) -> list[Tokens]:
        """List what may not come next while tokens of terms are left, or right behind a form."""
        terms = self.sentence.terms
        if terms is None:
            return []
        banned = [np.asarray(terms.inner, np.int32)] if is_behind else []
        if left:
            banned.append(np.array([self.settings.eos_id], np.int32))
        return banned

    def keep(self, hypothesis: Hypothesis) -> None:
        """Put one that ended into the pool of the `n_best`, after those of its score.

        With terms, the same tokens may be found twice: as a form, and as words like others.
        """
        if self.sentence.terms and any(
            hypothesis.ids == other.ids for other in self.pool
        ):
            return
        rank = bisect_right(
            self.pool, -hypothesis.score, key=lambda other: -other.score
        )
        self.pool.insert(rank, hypothesis)
        del self.pool[self.settings.n_best :]


@dataclass(frozen=True)
class Mix:
    """The active sentences that take a step together (A), and which of them are sampled: some of
    these draw, others take the best.

    `has_terms` marks those that need `terms`. `has_prefixes` says that some began with a prefix.
    The widest of them has `width` hypotheses, and the widest beam that is searched `candidates`.
    `banned` are the ids that every row bans, None where rows differ.
    """

    active: Indices
    is_sampled: Flags
    has_terms: Flags
    terms: TermMix | None
    has_draws: bool
    has_prefixes: bool
    width: int
    candidates: int
    banned: Tokens | None

    @property
    def has_samples(self) -> bool:
        return bool(self.is_sampled.any())

    @cached_property
    def is_plain(self) -> bool:
        """Return whether nothing is drawn, and all rows ban the same ids; terms ban their own."""
        return self.banned is not None and not self.has_samples

    @property
    def needs_all(self) -> bool:
        """Return whether a step needs the log-probabilities of all tokens."""
        return self.has_draws or bool(self.has_terms.any())

    @property
    def has_beams(self) -> bool:
        return not self.is_sampled.all()


@lru_cache(maxsize=64)
def id_array(ids: tuple[int, ...]) -> Tokens:
    """Return different ids, ascending; the same array for the same ids."""
    return np.array(sorted(set(ids)), np.int32)


@lru_cache(maxsize=64)
def penalty_table(alpha: float, count: int) -> Floats:
    """Return what scores are divided by, for 0 tokens and more (`count` of them)."""
    return np.asarray(length_penalties(alpha, count - 1), np.float32)


def _completing(tokens: list[int], runs: Sequence[Sequence[int]]) -> Tokens:
    """List what would be the last token of one of these runs, after these tokens."""
    last = [
        run[-1]
        for run in runs
        if len(run) <= len(tokens) + 1
        and list(run[:-1]) == tokens[len(tokens) - len(run) + 1 :]
    ]
    return np.array(last, np.int32)


def _repeating(tokens: Sequence[int], n: int) -> Tokens:
    """List what would make the last n - 1 tokens and the next one a run that occurred already."""
    newest = tokens[len(tokens) - n + 1 :]
    following = [
        tokens[i + n - 1]
        for i in range(len(tokens) - n + 1)
        if tokens[i : i + n - 1] == newest
    ]
    return np.array(following, np.int32)
