"""Learning curves, drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from weft.inspection.figure import MARKERS, color_of, count_steps, short_path, styled
from weft.inspection.history import History

_FEW = 40  # losses, of which a moving mean would be what they are themselves
_KINDS = {  # of lines among the losses, with their words in the legend
    "training": "training, as logged",
    "training-mean": "training, moving mean",
    "dev": "dev",
    "best": "best step on dev",
}


@styled
def draw_history(runs: Sequence[History]) -> Figure:
    """Draw losses over the steps, and below them the dev scores; mark each run's best step."""
    scores = list(dict.fromkeys(run.score_key for run in runs if run.score_key))
    figure = Figure(figsize=(9, 4.4 + 2.6 * len(scores)), layout="constrained")
    ratios = [3, *(2 for _ in scores)]
    losses, *panels = figure.subplots(
        len(ratios), sharex=True, squeeze=False, height_ratios=ratios
    )[:, 0]
    for place, run in enumerate(runs):
        _draw_losses(losses, run, _mark(place))
        for score, panel in zip(scores, panels, strict=True):
            if run.score_key == score:
                _draw_score(panel, run, _mark(place))
    for score, panel in zip(scores, panels, strict=True):
        panel.set(title=f"Score on dev: {_words(score)}", ylabel=_words(score))
    _explain(figure, losses, panels, runs)
    for axes in (losses, *panels):
        count_steps(axes)
        axes.label_outer()
    losses.set_xlim(left=0)
    return figure


def _name(run: History) -> str:
    return short_path(run.folder)


def _mark(place: int) -> dict[str, Any]:
    """Return the look of a run's evaluations; its training losses have the same colour."""
    return {
        "color": color_of(place),
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 5,
        "linestyle": "--",
    }


def _draw_losses(axes: Axes, run: History, mark: Mapping[str, Any]) -> None:
    color = mark["color"]
    if run.losses:
        steps, values = zip(*run.losses, strict=True)
        if len(values) < _FEW:
            axes.plot(steps, values, color=color, linewidth=1.8, gid="training")
        else:
            axes.plot(
                steps, values, color=color, linewidth=0.7, alpha=0.45, gid="training"
            )
            axes.plot(
                steps,
                moving_mean(values),
                color=color,
                linewidth=1.8,
                gid="training-mean",
            )
    if run.loss_key is not None:
        axes.plot(*run.values(run.loss_key), **mark, gid="dev")
    if run.best is not None:
        axes.axvline(
            run.best["step"], color=color, linestyle=":", linewidth=1, gid="best"
        )


def _draw_score(axes: Axes, run: History, mark: Mapping[str, Any]) -> None:
    assert run.score_key is not None
    axes.plot(*run.values(run.score_key), **mark, gid="score")
    if run.best is None or run.score_key not in run.best:
        return
    step = int(run.best["step"])
    value = f"{_words(run.score_key)} {run.best[run.score_key]:,.4g} at step {step:,}"
    said = f"{value}, chosen by loss" if run.is_chosen_by_loss else f"best {value}"
    axes.axvline(step, color=mark["color"], linestyle=":", linewidth=1)
    star = {"color": mark["color"], "linestyle": "", "marker": "*", "markersize": 13}
    axes.plot(
        [step],
        [run.best[run.score_key]],
        **star,
        label=f"{_name(run)}: {said}",
        gid="best",
    )


def _explain(
    figure: Figure, axes: Axes, panels: Sequence[Axes], runs: Sequence[History]
) -> None:
    """Make a legend with an entry for each run, for each kind of line among the losses, and for
    each star among the scores.

    It stands below, where it hides none of them.
    """
    names = [
        Line2D([], [], **{**_mark(i), "linestyle": "-"}, label=_name(run))
        for i, run in enumerate(runs)
    ]
    drawn = {line.get_gid(): line for line in axes.get_lines()}
    kinds = [
        Line2D(
            [],
            [],
            color="#555555",
            linestyle=drawn[gid].get_linestyle(),
            linewidth=drawn[gid].get_linewidth(),
            label=words,
        )
        for gid, words in _KINDS.items()
        if gid in drawn
    ]
    stars = [star for panel in panels for star in panel.get_legend_handles_labels()[0]]
    handles = [*names, *kinds, *stars]
    figure.legend(handles=handles, loc="outside lower left", ncols=2)
    axes.set(title=_title(runs, "dev" in drawn), ylabel="loss (nats)")


def _title(runs: Sequence[History], with_dev: bool) -> str:
    """Say what makes the losses in training differ from those on dev, where all runs say it."""
    if any(run.disturbed is None for run in runs):
        return "Loss"
    names = list(dict.fromkeys(name for run in runs for name in run.disturbed or ()))
    if not names:
        return "Loss"
    *first, last = names
    listing = f"{', '.join(first)} and {last}" if first else last
    if any(set(names) - set(run.disturbed or ()) for run in runs):
        listing += " of some runs"
    on_dev = ", on dev without" if with_dev else ""
    return f"Loss, in training with {listing}{on_dev}"


def _words(key: str) -> str:
    """Return a key of metrics.jsonl as a person says it."""
    words = key.removeprefix("dev_").replace("_", " ")
    return {"bleu": "BLEU", "chrf": "chrF"}.get(words, words)


def moving_mean(values: Sequence[float]) -> list[float]:
    """Return the mean of each value and its neighbours: a twentieth of all, fewer at both ends.

    So nothing lags.
    """
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    # As far to one side as to the other: else a mean would lag behind a loss that falls.
    reaches = [min(count // _FEW, i, count - 1 - i) for i in range(count)]
    return [
        float(sums[i + r + 1] - sums[i - r]) / (2 * r + 1)
        for i, r in enumerate(reaches)
    ]
