"""How fast translators are, and how good: `python benchmarks/speed_and_quality.py TEACHER MODEL...
--output DIR`.

Each model folder is decoded by Weft in int8, with its shortlist too where it has one; the first
one, the teacher, in float32 as well, and by CTranslate2 in int8. Sentences a second and cased BLEU
on Multi30k's test_2016_flickr, English to German: a table, and the picture `speed-and-quality.svg`.
They take turns, each in a process of its own; loading does not count. Nothing else should run
meanwhile.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu
from decoding_peers import TEST, contestants, prepared
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from side_by_side import CORES, Contestant, in_turns

from weft.inspection.figure import COLORS, FAINT, MARKERS, styled, write_figure
from weft.kernels.machine import Machine
from weft.tasks.trainable_translation import TrainableTranslation

PEER = f"CTranslate2 int8, {CORES} x 1"


@dataclass(frozen=True)
class Point:
    """One model, decoded in one way."""

    name: str
    sentences_per_s: float
    lowest: float
    highest: float
    bleu: float
    times_peer: float


def entrants(
    asked: argparse.Namespace, beam: int, scratch: Path
) -> tuple[list[Contestant], dict[str, Any]]:
    """Every model in every way, and what turns its ids into text."""
    found, decoders = [], {}
    for number, folder in enumerate(asked.folders):
        own = scratch / str(number)
        own.mkdir()
        job, decode = prepared(
            argparse.Namespace(**vars(asked), folder=str(folder)), "folder", own
        )
        names = ["Weft int8"]
        if (
            TrainableTranslation.load(
                folder, Machine("cpu", "float32", 1, "")
            ).shortlist
            is not None
        ):
            names.append("Weft int8, shortlist")
        if number == 0:
            names = ["Weft float32", *names, PEER]
        for one in contestants({**job, "beam": beam}, own, names):
            name = f"{folder.name}: {one.name}"
            found.append(Contestant(name, one.command, one.env))
            decoders[name] = decode
    return found, decoders


def points(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    decoders: Mapping[str, Any],
    peer: str,
) -> list[Point]:
    """Medians over the rounds; the ratio is the median of ratios within rounds."""
    references = TEST[1].read_text("utf-8").split("\n")
    speeds = {
        name: [turn["sentences_per_s"] for turn in turns]
        for name, turns in found.items()
        if turns
    }
    made = []
    for name, own in speeds.items():
        texts = [decoders[name](ids) for ids in found[name][-1]["outputs"]]
        bleu = sacrebleu.corpus_bleu(texts, [references[: len(texts)]]).score
        ratios = [a / b for a, b in zip(own, speeds.get(peer, []), strict=False)]
        made.append(
            Point(
                name,
                statistics.median(own),
                min(own),
                max(own),
                bleu,
                statistics.median(ratios or [0.0]),
            )
        )
    return sorted(made, key=lambda point: -point.sentences_per_s)


@styled
def draw(by_beam: Mapping[int, Sequence[Point]]) -> Figure:
    """Speed to the right, quality upwards: a panel for a beam, a colour for a model, a shape for a
    way.
    """
    figure = Figure(figsize=(8.0, 3.2 * len(by_beam)), layout="constrained")
    named = {
        point.name: point.name.split(": ", 1)
        for some in by_beam.values()
        for point in some
    }
    colors = dict(
        zip(dict.fromkeys(model for model, _ in named.values()), COLORS, strict=False)
    )
    markers = dict(
        zip(sorted({way for _, way in named.values()}), MARKERS, strict=False)
    )
    for number, (beam, some) in enumerate(by_beam.items(), start=1):
        axes = figure.add_subplot(len(by_beam), 1, number)
        for point in some:
            model, way = named[point.name]
            axes.plot(
                point.sentences_per_s,
                point.bleu,
                markers[way],
                color=colors[model],
                markersize=8,
                alpha=0.8,
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_title(f"beam {beam}")
        axes.set_xlabel(f"sentences a second, {CORES} threads")
        axes.set_ylabel("BLEU")
        axes.margins(0.1)
        axes.grid(color=FAINT, linewidth=0.6)
    shown = [
        Line2D([], [], color=color, linewidth=6, label=model)
        for model, color in colors.items()
    ]
    black = {"color": "black", "linestyle": ""}
    shown += [
        Line2D([], [], marker=marker, label=way, **black)
        for way, marker in markers.items()
    ]
    figure.legend(handles=shown, loc="outside right upper")
    return figure


def main() -> None:
    """Print a table for each beam, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "folders", nargs="+", type=Path, help="model folders, the teacher first"
    )
    parser.add_argument(
        "--output", "--out", type=Path, required=True, help="where the picture goes"
    )
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds for one measurement"
    )
    parser.set_defaults(forced=None, alone=0, batch_tokens=4096)
    asked = parser.parse_args()
    if not TEST[0].is_file():
        parser.exit(0, f"skipped: {TEST[0]} is absent\n")
    found: dict[int, list[Point]] = {}
    for beam in asked.beams:
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
            some, decoders = entrants(asked, beam, Path(scratch))
            peer = f"{asked.folders[0].name}: {PEER}"
            found[beam] = points(
                in_turns(some, asked.rounds, asked.limit), decoders, peer
            )
        print(
            f"\n| beam {beam} | sentences/s | lowest to highest | times {peer} | BLEU |\n|---|---|---|---|---|"
        )
        for p in found[beam]:
            print(
                f"| {p.name} | {p.sentences_per_s:,.0f} | {p.lowest:,.0f} to {p.highest:,.0f} | "
                f"{p.times_peer:.2f} | {p.bleu:.2f} |",
                flush=True,
            )
    asked.output.mkdir(parents=True, exist_ok=True)
    write_figure(draw(found), asked.output / "speed-and-quality.svg")


if __name__ == "__main__":
    main()
