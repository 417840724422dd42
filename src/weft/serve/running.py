"""Rows of one model that are worked on together, in one thread; and calls that are no rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weft.errors import DivergedError, OutOfMemoryError, UsageError
from weft.serve.jobs import Job
from weft.serve.refusals import Broken, InvalidRequest, Refusal


class RunningBatch(Protocol):
    """The jobs of one model that a thread works on. Jobs begin and end at any step.

    A batch finishes or fails a job itself, as soon as it can, and then has forgotten it. What
    becomes of a job does not depend on the others.
    """

    def room(self) -> int:
        """Return how many more jobs can begin now."""
        ...

    def begin(self, jobs: Sequence[Job], /) -> None:
        """Take in so many jobs, at most `room`; one that cannot begin fails by itself."""
        ...

    def step(self, jobs: Sequence[Job], /) -> None:
        """Take one step for some of its jobs; the others stand still."""
        ...

    def drop(self, jobs: Sequence[Job], /) -> None:
        """Drop jobs that nobody waits for."""
        ...


class Runner(Protocol):
    """A model, as the pool has it. Jobs of one runner share batches."""

    def new_batch(self) -> RunningBatch:
        """Create an empty batch, for one thread."""
        ...


@dataclass(frozen=True, eq=False)
class Calls:
    """A runner whose rows are functions without arguments, each called in one step."""

    name: str

    def new_batch(self) -> "_CallBatch":
        """Create an empty batch."""
        return _CallBatch()


class _CallBatch:
    """A single call at a time."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def room(self) -> int:
        return 1 - len(self.jobs)

    def begin(self, jobs: Sequence[Job]) -> None:
        self.jobs += jobs

    def step(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            finish_by(job, job.row)
        self.drop(jobs)

    def drop(self, jobs: Sequence[Job]) -> None:
        self.jobs = [job for job in self.jobs if job not in jobs]


def finish_by(job: Job, work: Callable[[], Any]) -> None:
    """End a job with what a function returns or raises."""
    try:
        job.finish(work())
    except Exception as error:
        job.fail(as_refusal(error))


def as_refusal(error: Exception) -> Exception:
    """Return an error of a model as a refusal; one that is not foreseen stays itself."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, UsageError):
        return InvalidRequest(str(error))
    if isinstance(error, DivergedError):
        return Broken("the model gives no numbers for this text")
    if isinstance(error, (MemoryError, OutOfMemoryError)):
        return Broken("the server has no memory for this text; send less at once")
    return error
