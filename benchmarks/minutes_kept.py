"""Whether `--minutes` is kept: `python benchmarks/minutes_kept.py [NAME:MINUTES ...] [--output
FOLDER]`.

Each run is the command line that a person would type, in a process of its own, timed from outside;
MINUTES may be `own`, for the recipe as it comes. Prints a row each: the time asked for, the real
time over it, the score. A run that fails has a row too, and the next one follows. Corpora are read
from WEFT_DATA, else from ../shared/data. Nothing else should run meanwhile.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from run import EN_CN_TEST, MULTI30K, Measurement

CORPORA = {
    "en-de": Measurement("en-de", **MULTI30K),
    "en-zh": Measurement("en-zh", "en-cn/train.txt", "", EN_CN_TEST),
    "shakespeare": Measurement("tiny-shakespeare", "tinyshakespeare/input.txt"),
    "imdb": Measurement("classify-fast", "imdb/train.tsv.gz", "", "imdb/test.tsv.gz"),
}
PLAN = [
    "en-de:5",
    "en-de:15",
    "en-zh:5",
    "en-zh:15",
    "shakespeare:5",
    "shakespeare:15",
    "en-de:60",
]


def main() -> None:
    """Run the plan, or what the command line names of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("runs", nargs="*", metavar="NAME:MINUTES", default=PLAN)
    parser.add_argument(
        "--output", "--out", type=Path, default=Path("runs/minutes-kept")
    )
    asked = parser.parse_args()
    for run in asked.runs:
        name, _, minutes = run.partition(":")
        print(row(name, minutes, asked.output / run.replace(":", "-")), flush=True)


def row(name: str, minutes: str, folder: Path) -> str:
    """Corpus, minutes asked for, real ones over them, steps, score."""
    what = CORPORA[name]
    if missing := what.missing():
        return f"| {name} | skipped: {missing[0]} is absent | | | |"
    limit = [] if minutes == "own" else ["--minutes", minutes]
    command = [
        sys.executable,
        "-m",
        "weft",
        "train",
        *what.arguments(),
        *limit,
        "--output",
        str(folder),
    ]
    started = time.perf_counter()
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if ended.returncode:
        return f"| {name} | {minutes} | failed: exit code {ended.returncode} | | |"
    taken = (time.perf_counter() - started) / 60
    verdict = json.loads((folder / "run" / "verdict.json").read_text("utf-8"))
    over = (
        "" if minutes == "own" else f", {taken / float(minutes):.3f} of what was asked"
    )
    return f"| {name} | {minutes} | {taken:.2f}{over} | {verdict['step']:,} | {verdict['test_summary']} |"


if __name__ == "__main__":
    main()
