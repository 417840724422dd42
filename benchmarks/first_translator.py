"""From nothing to a first own translator: `python benchmarks/first_translator.py [--pairs N]
[--minutes M]`.

Makes a translation memory of N pairs of Multi30k as translation programs export it (TMX with a
document type, notes and inline codes), then types what a person would: a fresh environment with
Weft in it, train, translate. Prints how long each took and what came out. Corpora are read from
WEFT_DATA, else from ../shared/data; pip takes packages from wherever it is set up to, best from its
cache, and gets what PIP_ARGS holds. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("WEFT_DATA", ROOT.parent / "shared" / "data")) / "multi30k"
HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="example" creationtoolversion="1" segtype="sentence" o-tmf="example" adminlang="en-US" \
srclang="en-US" datatype="xml"/>
<body>
"""


def main() -> None:
    """Make the memory and the environment, type the commands, print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=3_000)
    parser.add_argument("--minutes", type=float, default=7)
    parser.add_argument(
        "--output",
        "--out",
        type=Path,
        default=None,
        help="a new folder for all of it; else a temporary one",
    )
    asked = parser.parse_args()
    if not (DATA / "train.en").is_file():
        sys.exit(f"skipped: {DATA / 'train.en'} is absent")
    out = (asked.output or Path(tempfile.mkdtemp(prefix="weft-first-"))).resolve()
    out.mkdir(parents=True, exist_ok=True)
    (out / "memory.tmx").write_text(memory(asked.pairs), "utf-8")
    python = out / "env" / "bin" / "python"
    pip = shlex.join(
        [
            *shlex.split(os.environ.get("PIP_ARGS", "")),
            "-c",
            str(ROOT / "constraints.txt"),
            f"{ROOT}[train]",
        ]
    )
    sentence = "A man is standing on the street."
    lines = [
        f"{sys.executable} -m venv env && {python} -m pip install -q --disable-pip-version-check {pip}",
        f"env/bin/weft train memory.tmx --minutes {asked.minutes:g}",
        f"env/bin/weft translate runs/memory {shlex.quote(sentence)}",
    ]
    for line in lines:
        started = time.perf_counter()
        subprocess.run(line, shell=True, check=True, cwd=out)
        print(
            f"-- {(time.perf_counter() - started) / 60:.2f} minutes: {line}", flush=True
        )
    verdict = json.loads(
        (out / "runs" / "memory" / "run" / "verdict.json").read_text("utf-8")
    )
    print(f"-- {verdict['test_summary']}")


def memory(pairs: int) -> str:
    """A TMX of so many pairs, some of which hold codes as formatted text leaves them."""
    sides = [
        (DATA / f"train.{lang}").read_text("utf-8").split("\n")[:-1]
        for lang in ("en", "de")
    ]
    chosen = random.Random(1).sample(range(len(sides[0])), pairs)
    units = [unit(n, sides[0][i], sides[1][i]) for n, i in enumerate(chosen)]
    return HEAD + "".join(units) + "</body>\n</tmx>\n"


def unit(number: int, en: str, de: str) -> str:
    """One pair: every tenth has its first word in bold, every fiftieth a line break before its last
    and a note.
    """
    texts = [escape(en.strip()), escape(de.strip())]
    if number % 10 == 0:
        texts = ["{}{}{}".format(*coded(text)) for text in texts]
    if number % 50 == 0:
        texts = [
            '<ph x="3">&lt;br/&gt;</ph>'.join(text.rsplit(" ", 1)) for text in texts
        ]
    note = "<note>checked</note>" if number % 50 == 0 else ""
    inside = "".join(
        f'<tuv xml:lang="{lang}"><seg>{text}</seg></tuv>'
        for lang, text in zip(("en-US", "de-DE"), texts, strict=True)
    )
    return f'<tu tuid="{number}">{note}\n  {inside}\n</tu>\n'


def coded(text: str) -> tuple[str, str, str]:
    first, _, rest = text.partition(" ")
    return (
        f'<bpt i="1">&lt;b&gt;</bpt>{first}',
        '<ept i="1">&lt;/b&gt;</ept>',
        f" {rest}",
    )


if __name__ == "__main__":
    main()
