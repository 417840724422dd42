"""The mixtures of a run's text, one after the other, each for a share of the run's steps.

Which one a step takes its batches from is a function of the step and of the steps in all, as the
learning rate is: a run that was stopped goes on with the same. Where the clock decides the length,
a mixture ends when its share of the steps that are expected is reached; that is written down
before the first step that depends on it, and stands.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

B_co = TypeVar("B_co", covariant=True)


class AnyBatches(Protocol[B_co]):
    """The micro-batches of any task, by epoch and position.

    A place is such a pair: (epoch, position), both from 0. The sizes of an epoch's batches are
    known without making them.
    """

    def num_batches(self, epoch: int) -> int: ...
    def sizes(self, epoch: int) -> NDArray[np.int64]: ...
    def batch(self, epoch: int, position: int) -> B_co: ...


@dataclass(frozen=True)
class Stage(Generic[B_co]):
    """The batches of a run up to a share of its steps, and how they are mixed, in words."""

    until: float
    batches: AnyBatches[B_co]
    description: str = ""


def borders_of(
    shares: Sequence[float], max_steps: int, decided: Sequence[int] = (), now: int = 0
) -> list[int]:
    """Return the steps after which each stage but the last ends, in a run of `max_steps`.

    `shares` are those of the steps up to which the stages go, `decided` the borders that a clock
    has decided; none of the others is before `now`.
    """
    found = [*decided]
    for share in shares[len(decided) : -1]:
        found.append(max(round(share * max_steps), now, *found[-1:]))
    return found


def stage_after(step: int, found: Sequence[int]) -> int:
    """Return the number of the stage that the step after `step` belongs to."""
    return bisect_right(found, step)
