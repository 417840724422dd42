"""The cleaning of a large text of pairs, stretch by stretch in several processes.

A pair is mended by itself. What the check finds is found in each stretch as `check.stretches` does;
so are the partners of shifted lines.
"""

import json
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from weft.data.check.finding import Finding
from weft.data.check.sides import SideModel
from weft.data.check.stretches import (
    columns_of,
    found_in,
    keep_found,
    look_over_large,
    pairs_in,
    tasks_about,
)
from weft.data.check.words import Ids
from weft.data.clean.mended import Mended, mended_pair
from weft.data.clean.realigning import Joins, join_again
from weft.data.clean.rules import SHIFTED, Choice
from weft.data.corpus import ParallelText, measured
from weft.data.crew import Portable, Task, work
from weft.data.home import Home
from weft.data.measures import describe, open_stretch, stretches

STRETCH = 10_000  # rows of a task


def mended_in_stretches(text: ParallelText, choice: Choice) -> Iterator[Mended | None]:
    """Yield what becomes of each pair of a large text; None for one that stays as it is."""
    home = Home()
    common = {
        "columns": describe(columns_of(text), home.path),
        "folder": str(home.path),
        "actions": dict(choice.actions),
    }
    tasks = [{**common, **stretch} for stretch in stretches(len(text), STRETCH)]
    work("mend", MEND, tasks, "pairs")
    for task in tasks:
        found = json.loads(found_in(task))
        for row in range(task["last"] - task["first"]):
            rules, after = found.get(str(row), (None, None))
            if rules is None:
                yield None
            else:
                yield Mended(tuple(rules), None if after is None else (*after,))


def mend_stretch(task: Task) -> str:
    """Return what becomes of the pairs of a stretch that do not stay as they are."""
    first, last = task["first"], task["last"]
    src, tgt = (open_stretch(each, first, last) for each in task["columns"])
    choice = Choice(task["actions"])
    found = {}
    for row, pair in enumerate(zip(src, tgt, strict=True)):
        mended = mended_pair(pair, choice)
        if mended is not None:
            found[row] = mended
    return json.dumps(found)


MEND = Portable(mend_stretch, keep_found)


class InStretches:
    """A large text as the check looks at it, measured."""

    def __init__(self, text: ParallelText) -> None:
        self.text = text if text.measures else measured(text)
        self._model = SideModel(text.src, text.tgt)

    @cached_property
    def findings(self) -> list[Finding]:
        """Return what the check finds."""
        return look_over_large(self.text, self._model, in_all=True)

    @property
    def has_shifts(self) -> bool:
        """Return whether lines of a stretch are out of step."""
        return len(self._shifted) > 0

    @property
    def _shifted(self) -> Ids:
        rows = [found.rows for found in self.findings if found.code == SHIFTED]
        return np.array(rows[0] if rows else (), np.int64)

    def joins(self) -> Joins:
        """Return the partners of all lines, of shifted ones others than those that they have."""
        home = Home()
        shifted = self._shifted
        tasks = tasks_about(self.text, self._model, home)
        ends = np.array([task["last"] for task in tasks])
        concerned = set(np.searchsorted(ends, shifted, "right").tolist())
        work("realign", REALIGN, [tasks[n] for n in sorted(concerned)])
        src = []
        tgt = []
        for number, task in enumerate(tasks):
            first = task["first"]
            own = np.arange(first, task["last"])
            sides = (own, own)
            if number in concerned:
                sides = first + np.array(json.loads(found_in(task)), np.int64)
            src.append(sides[0])
            tgt.append(sides[1])
        return Joins(len(self.text), np.concatenate(src), np.concatenate(tgt))


def realign_stretch(task: Task) -> str:
    """Find the partners of the lines of a stretch; return both sides' numbers in it."""
    pairs = pairs_in(task)
    joins = join_again(pairs.alignment, pairs.shifts, pairs.text.file_of)
    return json.dumps([joins.src.tolist(), joins.tgt.tolist()])


REALIGN = Portable(realign_stretch, keep_found)
