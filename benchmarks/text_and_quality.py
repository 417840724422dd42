"""How good with how much text: `python benchmarks/text_and_quality.py [--pairs N ...] [--minutes M
...]`.

Of Tatoeba's German and English sentences the first N of a fixed shuffle are trained on, English to
German, with the defaults and `--minutes M`; the corpus's dev part is the test. Prints a row of
README's table for each size: pairs, minutes, scores, and what became of one sentence of our own.
With `--table` nothing is trained: the rows of runs that are done are printed again. Corpora are
read from WEFT_DATA, else from ../shared/data. Nothing else should run meanwhile.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = (
    Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data")) / "tatoeba-de-en"
)
SIZES = {3_000: 5, 10_000: 10, 30_000: 20, 100_000: 40, 166_159: 60}  # pairs: minutes
SENTENCE = (
    # not in the corpus, and fixed before the runs
    "My sister wants to buy a new book, but she has no money."
)


def main() -> None:
    """Train a translator for each size and print its row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[*SIZES])
    parser.add_argument(
        "--minutes",
        type=float,
        nargs="+",
        default=None,
        help="one a size; else those of README",
    )
    parser.add_argument(
        "--output", "--out", type=Path, default=Path("runs/text-and-quality")
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="train nothing, print the rows of runs that are done",
    )
    asked = parser.parse_args()
    if not (DATA / "train.en.gz").is_file():
        sys.exit(f"skipped: {DATA / 'train.en.gz'} is absent")
    minutes = asked.minutes or [SIZES[n] for n in asked.pairs]
    for pairs, limit in zip(asked.pairs, minutes, strict=True):
        folder = asked.output / f"{pairs}"
        if not asked.table:
            train(pairs, limit, folder)
        print(row(pairs, folder), flush=True)


def train(pairs: int, minutes: float, folder: Path) -> None:
    """One run, as a person would start it; the time from the command to its end is kept beside its
    text.
    """
    data = folder.parent / f"{pairs}-pairs"
    data.mkdir(parents=True, exist_ok=True)
    for side, lines in zip(("en", "de"), subset(pairs), strict=True):
        (data / f"train.{side}").write_text(
            "".join(f"{line}\n" for line in lines), "utf-8"
        )
    texts = [
        f"{data}/train.en,{data}/train.de",
        "--test",
        f"{DATA}/dev.en,{DATA}/dev.de",
    ]
    command = [
        sys.executable,
        "-m",
        "weft",
        "train",
        *texts,
        "--minutes",
        f"{minutes:g}",
        "--output",
        str(folder),
    ]
    started = time.perf_counter()
    subprocess.run(command, check=True)
    (data / "seconds").write_text(f"{time.perf_counter() - started:.1f}\n")


def subset(pairs: int) -> tuple[list[str], list[str]]:
    """The first so many pairs of a shuffle that is always the same: a larger text holds every
    smaller one.
    """
    sides = []
    for name in ("train.en.gz", "train.de.gz"):
        with gzip.open(DATA / name, "rt", encoding="utf-8", newline="\n") as file:
            sides.append(file.read().split("\n")[:-1])
    order = list(range(len(sides[0])))
    random.Random(1).shuffle(order)
    return tuple([side[i] for i in order[:pairs]] for side in sides)  # type: ignore[return-value]


def row(pairs: int, folder: Path) -> str:
    """Pairs, minutes, BLEU and chrF, and the sentence's translation."""
    verdict = json.loads((folder / "run" / "verdict.json").read_text("utf-8"))
    seconds = float((folder.parent / f"{pairs}-pairs" / "seconds").read_text())
    command = [sys.executable, "-m", "weft", "translate", str(folder), SENTENCE]
    said = subprocess.run(
        command, check=True, capture_output=True, encoding="utf-8"
    ).stdout.strip()
    scores = f"{verdict['test']['bleu']:.1f} | {verdict['test']['chrf']:.1f}"
    return f"| {pairs:,} | {seconds / 60:.1f} | {scores} | {said} |"


if __name__ == "__main__":
    main()
