"""The threads that work on the jobs of all clients and all models, a step at a time."""

import asyncio
import logging
import math
import threading
import time
import traceback
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from weft.serve.jobs import Caller, Job
from weft.serve.line import Line
from weft.serve.refusals import Broken, Stopping, TooLate
from weft.serve.running import Runner, RunningBatch
from weft.serve.visits import current_visit

_LOG = logging.getLogger("weft.serve")
_PATIENCE = (
    0.02  # seconds of a step, after which the other threads take this thread's share
)
_OFTEN = 0.05  # seconds after which the waiting jobs are looked through for some that are over


@dataclass(frozen=True)
class Load:
    """The work of now: rows, and the requests that they are of.

    A request runs where a row of it does, and waits where all of its rows do.
    """

    rows_running: int
    rows_waiting: int
    requests_running: int
    requests_waiting: int


class Pool:
    """Threads that share a line. There is no waiting window: an idle thread begins at once."""

    def __init__(self, num_threads: int, max_waiting: int = 20_000) -> None:
        """Start so many threads."""
        self.line = Line(num_threads, max_waiting)
        self.changed = threading.Condition()
        self.num_running: dict[Runner, int] = {}
        self._takes_until = math.inf  # a time of time.monotonic
        self._looked = 0.0
        self._retired: weakref.WeakSet[Any] = weakref.WeakSet()
        self._workers = [_Worker(self, number) for number in range(num_threads)]
        for worker in self._workers:
            worker.thread.start()

    async def run(self, runner: Runner, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of the jobs of one request, in their order.

        Raises the first error; then, and where the caller is over, none of them goes on.
        """
        self.submit(runner, jobs)
        return await self.wait(jobs)

    def refuse_too_many(self, caller: Caller, num_jobs: int) -> None:
        """Raise Overloaded where so many jobs more have no room, however small they are.

        To find that out costs nothing; to make the jobs of a large request takes a while.
        """
        with self.changed:
            self.line.refuse_too_many(caller, num_jobs, float(num_jobs))

    def submit(self, runner: Runner, jobs: Sequence[Job]) -> None:
        """Let jobs wait for their turn. Raises Overloaded, or Stopping.

        A request that began before the end may go on: some need one job after the other.
        """
        with self.changed:
            if jobs and jobs[0].caller.began >= self._takes_until:
                raise Stopping
            self.line.put(runner, jobs)
            self.changed.notify_all()

    async def wait(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of submitted jobs, as `run`."""
        if not jobs:
            return []
        caller = jobs[0].caller
        seconds = caller.deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                if len(jobs) == 1:
                    return [await jobs[0].future]
                return await asyncio.gather(*(job.future for job in jobs))
        except TimeoutError:
            raise TooLate from None
        finally:
            note_turn(jobs)
            for job in jobs:
                job.future.cancel()

    def load(self) -> Load:
        """Count what runs and waits."""
        with self.changed:
            running = [job for worker in self._workers for job in worker.jobs()]
            waiting = list(self.line.jobs())
        at_work = {job.caller for job in running}
        in_line = {job.caller for job in waiting} - at_work
        return Load(len(running), len(waiting), len(at_work), len(in_line))

    @property
    def is_stopping(self) -> bool:
        """Return whether requests are refused that begin now."""
        return self._takes_until < math.inf

    @property
    def is_idle(self) -> bool:
        """Return whether no job waits or runs."""
        with self.changed:
            return not len(self.line) and not any(self.num_running.values())

    @property
    def is_whole(self) -> bool:
        """Return whether no thread has ended by a mistake."""
        return all(worker.thread.is_alive() for worker in self._workers)

    def refuse_more(self) -> None:
        """Take no jobs of requests that begin from now on; the others go on."""
        with self.changed:
            self._takes_until = min(self._takes_until, time.monotonic())

    def retire(self, runner: Runner | None) -> None:
        """Let the threads forget a model's empty batches: no more jobs of it come."""
        if runner is not None:
            with self.changed:
                self._retired.add(runner)
                self.changed.notify_all()

    def is_retired(self, runner: Runner) -> bool:
        """Return whether no more jobs of a model come."""
        return runner in self._retired

    def over_in_line(self) -> list[Job]:
        """Remove the waiting jobs that are over from the line, now and then; return them."""
        now = time.monotonic()
        if now - self._looked < _OFTEN:
            return []
        with self.changed:
            self._looked = now
            return self.line.drop_over()

    def share_of(self, worker: "_Worker", runner: Runner) -> int:
        """Return how many jobs of a model a thread takes now.

        All threads have equally many, but those that are long in a step. The lock is held.
        """
        late = time.monotonic() - _PATIENCE
        ready = sum(
            other is worker or other.step_began > late for other in self._workers
        )
        in_all = self.line.num_waiting[runner] + self.num_running.get(runner, 0)
        return max(0, -(-in_all // ready) - len(worker.running.get(runner, ())))

    def stop(self) -> None:
        """End the threads after their step; what still waits or runs is over."""
        with self.changed:
            self._takes_until = -math.inf
            for worker in self._workers:
                worker.is_stopped = True
            self.changed.notify_all()
        for worker in self._workers:
            worker.thread.join()


class _Worker:
    """A thread: its batches, one for each model, and their jobs."""

    def __init__(self, pool: Pool, number: int) -> None:
        self.pool = pool
        self.line = pool.line
        self.is_stopped = False
        self.step_began = math.inf  # of the step under way
        self.batches: dict[Runner, RunningBatch] = {}
        self.running: dict[Runner, list[Job]] = {}
        self.thread = threading.Thread(
            target=self._work, name=f"weft-{number}", daemon=True
        )

    def jobs(self) -> list[Job]:
        """Return the jobs that are not done; the thread goes on meanwhile."""
        every = chain.from_iterable(list(self.running.values()))
        return [job for job in every if not job.is_done]

    def _work(self) -> None:
        while self._wait():
            self._drop_over()
            self._drop_retired()
            self._admit()
            self._step()

    def _wait(self) -> bool:
        """Wait until there is work; False where the pool has stopped."""
        with self.pool.changed:
            while not (self.is_stopped or self.running or len(self.line)):
                self._drop_retired()  # also where no more work comes
                self.pool.changed.wait()
        return not self.is_stopped

    def _drop_over(self) -> None:
        """Drop what nobody waits for, or what is too late."""
        for job in self.pool.over_in_line():
            _fail_over(job)
        for runner, jobs in list(self.running.items()):
            over = [job for job in jobs if job.why_over()]
            if over:
                self.batches[runner].drop(over)
                for job in over:
                    _fail_over(job)
                self._forget(runner)

    def _drop_retired(self) -> None:
        """Give back the memory of models that were replaced."""
        for runner in list(self.batches):
            if runner not in self.running and self.pool.is_retired(runner):
                del self.batches[runner]

    def _admit(self) -> None:
        """Begin waiting jobs: of each model this thread's share of them."""
        with self.pool.changed:
            runners = self.line.runners()
        for runner in runners:
            batch = self.batches.get(runner)
            if batch is None:
                batch = self.batches[runner] = runner.new_batch()
            with self.pool.changed:
                share = self.pool.share_of(self, runner)
                jobs = self.line.take(runner, min(batch.room(), share))
                self._count(runner, len(jobs))
                if jobs:
                    self.running.setdefault(runner, []).extend(jobs)
            if jobs:
                self._guarded(runner, jobs, batch.begin)
                self._forget(runner)

    def _step(self) -> None:
        """Take a step of each model, for the jobs whose turn it is."""
        with self.pool.changed:
            every = [job for jobs in self.running.values() for job in jobs]
            chosen = set(self.line.chosen(every))
        for runner, jobs in list(self.running.items()):
            stepping = [job for job in jobs if job in chosen]
            if not stepping:
                continue
            began = time.perf_counter()
            self._guarded(runner, stepping, self.batches[runner].step)
            seconds = time.perf_counter() - began
            with self.pool.changed:
                self.line.stepped(stepping, seconds)
            self._forget(runner)

    def _guarded(self, runner: Runner, jobs: Sequence[Job], work: Any) -> None:
        """Let a batch work; an error that it did not foresee ends its jobs, and the batch."""
        self.step_began = time.monotonic()
        try:
            work(jobs)
        except Exception as error:
            # the message may hold a text of a client
            where = "".join(traceback.format_tb(error.__traceback__))
            _LOG.error("a batch failed: %s\n%s", type(error).__name__, where)
            for job in self.running[runner]:
                if not job.is_done:
                    job.fail(Broken("the server failed at this text"))
            del self.batches[runner]
        finally:
            self.step_began = math.inf

    def _forget(self, runner: Runner) -> None:
        """Close the accounts of a model's jobs that are done."""
        jobs = self.running[runner]
        done = [job for job in jobs if job.is_done]
        if not done:
            return
        with self.pool.changed:
            for job in done:
                self.line.ended(job)
            self._count(runner, -len(done))
        left = [job for job in jobs if not job.is_done]
        if left:
            self.running[runner] = left
        else:
            del self.running[runner]

    def _count(self, runner: Runner, more: int) -> None:
        counts = self.pool.num_running
        counts[runner] = counts.get(runner, 0) + more
        if not counts[runner]:
            del counts[runner]


def note_turn(jobs: Sequence[Job]) -> None:
    """Note for the metrics when the first job of the running request began."""
    visit = current_visit()
    began = [job.began for job in jobs if job.began]
    if visit is not None and began:
        visit.note(turn=min(began))


def _fail_over(job: Job) -> None:
    job.fail(job.why_over() or TooLate())
