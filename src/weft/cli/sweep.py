"""Verb that trains with several settings and seeds and tells them apart: sweep."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.recipe import choose_recipe, refuse_other_text
from weft.console import stages
from weft.console.wording import remark
from weft.data.train_text import names_of, parse_texts, refuse_worth
from weft.errors import UsageError
from weft.folder import durable
from weft.packages import require_matplotlib, require_torch
from weft.sweep.form import Form

if TYPE_CHECKING:
    from weft.config import Recipe
    from weft.sweep.file import Text
    from weft.sweep.run import Outcome, Run
    from weft.sweep.table import Outcomes

LOCK = "sweep.lock"


class Part(StrEnum):
    """The texts that rows are compared on."""

    DEV = "dev"
    TEST = "test"


def sweep(
    file: Annotated[
        Path, typer.Argument(help="TOML file: text, recipe, seeds, and the rows.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Folder of all runs; what is finished in it stays. Default: runs/, with the file's name.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            metavar="N",
            help="Runs at a time. Default: as many as the cores have room for; on a GPU one.",
        ),
    ] = None,
    on: Annotated[
        Part,
        typer.Option("--on", help="Compare the rows by their scores on this text."),
    ] = Part.DEV,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="NAME",
            help="Score to compare, such as chrf or loss. Default: bleu, accuracy or bits_per_byte, by the task.",
        ),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="Form of the table.")
    ] = Form.TEXT,
    curves: Annotated[
        Path | None,
        typer.Option(
            "--curves",
            metavar="FILE",
            help="Draw the learning curves of all rows, too: .png or .svg.",
        ),
    ] = None,
    only_table: Annotated[
        bool,
        typer.Option("--table", help="Train nothing: the table of what is finished."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Train nothing: say which runs there are."),
    ] = False,
) -> None:
    """Train with several settings and seeds; one table says what differs, and whether it is
    chance.
    """
    from weft.sweep.file import read_sweep
    from weft.sweep.planned import planned_runs
    from weft.sweep.run import outcome_of

    if only_table and dry_run:
        raise UsageError("--table and --dry-run: leave out one of them")
    asked = read_sweep(file)
    if curves is not None:
        _refuse_no_picture(curves)
    out = output or asked.output
    runs = planned_runs(asked, out, _chosen)
    outcomes = [(run, outcome_of(run)) for run in runs]
    left = [run for run, outcome in outcomes if outcome.state != "done"]
    at_once = jobs or _usual_jobs(runs)
    if dry_run:
        _say_plan(outcomes, at_once)
        return
    if left and not only_table:
        require_torch("weft sweep")
        _train(left, len(runs), at_once, out, on, score)
        outcomes = [(run, outcome_of(run)) for run in runs]
    _print_table(outcomes, on, score, form)
    if curves is not None:
        _draw(runs, curves)
    failed = [outcome for _, outcome in outcomes if outcome.state == "failed"]
    if failed and not only_table:
        raise typer.Exit(max(failed[0].exit_code, 1))


def _chosen(recipe: str | None, settings: Sequence[str], text: "Text") -> "Recipe":
    """Return the recipe as `weft train` chooses it. Raises WeftError where that would refuse."""
    for item in (text.dev, text.test):
        refuse_worth(item)
    files = names_of(parse_texts(text.train))
    chosen = choose_recipe(recipe, settings, files)
    refuse_other_text(files, text.dev, text.test, chosen.recipe, None)
    return chosen.recipe


def _refuse_no_picture(path: Path) -> None:
    from weft.inspection.suffixes import PICTURES, refuse_other_suffixes

    refuse_other_suffixes(path, PICTURES)
    durable.refuse_no_place(path)
    require_matplotlib()


def _usual_jobs(runs: Sequence["Run"]) -> int:
    from weft.sweep.planned import threads_of
    from weft.sweep.processes import usual_jobs

    return usual_jobs(max(threads_of(run.recipe) for run in runs))


def _say_plan(outcomes: "Outcomes", jobs: int) -> None:
    """Print the runs with what has come of each, and how long what is left may take."""
    from weft.sweep.planned import minutes_in_all

    for run, outcome in outcomes:
        reason = f": {outcome.reason}" if outcome.reason else ""
        print(f"{run.folder}  {outcome.state}{reason}")
    left = [run for run, outcome in outcomes if outcome.state != "done"]
    minutes = minutes_in_all(left, jobs)
    length = "" if minutes is None else f", {minutes:,.4g} minutes in all"
    print(f"{len(left):,} of {len(outcomes):,} runs to train, {jobs} at a time{length}")


def _train(
    left: Sequence["Run"],
    num_runs: int,
    jobs: int,
    out: Path,
    part: str,
    score: str | None,
) -> None:
    """Train what is left, and say how it goes."""
    from weft.sweep.planned import minutes_in_all
    from weft.sweep.processes import run_all

    num_ended = num_runs - len(left)
    minutes = minutes_in_all(left, jobs)
    length = "" if minutes is None else f", about {minutes:,.4g} minutes in all"
    remark(
        f"{len(left):,} of {num_runs:,} runs to train, {min(jobs, len(left))} at a time{length}"
    )

    def began(run: "Run") -> None:
        remark(f"{run.name}: begins; what it says is in {run.log}")

    def ended(run: "Run", outcome: "Outcome") -> None:
        nonlocal num_ended
        said = f"{outcome.state}: {outcome.reason}"
        if outcome.state == "done":
            num_ended += 1
            said = f"done{_scored(run, outcome, part, score)}"
        elif outcome.state == "begun":
            said = "stopped; the same command goes on"
        remark(f"{run.name}: {said} ({num_ended:,} of {num_runs:,} done)")

    durable.make_folder(out)
    with durable.held(out / LOCK, out):
        run_all(left, jobs, began, ended)


def _scored(run: "Run", outcome: "Outcome", part: str, score: str | None) -> str:
    """Say the score and the minutes of a run, behind a comma."""
    from weft.sweep.forms import score_in_words
    from weft.sweep.table import USUAL

    name = score or USUAL[run.recipe.task]
    value = outcome.scores.get(part, {}).get(name)
    found = ""
    if value is not None:
        found = f", {score_in_words(name)} {value:.4g} on {part}"
    return f"{found}, {outcome.seconds / 60:.1f} minutes"


def _print_table(
    outcomes: "Outcomes", part: str, score: str | None, form: Form
) -> None:
    from weft.sweep.forms import formed
    from weft.sweep.table import USUAL, table_of

    if part != Part.TEST:
        sys.stdout.write(formed(table_of(outcomes, part, score), form))
        return
    from weft.sweep.rows import RowsOfTest

    rows = RowsOfTest(lambda run: score or USUAL[run.recipe.task])
    with stages.showing(""):
        table = table_of(outcomes, part, score, rows.component)
    table = replace(table, notes=(*table.notes, *rows.notes))
    sys.stdout.write(formed(table, form))


def _draw(runs: Sequence["Run"], path: Path) -> None:
    from weft.inspection.curves import draw_history
    from weft.inspection.figure import write_figure
    from weft.sweep.curves import mean_histories

    write_figure(draw_history(mean_histories(runs)), path)
    remark(f"written to {path}")
