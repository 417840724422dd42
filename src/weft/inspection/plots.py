"""Pictures: what a lesson draws on the board, the curves of runs, and attention maps.

Needs matplotlib (the extra `plot`), so it is imported only where a picture is asked for. Figures are made and
written without pyplot: no window, no state, the same file each time.
"""

import io
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findSystemFonts, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from weft import durable
from weft.config import ClassificationRecipe, LanguageRecipe, Recipe, TrainingSection, TranslationRecipe
from weft.data.languages import UNKNOWN
from weft.errors import FolderError, UsageError
from weft.inspection.attention import TranslationAttention
from weft.inspection.report import PICTURES, refuse_other_suffixes
from weft.model.attention import attention_mask
from weft.model.positions import sinusoids
from weft.model_folder import run_files
from weft.training.loss import smoothed_target
from weft.training.schedule import learning_rate

# Lines that colour-blind eyes tell apart (Okabe and Ito 2008), and on a grey print dashes and markers do.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
SHADES = "magma_r"  # perceptually uniform, and zero is pale, so that a print saves ink
FAINT = "#d9d9d9"
PIXELS = 40_000_000  # of a picture, at most

# On top of matplotlib's defaults, whatever its user has set up; `$` in a text is a dollar.
_LOOK = {
    "figure.dpi": 150,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],  # which comes with matplotlib
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.edgecolor": "none",
    "legend.framealpha": 1.0,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "weft",
}
_styled = style.context(["default", _LOOK])

# What the families begin with that may draw what the first font lacks, the best first.
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK",
    "Source Han Sans",
    "Noto Sans SC",
    "PingFang",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi",
    "SimHei",
    "SimSun",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Noto Sans",
)


