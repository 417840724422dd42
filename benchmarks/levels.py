"""Speed of the wheel's libraries beside code compiled for this CPU: `python benchmarks/levels.py
MODEL... [--precisions float32 bfloat16] [--rounds 9] [--training]`.

The wheel's libraries are those of the best level that this CPU has; they are compiled here with
that level's flags where the installed package has none. Each model translates, writes on or
classifies the same lines by both, in turns, on one thread; with `--training` so do steps of a
translator's training. Printed for each: the median over the rounds of the speed of the wheel's code
as a share of the other's, and the lowest and the highest.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from plain_numpy import LINES, seconds, work_of
from training_step import CHUNKED, SIZES, tokens_per_second

import weft
from weft.data import builtin
from weft.engine import packed
from weft.kernels import native
from weft.kernels.levels import instructions, levels_of
from weft.kernels.torch_machine import choose_machine
from weft.model import attention

Measure = Callable[[], float]


def main() -> None:
    """Measure each model, and a step of training."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--training", action="store_true")
    asked = parser.parse_args()
    best = levels_of(instructions())[0].name
    print(f"| work | speed of {best} over `-march=native` | lowest to highest |")
    print("|---|---|---|")
    for folder in asked.models:
        for precision in asked.precisions:
            pair = [use(folder, precision, level) for level in (best, native.NATIVE)]
            show(f"{folder.name}, {precision}", pair, asked.rounds)
    if asked.training:
        pair = [training(level) for level in (best, native.NATIVE)]
        show("a training step of a translator", pair, asked.rounds)


def show(name: str, pair: Sequence[Measure], rounds: int) -> None:
    """Take both measurements in turns, and print a row."""
    for measure in pair:
        measure()
    ratios = []
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        found = {place: pair[place]() for place in order}
        ratios.append(found[1] / found[0])
    middle = statistics.median(ratios)
    print(f"| {name} | {middle:.3f} | {min(ratios):.3f} to {max(ratios):.3f} |")


def choose(level: str) -> None:
    """Let the libraries that are loaded from now on be of a level."""
    os.environ[native.VARIABLE] = level
    for loaded in (native.load, native.library, packed.library):
        loaded.cache_clear()


def use(folder: Path, precision: str, level: str) -> Measure:
    """Return what measures the seconds of processor time of a model in use."""
    choose(level)
    model = weft.load(folder, precision=precision)
    lines: list[str] = list(LINES)
    if isinstance(model, weft.Translator):
        lines = [src for src, _ in builtin.pairs("everyday", "en", "de").test[:200]]
    if isinstance(model, weft.Classifier):
        lines = [" ".join(lines * 6)] * 100
    work = work_of(model, lines)
    return lambda: seconds(work)


def training(level: str) -> Measure:
    """Return what measures the seconds a token of training steps."""
    machine = choose_machine(threads=1)
    form = (attention.attention, CHUNKED, True)

    def measure() -> float:
        choose(level)
        return 1 / tokens_per_second(SIZES["small"], machine, *form)

    return measure


if __name__ == "__main__":
    main()
