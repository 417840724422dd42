"""How much slower a model is where there is no native library: `python benchmarks/plain_numpy.py
MODEL... [--texts FILE] [--rounds 7]`.

Each model translates, writes on or classifies the same lines by the native library and by the plain
NumPy pass, in turns, on one thread. Printed for each: the median over the rounds of the seconds by
NumPy over those by the library, the lowest and the highest, and whether all best outputs are equal.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import weft
from weft.engine import packed
from weft.kernels import native

LINES = (
    "The old man reads a book.",
    "Anna has a small dog.",
    "We hear the children in the garden.",
    "My brother does not like tea.",
)
Work = Callable[[], Sequence[Any]]


def main() -> None:
    """Measure each model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--texts", type=Path, help="lines, in place of four own ones")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    lines = list(LINES)
    if asked.texts:
        lines = asked.texts.read_text("utf-8").split("\n")[:-1]
    print(
        "| model | NumPy's seconds over the library's | lowest to highest | the same |"
    )
    print("|---|---|---|---|")
    for folder in asked.models:
        by_library = work_of(weft.load(folder), lines)
        by_numpy = work_of(load_plain(folder), lines)
        is_same = by_library() == by_numpy()
        ratios = []
        for _ in range(asked.rounds):
            ratios.append(seconds(by_numpy) / seconds(by_library))
        middle = statistics.median(ratios)
        shown = f"{min(ratios):.1f} to {max(ratios):.1f}"
        print(
            f"| {folder.name} | {middle:.1f} | {shown} | {'yes' if is_same else 'no'} |"
        )


def load_plain(folder: Path) -> Any:
    """Load a model as where there is no native library."""

    def refuse(*_: object) -> None:
        raise native.UnavailableError("left out for this measurement")

    own = native.library
    native.library = refuse  # type: ignore[assignment]
    packed.library.cache_clear()  # type: ignore[attr-defined]
    try:
        return weft.load(folder)
    finally:
        native.library = own
        packed.library.cache_clear()  # type: ignore[attr-defined]


def work_of(model: Any, lines: Sequence[str]) -> Work:
    """Return what a model does with the lines, and gives as its best outputs."""
    if isinstance(model, weft.Translator):
        return lambda: [found.text for found in model.translate(lines)]
    if isinstance(model, weft.Classifier):
        return lambda: [found.label for found in model.classify(lines)]
    options = {"temperature": 0, "max_new_tokens": 64}
    return lambda: [model.generate(line, **options).text for line in lines]


def seconds(work: Work) -> float:
    """Return the seconds of processor time that the work takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
