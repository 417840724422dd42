"""Pictures of what a lesson draws on the board."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from weft.config import (
    ClassificationRecipe,
    LanguageRecipe,
    Recipe,
    TrainingSection,
    TranslationRecipe,
)
from weft.errors import UsageError
from weft.inspection.figure import (
    COLORS,
    DASHES,
    FAINT,
    SHADES,
    color_of,
    count_steps,
    short_path,
    styled,
)
from weft.model.attention import attention_mask
from weft.model.positions import sinusoids
from weft.training.loss import smoothed_target
from weft.training.schedule import learning_rate


@styled
def draw_positions(d_model: int = 128, max_len: int = 100) -> Figure:
    """Return the sinusoidal table as a heat map, and four of its dimensions as waves over the
    positions.

    With d_model 20 and 100 positions these are dimensions 4 to 7, as "The Annotated Transformer"
    (Rush 2018) has them.
    """
    if d_model % 2:
        raise UsageError(f"sinusoidal positions need an even d_model, not {d_model}")
    table = sinusoids(max_len, d_model).numpy()
    figure = Figure(figsize=(9, 7.5), layout="constrained")
    above, below = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    image = above.imshow(table.T, cmap="viridis", vmin=-1, vmax=1, aspect="auto")
    figure.colorbar(image, ax=above, label="value", ticks=(-1, 0, 1))
    above.set(
        title=f"The vector that each position adds, d_model = {d_model}",
        ylabel="dimension",
    )
    above.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    for place, dim in enumerate(_wave_dims(d_model, max_len)):
        wave = "cosine" if dim % 2 else "sine"
        below.plot(
            table[:, dim],
            COLORS[place],
            linestyle=DASHES[place],
            label=f"dimension {dim} ({wave})",
        )
    below.set(
        title="Some of its dimensions: each is a wave",
        xlabel="position",
        ylabel="value",
        yticks=(-1, 0, 1),
    )
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _wave_dims(d_model: int, max_len: int) -> list[int]:
    """Return the dimensions whose sine and cosine make about two and a half waves over the
    positions, and those that make one.
    """
    # of base^(2i/D)
    exponents = (
        math.log(max_len / (2 * math.pi * times), 10_000) for times in (2.5, 1)
    )
    pairs = (
        min(max(round(exponent * d_model / 2), 0), d_model // 2 - 1)
        for exponent in exponents
    )
    dims = [dim for pair in pairs for dim in (2 * pair, 2 * pair + 1)]
    return list(dict.fromkeys(dims))


@styled
def draw_mask(length: int = 20) -> Figure:
    """Return the decoder's mask over `length` target tokens: what each of them may look at."""
    mask = attention_mask(num_queries=length, num_keys=length)
    assert mask is not None
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    axes.imshow(
        mask.numpy(),
        cmap=ListedColormap([FAINT, COLORS[0]]),
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    axes.set(
        title="A target token may attend to itself and to earlier ones",
        xlabel="position attended to (key)",
        ylabel="position that looks (query)",
    )
    axes.set_xticks(range(length))
    axes.set_yticks(range(length))
    axes.tick_params(labelsize=8, length=0)
    _rule(axes, length, length)
    patches = [
        Patch(color=COLORS[0], label="may look"),
        Patch(color=FAINT, label="may not: the future"),
    ]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@styled
def draw_smoothing(
    labels: Sequence[int] = (2, 1, 0, 3, 3),
    vocab_size: int = 5,
    label_smoothing: float = 0.1,
    pad_id: int = 0,
) -> Figure:
    """Return the distribution that the model is trained towards, a row a target token.

    Each number is written in.
    """
    target = smoothed_target(
        torch.tensor(labels), vocab_size, label_smoothing, pad_id
    ).numpy()
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(target, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    for (row, col), share in np.ndenumerate(target):
        color = "white" if share > 0.5 else "black"
        axes.text(
            col,
            row,
            f"{share:.3f}".rstrip("0").rstrip("."),
            ha="center",
            va="center",
            color=color,
        )
    axes.set(
        title=f"What the model is trained towards, label smoothing {label_smoothing:g}",
        xlabel="token of the vocabulary",
        ylabel="true token",
    )
    axes.set_xticks(range(vocab_size), [_token(i, pad_id) for i in range(vocab_size)])
    axes.set_yticks(range(len(labels)), [_token(i, pad_id) for i in labels])
    axes.tick_params(length=0)
    _rule(axes, len(labels), vocab_size)
    figure.colorbar(image, ax=axes, label="share of the target", shrink=0.85)
    return figure


def _token(token_id: int, pad_id: int) -> str:
    return f"{token_id}\npadding" if token_id == pad_id else f"{token_id}"


def _rule(axes: Axes, rows: int, columns: int) -> None:
    """Draw white lines between the cells of a heat map."""
    axes.set_xticks(np.arange(1, columns) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, rows) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)


@dataclass(frozen=True)
class Schedule:
    """A learning rate's settings under the name it has in the legend."""

    name: str
    settings: TrainingSection
    d_model: int


def paper_schedules() -> list[Schedule]:
    """Return the paper's schedule for three pairs of d_model and warm-up (Vaswani et al. 2017,
    equation 3).
    """
    return [
        Schedule(
            f"d_model {d_model}, warm-up {warmup:,}",
            TrainingSection(schedule="noam", learning_rate=1.0, warmup_steps=warmup),
            d_model,
        )
        for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000))
    ]


def recipe_schedule(recipe: Recipe, name: str) -> tuple[Schedule, int]:
    """Return a recipe's schedule and its steps. Raises UsageError where it leaves open how long a
    run is.
    """
    assert isinstance(recipe, TranslationRecipe | LanguageRecipe | ClassificationRecipe)
    settings = recipe.training
    if settings.max_steps is None:
        raise UsageError(
            f"{name}: sets no training.max_steps, so its schedule has no length; set it"
        )
    shown = f"{settings.schedule}, warm-up {settings.warmup_steps:,}"
    return Schedule(
        f"{short_path(Path(name))}: {shown}", settings, recipe.model.d_model
    ), settings.max_steps


@styled
def draw_schedule(schedules: Sequence[Schedule], max_steps: int = 20_000) -> Figure:
    """Return the learning rate of each step."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for place, schedule in enumerate(schedules):
        steps = _steps(max_steps, schedule.settings.warmup_steps)
        rates = [
            learning_rate(schedule.settings, schedule.d_model, step, max_steps)
            for step in steps
        ]
        axes.plot(
            steps,
            rates,
            color_of(place),
            linestyle=DASHES[place % len(DASHES)],
            label=schedule.name,
        )
    axes.set(
        title="Learning rate over a run",
        ylabel="learning rate",
        xlim=(0, max_steps),
        ylim=(0, None),
    )
    axes.yaxis.set_major_formatter("{x:g}")
    count_steps(axes)
    axes.legend(loc="lower center" if len(schedules) == 1 else "upper right")
    return figure


def _steps(max_steps: int, warmup: int) -> list[int]:
    """Return every step, or some tens of thousands; the peak is always among them."""
    return sorted(
        {
            *range(1, max_steps + 1, max(1, max_steps // 20_000)),
            min(max(warmup, 1), max_steps),
            max_steps,
        }
    )
