"""Measure Weft on this machine: `python benchmarks/run.py [demo] [toy] [en-de] [en-zh] [--seeds N ...]`.

Each measurement is the command line that a user would type, in a process of its own, timed from outside. It
prints one row of the table in benchmarks/README.md. Corpora are read from WEFT_DATA, else from ../shared/data;
what needs one that is absent is skipped, saying so. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data"))
MULTI30K, EN_CN = DATA / "multi30k", DATA / "en-cn"
TEST = f"{MULTI30K}/test_2016_flickr.en,{MULTI30K}/test_2016_flickr.de"


def main() -> None:
    """Run the measurements named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", choices=[*MEASUREMENTS, []], default=list(MEASUREMENTS))
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1], help="train en-de and en-zh with each of these"
    )
    parser.add_argument("--out", type=Path, default=None, help="keep the model folders here")
    asked = parser.parse_args()
    out = asked.out or Path(tempfile.mkdtemp(prefix="weft-bench-"))
    for name in asked.names:
        for row in MEASUREMENTS[name](out, asked.seeds):
            print(row, flush=True)


def demo(out: Path, _: list[int]) -> list[str]:
    """The demo's time from the command to its last line, and its score."""
    seconds = weft("demo", "--out", str(out / "demo"))
    return [row("weft demo", f"{seconds:.0f} s", verdict(out / "demo"))]


def toy(out: Path, _: list[int]) -> list[str]:
    """The two-sentence toy: last training loss, and its two translations."""
    folder = out / "toy"
    seconds = weft("train", "--recipe", "toy-de-en", "--out", str(folder))
    losses = [line["loss"] for line in metrics(folder) if "loss" in line]
    said = output("translate", str(folder), "ich mochte ein bier", "ich mochte ein cola").split("\n")
    return [f"| toy-de-en | {seconds:.0f} s | last training loss {losses[-1]:.2g}; {' / '.join(said[:2])} |"]


def en_de(out: Path, seeds: list[int]) -> list[str]:
    """Multi30k, chosen on val, scored once on test_2016_flickr."""
    if not MULTI30K.is_dir():
        return [f"| en-de | skipped: {MULTI30K} is absent | |"]
    rows = []
    for seed in seeds:
        folder = out / f"en-de-{seed}"
        pairs = [f"{MULTI30K}/{part}.en,{MULTI30K}/{part}.de" for part in ("train", "val")]
        data = ["--train", pairs[0], "--dev", pairs[1], "--test", TEST]
        seconds = weft("train", "--recipe", "en-de", *data, "--set", f"training.seed={seed}", "--out", str(folder))
        rows.append(row(f"en-de, seed {seed}", f"{seconds / 60:.1f} min", verdict(folder)))
    return rows


def en_zh(out: Path, seeds: list[int]) -> list[str]:
    """Tatoeba pairs; dev is a slice of train, the corpus's dev part is scored once, simplified references."""
    if not EN_CN.is_dir():
        return [f"| en-zh | skipped: {EN_CN} is absent | |"]
    rows = []
    for seed in seeds:
        folder = out / f"en-zh-{seed}"
        data = ["--train", str(EN_CN / "train.txt"), "--test", str(EN_CN / "simplified" / "dev.txt")]
        seconds = weft("train", "--recipe", "en-zh", *data, "--set", f"training.seed={seed}", "--out", str(folder))
        rows.append(row(f"en-zh, seed {seed}", f"{seconds / 60:.1f} min", verdict(folder)))
    return rows


def weft(*arguments: str) -> float:
    """Run a verb to its end; seconds from start to exit."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "weft", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def output(*arguments: str) -> str:
    """What a verb writes to standard output."""
    return subprocess.run(
        [sys.executable, "-m", "weft", *arguments], check=True, capture_output=True, encoding="utf-8"
    ).stdout


def verdict(folder: Path) -> dict[str, object]:
    """The verdict of a run."""
    return dict(json.loads((folder / "run" / "verdict.json").read_text("utf-8")))


def metrics(folder: Path) -> list[dict[str, float]]:
    """The lines of a run's metrics."""
    text = (folder / "run" / "metrics.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def row(name: str, seconds: str, ended: dict[str, object]) -> str:
    """One row: what, how long from the command to its end, cased BLEU, lower-cased BLEU, chrF."""
    test = ended["test"]
    assert isinstance(test, dict)
    scores = f"BLEU {test['bleu']:.1f}, lower-cased {test['bleu_lc']:.1f}, chrF {test['chrf']:.1f}"
    return f"| {name} | {seconds} | {scores} ({test['bleu_signature']}) |"


MEASUREMENTS = {"demo": demo, "toy": toy, "en-de": en_de, "en-zh": en_zh}

if __name__ == "__main__":
    main()
