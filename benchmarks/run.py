"""Measure Weft on this machine: `python benchmarks/run.py [NAME ...] [--seeds N ...] [--output
FOLDER]`.

Each measurement is the command line that a user would type, in a process of its own, timed from
outside, and prints one row of a table in benchmarks/README.md. Corpora are read from WEFT_DATA,
else from ../shared/data; what needs one that is absent is skipped, saying so; exit code 1 where
nothing was left to measure. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True)
class Measurement:
    """A recipe, the files it takes, below DATA, and settings; `seeds` says whether it is worth
    repeating.
    """

    recipe: str
    train: str = ""
    dev: str = ""
    test: str = ""
    settings: tuple[str, ...] = ()
    seeds: bool = False

    def arguments(self) -> list[str]:
        """Those of `weft train`, but the seed and the folder."""
        files = {"--train": self.train, "--dev": self.dev, "--test": self.test}
        given = [
            part
            for flag, name in files.items()
            if name
            for part in (flag, _paths(name))
        ]
        return [
            "--recipe",
            self.recipe,
            *given,
            *(p for s in self.settings for p in ("--set", s)),
        ]

    def missing(self) -> list[str]:
        """Files that are not there."""
        names = [
            name
            for names in (self.train, self.dev, self.test)
            if names
            for name in names.split(",")
        ]
        return [name for name in names if not (DATA / name).is_file()]


MULTI30K = {
    "train": "multi30k/train.en,multi30k/train.de",
    "dev": "multi30k/val.en,multi30k/val.de",
    "test": "multi30k/test_2016_flickr.en,multi30k/test_2016_flickr.de",
}
EN_CN_TEST = "en-cn/simplified/dev.txt"
QUESTIONS = (
    "model.num_encoder_layers=2",
    "model.d_model=64",
    "model.d_ff=256",
    "model.ngrams=3",
    "model.ngram_buckets=20000",
    "model.dropout=0.3",
    "model.head_dropout=0.5",
    "tokenizer.kind=bpe",
    "tokenizer.vocab_size=1000",
    "training.max_steps=900",
    "training.learning_rate=0.002",
    "training.weight_decay=0.1",
    "batches.tokens_per_batch=4096",
)
MEASUREMENTS = {
    "demo": Measurement("demo"),
    "toy": Measurement("toy-de-en"),
    "en-de": Measurement("en-de", **MULTI30K, seeds=True),
    "en-zh": Measurement("en-zh", "en-cn/train.txt", "", EN_CN_TEST, seeds=True),
    "annotated-en-zh": Measurement(
        "annotated-en-zh", "en-cn/train.txt", EN_CN_TEST, EN_CN_TEST
    ),
    "rnn-dot": Measurement("seq2seq-rnn-dot", **MULTI30K),
    "rnn-additive": Measurement("seq2seq-rnn-additive", **MULTI30K),
    "transformer": Measurement("seq2seq-transformer", **MULTI30K),
    "causal-lm": Measurement(
        "causal-lm", "wikitext2/valid.txt", "", "wikitext2/test.txt"
    ),
    "shakespeare": Measurement("tiny-shakespeare", "tinyshakespeare/input.txt"),
    "imdb-s5": Measurement(
        "imdb-classifier", "imdb/train.tsv.gz", "", "imdb/test.tsv.gz"
    ),
    "imdb": Measurement(
        "classify-fast", "imdb/train.tsv.gz", "", "imdb/test.tsv.gz", seeds=True
    ),
    "trec": Measurement(
        "classify-fast",
        "trec/train.tsv",
        "",
        "trec/test.tsv",
        ("data.label_column=coarse", *QUESTIONS),
    ),
    "sst2": Measurement(
        "classify-fast", "sst2/train_phrases.tsv", "sst2/dev.tsv", "sst2/test.tsv"
    ),
}


def main() -> None:
    """Run the measurements named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(MEASUREMENTS)}; else all",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[1],
        help="train en-de, en-zh and imdb with each of these",
    )
    parser.add_argument(
        "--output", "--out", type=Path, default=None, help="keep the model folders here"
    )
    asked = parser.parse_args()
    out = asked.output or Path(tempfile.mkdtemp(prefix="weft-bench-"))
    names = asked.names or list(MEASUREMENTS)
    for name in names:
        if name not in MEASUREMENTS:
            parser.error(f"{name!r} is none of {', '.join(MEASUREMENTS)}")
    there = [name for name in names if not is_skipped(name)]
    for name in there:
        for seed in asked.seeds if MEASUREMENTS[name].seeds else [1]:
            print(measured(name, seed, out), flush=True)
    if not there:
        raise SystemExit(
            "nothing was measured; set WEFT_DATA to the folder of the corpora, see benchmarks/README.md"
        )


def is_skipped(name: str) -> bool:
    """Whether a corpus is absent, which is said."""
    missing = MEASUREMENTS[name].missing()
    if missing:
        print(f"| {name} | skipped: {DATA / missing[0]} is absent | |", flush=True)
    return bool(missing)


def measured(name: str, seed: int, out: Path) -> str:
    """One row: what, parameters, time from the command to its end, scores."""
    what = MEASUREMENTS[name]
    folder = out / f"{name}-{seed}"
    seconds = weft(
        "train",
        *what.arguments(),
        "--set",
        f"training.seed={seed}",
        "--output",
        str(folder),
    )
    ended = json.loads((folder / "run" / "verdict.json").read_text("utf-8"))
    dev = ", ".join(f"{key} {value:.4g}" for key, value in ended["dev"].items())
    found = f"{ended['test_summary']}; dev, step {ended['best_step']}: {dev}"
    return f"| {name}, seed {seed} | {seconds / 60:.1f} min | {found} |"


def weft(*arguments: str) -> float:
    """Run a verb to its end; seconds from start to exit."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "weft", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def _paths(names: str) -> str:
    return ",".join(str(DATA / name) for name in names.split(","))


if __name__ == "__main__":
    main()
