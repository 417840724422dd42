"""Does the fast way of training learn as the plain one does? `python benchmarks/loss_curves.py
--output FOLDER`.

`weft train` on Multi30k, English to German, at its defaults, in several seeds, and as many times in
float32 with PyTorch's own operations: the loss on sentences held out of the training text, after
every hundred steps. The two draw other dropout masks, so no two curves are equal; what is asked is
whether the means of both lie within what one seed differs from another. Nothing is timed: several
runs may go on at once (`--jobs`), with a thread each.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from matplotlib.figure import Figure
from side_by_side import DATA, as_settings, say

from weft.folder.model_folder import RunFolder
from weft.inspection.figure import COLORS, DASHES, FAINT, styled, write_figure

TEXT = ",".join(str(DATA / "multi30k" / f"train.{lang}") for lang in ("en", "de"))
FORMS = {
    "defaults": (),
    "float32, PyTorch's operations": (
        "training.precision=float32",
        "training.kernels=torch",
    ),
}
# of each form, for each seed: step -> loss on the held-out sentences
Curves = dict[str, list[dict[int, float]]]


def curve(settings: Sequence[str]) -> dict[int, float]:
    """Of one run. Raises RuntimeError with its last words where it fails."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as scratch:
        out = Path(scratch) / "run"
        command = [
            sys.executable,
            "-m",
            "weft",
            "train",
            "--train",
            TEXT,
            "--output",
            str(out),
        ]
        done = subprocess.run(
            [*command, *as_settings(*settings)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        lines = map(
            json.loads, RunFolder(out).metrics.read_text("utf-8").split("\n")[:-1]
        )
        return {line["step"]: line["dev_loss"] for line in lines if "dev_loss" in line}


def table(curves: Curves) -> str:
    """Means and spreads at every step, and how far the means are from each other."""
    (first, fast), (second, plain) = curves.items()
    rows = [
        f"| step | {first} | {second} | difference of means | spread of the latter |",
        "|---|---|---|---|---|",
    ]
    for step in fast[0]:
        ours, theirs = ([one[step] for one in some] for some in (fast, plain))
        means = [statistics.mean(some) for some in (ours, theirs)]
        spread = max(theirs) - min(theirs)
        each = [", ".join(f"{loss:.3f}" for loss in some) for some in (ours, theirs)]
        rows.append(
            f"| {step} | {each[0]} | {each[1]} | {means[0] - means[1]:+.3f} | {spread:.3f} |"
        )
    return "\n".join(rows) + "\n"


@styled
def draw(curves: Curves) -> Figure:
    """A line for each run."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for place, (name, some) in enumerate(curves.items()):
        for number, one in enumerate(some):
            label = name if number == 0 else None
            axes.plot(
                list(one),
                list(one.values()),
                COLORS[place],
                linestyle=DASHES[place],
                label=label,
            )
    axes.set_xlabel("steps")
    axes.set_ylabel("loss on held-out sentences, nats a token")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.legend()
    return figure


def main() -> None:
    """Train, write the figure and the table, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--output", "--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="runs at once, with a thread each where more than one",
    )
    asked = parser.parse_args()
    if not Path(TEXT.split(",", maxsplit=1)[0]).is_file():
        parser.exit(0, f"skipped: {TEXT} is absent\n")
    common = [
        f"training.max_steps={asked.steps}",
        "training.eval_every=100",
        "data.dev_size=500",
        "data.test_size=0",
    ]
    common += ["training.threads=1"] if asked.jobs > 1 else []
    runs = list(product(FORMS, asked.seeds))

    def train(run: tuple[str, int]) -> dict[int, float]:
        found = curve([*common, *FORMS[run[0]], f"training.seed={run[1]}"])
        say(
            f"{run[0]}, seed {run[1]}: {found[max(found)]:.3f} after {max(found)} steps"
        )
        return found

    with ThreadPoolExecutor(asked.jobs) as pool:
        found = dict(zip(runs, pool.map(train, runs), strict=True))
    curves = {name: [found[name, seed] for seed in asked.seeds] for name in FORMS}
    asked.output.mkdir(parents=True, exist_ok=True)
    text = table(curves)
    (asked.output / "loss-curves.md").write_text(text, "utf-8")
    write_figure(draw(curves), asked.output / "loss-curves.svg")
    print(text)


if __name__ == "__main__":
    main()