@_styled
def draw_positions(d_model: int = 128, max_len: int = 100) -> Figure:
    """The sinusoidal table as a heat map, and four of its dimensions as waves over the positions.

    With d_model 20 and 100 positions these are dimensions 4 to 7, as "The Annotated Transformer" (Rush 2018) has
    them.
    """
    if d_model % 2:
        raise UsageError(f"sinusoidal positions need an even d_model, not {d_model}")
    table = sinusoids(max_len, d_model).numpy()
    figure = Figure(figsize=(9, 7.5), layout="constrained")
    above, below = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    image = above.imshow(table.T, cmap="viridis", vmin=-1, vmax=1, aspect="auto")
    figure.colorbar(image, ax=above, label="value", ticks=(-1, 0, 1))
    above.set(title=f"The vector that each position adds, d_model = {d_model}", ylabel="dimension")
    above.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    for place, dim in enumerate(_wave_dims(d_model, max_len)):
        wave = "cosine" if dim % 2 else "sine"
        below.plot(table[:, dim], COLORS[place], linestyle=DASHES[place], label=f"dimension {dim} ({wave})")
    below.set(title="Some of its dimensions: each is a wave", xlabel="position", ylabel="value", yticks=(-1, 0, 1))
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _wave_dims(d_model: int, max_len: int) -> list[int]:
    """The sine and cosine whose wave comes about two and a half times in all positions, and those of one wave."""
    exponents = (math.log(max_len / (2 * math.pi * times), 10_000) for times in (2.5, 1))  # of base^(2i/D)
    pairs = (min(max(round(exponent * d_model / 2), 0), d_model // 2 - 1) for exponent in exponents)
    return list(dict.fromkeys(dim for pair in pairs for dim in (2 * pair, 2 * pair + 1)))


@_styled
def draw_mask(length: int = 20) -> Figure:
    """The decoder's mask over `length` target tokens: what each of them may look at."""
    mask = attention_mask(num_queries=length, num_keys=length)
    assert mask is not None
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    axes.imshow(mask.numpy(), cmap=ListedColormap([FAINT, COLORS[0]]), vmin=0, vmax=1, interpolation="nearest")
    axes.set(
        title="A target token may look at itself and at what came before",
        xlabel="position that is looked at (key)",
        ylabel="position that looks (query)",
    )
    axes.set_xticks(range(length))
    axes.set_yticks(range(length))
    axes.tick_params(labelsize=8, length=0)
    _rule(axes, length, length)
    patches = [Patch(color=COLORS[0], label="may look"), Patch(color=FAINT, label="may not: the future")]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


@_styled
def draw_smoothing(
    labels: Sequence[int] = (2, 1, 0, 3, 3), vocab_size: int = 5, label_smoothing: float = 0.4, pad_id: int = 0
) -> Figure:
    """The distribution that the model is trained towards, a row a target token; each number is written in."""
    target = smoothed_target(torch.tensor(labels), vocab_size, label_smoothing, pad_id).numpy()
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(target, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    for (row, col), share in np.ndenumerate(target):
        color = "white" if share > 0.5 else "black"
        axes.text(col, row, f"{share:.3f}".rstrip("0").rstrip("."), ha="center", va="center", color=color)
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
    """White lines between the cells of a heat map."""
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
    """The paper's schedule for three pairs of d_model and warm-up (Vaswani et al. 2017, equation 3)."""
    return [
        Schedule(
            f"d_model {d_model}, warm-up {warmup:,}",
            TrainingSection(schedule="noam", learning_rate=1.0, warmup_steps=warmup),
            d_model,
        )
        for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000))
    ]


def recipe_schedule(recipe: Recipe, name: str) -> tuple[Schedule, int]:
    """A recipe's schedule and its steps. Raises UsageError where it leaves open how long a run is."""
    assert isinstance(recipe, TranslationRecipe | LanguageRecipe | ClassificationRecipe)
    settings = recipe.training
    if settings.max_steps is None:
        raise UsageError(f"{name}: sets no training.max_steps, so its schedule has no length; set it")
    shown = f"{settings.schedule}, warm-up {settings.warmup_steps:,}"
    return Schedule(f"{_short_path(Path(name))}: {shown}", settings, recipe.model.d_model), settings.max_steps


@_styled
def draw_schedule(schedules: Sequence[Schedule], max_steps: int = 20_000) -> Figure:
    """The learning rate of each step."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for place, schedule in enumerate(schedules):
        steps = _steps(max_steps, schedule.settings.warmup_steps)
        rates = [learning_rate(schedule.settings, schedule.d_model, step, max_steps) for step in steps]
        axes.plot(steps, rates, _color(place), linestyle=DASHES[place % len(DASHES)], label=schedule.name)
    axes.set(title="Learning rate over a run", ylabel="learning rate", xlim=(0, max_steps), ylim=(0, None))
    axes.yaxis.set_major_formatter("{x:g}")
    _count_steps(axes)
    axes.legend(loc="lower center" if len(schedules) == 1 else "upper right")
    return figure


def _steps(max_steps: int, warmup: int) -> list[int]:
    """Every step, or tens of thousands of very many; the peak is always among them."""
    return sorted(
        {*range(1, max_steps + 1, max(1, max_steps // 20_000)), min(max(warmup, 1), max_steps), max_steps}
    )


def _count_steps(axes: Axes) -> None:
    axes.set_xlabel("step")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def _color(place: int) -> str:
    return COLORS[place % len(COLORS)]


@dataclass(frozen=True)
class History:
    """What metrics.jsonl says of a run: training losses and evaluations on dev, each with its step."""

    name: str
    losses: list[tuple[int, float]]
    evaluations: list[Mapping[str, float]]

    @property
    def loss(self) -> str | None:
        """The key of the evaluations that is a loss."""
        return next((key for key in self._keys if key.endswith("loss")), None)

    @property
    def score(self) -> str | None:
        """The key of the evaluations that is shown beside the losses: the first that is none."""
        return next((key for key in self._keys if not key.endswith("loss")), None)

    @property
    def best(self) -> Mapping[str, float] | None:
        """The evaluation that the trainer keeps; of equal ones the first."""
        return max((line for line in self.evaluations if self._keys[0] in line), key=_rank, default=None)

    @property
    def _keys(self) -> list[str]:
        return list(dict.fromkeys(key for line in self.evaluations for key in line if key != "step"))

    def values(self, key: str) -> tuple[list[int], list[float]]:
        """Steps and values of one key of the evaluations."""
        found = [(int(line["step"]), line[key]) for line in self.evaluations if key in line]
        return [step for step, _ in found], [value for _, value in found]


def _rank(line: Mapping[str, float]) -> tuple[float, ...]:
    """What is greater is better: the first value decides, a loss by being small; then the second, a loss."""
    (key, first), *others = ((key, value) for key, value in line.items() if key != "step")
    return -first if key.endswith("loss") else first, *(-value for _, value in others[:1])


def read_history(folder: Path) -> History:
    """The curves of a run that has ended or still goes on; what is no line of them (a kill's last) is left out.

    Raises FolderError where the folder is missing or nothing was logged.
    """
    path = run_files(folder).metrics
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such folder; give the folder that `weft train --out` wrote")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FolderError(f"{path}: missing; no run has logged anything here yet") from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    lines = [found for raw in content.split(b"\n") if (found := _line(raw))]
    losses = [(int(line["step"]), line["loss"]) for line in lines if "loss" in line]
    evaluations: list[Mapping[str, float]] = [line for line in lines if "loss" not in line and len(line) > 1]
    if not losses and not evaluations:
        raise FolderError(f"{path}: no step is logged in it yet; wait for the run's first steps")
    return History(_short_path(folder), losses, evaluations)


def _short_path(path: Path) -> str:
    """The end of a path, which tells runs apart; matplotlib hides a name that begins with an underscore."""
    name = str(Path(*map(_label, path.parts[-3:])))
    return f"./{name}" if name.startswith("_") else name


def _line(raw: bytes) -> dict[str, float]:
    """The finite numbers of a line, step first, the epoch left out; nothing where it is none with a step."""
    try:
        line = json.loads(raw)
        step = int(line["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}
    if not _is_number(line.get("loss", 0)):
        return {}
    numbers = {k: v for k, v in line.items() if k not in ("step", "epoch") and _is_number(v)}
    return {"step": step, **numbers}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


@_styled
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
        _count_steps(axes)
        axes.label_outer()
    losses.set_xlim(left=0)
    return figure


def _mark(place: int) -> dict[str, Any]:
    """How a run's evaluations look; its training losses have the same colour."""
    return {"color": _color(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 5, "linestyle": "--"}


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
    axes.plot([step], [best], **star, label=f"{run.name}: best {best:,.4g} at step {step:,}", gid="best")


def _explain_losses(axes: Axes, runs: Sequence[History]) -> None:
    """An entry for each run, and one for each kind of line."""
    names = [Line2D([], [], **{**_mark(i), "linestyle": "-"}, label=run.name) for i, run in enumerate(runs)]
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


@_styled
def draw_attention(inspection: TranslationAttention) -> Figure:
    """What each decoder layer looks at in the source: the mean of its heads, a panel a layer, to be printed."""
    maps = inspection.cross.mean(1).numpy()
    src, tgt = ([_label(piece) for piece in pieces] for pieces in (inspection.src_pieces, inspection.tgt_pieces))
    figure, panels = _page(len(maps), src, tgt)
    for layer, (panel, weights) in enumerate(zip(panels, maps, strict=True), start=1):
        image = panel.imshow(weights, cmap=SHADES, vmin=0, vmax=maps.max(), interpolation="nearest")
        panel.set_title(f"Layer {layer}")
        panel.set_xticks(range(len(src)), src, rotation=90)
        panel.set_yticks(range(len(tgt)), tgt)
        panel.tick_params(labelsize=9 * _cell(src, tgt) / WIDEST, length=0)
        panel.spines[:].set_visible(False)
    figure.colorbar(image, ax=panels, label="attention weight", shrink=0.6, aspect=30)
    looker, seen = _side("target token", inspection.tgt_lang), _side("source", inspection.src_lang)
    figure.suptitle(f"What each {looker} looks at in the {seen}: the mean of the heads")
    return figure


def _side(name: str, lang: str) -> str:
    return name if lang == UNKNOWN else f"{name} ({lang})"


WIDEST, NARROWEST = 0.21, 0.12  # inches that a token takes
PAGE = 11.0  # inches across


def _cell(src: Sequence[str], tgt: Sequence[str]) -> float:
    """Inches a token: fewer where there are many, so that a panel fits a page, but never too few to read."""
    return min(WIDEST, max(NARROWEST, 0.9 * PAGE / max(len(src), len(tgt))))


def _page(layers: int, src: Sequence[str], tgt: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """A figure with one panel a layer, each as large as its tokens need, side by side as far as a page is wide."""
    cell = _cell(src, tgt)
    width = cell * (len(src) + 0.6 * max(map(len, tgt))) + 0.3  # a letter of a label is at most so wide
    height = cell * (len(tgt) + 0.6 * max(map(len, src))) + 0.6
    rows = math.ceil(layers / max(1, int(PAGE / width)))
    columns = math.ceil(layers / rows)
    size = (max(columns * width + 1.2, 7.2), max(rows * height + 0.6, 2.4))
    dpi = min(150.0, (PIXELS / (size[0] * size[1])) ** 0.5)
    figure = Figure(figsize=size, dpi=dpi, layout="compressed")
    panels = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for panel in panels[layers:]:
        panel.remove()
    return figure, panels[:layers]


LONGEST_LABEL = 24


def _label(text: str) -> str:
    """A piece or name in one short line; what has no shape is written as its number."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}…"


@_styled
def write_figure(figure: Figure, path: Path) -> str:
    """Write a .png or .svg, whole or not at all; returns the characters that no installed font could draw.

    An SVG holds its texts as texts, and is drawn with the fonts of whoever looks at it: there none is missing.
    Raises UsageError for another suffix, FolderError where it cannot be written.
    """
    refuse_other_suffixes(path, PICTURES)
    kind = path.suffix.lower().removeprefix(".")
    metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[kind]
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # we say it ourselves, in one line
        warnings.filterwarnings("ignore", message="constrained_layout not applied")  # the page grows instead
        missing = _give_fonts(figure)
        figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.12)
    durable.write_bytes(path, content.getvalue())
    return missing if kind == "png" else ""


def _give_fonts(figure: Figure) -> str:
    """Let installed fonts draw what the first one lacks; returns the characters that are in none of them."""
    figure.draw_without_rendering()  # some labels are only made by it
    texts = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    lacking = {c for text in texts for c in text.get_text() if not c.isspace()} - _characters("sans-serif")
    if not lacking:
        return ""
    families, missing = _fallbacks(lacking)
    if missing:
        _list_new_fonts()
        families, missing = _fallbacks(lacking)
    for text in texts:
        if lacking & set(text.get_text()):
            text.set_fontfamily(["sans-serif", *families])
    return "".join(sorted(missing))


def _fallbacks(lacking: set[str]) -> tuple[list[str], set[str]]:
    """Families that draw the lacking characters between them, and what even they lack."""
    installed = sorted({font.name for font in fontManager.ttflist})
    chosen: list[str] = []
    for family in dict.fromkeys(name for start in _FALLBACKS for name in installed if name.startswith(start)):
        if lacking and lacking & (found := _characters(family)):
            chosen.append(family)
            lacking = lacking - found
    return chosen, lacking


def _characters(family: str) -> set[str]:
    """What a family's font has a glyph for."""
    path = fontManager.findfont(FontProperties(family=[family]))
    return {chr(code) for code in get_font(path).get_charmap()}


def _list_new_fonts() -> None:
    """Add the fonts that were installed after matplotlib had made its list."""
    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            try:
                fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError):  # a damaged font, or of a kind that cannot be drawn
                continue
