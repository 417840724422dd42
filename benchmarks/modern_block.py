"""Is the modern block better? `python benchmarks/modern_block.py [TASK ...] --output FOLDER`.

The modern recipe of a task beside the same recipe with the classic block, whose feed-forward has
the width that makes both equal in parameters. A short run of each, both at once on a thread each,
tells their speeds; then the modern one takes the steps that fit into the classic one's time. Each
is trained with each learning rate, the two blocks side by side; dev chooses the rate, which other
seeds take too, and only then is the test text scored. Model folders are kept in --output: what is
there is not trained again, and a run that was stopped goes on.
"""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from side_by_side import DATA, as_settings, say
from training_methods import paths, weft

CLASSIC = (
    "model.positions=sinusoidal",
    "model.norm=layer",
    "model.sandwich_norm=false",
    "model.query_key_norm=false",
    "model.activation=relu",
    "model.bias=true",
    "model.scale_embeddings=true",
)
PROBE = 150  # steps, of which the first third is left out


@dataclass(frozen=True)
class Contest:
    """A modern recipe, its text below DATA, what makes it classic, and what is measured."""

    recipe: str
    train: str
    dev: str
    test: str
    classic: tuple[str, ...]
    steps: int
    rates: tuple[float, ...]
    score: str  # of `weft evaluate --json`, and, behind `dev_`, of a run's log
    is_loss: bool = False
    fixed: tuple[str, ...] = ()


CONTESTS = {
    "translation": Contest(
        "en-de-modern",
        "multi30k/train.en,multi30k/train.de",
        "multi30k/val.en,multi30k/val.de",
        "multi30k/test_2016_flickr.en,multi30k/test_2016_flickr.de",
        (*CLASSIC, "model.d_ff=768"),
        2000,
        (0.002, 0.004),
        "bleu",
        fixed=("training.r_drop=0", "model.dropout=0.15"),
    ),
    "language modelling": Contest(
        "lm-modern",
        "imdb_lm/train.txt.gz",
        "imdb_lm/valid.txt",
        "imdb_lm/test.txt",
        (*CLASSIC, "model.num_key_value_heads=8", "model.d_ff=864"),
        300,
        (0.002, 0.004),
        "loss",
        is_loss=True,
        fixed=("data.documents=line",),
    ),
    "classification": Contest(
        "classify-modern",
        "sst2/train_sentences.tsv",
        "sst2/dev.tsv",
        "sst2/test.tsv",
        (*CLASSIC, "model.d_ff=528"),
        600,
        (0.0005, 0.001, 0.002),
        "accuracy",
    ),
}


def main() -> None:
    """Train what is not there, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(CONTESTS)}; else all"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--output", "--out", type=Path, required=True)
    asked = parser.parse_args()
    if unknown := sorted(set(asked.tasks) - CONTESTS.keys()):
        parser.error(f"{unknown[0]!r} is none of {', '.join(CONTESTS)}")
    print(
        "| task | block | parameters | steps | speed | dev, by rate | test, each seed |"
    )
    print("|---" * 7 + "|")
    for task in asked.tasks or CONTESTS:
        contest = CONTESTS[task]
        for name in (
            f
            for part in (contest.train, contest.dev, contest.test)
            for f in part.split(",")
        ):
            if not (DATA / name).is_file():
                raise SystemExit(f"skipped: {DATA / name} is absent")
        print_contest(task, contest, asked.seeds, asked.output)


def print_contest(task: str, contest: Contest, seeds: list[int], out: Path) -> None:
    """Two rows: the classic block's and the modern one's."""
    blocks = {"classic": contest.classic, "modern": ()}
    key, best = f"dev_{contest.score}", min if contest.is_loss else max

    def run(block: str, steps: int, rate: float, seed: int) -> Path:
        folder = out / f"{task.replace(' ', '-')}-{block}-{steps}-{rate:g}-{seed}"
        fixed = (
            f"training.max_steps={steps}",
            f"training.learning_rate={rate}",
            f"training.seed={seed}",
        )
        every = max(steps // 2, 1)
        rest = (
            f"training.eval_every={every}",
            "training.threads=1",
            "training.num_samples=0",
        )
        settings = as_settings(*contest.fixed, *blocks[block], *fixed, *rest)
        data = ["--train", paths(contest.train), "--dev", paths(contest.dev)]
        weft(
            "train",
            "--recipe",
            contest.recipe,
            *data,
            *settings,
            "--output",
            str(folder),
        )
        return folder

    def at_once(
        steps: dict[str, int], rates: dict[str, float], seed: int
    ) -> dict[str, Path]:
        with ThreadPoolExecutor(len(blocks)) as pool:
            return dict(
                zip(
                    blocks,
                    pool.map(lambda b: run(b, steps[b], rates[b], seed), blocks),
                    strict=True,
                )
            )

    probed = at_once(
        dict.fromkeys(blocks, PROBE), dict.fromkeys(blocks, contest.rates[0]), seeds[0]
    )
    speeds = {block: speed(folder) for block, folder in probed.items()}
    steps = {
        block: round(contest.steps * speeds[block] / speeds["classic"])
        for block in blocks
    }
    tried = {
        rate: at_once(steps, dict.fromkeys(blocks, rate), seeds[0])
        for rate in contest.rates
    }
    devs = {
        b: {rate: best(logged(of[b], key).values()) for rate, of in tried.items()}
        for b in blocks
    }
    chosen = {
        block: best(of, key=lambda rate, of=of: of[rate]) for block, of in devs.items()
    }
    found = [at_once(steps, chosen, seed) for seed in seeds]
    for block in blocks:
        folders = [of[block] for of in found]
        tests = [
            json.loads(weft("evaluate", str(folder), paths(contest.test), "--json"))[
                contest.score
            ]
            for folder in folders
        ]
        shown = ", ".join(f"{dev:.4g} at {rate:g}" for rate, dev in devs[block].items())
        ratio = f"{speeds[block] / speeds['classic']:.2f}"
        row = [
            task,
            block,
            f"{parameters(folders[0]):,}",
            f"{steps[block]:,}",
            ratio,
            shown,
        ]
        print(
            f"| {' | '.join(row)} | {', '.join(f'{test:.4g}' for test in tests)} |",
            flush=True,
        )
        say(f"{task}, {block}: done")


def logged(folder: Path, key: str) -> dict[int, Any]:
    """What a run's log has under `key`, by step."""
    text = (folder / "run" / "metrics.jsonl").read_text("utf-8")
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.split("\n")[:-1]]
    return {line["step"]: line[key] for line in lines if key in line}


def speed(folder: Path) -> float:
    """Steps a second."""
    seconds = logged(folder, "seconds")
    return (PROBE - PROBE // 3) / (seconds[PROBE] - seconds[PROBE // 3])


def parameters(folder: Path) -> int:
    """How many numbers a model has learned."""
    with safe_open(folder / "model.safetensors", "pt") as weights:
        return sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118


if __name__ == "__main__":
    main()
