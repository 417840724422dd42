"""Does a way of training help? `python benchmarks/training_methods.py [METHOD ...] --output
FOLDER`.

Each method is trained with each learning rate, everything else alike, and the rate chosen by greedy
BLEU on dev. Said is that BLEU at the end, at the time that the plain method took in all, and how
long the method took; then the test text is scored, once a method, with the recipe's beam. Model
folders are kept in --output: what is there already is not trained again, and a run that was stopped
goes on. `--at-once` trains so many at a time, each on one thread: scores hardly change, times do.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from side_by_side import DATA, as_settings, say

MODERN = (
    "model.positions=rotary",
    "model.norm=rms",
    "model.sandwich_norm=true",
    "model.activation=geglu",
    "model.d_ff=512",
    "model.bias=false",
)
PLAIN = ("training.r_drop=0",)  # whatever the recipe has taken
METHODS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "moving average": ("training.ema_decay=0.999",),
    "R-Drop": ("training.r_drop=3.0",),
    "warm-up, stable, decay": ("training.schedule=wsd",),
    "AdamW": ("training.optimizer=adamw", "training.weight_decay=0.01"),
    "Muon": ("training.optimizer=muon", "training.weight_decay=0.01"),
    "modern block": MODERN,
    "modern block, Muon": (
        *MODERN,
        "training.optimizer=muon",
        "training.weight_decay=0.01",
    ),
}
# no training of its own: the newest ones of the plain method
AVERAGED = "checkpoints averaged"
LAST = 4


@dataclass(frozen=True)
class Pair:
    """A recipe and its text, below DATA."""

    recipe: str
    train: str
    dev: str
    test: str


PAIRS = {
    "en-de": Pair(
        "en-de",
        "multi30k/train.en,multi30k/train.de",
        "multi30k/val.en,multi30k/val.de",
        "multi30k/test_2016_flickr.en,multi30k/test_2016_flickr.de",
    ),
    "en-zh": Pair("en-zh", "en-cn/train.txt", "", "en-cn/simplified/dev.txt"),
}


@dataclass(frozen=True)
class Curve:
    """Greedy BLEU on dev by seconds of training, evaluations not counted."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, folder: Path) -> "Curve":
        """What a run has logged."""
        text = (folder / "run" / "metrics.jsonl").read_text("utf-8")
        lines: list[dict[str, Any]] = [
            json.loads(line) for line in text.split("\n")[:-1]
        ]
        steps = {line["step"]: line["seconds"] for line in lines if "seconds" in line}
        found = [
            (line["step"], line["dev_bleu"]) for line in lines if "dev_bleu" in line
        ]
        return cls(
            tuple(
                (max(s for n, s in steps.items() if n <= step), bleu)
                for step, bleu in found
            )
        )

    @property
    def seconds(self) -> float:
        """In all."""
        return self.points[-1][0]

    def best(self, within: float = float("inf")) -> float:
        """The highest BLEU of evaluations within so many seconds; 0 where there is none."""
        return max(
            (bleu for seconds, bleu in self.points if seconds <= within), default=0.0
        )


