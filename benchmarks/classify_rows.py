"""How many rows a classifier reads in a second: `python benchmarks/classify_rows.py MODEL
[--rows 100000] [--threads 1 2] [--rounds 3]`.

Rows of 24 words of the built-in sentences are classified without PyTorch and by PyTorch, in turns.
Printed for each: the median over the rounds of the seconds by the clock and of the processor's
time, and how many labels differ from the first form's.
"""

import argparse
import os
import random
import statistics
import time
from pathlib import Path

import torch

import weft
from weft.data import builtin

WORDS = 24


def main() -> None:
    """Measure each form."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    texts = drawn(asked.rows)
    forms = {}
    for threads in asked.threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        for kernels, name in (("auto", "without PyTorch"), ("torch", "by PyTorch")):
            model = weft.load(asked.model, kernels=kernels)
            forms[f"{name}, threads: {threads}"] = model, threads
    clocks: dict[str, list[float]] = {name: [] for name in forms}
    processor: dict[str, list[float]] = {name: [] for name in forms}
    labels: dict[str, list[str]] = {}
    for _ in range(asked.rounds):
        for name, (model, threads) in forms.items():
            torch.set_num_threads(threads)
            clock, used = time.perf_counter(), time.process_time()
            labels[name] = [one.label for one in model.classify_stream(texts)]
            clocks[name].append(time.perf_counter() - clock)
            processor[name].append(time.process_time() - used)
    print("| form | clock, s | processor, s | rows a second | other labels |")
    print("|---|---|---|---|---|")
    first = next(iter(labels.values()))
    for name in forms:
        clock = statistics.median(clocks[name])
        used = statistics.median(processor[name])
        others = sum(a != b for a, b in zip(first, labels[name], strict=True))
        speed = asked.rows / clock
        print(f"| {name} | {clock:.1f} | {used:.1f} | {speed:,.0f} | {others} |")


def drawn(count: int) -> list[str]:
    """Return texts of random words, the same at each call."""
    draw = random.Random(1)
    sentences = builtin.pairs("everyday", "en", "de").train
    words = sorted({word for src, _ in sentences for word in src.split()})
    return [" ".join(draw.choices(words, k=WORDS)) for _ in range(count)]


if __name__ == "__main__":
    main()
