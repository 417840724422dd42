"""The sentences of a running batch beside its arrays: what each has of its own, and their mixture.

Shapes: A active sentences.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from weft.decoding.decoder import Floats, Hypothesis, Indices, Tokens, length_penalties
from weft.decoding.extensions import Flags
from weft.decoding.samples import Drawing
from weft.decoding.sentences import BeamSettings, Sentence
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

    def keep(self, hypothesis: Hypothesis) -> None:
        """Put one that ended into the pool of the `n_best`, after those of its score."""
        rank = bisect_right(
            self.pool, -hypothesis.score, key=lambda other: -other.score
        )
        self.pool.insert(rank, hypothesis)
        del self.pool[self.settings.n_best :]


@dataclass(frozen=True)
class Mix:
    """The active sentences that take a step together (A), and which of them are drawn.

    The widest of them has `width` hypotheses, and the widest beam that is searched `candidates`.
    `banned` are the ids that every row bans, None where rows differ.
    """

    active: Indices
    is_drawn: Flags
    width: int
    candidates: int
    banned: Tokens | None

    @property
    def has_samples(self) -> bool:
        return bool(self.is_drawn.any())

    @property
    def has_beams(self) -> bool:
        return not self.is_drawn.all()


@lru_cache(maxsize=64)
def id_array(ids: tuple[int, ...]) -> Tokens:
    """Return different ids, ascending; the same array for the same ids."""
    return np.array(sorted(set(ids)), np.int32)


@lru_cache(maxsize=64)
def penalty_table(alpha: float, count: int) -> Floats:
    """Return what scores are divided by, for 0 tokens and more (`count` of them)."""
    return np.asarray(length_penalties(alpha, count - 1), np.float32)