def main() -> None:
    """Train what is not there, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "methods",
        nargs="*",
        metavar="METHOD",
        help=f"of {', '.join(METHODS)}; else all",
    )
    parser.add_argument("--pair", choices=PAIRS, default="en-de")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.001, 0.002, 0.004])
    parser.add_argument("--steps", type=int, help="else the recipe's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--output", "--out", type=Path, required=True)
    asked = parser.parse_args()
    if unknown := sorted(set(asked.methods) - METHODS.keys()):
        parser.error(f"{unknown[0]!r} is none of {', '.join(METHODS)}")
    pair, methods = (
        PAIRS[asked.pair],
        list(dict.fromkeys(["plain", *(asked.methods or METHODS)])),
    )
    missing = [
        name
        for part in (pair.train, pair.dev, pair.test)
        for name in part.split(",")
        if name
    ]
    if absent := [name for name in missing if not (DATA / name).is_file()]:
        raise SystemExit(f"skipped: {DATA / absent[0]} is absent")
    folders = {
        (m, r): asked.output
        / f"{asked.pair}-{m.replace(' ', '-').replace(',', '')}-{r:g}-{asked.seed}"
        for m, r in product(methods, asked.rates)
    }
    with ThreadPoolExecutor(asked.at_once) as pool:
        jobs = [
            pool.submit(trained, pair, METHODS[m], r, folder, asked)
            for (m, r), folder in folders.items()
        ]
        for job in jobs:
            job.result()
    print_table(
        pair,
        {m: {r: folders[m, r] for r in asked.rates} for m in methods},
        asked.output,
    )


def trained(
    pair: Pair,
    settings: Sequence[str],
    rate: float,
    folder: Path,
    asked: argparse.Namespace,
) -> None:
    """A run to its end."""
    steps: tuple[str, ...] = ()
    if asked.steps is not None:
        steps = (
            f"training.max_steps={asked.steps}",
            f"training.eval_every={max(asked.steps // 10, 1)}",
        )
    threads = () if asked.at_once == 1 else ("training.threads=1",)
    fixed = (
        f"training.learning_rate={rate}",
        f"training.seed={asked.seed}",
        "data.test_size=0",
    )
    every = as_settings(
        *PLAIN, *settings, *steps, *threads, *fixed, f"training.keep_checkpoints={LAST}"
    )
    dev = ["--dev", paths(pair.dev)] if pair.dev else []
    weft(
        "train",
        "--recipe",
        pair.recipe,
        "--train",
        paths(pair.train),
        *dev,
        *every,
        "--output",
        str(folder),
    )
    say(
        f"{folder.name}: BLEU on dev {Curve.of(folder).best():.2f} after {Curve.of(folder).seconds:,.0f} s"
    )


def print_table(pair: Pair, folders: dict[str, dict[float, Path]], out: Path) -> None:
    """A row a method, with the rate that is best on dev."""
    curves = {
        m: {r: Curve.of(folder) for r, folder in of.items()}
        for m, of in folders.items()
    }
    best = {m: max(of, key=lambda r, of=of: of[r].best()) for m, of in curves.items()}  # type: ignore[misc]
    plain = curves["plain"][best["plain"]]
    rates = " | ".join(f"dev at {rate:g}" for rate in folders["plain"])
    print(
        f"| method | {rates} | dev in the plain method's time | time, plain = 1 | test |"
    )
    print("|---" * (len(folders["plain"]) + 4) + "|")
    for method, of in curves.items():
        chosen = of[best[method]]
        shown = [
            f"**{c.best():.2f}**" if r == best[method] else f"{c.best():.2f}"
            for r, c in of.items()
        ]
        equal = f"{chosen.best(1.02 * plain.seconds):.2f}"
        test = scored(folders[method][best[method]], pair.test)
        print(
            f"| {method} | {' | '.join(shown)} | {equal} | {chosen.seconds / plain.seconds:.2f} | {test:.2f} |"
        )
    own = folders["plain"][best["plain"]]
    averaged = out / f"{own.name}-averaged"
    if not averaged.is_dir():
        weft("average", str(own), "--last", str(LAST), "--output", str(averaged))
    dev = scored(averaged, pair.dev, "--beam-size", "1") if pair.dev else float("nan")
    blank = " | ".join("" for _ in folders["plain"])
    print(f"| {AVERAGED} | {dev:.2f} |{blank} | | {scored(averaged, pair.test):.2f} |")


def scored(folder: Path, data: str, *options: str) -> float:
    """Cased BLEU of a text."""
    said = weft("evaluate", str(folder), paths(data), "--json", *options)
    return float(json.loads(said)["bleu"])


def weft(*arguments: str) -> str:
    """Run a verb to its end; what it printed."""
    command, env = (
        [sys.executable, "-m", "weft", *arguments],
        {**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    ended = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        last = ended.stderr.strip().split("\n")[-1]
        raise SystemExit(f"weft {arguments[0]}: {last}")
    return ended.stdout


def paths(names: str) -> str:
    return ",".join(str(DATA / name) for name in names.split(","))


if __name__ == "__main__":
    main()
