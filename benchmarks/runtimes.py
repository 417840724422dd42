"""How fast the same model is in each program that can run it: `python benchmarks/runtimes.py MODEL
DATA... [--texts FILE] [--lines 200] [--rounds 3] [--forms ctranslate2 ...] [--int8 FOLDER]
[--javascript FOLDER]`.

MODEL is exported to each form, certified on DATA, text that it was not trained on, and opened by
that program's own library. Then all of them read the same lines, on one core, in turns, round after
round: as a person uses them, all lines at once, with the settings that are shipped; and greedily,
one line at a time, under the same limit for each. The first round warms up. Printed are the median
seconds and, of each round, the time of Weft's engine over that of the program: above 1 it is faster
than Weft.

`--int8` is the same model as `weft quantize` wrote it. `--javascript` is a folder with
`node_modules/@huggingface/transformers`: transformers.js runs in Node then, greedily. Times are
those of a clock, so nothing else may run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

CORE = 0
# before any library counts the cores
os.sched_setaffinity(0, {CORE})
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import weft  # noqa: E402
from weft.errors import MissingPackage, UnfitPackage  # noqa: E402
from weft.ship.certificate.reference import reference_of  # noqa: E402
from weft.ship.certificate.trial import Trial, trial_of  # noqa: E402
from weft.ship.exporting import certify  # noqa: E402
from weft.ship.opened import Wanted  # noqa: E402
from weft.ship.source import Source, open_source  # noqa: E402
from weft.ship.target import Asked, refuse_unfit  # noqa: E402
from weft.ship.targets import TARGETS, target_named  # noqa: E402

Way = Callable[[], object]
NODE = Path(__file__).with_name("runtimes.js")
# tokens of a continuation, as the certificates have it
NEW_TOKENS = 24


def main() -> None:
    """Export, then measure all in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--forms", nargs="*", default=list(TARGETS))
    parser.add_argument("--int8", type=Path)
    parser.add_argument("--javascript", type=Path)
    asked = parser.parse_args()
    source = open_source(asked.model)
    trial = trial_of(source, source.task.read(asked.data))
    texts = list(trial.used)
    if asked.texts:
        with asked.texts.open(encoding="utf-8") as file:
            texts = [line.rstrip("\n") for line in file]
    texts = texts[: asked.lines]
    rows = list(islice(trial.searched, asked.lines))
    with tempfile.TemporaryDirectory() as place:
        used, greedy = ways_of(source, trial, texts, rows, asked, Path(place))
        show("as shipped, all at once", used, asked.rounds)
        if greedy:
            show("greedily, one at a time", greedy, asked.rounds)


def ways_of(
    source: Source,
    trial: Trial,
    texts: Sequence[str],
    rows: Sequence[Wanted],
    asked: argparse.Namespace,
    place: Path,
) -> tuple[dict[str, Way], dict[str, Way]]:
    """Return what is measured, by name: the use of texts, and the search for single rows."""
    folders = {"Weft": asked.model} | ({"Weft, int8": asked.int8} if asked.int8 else {})
    used: dict[str, Way] = {}
    greedy: dict[str, Way] = {}  # none where nothing is searched for
    for name, folder in folders.items():
        used[name] = use_of_weft(folder, texts)
        if rows:
            search = reference_of(open_source(folder).own).search
            greedy[name] = one_by_one(search, rows)
    for form in asked.forms:
        target = target_named(form)
        for precision in target.precisions:
            name = f"{form}, {precision}"
            out = place / f"{form}-{precision}"
            try:
                refuse_unfit(target, is_certified=True)
            except (MissingPackage, UnfitPackage) as missing:
                print(f"{name}: left out: {missing}", file=sys.stderr)
                continue
            if reason := target.why_not(source):
                print(f"{name}: left out: {reason}", file=sys.stderr)
                continue
            out.mkdir()
            written = target.write(source, out, Asked(precision=precision))
            certificate = certify(source, target, written, out, trial)
            if failed := certificate.failed:
                sys.exit(f"{name}: is not the same model: {failed.first}")
            opened = target.open(target.compared(source), out, written)
            if form == "transformers.js":
                # in Python it is what onnx is
                if asked.javascript:
                    lines = read_one_by_one(source, texts, rows)
                    ways = greedy if rows else used
                    ways[f"{form} in Node"] = in_node(asked.javascript, out, lines)
                continue
            # what a person gets of a page is compared by Weft itself
            if "use" not in opened.unchecked and form != "web":
                used[name] = lambda opened=opened: opened.use(texts)
            if rows and "greedy" not in opened.unchecked:
                own = [Wanted(written.ids_of_source(r.ids), r.limit) for r in rows]
                greedy[name] = one_by_one(opened.search, own)
    return used, greedy


def use_of_weft(folder: Path, texts: Sequence[str]) -> Way:
    """Return the use of a model by Weft."""
    model: Any = weft.load(folder)
    if isinstance(model, weft.Translator):
        return lambda: model.translate(texts)
    if isinstance(model, weft.Classifier):
        return lambda: model.classify(texts)
    return lambda: [
        model.generate(text, temperature=0.0, max_new_tokens=NEW_TOKENS)
        for text in texts
    ]


def one_by_one(search: Callable[..., Any], rows: Sequence[Wanted]) -> Way:
    """Return a greedy search for each row alone."""
    return lambda: [search([row], 1) for row in rows]


def read_one_by_one(
    source: Source, texts: Sequence[str], rows: Sequence[Wanted]
) -> list[tuple[str, int]]:
    """Return texts with the most tokens that each is given: those of the rows, if there are any."""
    if not rows:
        return [(text, 0) for text in texts]
    return [(source.tokenizers[0].decode(row.ids), row.limit) for row in rows]


def in_node(
    packages: Path, folder: Path, texts: Sequence[tuple[str, int]]
) -> Callable[[], float]:
    """Return what runs transformers.js, and tells the seconds that the texts took it."""

    def run() -> float:
        told = subprocess.run(
            ["node", str(NODE), str(packages), str(folder)],
            input=json.dumps(list(texts)),
            capture_output=True,
            text=True,
            check=True,
        )
        return float(json.loads(told.stdout)["seconds"])

    return run


def show(title: str, ways: Mapping[str, Way], rounds: int) -> None:
    """Measure in turns and print a table."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            told = way()
            seconds = told if isinstance(told, float) else time.perf_counter() - began
            if number:
                took[name].append(seconds)
    print(f"\n| {title} | s | times as fast as Weft | lowest to highest |")
    print("|---|---|---|---|")
    for name, seconds in took.items():
        ratios = [base / own for base, own in zip(took["Weft"], seconds, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        middle = statistics.median(ratios)
        print(
            f"| {name} | {statistics.median(seconds):.2f} | {middle:.2f} | {spread} |"
        )


if __name__ == "__main__":
    main()
