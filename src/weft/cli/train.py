"""Verbs that make a model: demo, train, finish."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.recipe import (
    choose_recipe,
    refuse_missing_text,
    refuse_other_text,
    refuse_two_sides,
    usual_folder,
)
from weft.console import stages
from weft.console.wording import say_lines
from weft.errors import UsageError
from weft.folder.layout import refuse_no_folder

if TYPE_CHECKING:
    from weft.run.record import Verdict

GOES_ON = "Folder of the model; the same folder goes on where it stopped."
Output = Annotated[Path, typer.Option("--output", help=GOES_ON)]

RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="A packaged recipe's name, a TOML file, or a run's recipe.json.",
    ),
]
Dev = Annotated[
    str | None, typer.Option("--dev", help="Text that chooses the best step.")
]
Test = Annotated[
    str | None, typer.Option("--test", help="Text that is scored once, at the end.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="section.key=value of the recipe; repeatable."),
]
AllowBadData = Annotated[
    bool,
    typer.Option(
        "--allow-bad-data",
        help="Train on text that the data doctor refuses; it is recorded.",
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Also say how this machine computes, and what share of its peak is used.",
    ),
]

Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        min=0.1,
        help="End by then, the test scored and the model written: plans steps and schedule.",
    ),
]

TRIES = {
    "translation": 'weft translate {} "..."',
    "language-modelling": 'weft generate {} --prompt "..."',
    "classification": 'weft classify {} "..."',
}


def train(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text: pairs (TSV, a,b or TMX), documents, or labelled rows (CSV, TSV, JSONL); also .gz; several."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", help=f"{GOES_ON[:-1]}; else runs/NAME, after the text."
        ),
    ] = None,
    recipe: RecipeName = None,
    train: Annotated[
        list[str] | None,
        typer.Option("--train", hidden=True, help="The same as DATA; repeatable."),
    ] = None,
    dev: Dev = None,
    test: Test = None,
    start_from: Annotated[
        Path | None,
        typer.Option("--from", help="Start from the weights of this model folder."),
    ] = None,
    settings: Settings = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Begin anew; a run that --output holds is set aside, not removed.",
        ),
    ] = False,
    allow_data_change: Annotated[
        bool,
        typer.Option(
            "--allow-data-change",
            help="Go on with a run on other text; the card records it.",
        ),
    ] = False,
    allow_bad_data: AllowBadData = False,
    verbose: Verbose = False,
    minutes: Minutes = None,
) -> None:
    """Train a model from your text, or go on with a run that was stopped."""
    began = time.monotonic()
    if data and train:
        raise UsageError(
            f"unexpected {data[0]!r}: give every text without --train; two aligned files are joined by a comma: "
            "weft train a.en,a.de"
        )
    texts = (*(data or ()), *(train or ()))
    chosen = choose_recipe(recipe, settings or (), texts, start_from)
    wanted = chosen.recipe
    refuse_other_text(texts, dev, test, wanted, output)
    if recipe is None:
        refuse_two_sides(texts, settings or ())
    refuse_missing_text([*texts, dev, test])
    out = output or usual_folder(texts, recipe)
    if is_first_process():
        for line in [
            *chosen.said,
            *(
                []
                if output
                else [f"the model goes to {out}; --output names another folder"]
            ),
        ]:
            say(line)

    with stages.showing("loading PyTorch"):
        from weft.run.request import Request
        from weft.run.train import train as run_training

        verdict = run_training(
            Request(
                recipe=wanted,
                out=out,
                train=texts,
                dev=dev,
                test=test,
                start_from=start_from,
                command=shlex.join(["weft", *sys.argv[1:]]),
                fresh=fresh,
                allow_data_change=allow_data_change,
                allow_bad_data=allow_bad_data,
                notes=chosen.doubts,
                minutes=minutes,
                began=began,
            ),
            verbose=verbose,
        )
    say_ended(verdict, wanted.task, out)


def finish(
    folder: Annotated[
        Path, typer.Argument(help="The folder of a run that was stopped.")
    ],
) -> None:
    """Make a model of what an unfinished run has saved; its command still goes on afterwards."""
    refuse_no_folder(folder)
    with stages.showing("loading PyTorch"):
        from weft.folder.model_folder import RunFolder
        from weft.run.finishing import finish as finish_run
        from weft.run.origin import read_task

        verdict = finish_run(folder)
        task = read_task(RunFolder(folder))
    say_ended(verdict, task, folder)


def say_ended(verdict: "Verdict", task: str, out: Path) -> None:
    """Say how a run ended, and what to do with its model; of several processes the first speaks."""
    if not is_first_process():
        return
    if verdict.test_summary:
        say(f"test: {verdict.test_summary}")
    weights = (
        f"; its weights are those of step {verdict.best_step:,}"
        if 0 < verdict.best_step < verdict.step
        else ""
    )
    say(f"{verdict.reason}; the model is in {out}{weights}; try:")
    say(f"  {TRIES[task].format(shlex.quote(str(out)))}")


def is_first_process() -> bool:
    """Return whether this is the process that speaks, of those that torchrun starts."""
    return os.environ.get("RANK", "0") == "0"


def say(text: str) -> None:
    """Say a line to the person, not to a pipe."""
    say_lines(text.split("\n"), sys.stderr)
