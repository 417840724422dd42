"""The tasks of a crew in blocks, by the workers of an executor in the place of processes here.

Their files lie in a folder that all machines read: the texts, and a line for each task. Workers
write nothing: what they find comes back, is kept in shards as all answers are, and written to its
place by the command. So tasks that are finished are not done again.
"""

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from weft.cluster.block import divided
from weft.cluster.executor import Executor
from weft.cluster.shards import Request, Shards, write_shards
from weft.cluster.work import Answers, Sums, Work
from weft.data import worker
from weft.data.check.finding import counted
from weft.data.crew import Portable, Task, show
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.folder.version import installed_version

BLOCK_PAIRS = 100_000
_BEGUN = "begun.json"
_OWN = (
    "first",
    "last",
    "closely",
)  # of a task; the others of its job have the rest, too


@dataclass
class InBlocks:
    """Workers of an `executor` that take a crew's work, in blocks of `block_pairs` pairs or some
    fewer; finished ones lie in `folder`.

    All work follows from the `facts`, in the same order each time; they are asked for once. `note`
    is told who does what. `entries` are what the manifests say of all blocks.
    """

    executor: Executor
    folder: Path
    facts: Callable[[], Mapping[str, Any]]
    note: Callable[[str], None]
    block_pairs: int = BLOCK_PAIRS
    entries: list[dict[str, Any]] = field(default_factory=list)
    _num_works: int = 0

    def __call__(
        self, name: str, job: Portable, tasks: Sequence[Task], unit: str
    ) -> None:
        """Run the tasks of a job, and keep what is found."""
        if not self._num_works:
            self._begin()
        self._num_works += 1
        called = f"{self._num_works:03}-{name}"
        listed = self.folder / f"{called}.jsonl"
        lines = (json.dumps(_own(task)) for task in tasks)
        durable.write_text(listed, "".join(f"{line}\n" for line in lines))
        size = max(task["last"] - task["first"] for task in tasks)
        in_block = max(self.block_pairs // size, 1)
        division = divided([listed], in_block)
        work = Work(name, {}, {}, {}, partial(open_tasks, name, _shared(tasks)))
        request = Request(work, division, in_block, ".jsonl")

        def begin(done: int) -> None:
            before = f" ({done:,} finished before)" if done else ""
            self.note(f"{name}: {counted(len(division.blocks), 'blocks')}{before}")

        left = iter(tasks)
        num_pairs = 0

        def advance(more: int) -> None:
            nonlocal num_pairs
            for task in islice(left, more):
                num_pairs = show(task, num_pairs, unit)

        shards = write_shards(
            self.folder / called, request, self.executor, advance, begin
        )
        self._keep(called, job, tasks, shards)

    def _begin(self) -> None:
        """Make the folder. Raises UsageError where it was begun with other facts."""
        durable.make_folder(self.folder)
        facts = {"version": installed_version(), **self.facts()}
        begun = self.folder / _BEGUN
        if begun.is_file():
            old = durable.read_json(begun)
            changed = [name for name in facts if old.get(name) != facts[name]]
            if changed:
                raise UsageError(
                    f"{self.folder}: was begun with another {' and another '.join(changed)}; give the same, "
                    "or another --output, or remove it"
                )
        durable.write_json(begun, facts)

    def _keep(
        self, called: str, job: Portable, tasks: Sequence[Task], shards: Shards
    ) -> None:
        """Write what was found in each task to its place."""
        for number, entry in sorted(shards.entries.items()):
            lines = shards.file(number).read_text("utf-8").split("\n")[:-1]
            start = entry["first"] - 1
            own = tasks[start : start + entry["rows"]]
            for task, line in zip(own, lines, strict=True):
                job.keep(task, line)
            num_pairs = sum(task["last"] - task["first"] for task in own)
            told = {key: entry[key] for key in ("began", "seconds", "worker")}
            self.entries.append({"work": called, "pairs": num_pairs, **told})


def _own(task: Task) -> Task:
    """Return what a task has alone."""
    return {key: task[key] for key in _OWN if key in task}


def _shared(tasks: Sequence[Task]) -> Task:
    """Return what the tasks of a job have in common."""
    return {key: value for key, value in tasks[0].items() if key not in _OWN}


def open_tasks(name: str, shared: Task) -> Answers:
    """Return what does the tasks of a job, a line each."""
    job = worker.JOBS[name]
    assert isinstance(job, Portable)

    def answers(lines: Sequence[str], first: int) -> Iterator[tuple[str, Sums]]:
        for line in lines:
            try:
                found = job.find({**shared, **json.loads(line)})
            except OSError as error:
                raise FolderError(
                    f"{error.filename}: cannot be read on {platform.node()} ({error.strerror}); "
                    "every machine needs the folder of --output by this name"
                ) from None
            yield f"{found}\n", {}

    return answers
