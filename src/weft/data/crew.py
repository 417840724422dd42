"""Processes of Weft's own, side by side at the stretches of a large text.

A task is a plain dictionary, and its result is a file that the task names: so only lines of JSON
pass between processes, and the result does not depend on how many there are. Each process is a
Python of its own (`worker.py`), started afresh: none is forked from one that has threads, and
nothing of a person's program is run again. What they cannot do is done here. Others may do it all,
on other machines too.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.console import stages

Task = dict[str, Any]
Job = Callable[[Task], None]

# set to a number, it says how many processes there are; 1 is this one alone
VARIABLE = "WEFT_PROCESSES"
# each process works on a core of its own
_SETTINGS = {
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",  # no module of the folder that the person is in
}


@dataclass(frozen=True)
class Portable:
    """A job that others can do, too: `find` returns what is to be found, as a line of text; `keep`
    writes it into the file that the task names, on this machine.
    """

    find: Callable[[Task], str]
    keep: Callable[[Task, str], None]

    def __call__(self, task: Task) -> None:
        """Find, and keep."""
        found = self.find(task)
        self.keep(task, found)


Others = Callable[[str, Portable, Sequence[Task], str], None]
"""Does what `work` does, by whomever."""
_others: ContextVar[Others | None] = ContextVar("others", default=None)
_sharers: ContextVar[int] = ContextVar("sharers", default=1)


@contextmanager
def given_to(others: Others) -> Iterator[None]:
    """Give all work that others can do to them while the block runs."""
    before = _others.set(others)
    try:
        yield
    finally:
        _others.reset(before)


@contextmanager
def cores_shared_by(count: int) -> Iterator[None]:
    """Take a share of the cores while the block runs, as so many processes do at once."""
    before = _sharers.set(count)
    try:
        yield
    finally:
        _sharers.reset(before)


def work(name: str, job: Job, tasks: Sequence[Task], unit: str = "") -> None:
    """Run a job for each task; `name` is what `worker.py` calls it.

    With a unit, those from `first` to `last` of the tasks that are done are counted.
    """
    others = _others.get()
    if others is not None and isinstance(job, Portable):
        others(name, job, tasks, unit)
        return
    count = num_processes()
    if count < 2:
        done = 0
        for task in tasks:
            job(task)
            done = show(task, done, unit)
        return
    crew = _Crew(name, job, tasks, unit)
    # one task, too, is done by another process, whose memory goes with it
    with _processes(min(count, len(tasks))) as processes:
        threads = [
            threading.Thread(target=crew.serve, args=(process,), daemon=True)
            for process in processes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    crew.finish()


def num_processes() -> int:
    """Return how many processes work on a large text: as many as there are cores for this one."""
    asked = os.environ.get(VARIABLE, "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return max(cores // _sharers.get(), 1)


def show(task: Task, before: int, unit: str) -> int:
    """Show how many are done with a task, and return that."""
    if not unit:
        return before
    done = before + int(task["last"]) - int(task["first"])
    stages.count(done, unit)
    return done


class _Crew:
    """The tasks of a job, taken one by one by the threads that each speak to a process."""

    def __init__(self, name: str, job: Job, tasks: Sequence[Task], unit: str) -> None:
        self._name = name
        self._job = job
        self._unit = unit
        self._lock = threading.Lock()
        self._waiting = list(reversed(tasks))
        self._num_done = 0
        self._left: list[Task] = []

    def serve(self, process: "subprocess.Popen[str]") -> None:
        """Give tasks to a process until there is none, or the process has gone."""
        while (task := self._next()) is not None:
            if not _ask(process, {"job": self._name, "task": task}):
                self._left.append(task)
                return
            with self._lock:
                self._num_done = show(task, self._num_done, self._unit)

    def finish(self) -> None:
        """Finish here what no process did, and raise what stands against it."""
        for task in [*self._left, *reversed(self._waiting)]:
            self._job(task)

    def _next(self) -> Task | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None


def _ask(process: "subprocess.Popen[str]", task: Task) -> bool:
    """Return whether a process has done a task."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, ValueError):
        process.stdin.write(f"{json.dumps(task)}\n")
        process.stdin.flush()
        return process.stdout.readline() == "done\n"
    return False


@contextmanager
def _processes(count: int) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start processes, and end them with the block, however it ends."""
    started: list[subprocess.Popen[str]] = []
    try:
        with suppress(OSError):
            for _ in range(count):
                started.append(_start())
        yield started
    finally:
        for process in started:
            with suppress(OSError):
                process.kill()
            process.communicate()


def _start() -> "subprocess.Popen[str]":
    root = str(Path(__file__).parents[2])
    paths = [root, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        **_SETTINGS,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "weft.data.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        encoding="utf-8",
    )
