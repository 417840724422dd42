"""What few pairs come to: `python benchmarks/small_languages.py [--minutes M] [--threads N]`.

Of each corpus some pairs are kept. A translator learns from them alone, from both directions at
once, and with text in the target language beside them (`weft train --mono`): one command each, in
equal time. Where the corpus has no such text, it is the target side of the pairs that were not
kept. A part of those, or of the pairs, is the dev text that chooses; the corpus's own dev part is
scored once, with BLEU, chrF, and the probability that the difference to the pairs alone is chance
(`weft compare`).

A run that is done is not run again, and one that was stopped goes on, so that the command may be
given again; `--table` only prints. Corpora are read from WEFT_DATA.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side import DATA

ALONE, BOTH, MONO = WAYS = ("alone", "both", "mono")
SEED = 5
CHEROKEE_TESTS = ("chren/dev", "chren/out_dev")


@dataclass(frozen=True)
class Text:
    """A corpus: where its parts are, and how many of its pairs are kept and choose."""

    src: str
    tgt: str
    train: str
    tests: tuple[str, ...]
    kept: int | None
    dev: int
    mono: str | None = None


TEXTS = {
    "tatoeba": Text(
        "de", "en", "tatoeba-de-en/train", ("tatoeba-de-en/dev",), 5_000, 500
    ),
    "kosraean": Text(
        "en", "kos", "ebible/en-kos/train", ("ebible/en-kos/dev",), 5_000, 400
    ),
    "menyo": Text("en", "yo", "menyo20k/train", ("menyo20k/dev",), 5_000, 500),
    "cherokee": Text(
        "en", "chr", "chren/train", CHEROKEE_TESTS, None, 400, "chren/mono.chr"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--texts", nargs="+", default=[*TEXTS], choices=[*TEXTS])
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--minutes", type=float, default=110.0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--output", type=Path, default=Path("runs/small-languages"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--table", action="store_true", help="only print")
    asked = parser.parse_args()
    for name in asked.texts:
        text = TEXTS[name]
        if not any(DATA.glob(f"{text.train}.{text.tgt}*")):
            print(f"skipped: {DATA / text.train}.{text.tgt} is absent")
            continue
        folder = asked.output / name
        for way in asked.ways:
            if not asked.table:
                train(text, way, folder, asked)
            for row in rows(name, text, way, folder):
                print(row, flush=True)


def train(text: Text, way: str, folder: Path, asked: argparse.Namespace) -> None:
    """Run one command, as a person would give it, and keep how long it took."""
    if (folder / f"{way}.seconds").is_file():
        return
    write(text, folder)
    sides = (text.src, text.tgt)
    options = ["--minutes", f"{asked.minutes:g}", "--output", str(folder / way)]
    if way == BOTH:
        options += ["--set", "data.directions=both"]
    settings = [f"data.src_lang={text.src}", f"data.tgt_lang={text.tgt}", *asked.set]
    if way == MONO:
        options += ["--mono", f"{text.tgt}={folder}/mono.{text.tgt}"]
    if asked.threads:
        settings.append(f"training.threads={asked.threads}")
    for setting in settings:
        options += ["--set", setting]
    pairs, dev = (two_files(folder / part, sides) for part in ("train", "dev"))
    began = time.perf_counter()
    weft("train", pairs, "--dev", dev, "--set", "data.test_size=0", *options)
    took = time.perf_counter() - began
    (folder / f"{way}.seconds").write_text(f"{took:.0f}\n")


def write(text: Text, folder: Path) -> None:
    """Write the pairs that are kept, those that choose, and the text in one language."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = [lines(text.train, lang) for lang in (text.src, text.tgt)]
    pairs = [pair for pair in zip(*sides, strict=True) if all(map(str.strip, pair))]
    random.Random(SEED).shuffle(pairs)
    dev, rest = pairs[: text.dev], pairs[text.dev :]
    kept = rest[: text.kept]
    for part, chosen in (("train", kept), ("dev", dev)):
        for side, lang in enumerate((text.src, text.tgt)):
            put(folder / f"{part}.{lang}", (pair[side] for pair in chosen))
    mono = (pair[1] for pair in rest[len(kept) :])
    if text.mono:
        mono = iter(lines(text.mono.rpartition(".")[0], text.tgt))
    tested = {line for test in text.tests for line in lines(test, text.tgt)}
    put(folder / f"mono.{text.tgt}", (line for line in mono if line not in tested))


def rows(name: str, text: Text, way: str, folder: Path) -> Iterator[str]:
    """Yield a row of the table for each part that is scored."""
    seconds = folder / f"{way}.seconds"
    if not seconds.is_file():
        return
    minutes = float(seconds.read_text()) / 60
    for test in text.tests:
        part = Path(test).name
        for lang in (text.src, text.tgt):
            put(folder / f"test-{part}.{lang}", lines(test, lang))
        figures = compared(text, way, folder, part)
        bleu, chrf = (figures[metric] for metric in ("BLEU", "chrF2"))
        gain = ""
        if way != ALONE:
            more = bleu["second"] - bleu["first"]
            gain = f"{more:+.2f} (p {bleu['p_value']:.3f})"
        scores = f"{bleu['second']:.2f} | {chrf['second']:.2f} | {gain}"
        yield f"| {name} {text.src}-{text.tgt}, {part} | {way} | {minutes:.0f} | {scores} |"


def compared(
    text: Text, way: str, folder: Path, part: str
) -> dict[str, dict[str, Any]]:
    """Return the figures of the pairs alone, and of another way beside them, by metric."""
    kept = folder / f"{way}-{part}.json"
    if not kept.is_file():
        test = two_files(folder / f"test-{part}", (text.src, text.tgt))
        told = ["--to", text.tgt] if way == BOTH else []
        said = weft("compare", str(folder / ALONE), str(folder / way), test, *told, "--json", is_read=True)  # fmt: skip
        kept.write_text(said.split("\n")[0])
    return {
        figure["name"]: figure for figure in json.loads(kept.read_text())["figures"]
    }


def lines(name: str, lang: str) -> list[str]:
    """Read one side of a part of a corpus."""
    path = DATA / f"{name}.{lang}"
    if not path.is_file():
        with gzip.open(f"{path}.gz", "rt", encoding="utf-8", newline="\n") as file:
            return file.read().split("\n")[:-1]
    return path.read_text("utf-8").split("\n")[:-1]


def put(path: Path, rows: Iterator[str] | Sequence[str]) -> None:
    """Write lines to a file."""
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8", newline="\n")


def two_files(path: Path, langs: tuple[str, str]) -> str:
    """Name the two files of pairs, as commands take them."""
    return ",".join(f"{path}.{lang}" for lang in langs)


def weft(*words: str, is_read: bool = False) -> str:
    """Run a command of Weft; return what it says where that `is_read`."""
    command = [sys.executable, "-m", "weft", *words]
    where = subprocess.PIPE if is_read else None
    done = subprocess.run(command, check=True, stdout=where, encoding="utf-8", env=os.environ)  # fmt: skip
    return done.stdout or ""


if __name__ == "__main__":
    main()
