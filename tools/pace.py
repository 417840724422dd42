"""Whether a change made Weft slower: `make pace BASE=<commit>`, or `python tools/pace.py <commit>`.

The sources of the commit and those here take turns, round after round, so that a machine that grows
slower does so for both. Each round measures both in training, in the translation of many sentences,
in the translation of one at a time, and at the start of `weft translate`. Printed for each: the
median over the rounds of the speed here as a multiple of the speed there, and its interval.

Run it with nothing else on the machine. The base stands in the worktree that `tools/same.py` makes.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from same import ROOT, checkout, python_of, resolve

STEPS = 50
# fewer ratios have no interval of 95 %
FEWEST_ROUNDS = 6
SETTINGS = (
    f"training.max_steps={STEPS}",
    "training.eval_every=1000",
    "data.builtin=none",
)
# prints the sentences a second of a whole batch, and of one sentence at a time
TRANSLATE = """
import json, sys, time, weft
model = weft.load(sys.argv[1])
lines = open(sys.argv[2], encoding="utf-8").read().splitlines()
model.translate(lines[:8])
started = time.perf_counter()
model.translate(lines)
batch = time.perf_counter() - started
started = time.perf_counter()
for line in lines[:30]:
    model.translate([line])
one = time.perf_counter() - started
print(json.dumps({"batch": len(lines) / batch, "one": 30 / one}))
"""


def main() -> None:
    """Measure these sources and those of a commit in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds: give at least {FEWEST_ROUNDS}")
    base = checkout(resolve(arguments.base))
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="weft-pace-") as scratch:
        train, lines = write_texts(Path(scratch))
        for side in (base, ROOT):  # compiles what is not compiled yet
            measure(side, train, lines)
        for number in range(arguments.rounds):
            # who is first alternates
            order = (base, ROOT) if number % 2 else (ROOT, base)
            speeds = {side: measure(side, train, lines) for side in order}
            here = speeds[ROOT]
            rounds.append({what: here[what] / speeds[base][what] for what in here})
            print(number + 1, rounds[-1], file=sys.stderr, flush=True)
    for what in rounds[0]:
        print(line_of(what, sorted(ratios[what] for ratios in rounds)))


def line_of(what: str, ratios: Sequence[float]) -> str:
    """Describe ascending ratios: their median, and its interval of at least 95 %, from ranks.

    The interval goes from ratio k, counted from 0, to its counterpart at the other end. The median
    lies outside with probability 2 P(X <= k), where X counts the heads of n tosses of a coin.
    """
    n = len(ratios)
    lower = 0
    at_most_k = 0.0
    for k in range(n // 2):
        at_most_k += math.comb(n, k) / 2**n
        if 2 * at_most_k > 0.05:
            break
        lower = k
    median = statistics.median(ratios)
    return f"{what}: {median:.3f} ({ratios[lower]:.3f} to {ratios[n - 1 - lower]:.3f}), {n} pairs"


def write_texts(folder: Path) -> tuple[Path, Path]:
    """Write the built-in pairs, German and English, and 200 lines of German."""
    from weft.data import builtin

    splits = builtin.pairs("everyday", "de", "en")
    train = folder / "pairs.de-en.tsv"
    rows = [f"{src}\t{tgt}\n" for src, tgt in splits.train]
    train.write_text("".join(rows), "utf-8")
    lines = folder / "lines.de"
    lines.write_text("".join(f"{src}\n" for src, _ in splits.train[:200]), "utf-8")
    return train, lines


def measure(side: Path, train: Path, lines: Path) -> dict[str, float]:
    """Return the speeds of a checkout: tokens, sentences and starts a second."""
    with tempfile.TemporaryDirectory(prefix="weft-pace-") as scratch:
        model = Path(scratch) / "model"
        settings = [part for setting in SETTINGS for part in ("--set", setting)]
        run(side, "-m", "weft", "train", str(train), "--output", str(model), *settings)
        metrics = (model / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
        logged = [json.loads(line) for line in metrics]
        key = "tokens_per_second"
        tokens = [values[key] for values in logged if key in values]
        printed = run(side, "-c", TRANSLATE, str(model), str(lines))
        started = time.perf_counter()
        run(side, "-m", "weft", "translate", str(model), "Guten Morgen.")
        start = 1 / (time.perf_counter() - started)
    return {
        "training": tokens[-1],
        **json.loads(printed.strip().splitlines()[-1]),
        "start": start,
    }


def run(side: Path, *arguments: str) -> str:
    """Run Python with the sources of a checkout. Exits, with what it said, where it failed."""
    env = {**os.environ, "PYTHONPATH": str(side / "src"), "NO_COLOR": "1"}
    command = [str(python_of(side)), *arguments]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        sys.exit(f"pace: {side}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
