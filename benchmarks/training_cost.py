"""How the cost of training grows: `python benchmarks/training_cost.py --output FOLDER`.

Speed and peak memory of an encoder-decoder over its width, its layers, the length of sentences and
the size of the vocabulary, each varied alone: Weft's trainer at its defaults, on random ids, in
updates of 4,096 tokens. Then the time and memory that a text takes before the first step, over its
number of lines: read and checked, a tokenizer learned, encoded, an epoch planned; the text is of
made words. Each measurement is a process of its own, points take turns, and medians of the rounds
become training-cost.svg and training-cost.md. Nothing else should run meanwhile.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from side_by_side import METER, ROOT, Contestant, in_turns

from weft.inspection.figure import COLORS, DASHES, FAINT, MARKERS, styled, write_figure

POINT = str(ROOT / "benchmarks" / "cost_point.py")
LIMIT = 1800  # seconds of one measurement, at most
Found = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Model:
    """What is varied."""

    width: int = 256
    layers: int = 3
    length: int = 16
    entries: int = 8000

    @property
    def name(self) -> str:
        """All of it."""
        return f"width {self.width}, layers {self.layers}, length {self.length}, entries {self.entries}"

    def contestant(self, timing: Sequence[str]) -> Contestant:
        """The process that trains it."""
        given = [
            part
            for key, value in asdict(self).items()
            for part in (f"--{key}", str(value))
        ]
        meter = [
            sys.executable,
            str(METER),
            "--entries",
            str(self.entries),
            *timing,
            POINT,
            "--",
            "model",
        ]
        return Contestant(self.name, [*meter, *given])


VARIED = {
    "width": (128, 256, 384, 512, 768, 1024),
    "layers": (1, 2, 3, 6, 12),
    "length": (8, 16, 32, 64, 128, 256, 512),
    "entries": (2000, 4000, 8000, 16_000, 32_000, 64_000),
}
LINES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
TITLES = {
    "width": "Width",
    "layers": "Layers on each side",
    "length": "Tokens of a sentence",
    "entries": "Entries of the vocabulary",
    "lines": "Lines of text",
}


def corpus(folder: Path, lines: int) -> Contestant:
    """Two files of made sentences, and the process that prepares them."""
    paths = [folder / f"{lines}.{side}" for side in ("en", "de")]
    for seed, path in enumerate(paths):
        path.write_text("".join(made_sentences(lines, seed)), "utf-8", newline="\n")
    return Contestant(
        f"{lines} lines", [sys.executable, POINT, "corpus", ",".join(map(str, paths))]
    )


def made_sentences(count: int, seed: int) -> list[str]:
    """Sentences of 4 to 20 made words, as frequent by rank as words are (Zipf)."""
    draw = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = [
        "".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(50_000)
    ]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    return [
        f"{' '.join(draw.choices(words, cum_weights=weights, k=draw.randint(4, 20)))} .\n"
        for _ in range(count)
    ]


def models(key: str) -> list[Model]:
    """With one thing varied."""
    return [replace(Model(), **{key: value}) for value in VARIED[key]]


def median(turns: Sequence[Mapping[str, Any]], key: str) -> float:
    """Of the rounds."""
    return statistics.median(turn[key] for turn in turns)


def parts(turns: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Median seconds of each part of preparing a text."""
    return {
        part: statistics.median(turn["seconds"][part] for turn in turns)
        for part in turns[0]["seconds"]
    }


def table(found: Found, keys: Sequence[str], lines: Sequence[int]) -> str:
    """What the figure shows, in numbers."""
    rows = ["| varied | value | tokens/s | peak MiB |", "|---|---|---|---|"]
    for key in keys:
        for value, model in zip(VARIED[key], models(key), strict=True):
            turns = found[model.name]
            cells = (
                [
                    f"{median(turns, name):,.0f}"
                    for name in ("tok_per_s", "peak_rss_mib")
                ]
                if turns
                else ["failed", ""]
            )
            rows.append(f"| {TITLES[key].lower()} | {value:,} | {' | '.join(cells)} |")
    measured = {count: turns for count in lines if (turns := found[f"{count} lines"])}
    if measured:
        names = list(parts(next(iter(measured.values()))))
        rows += [
            "",
            f"| lines of text | {', s | '.join(names)}, s | peak MiB |",
            "|---|---|---|---|---|---|",
        ]
    for count, turns in measured.items():
        seconds = " | ".join(f"{value:,.2f}" for value in parts(turns).values())
        rows.append(f"| {count:,} | {seconds} | {median(turns, 'peak_rss_mib'):,.0f} |")
    return "\n".join(rows) + "\n"


