"""Verbs that look inside: inspect, diagnose, selfcheck, plot."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.inspected import (
    folder_and_texts,
    inspected,
    refuse_words,
    split_texts,
)
from weft.cli.models import naming_options, opened
from weft.cli.options import AsJson, BeamSize, Folder, FromDemo, To
from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import print_json
from weft.console import stages
from weft.console.wording import remark, say_lines
from weft.errors import UsageError
from weft.folder import durable
from weft.folder.layout import refuse_no_folder, refuse_no_model
from weft.packages import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAILED_EXIT = 1
WHOLE = "The whole, as a page: --output inside.html"
MOST_SHOWN = 20  # characters without a font that are named


class Picture(StrEnum):
    """The pictures that `weft plot` can draw."""

    POSITIONS = "positions"
    MASK = "mask"
    SMOOTHING = "smoothing"
    SCHEDULE = "schedule"
    HISTORY = "history"


def inspect(
    folder: Annotated[
        str | None,
        typer.Argument(help="A model folder, or a pack of one; none with --demo."),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="A sentence, or several; or the folder of another model and a sentence, to compare both.",
        ),
    ] = None,
    demo: FromDemo = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Output file: a page (.html), a picture (.png, .svg) or data (.json); of a translation "
            "also the word alignment (.txt, .pharaoh). Default: a summary in the terminal.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write the data: to --output, or to standard output."
        ),
    ] = False,
    beam_size: BeamSize = None,
    to: To = None,
    checkpoints: Annotated[
        bool,
        typer.Option(
            "--checkpoints",
            help="Show how the model learned: the sentence at each step that its run has kept.",
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Put the model (at most 10 million weights) into the page, which then computes what is typed.",
        ),
    ] = False,
) -> None:
    """Show how a model processes a text: embeddings, attention of every layer and head,
    probabilities, and more.
    """
    is_picture = _is_picture(output, as_json)
    model, given = folder_and_texts(folder, texts or [], demo, checkpoints)
    refuse_words(given)
    refuse_no_model(model)
    other, sentences = split_texts(given, checkpoints)
    is_several = checkpoints or other is not None or len(sentences) > 1
    if live:
        _refuse_not_live(output, as_json, is_several)
        _write_live(model, sentences[0], output or Path(), beam_size)
        return
    if is_picture and is_several:
        raise UsageError(
            f"{output}: a picture is of one sentence and one model; write a page (.html) or data (.json)"
        )

    from weft.inspection.report import write_report
    from weft.inspection.several import Several

    inspection = inspected(model, other, sentences, beam_size, checkpoints, to)
    if output is None and as_json:
        print_json(inspection.to_json())
    elif output is None:
        from weft.inspection.summary import summary

        print("\n".join(summary(inspection)).rstrip(), WHOLE, sep="\n\n")
    elif is_picture:
        from weft.inspection.pictures import draw_inspection

        assert not isinstance(inspection, Several)
        _write(draw_inspection(inspection), output)
    else:
        write_report(inspection, output)
    for note in inspection.notes:
        remark(f"weft: {note}")
    if output is not None:
        remark(f"written to {output}")


def _refuse_not_live(output: Path | None, as_json: bool, is_several: bool) -> None:
    """Raise UsageError where the output is no page of one sentence and one model."""
    if is_several:
        raise UsageError(
            "--live is of one model and one sentence, the first that its page shows; leave out the others"
        )
    if as_json or output is None or output.suffix.lower() != ".html":
        raise UsageError("--live needs --output with a name such as inside.html")


def _write_live(folder: Path, text: str, output: Path, beam_size: int | None) -> None:
    """Write a page that has the model inside."""
    from weft.inspection.browser import refuse_no_browser
    from weft.inspection.live import live_page

    refuse_no_browser(folder)
    with stages.showing("loading the model"), naming_options(["beam_size"]):
        page = live_page(opened(folder), folder, text, beam_size)
    durable.write_text(output, page.html)
    for note in page.notes:
        remark(f"weft: {note}")
    remark(
        f"weft: {page.weights:,} weights rounded to 16 bits: on this sentence a logit changes by "
        f"{page.rounding.logit:.2g} at most, {page.rounding.answers()}"
    )
    remark(f"written to {output}")


def _is_picture(output: Path | None, as_json: bool) -> bool:
    """Return whether an inspection is to be drawn. Raises UsageError for a name that it cannot be
    written to.
    """
    from weft.inspection.suffixes import (
        ALIGNMENTS,
        DATA,
        FORMATS,
        PICTURES,
        refuse_other_suffixes,
    )

    if output is None:
        return False
    known = DATA if as_json else FORMATS | PICTURES | ALIGNMENTS
    refuse_other_suffixes(output, known)
    durable.refuse_no_place(output)
    is_picture = output.suffix.lower() in PICTURES
    if is_picture:
        require_matplotlib()
    return is_picture


def diagnose(
    folder: Folder,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Text like the training text, to try the model on."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find out why a model is bad: causes, evidence and remedies, from its run and its output."""
    refuse_no_folder(folder)
    refuse_missing_text(data or ())
    with stages.showing("loading PyTorch"):
        from weft.looking import diagnose_folder

        found = diagnose_folder(folder, data or [], sets_threads=True)
    if as_json:
        print_json([cause.to_json() for cause in found])
        return
    print("\n".join(found.lines()))


