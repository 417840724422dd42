"""Learning curves, drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from weft.inspection.figure import MARKERS, color_of, count_steps, short_path, styled
from weft.inspection.history import History


@styled
def draw_history(runs: Sequence[History]) -> Figure:
    """Losses over the steps, and below them the dev scores; each run's best step is marked."""
    scores = list(dict.fromkeys(run.score for run in runs if run.score))
    figure = Figure(figsize=(9, 4.4 + 2.6 * len(scores)), layout="constrained")
    ratios = [3, *(2 for _ in scores)]
    losses, *panels = figure.subplots(len(ratios), sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for place, run in enumerate(runs):
        _draw_losses(losses, run, _mark(place))
        for score, panel in zip(scores, panels, strict=True):
            if run.score == score:
                _draw_score(panel, run, _mark(place))
    _explain_losses(losses, runs)
    for score, panel in zip(scores, panels, strict=True):
        panel.set(title=f"Score on dev: {_words(score)}", ylabel=_words(score))
        if panel.get_legend_handles_labels()[0]:
            panel.legend(loc="best")
    for axes in (losses, *panels):
        count_steps(axes)
        axes.label_outer()
    losses.set_xlim(left=0)
    return figure


def _name(run: History) -> str:
    return short_path(run.folder)


def _mark(place: int) -> dict[str, Any]:
    """How a run's evaluations look; its training losses have the same colour."""
    return {"color": color_of(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 5, "linestyle": "--"}


def _draw_losses(axes: Axes, run: History, mark: Mapping[str, Any]) -> None:
    color = mark["color"]
    if run.losses:
        steps, values = zip(*run.losses, strict=True)
        axes.plot(steps, values, color=color, linewidth=0.7, alpha=0.45, gid="training")
        axes.plot(steps, moving_mean(values), color=color, linewidth=1.8, gid="training-mean")
    if run.loss is not None:
        axes.plot(*run.values(run.loss), **mark, gid="dev")
    if run.best is not None:
        axes.axvline(run.best["step"], color=color, linestyle=":", linewidth=1)


def _draw_score(axes: Axes, run: History, mark: Mapping[str, Any]) -> None:
    assert run.score is not None
    axes.plot(*run.values(run.score), **mark, gid="score")
    if run.best is None or run.score not in run.best:
        return
    step, best = int(run.best["step"]), run.best[run.score]
    axes.axvline(step, color=mark["color"], linestyle=":", linewidth=1)
    star = {"color": mark["color"], "linestyle": "", "marker": "*", "markersize": 13}
    axes.plot([step], [best], **star, label=f"{_name(run)}: best {best:,.4g} at step {step:,}", gid="best")


def _explain_losses(axes: Axes, runs: Sequence[History]) -> None:
    """An entry for each run, and one for each kind of line."""
    names = [Line2D([], [], **{**_mark(i), "linestyle": "-"}, label=_name(run)) for i, run in enumerate(runs)]
    gray = "#555555"
    kinds = [
        Line2D([], [], color=gray, linewidth=0.7, alpha=0.6, label="training, as logged"),
        Line2D([], [], color=gray, linewidth=1.8, label="training, moving mean"),
        Line2D([], [], color=gray, linestyle="--", label="dev"),
        Line2D([], [], color=gray, linestyle=":", linewidth=1, label="best step on dev"),
    ]
    evaluated = any(run.evaluations for run in runs)
    axes.legend(handles=[*names, *(kinds if evaluated else kinds[:2])], loc="upper right")
    title = "Loss, in training with dropout and label smoothing" + (", on dev without" if evaluated else "")
    axes.set(title=title, ylabel="loss (nats)")


def _words(key: str) -> str:
    """A key of metrics.jsonl as a person says it."""
    words = key.removeprefix("dev_").replace("_", " ")
    return {"bleu": "BLEU", "chrf": "chrF"}.get(words, words)


def moving_mean(values: Sequence[float]) -> list[float]:
    """The mean of each value and its neighbours: a twentieth of all, fewer at both ends; so nothing lags."""
    count, sums = len(values), np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    # As far to one side as to the other: else a slope would count as a difference.
    reaches = [min(count // 40, i, count - 1 - i) for i in range(count)]
    return [float(sums[i + r + 1] - sums[i - r]) / (2 * r + 1) for i, r in enumerate(reaches)]
