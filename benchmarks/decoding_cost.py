"""How the cost of decoding grows: `python benchmarks/decoding_cost.py --output FOLDER`.

Speed and peak memory of Weft's engine in int8, over the length of outputs, the size of the beam,
the budget of a batch and the size of the vocabulary (with and without shortlists of 500 ids), each
varied alone: a Transformer of 3+3 layers of width 256 with random weights, sources as long as the
outputs, whose length is forced. Each measurement is a process of its own, points take turns, and
medians of the rounds become decoding- cost.svg and decoding-cost.md. Nothing else should run
meanwhile.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from decoding_peers import SIZES
from matplotlib.figure import Figure
from side_by_side import CORES, ROOT, Contestant, in_turns
from training_cost import median, settle

from weft.data.tokenizer import EOS_ID
from weft.inspection.figure import COLORS, MARKERS, styled, write_figure

LIMIT = 600  # seconds of one measurement, at most
TOKENS = 8192  # of all outputs of a measurement
Found = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Decoding:
    """What is varied; `budget` is of source tokens times beam."""

    length: int = 16
    beam: int = 4
    budget: int = 4096
    entries: int = 8000
    listed: int = 0  # ids of a sentence's shortlist

    def job(self) -> dict[str, Any]:
        """For decoding_weft.py."""
        draw = random.Random(1)
        count = max(32, TOKENS // self.length)
        ids = (
            [draw.randrange(4, self.entries) for _ in range(self.length - 1)]
            for _ in range(count)
        )
        return {
            "beam": self.beam,
            "forced": self.length,
            "limit": self.length,
            "alone": 0,
            "folder": None,
            "batch_tokens": self.budget,
            "shape": {**SIZES["small"], "max_len": 2 * self.length + 2},
            "entries": self.entries,
            "listed": self.listed,
            "kind": "int8",
            "workers": CORES,
            "sources": [[*row, EOS_ID] for row in ids],
        }


VARIED = {
    "length": (4, 8, 16, 32, 64, 128, 256),
    "beam": (1, 2, 4, 8, 16, 32),
    "budget": (16, 64, 256, 1024, 4096, 16_384),
    "entries": (1000, 4000, 8000, 16_000, 32_000, 64_000),
}
TITLES = {
    "length": "Tokens of a sentence",
    "beam": "Beam",
    "budget": "Budget of a batch, tokens times beam",
    "entries": "Entries of the vocabulary",
}


LINES = {"": VARIED, "shortlist of 500": {"entries": VARIED["entries"]}}


def decodings(key: str, line: str = "") -> dict[int, Decoding]:
    """With one thing varied, by its value."""
    plain = Decoding(listed=500 if line else 0)
    return {value: replace(plain, **{key: value}) for value in LINES[line].get(key, ())}


def contestant(decoding: Decoding, folder: Path) -> Contestant:
    """The process that decodes so."""
    path = folder / f"{abs(hash(decoding))}.json"
    path.write_text(json.dumps(decoding.job()), "utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "decoding_weft.py"), str(path)]
    return Contestant(str(decoding), command, {"OMP_NUM_THREADS": "1"})


def table(found: Found) -> str:
    """What the figure shows, in numbers."""
    rows = [
        "| varied | value | tokens/s | lowest to highest | peak MiB |",
        "|---|---|---|---|---|",
    ]
    for line, key in product(LINES, VARIED):
        for value, decoding in decodings(key, line).items():
            if turns := found[str(decoding)]:
                speeds = [turn["tokens_per_s"] for turn in turns]
                rows.append(
                    f"| {', '.join(filter(None, (TITLES[key].lower(), line)))} | {value:,} | "
                    f"{statistics.median(speeds):,.0f} | "
                    f"{min(speeds):,.0f} to {max(speeds):,.0f} | {median(turns, 'peak_rss_mib'):,.0f} |"
                )
    return "\n".join(rows) + "\n"


@styled
def draw(found: Found) -> Figure:
    """A column for each thing varied: speed above, memory below."""
    figure = Figure(figsize=(3.2 * len(VARIED), 5.6), layout="constrained")
    grid = figure.subplots(2, len(VARIED), squeeze=False)
    for key, above, below in zip(VARIED, *grid, strict=True):
        for axes, what in ((above, "tokens_per_s"), (below, "peak_rss_mib")):
            for number, line in enumerate(LINES):
                points = {
                    value: found[str(d)]
                    for value, d in decodings(key, line).items()
                    if found[str(d)]
                }
                values = [median(turns, what) for turns in points.values()]
                if points:
                    axes.plot(
                        list(points),
                        values,
                        COLORS[number],
                        marker=MARKERS[number],
                        label=line,
                    )
            settle(axes, list(VARIED[key]), linear=False)
        above.set_title(TITLES[key])
    grid[0][-1].legend()
    grid[0][0].set_ylabel(f"tokens a second, {CORES} threads")
    grid[1][0].set_ylabel("peak memory, MiB")
    return figure


def main() -> None:
    """Measure, and write figure and table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--output", "--out", type=Path, required=True, help="where figure and table go"
    )
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    different = dict.fromkeys(
        decoding
        for line, key in product(LINES, VARIED)
        for decoding in decodings(key, line).values()
    )
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        found = in_turns(
            [contestant(one, Path(scratch)) for one in different], asked.rounds, LIMIT
        )
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "decoding-cost.md").write_text(table(found), "utf-8", newline="\n")
    write_figure(draw(found), asked.output / "decoding-cost.svg")
    print(table(found))


if __name__ == "__main__":
    main()
