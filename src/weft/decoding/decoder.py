"""What the search asks of a model: a decoder takes steps for many sentences, an engine makes decoders.

The searches know these protocols alone; `weft.engine` has what keeps them. Shapes: R rows of one step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = Sequence[int] | NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """The R rows of one step: each is the token at `times` of one of the `places` of its slot.

    A row looks at the times before, each in the place that its row of `ancestors` (R, at least as wide as the
    largest time) names. Rows of one place may follow each other. What may not come next stands in `banned`, one
    row's ids behind the other's, and where each row's end in `ban_ends`; None: nothing is banned.
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


Best: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32] | None]
"""Log-probabilities and ids of each row's best next tokens, -inf for none; those of all tokens, if asked for."""


@runtime_checkable
class Decoder(Protocol):
    """Sentences under way, and their next tokens: all that the search knows of a model."""

    slots: int
    places: int
    begins_together: bool  # sentences are read when no other is under way, never beside others

    def read(self, slots: Sequence[int], sentences: Sequence[Sequence[int]], allowed: Sequence[Ids], /) -> None:
        """Take sentences, each into a slot of its own, and the ids that each may become: none for any."""
        ...

    def step(self, rows: Rows, count: int, /, *, whole: bool = False) -> Best:
        """One more token for each row: the `count` best next ones; with `whole`, all log-probabilities too."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Makes decoders that share one model."""

    def session(self, slots: int, places: int, /) -> Decoder:
        """One for so many sentences with so many hypotheses each; for one thread at a time."""
        ...
