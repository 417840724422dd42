"""Pairs of a large text that are nearly the same, compared in several processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.column import Column
from weft.data.crew import Task, work
from weft.data.home import Home, told_of_disk
from weft.data.measures import (
    Measures,
    Positions,
    describe,
    open_column,
    stretches,
)
from weft.data.minhash import (
    are_near,
    candidates,
    near_rows,
)
from weft.data.split import fold

STRETCH = 10_000  # candidates of a task
_CANDIDATES = "candidates.npy"


def near_pairs(
    columns: Sequence[Column], measures: Measures
) -> tuple[Positions, Positions]:
    """Find the rows that say nearly what an earlier one says, in their order; return them, and
    that.
    """
    rows, others = candidates(
        measures.band,
        measures.sketch,
        measures.row,
    )
    if not len(rows):
        return rows, others
    home = Home()
    pairs = np.stack([rows, others], 1)
    with told_of_disk():
        np.save(home.path / _CANDIDATES, pairs, allow_pickle=False)
    common = {
        "columns": describe(columns, home.path),
        "folder": str(home.path),
    }
    tasks = [{**common, **stretch} for stretch in stretches(len(rows), STRETCH)]
    work("compare", compare, tasks)
    found = np.concatenate([_found(task) for task in tasks])
    return near_rows(rows, others, found)


def compare(task: Task) -> None:
    """Write which of a stretch of candidates are near."""
    first, last = task["first"], task["last"]
    pairs = _loaded(Path(task["folder"]) / _CANDIDATES)
    columns = [open_column(each) for each in task["columns"]]

    def read(row: int) -> list[str]:
        return [fold(column[row]) for column in columns]

    found = np.zeros(last - first, np.bool_)
    for place, pair in enumerate(pairs[first:last].tolist()):
        row, other = map(read, pair)
        found[place] = are_near(row, other)
    with told_of_disk():
        np.save(_output(task), found, allow_pickle=False)


def _found(task: Task) -> Any:
    return _loaded(_output(task))


def _output(task: Task) -> Path:
    folder = Path(task["folder"])
    return folder / f"near-{task['first']}.npy"


def _loaded(path: Path) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)
