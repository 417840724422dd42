"""The curves of a sweep: those of each row, as the mean over its seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weft.errors import FolderError
from weft.inspection.history import History, read_history
from weft.sweep.run import Run


def mean_histories(runs: Sequence[Run]) -> list[History]:
    """Return the curves of each row of each text; runs that have logged nothing are left out.

    Raises FolderError where none has logged anything.
    """
    found: dict[str, list[History]] = {}
    texts = {run.text for run in runs}
    for run in runs:
        name = f"{run.text}/{run.row}" if len(texts) > 1 else run.row
        try:
            found.setdefault(name, []).append(read_history(run.folder))
        except FolderError:
            continue
    curves = []
    for name, histories in found.items():
        if histories:
            curves.append(replace(_mean(histories), folder=Path(name)))
    if not curves:
        raise FolderError("no run has logged anything yet; train some first")
    return curves


def _mean(histories: Sequence[History]) -> History:
    """Return the mean of the curves of several seeds."""
    if len(histories) == 1:
        return histories[0]
    first = histories[0]
    losses = _mean_curve([history.losses for history in histories])
    keys: dict[str, None] = {}
    for history in histories:
        for line in history.evaluations:
            keys |= dict.fromkeys(key for key in line if key != "step")
    lines: dict[int, dict[str, float]] = {}
    for key in keys:
        curves = []
        for history in histories:
            steps, values = history.values(key)
            curves.append(list(zip(steps, values, strict=True)))
        for step, value in _mean_curve(curves):
            lines.setdefault(step, {"step": step})[key] = value
    evaluations: list[Mapping[str, float]] = [lines[step] for step in sorted(lines)]
    return replace(first, losses=losses, evaluations=evaluations)


def _mean_curve(
    curves: Sequence[Sequence[tuple[int, float]]],
) -> list[tuple[int, float]]:
    """Return the mean of curves at all of their steps that each of them reaches.

    Between two steps of its own, a curve is a straight line.
    """
    if not all(curves):
        return []
    begin = max(curve[0][0] for curve in curves)
    end = min(curve[-1][0] for curve in curves)
    steps = sorted({step for curve in curves for step, _ in curve})
    shared = [step for step in steps if begin <= step <= end]
    sums = np.zeros(len(shared))
    for curve in curves:
        own_steps, values = zip(*curve, strict=True)
        sums += np.interp(shared, own_steps, values)
    means = (sums / len(curves)).tolist()
    return list(zip(shared, means, strict=True))