def selfcheck(folder: Folder) -> None:
    """Check that a model computes what it should: cached = uncached, beam 1 = greedy, and more."""
    refuse_no_model(folder)
    from weft.inspection.selfcheck import selfcheck as run
    from weft.tasks.opening import load_task, needs_torch

    task = load_task(folder, is_command=True)
    reference = None
    if needs_torch(task.config):
        from weft.inspection.torch_reference import torch_reference_of

        reference = torch_reference_of(task)
    by = f"{'by':7}{task.what_computes()}; {task.machine.precision}"
    say_lines([by], sys.stdout, 7)
    proofs = run(task, reference)
    for proof in proofs:
        say_lines(proof.lines(), sys.stdout, 7)
    failed = sum(not proof.holds for proof in proofs)
    if failed:
        remark(
            f"weft: {failed} of {len(proofs)} proofs fail: do not trust what this model gives here"
        )
        raise typer.Exit(FAILED_EXIT)


def plot(
    what: Annotated[
        Picture,
        typer.Argument(
            help="positions, mask, smoothing, schedule or history.", show_default=False
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", help="Output file, .png or .svg.")
    ],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="For history: model folders with their runs."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="For schedule: a packaged recipe's name, or a TOML file."),
    ] = None,
    d_model: Annotated[
        int | None,
        typer.Option(
            min=2, max=1024, help="For positions: the model width. Default: 128."
        ),
    ] = None,
    max_len: Annotated[
        int | None,
        typer.Option(min=2, max=10_000, help="For positions: how many. Default: 100."),
    ] = None,
) -> None:
    """Draw figures for a lesson, or the learning curves of runs."""
    from weft.inspection.suffixes import PICTURES, refuse_other_suffixes
    from weft.recipes.file import load_recipe

    refuse_other_suffixes(output, PICTURES)
    durable.refuse_no_place(output)
    given = {
        "FOLDERS": folders,
        "--recipe": recipe,
        "--d-model": d_model,
        "--max-len": max_len,
    }
    _refuse_strays(what, [name for name, value in given.items() if value])
    if recipe is not None:
        load_recipe(recipe)  # whose mistakes are said first
    require_matplotlib()
    from weft.looking import drawn

    figure = drawn(what, folders or [], recipe, d_model or 128, max_len or 100)
    _write(figure, output)
    remark(f"written to {output}")


def _refuse_strays(what: Picture, given: list[str]) -> None:
    """Raise UsageError for an option that this picture does not take, or missing folders."""
    useful = {
        Picture.POSITIONS: {"--d-model", "--max-len"},
        Picture.SCHEDULE: {"--recipe"},
        Picture.HISTORY: {"FOLDERS"},
    }
    strays = [name for name in given if name not in useful.get(what, set())]
    if strays:
        raise UsageError(f"weft plot {what} takes no {strays[0]}; leave it out")
    if what is Picture.HISTORY and not given:
        raise UsageError("weft plot history needs the folder of a run, or several")


def _write(figure: "Figure", output: Path) -> None:
    """Write a picture, and report the characters that it could not draw."""
    from weft.inspection.figure import write_figure

    missing = write_figure(figure, output)
    if missing:
        shown = missing[:MOST_SHOWN]
        if len(missing) > MOST_SHOWN:
            shown += f" and {len(missing) - MOST_SHOWN} more"
        remark(
            f"weft: no installed font draws {shown}; install one that does (for Chinese, fonts-noto-cjk), "
            "or write .svg, which is drawn with the fonts of its reader"
        )
