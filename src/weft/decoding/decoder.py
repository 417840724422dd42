"""What a search asks of a model, and what it finds.

The search that runs knows a Decoder: it takes steps for many sentences at once, and an Engine makes
it. The plain ones know a Cache and a Step. `weft.engine` and `weft.model` have what keeps these
protocols.

Shapes: R rows of one step of a decoder; N rows of a cache, M of another; V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

C = TypeVar("C", bound="Cache")

Ids: TypeAlias = Sequence[int] | NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """The R rows of one step: each is the token at `times` of one of the `places` of its slot.

    A row looks at the times before, each in the place that its row of `ancestors` (R, at least as
    wide as the largest time) names. Rows of one place may follow each other. What may not come next
    stands in `banned`, one row's ids behind the other's, and where each row's end in `ban_ends`;
    None: nothing is banned.
    """

    slots: NDArray[np.int64]
    places: NDArray[np.int64]
    times: NDArray[np.int64]
    tokens: NDArray[np.int32]
    ancestors: NDArray[np.int32]
    banned: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    ban_ends: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.slots)


Best: TypeAlias = tuple[
    NDArray[np.float32], NDArray[np.int32], NDArray[np.float32] | None
]
"""Log-probabilities and ids of each row's best next tokens, -inf for none; those of all tokens,
if asked for.
"""


@runtime_checkable
class Decoder(Protocol):
    """Sentences under way, and their next tokens: all that the search knows of a model."""

    slots: int
    places: int
    # sentences are read when no other is under way, never beside others
    begins_together: bool

    def read(
        self,
        slots: Sequence[int],
        sentences: Sequence[Sequence[int]],
        allowed: Sequence[Ids],
        /,
    ) -> None:
        """Take sentences, each into a slot of its own, and the ids that each may become: none for
        any.
        """
        ...

    def step(self, rows: Rows, count: int, /, *, whole: bool = False) -> Best:
        """One more token for each row: the `count` best next ones; with `whole`, all
        log-probabilities too.
        """
        ...


@runtime_checkable
class Engine(Protocol):
    """Makes decoders that share one model."""

    def session(self, slots: int, places: int, /) -> Decoder:
        """One for so many sentences with so many hypotheses each; for one thread at a time."""
        ...


@runtime_checkable
class Cache(Protocol):
    """What a step remembers of the past: one row for each hypothesis."""

    def select(self: C, rows: Int[Tensor, "M"]) -> C:
        """Return a cache of these rows in this order; a row may be left out or repeated."""
        ...


Step: TypeAlias = Callable[[Int[Tensor, "N"], C], tuple[Float[Tensor, "N V"], C]]
"""Takes the newest id of each row and the cache; returns the logits of the next token and the
longer cache.
"""


@dataclass(frozen=True)
class Hypothesis:
    """One found output.

    `ids` are without bos and eos; `log_prob` is the sum of `token_log_probs`, eos included; `score`
    is the log-probability divided by the length penalty; `finished` says that it ended with eos,
    False that it was cut at the limit.
    """

    ids: list[int]
    log_prob: float
    score: float
    token_log_probs: list[float]
    finished: bool


def length_penalties(alpha: float, longest: int) -> list[float]:
    """Return lp(n) = ((5 + n) / 6) ** alpha for n = 0 .. longest (Wu et al. 2016, equation 14); n
    counts eos.
    """
    return [((5 + n) / 6) ** alpha for n in range(longest + 1)]
