"""The line in which jobs wait, fair between clients, and the account of what each was given.

Who has been given least comes next: the Virtual Token Counter (Sheng et al. 2024, "Fairness in
Serving Large Language Models", algorithm 2), with the row of a step as its unit. It decides which
job begins, and which of those that run take a step.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from weft.serve.jobs import Caller, Job
from weft.serve.refusals import Overloaded
from weft.serve.running import Runner

# clients this close to the one that was given least step together: small, so that a newcomer soon
# catches up, and larger than a single sentence's step
_QUANTUM = 32.0
_FIRST_RATE = (
    2000.0  # rows of a step that a thread computes a second, until it was measured
)
# the least share of a step in the rate's average, which is of some seconds: one step that was held
# up does not make all clients wait longer
_LEAST_SHARE = 0.002
# the steps that the first rate counts for: the first of a server are calls that load and plan
_FIRST_STEPS = 20
# of the time that a job has, the part that its work may take by estimate
_SAFE = 0.8


@dataclass
class _Client:
    """The account of a client: units given, and units that its jobs still need."""

    given: float = 0.0
    backlog: float = 0.0
    jobs: int = 0  # that wait or run
    waiting: dict[Runner, deque[Job]] = field(default_factory=dict)  # none is empty


class Line:
    """The waiting jobs of all clients. Not safe for threads by itself: its user has the lock."""

    def __init__(self, num_threads: int, max_waiting: int = 20_000) -> None:
        """Create an empty line for so many threads, which holds at most so many jobs."""
        self.num_threads = num_threads
        self.max_waiting = max_waiting
        # models without jobs are not among them: one that was replaced would stay
        self.num_waiting: Counter[Runner] = Counter()
        # the last job of each request that waits: all of its jobs are over at once
        self._lasts: set[Job] = set()
        self.rate = _FIRST_RATE  # units a second, of one thread
        self._num_steps = 0
        self._clients: dict[str, _Client] = {}

    def __len__(self) -> int:
        return sum(self.num_waiting.values())

    def put(self, runner: Runner, jobs: Sequence[Job]) -> None:
        """Let the jobs of one request wait. Raises Overloaded where they cannot be done in time.

        What is still to be done for a request under way is never refused.
        """
        if not jobs:
            return
        self.refuse_too_many(jobs[0].caller, len(jobs), sum(job.rest for job in jobs))
        client = self._entering(jobs[0].client)
        client.waiting.setdefault(runner, deque()).extend(jobs)
        client.jobs += len(jobs)
        client.backlog += sum(job.rest for job in jobs)
        self.num_waiting[runner] += len(jobs)
        self._lasts.add(jobs[-1])

    def take(self, runner: Runner, count: int) -> list[Job]:
        """Take up to `count` jobs, each of the client that was given least by then."""
        taken: list[Job] = []
        while len(taken) < count and (client := self._least(runner)):
            job = client.waiting[runner].popleft()
            self._removed(client, runner, [job])
            job.began = time.monotonic()
            self._charge(client, job, job.cost)
            taken.append(job)
        return taken

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs that wait."""
        for client in self._clients.values():
            yield from chain.from_iterable(client.waiting.values())

    def runners(self) -> list[Runner]:
        """Return the models for which jobs wait."""
        return list(self.num_waiting)

    def chosen(self, running: Iterable[Job]) -> list[Job]:
        """Return those of the running jobs that take the next step, by what their clients have."""
        jobs = list(running)
        if len(self._clients) == 1:
            return jobs
        given = {job.client: self._clients[job.client].given for job in jobs}
        least = min(given.values(), default=0.0)
        return [job for job in jobs if given[job.client] <= least + _QUANTUM]

    def stepped(self, jobs: Sequence[Job], seconds: float) -> None:
        """Charge a step of these jobs, which took so long."""
        units = 0.0
        for job in jobs:
            units += job.width
            self._charge(self._clients[job.client], job, job.width)
        if seconds > 0:
            self._num_steps += 1
            share = max(_LEAST_SHARE, 1 / (_FIRST_STEPS + self._num_steps))
            self.rate += share * (units / seconds - self.rate)

    def ended(self, job: Job) -> None:
        """Close the account of a job that is over, done or not."""
        client = self._clients[job.client]
        client.backlog -= job.rest
        job.rest = 0.0
        client.jobs -= 1
        if not any(other.jobs for other in self._clients.values()):
            self._clients.clear()  # nobody has anything to be compared with

    def drop_over(self) -> list[Job]:
        """Remove the waiting jobs that nobody waits for, or whose time is over; return them."""
        names = {last.client for last in self._lasts if last.why_over()}
        dropped: list[Job] = []
        for client in [self._clients[name] for name in names]:
            for runner, waiting in list(client.waiting.items()):
                kept: deque[Job] = deque()
                gone: list[Job] = []
                for job in waiting:
                    (gone if job.why_over() else kept).append(job)
                client.waiting[runner] = kept
                self._removed(client, runner, gone)
                dropped += gone
        for job in dropped:
            self.ended(job)
        return dropped

    def refuse_too_many(self, caller: Caller, num_jobs: int, units: float) -> None:
        """Raise Overloaded where so many jobs more of a caller cannot be done in time."""
        if caller.is_under_way:
            return
        seconds = self.seconds_until(caller.client, units)
        allowed = _SAFE * (caller.deadline - time.monotonic())
        if seconds > allowed:
            raise Overloaded(max(1.0, math.ceil(seconds - allowed)))
        too_many = len(self) + num_jobs - self.max_waiting
        if too_many > 0:
            raise Overloaded(max(1.0, math.ceil(self.seconds_without(too_many))))

    def seconds_until(self, name: str, more: float) -> float:
        """Estimate when `more` units of a client would be done.

        By then every client has been given as much as this one, or all that it wants.
        """
        own = more
        if name in self._clients:
            own += self._clients[name].backlog
        units = own
        for other, client in self._clients.items():
            if other != name:
                units += min(client.backlog, own)
        return units / (self.rate * self.num_threads)

    def seconds_without(self, count: int) -> float:
        """Estimate when so many jobs fewer will wait."""
        units = sum(client.backlog for client in self._clients.values())
        num_jobs = sum(client.jobs for client in self._clients.values())
        share = min(1.0, count / max(num_jobs, 1))
        return share * units / (self.rate * self.num_threads)

    def _entering(self, name: str) -> _Client:
        """Return a client's account; one that had nothing to do gets no credit for that."""
        active = [client.given for client in self._clients.values() if client.jobs]
        least = min(active, default=0.0)
        self._forget_idle(least)
        client = self._clients.setdefault(name, _Client())
        if not client.jobs:
            client.given = max(client.given, least)
        return client

    def _forget_idle(self, least: float) -> None:
        """Close the accounts of clients without jobs that would begin anew with `least` anyway."""
        idle = [
            name
            for name, client in self._clients.items()
            if not client.jobs and client.given <= least
        ]
        for name in idle:
            del self._clients[name]

    def _least(self, runner: Runner) -> _Client | None:
        """Return the client with jobs for this model that was given least."""
        waiting = [
            client for client in self._clients.values() if runner in client.waiting
        ]
        return min(waiting, key=lambda client: client.given, default=None)

    def _removed(self, client: _Client, runner: Runner, jobs: Sequence[Job]) -> None:
        """Count jobs of a client out, and forget a model that has no other."""
        if not client.waiting[runner]:
            del client.waiting[runner]
        self.num_waiting[runner] -= len(jobs)
        if not self.num_waiting[runner]:
            del self.num_waiting[runner]
        self._lasts.difference_update(jobs)

    def _charge(self, client: _Client, job: Job, units: float) -> None:
        client.given += units
        done = min(units, job.rest)
        job.rest -= done
        client.backlog -= done