@styled
def draw(found: Found, keys: Sequence[str], lines: Sequence[int]) -> Figure:
    """A column for each thing varied: speed or time above, memory below."""
    named = {
        key: dict(zip(VARIED[key], [model.name for model in models(key)], strict=True))
        for key in keys
    }
    if lines:
        named["lines"] = {count: f"{count} lines" for count in lines}
    figure = Figure(figsize=(3.2 * len(named), 5.6), layout="constrained")
    grid = figure.subplots(2, len(named), squeeze=False)
    for (key, names), above, below in zip(named.items(), *grid, strict=True):
        points = {value: found[name] for value, name in names.items() if found[name]}
        if key == "lines":
            plot_parts(above, points)
        else:
            speeds = [median(turns, "tok_per_s") for turns in points.values()]
            above.plot(list(points), speeds, COLORS[0], marker=MARKERS[0])
        memory = [median(turns, "peak_rss_mib") / 1024 for turns in points.values()]
        below.plot(list(points), memory, COLORS[1], marker=MARKERS[1])
        above.set_title(TITLES[key])
        for axes in (above, below):
            settle(axes, list(points), linear=key == "lines")
    grid[0][0].set_ylabel("tokens a second" if keys else "seconds")
    grid[0][-1].set_ylabel("seconds" if lines else grid[0][-1].get_ylabel())
    grid[1][0].set_ylabel("peak memory, GiB")
    return figure


def plot_parts(axes: Axes, points: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
    """A line for each part of preparing a text."""
    seconds = [parts(turns) for turns in points.values()]
    for place, name in enumerate(seconds[0] if seconds else ()):
        style = {
            "color": COLORS[place],
            "linestyle": DASHES[place],
            "marker": MARKERS[place],
        }
        axes.plot(list(points), [some[name] for some in seconds], label=name, **style)
    axes.legend(fontsize=8)


def settle(axes: Axes, values: Sequence[int], linear: bool) -> None:
    """Values doubled lie equally far apart, unless `linear`; the other axis begins at zero."""
    # the rest lie too close
    shown = [value for value in values if not linear or 10 * value >= values[-1]]
    if linear:
        axes.set_xlim(left=0)
    else:
        axes.set_xscale("log", base=2)
    axes.set_xticks(
        shown,
        [f"{v // 1000}k" if v >= 1000 and v % 1000 == 0 else str(v) for v in shown],
    )
    axes.tick_params(labelsize=8)
    axes.set_ylim(0, 1.05 * axes.dataLim.ymax)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)


def main() -> None:
    """Measure, write the figure and the table, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--output", "--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only",
        nargs="*",
        choices=VARIED,
        default=list(VARIED),
        help="vary no other of these",
    )
    parser.add_argument(
        "--lines",
        type=int,
        nargs="*",
        default=list(LINES),
        help="of text that is prepared",
    )
    parser.add_argument(
        "--warm", type=float, default=5, help="seconds before the first window"
    )
    parser.add_argument(
        "--window", type=float, default=4, help="seconds, of each of three"
    )
    asked = parser.parse_args()
    timing = ["--warm", str(asked.warm), "--window", str(asked.window)]
    points = {model.name: model for key in asked.only for model in models(key)}
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        contestants = [model.contestant(timing) for model in points.values()]
        contestants += [corpus(Path(scratch), lines) for lines in asked.lines]
        found = in_turns(contestants, asked.rounds, LIMIT)
    asked.output.mkdir(parents=True, exist_ok=True)
    text = table(found, asked.only, asked.lines)
    (asked.output / "training-cost.md").write_text(text, "utf-8")
    write_figure(
        draw(found, asked.only, asked.lines), asked.output / "training-cost.svg"
    )
    print(text)


if __name__ == "__main__":
    main()
