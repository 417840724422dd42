"""What alignments and words add to the time of a translation: `python benchmarks/alignment_cost.py
MODEL TEXTS [--lines 200] [--rounds 5] [--beam-size K]
[--kernels torch]`.

The first lines of a file are translated with alignments and without, in turns, all at once and one
at a time. Printed for each: the median over the rounds of the time with them over the time without,
the lowest and the highest, and the median seconds without. Each round begins with the other one of
the two, and times are those of a clock, so nothing else may run.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import weft


def main() -> None:
    """Measure both ways."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam-size", type=int)
    parser.add_argument("--kernels", default="auto")
    asked = parser.parse_args()
    if not asked.texts.is_file():
        raise SystemExit(f"{asked.texts}: there is no such file; give one of sentences")
    with asked.texts.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in islice(file, asked.lines)]
    model = weft.load(asked.model, kernels=asked.kernels)
    print("| translated | with alignments / without | lowest to highest | s without |")
    print("|---|---|---|---|")
    ways = {"all at once": [lines], "one at a time": [[line] for line in lines]}
    for name, groups in ways.items():
        ratios, plain = compared(model, groups, asked.rounds, asked.beam_size)
        middle = statistics.median(ratios)
        shown = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"| {name} | {middle:.3f} | {shown} | {statistics.median(plain):.2f} |")


def compared(
    model: weft.Translator,
    groups: Sequence[Sequence[str]],
    rounds: int,
    beam_size: int | None,
) -> tuple[list[float], list[float]]:
    """Return the ratio of the times with and without alignments of each round, and the latter."""
    ratios = []
    plain = []
    for number in range(rounds + 1):
        order = (False, True) if number % 2 else (True, False)
        took = {way: seconds(model, groups, way, beam_size) for way in order}
        # the first round warms up
        if number:
            ratios.append(took[True] / took[False])
            plain.append(took[False])
    return ratios, plain


def seconds(
    model: weft.Translator,
    groups: Sequence[Sequence[str]],
    alignments: bool,
    beam_size: int | None,
) -> float:
    """Return how long the translation of all groups takes, one after the other."""
    started = time.perf_counter()
    for group in groups:
        found = model.translate(group, alignments=alignments, beam_size=beam_size)
        assert all((one.words is not None) == alignments for one in found)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
