"""The verb that checks text before training: check."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import AsJson
from weft.cli.recipe import choose_recipe
from weft.cli.streams import print_json
from weft.console.wording import remark, say_lines
from weft.data.languages import direction, how_to_name
from weft.folder import durable

if TYPE_CHECKING:
    from weft.data.check.finding import Finding
    from weft.data.checkup import Checkup

HANGING = 9  # the column of a finding's text, after its severity
FATAL_EXIT = 3  # the exit code of DataError


def check(
    data: Annotated[
        list[str],
        typer.Argument(help="Text to train on: pairs, documents or labelled rows."),
    ],
    dev: Annotated[
        str | None,
        typer.Option(help="Dev text, to check and compare with the training text."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(help="Test text, to check and compare with the training text."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="The recipe that the text is for. Default: guessed."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Set a key of the recipe, section.key=value; repeatable."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Write the full report, with all line numbers, as .html or .json.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check text for problems before training; exit with code 3 if there is a fatal one."""
    from weft.data.checkup import check_up
    from weft.data.texts import Sources

    if output is not None:
        from weft.inspection.suffixes import FORMATS, refuse_other_suffixes

        refuse_other_suffixes(output, FORMATS)
        durable.refuse_no_place(output)
    chosen = choose_recipe(recipe, settings or [], data)
    notes = [*chosen.said, *chosen.doubts]
    if chosen.recipe.task == "language-modelling" and len(data) == 2:
        notes.append(
            f"if the two files translate each other, join them by a comma: {','.join(data)}"
        )
    checkup = check_up(chosen.recipe, Sources(tuple(data), dev, test))
    checkup.notes += notes
    if output is not None:
        from weft.inspection.check_page import write_checkup

        write_checkup(checkup, output)
        remark(f"written to {output}")
    if as_json:
        print_json(checkup.to_json())
    else:
        _say(checkup, has_report=output is not None)
    if checkup.is_fatal:
        raise typer.Exit(FATAL_EXIT)


def _say(checkup: "Checkup", has_report: bool) -> None:
    """Print the report: each finding on two lines, with a few examples below."""
    parts = [f"{name}: {_numbers(numbers)}" for name, numbers in checkup.parts.items()]
    say_lines([*checkup.notes, *parts], sys.stdout)
    for finding in checkup.findings:
        say_lines(("", *_shown(finding)), sys.stdout, HANGING)
    counts = checkup.counts()
    said = f"fatal: {counts['fatal']}, warnings: {counts['warning']}, notes: {counts['note']}"
    hidden = [] if has_report else _hidden(checkup)
    say_lines(("", *hidden, f"{said}; {checkup.words()}"), sys.stdout)


def _hidden(checkup: "Checkup") -> Iterator[str]:
    from weft.data.check.finding import counted

    hidden = 0
    for finding in checkup.findings:
        hidden += max(len(finding.examples) - _most(finding), 0)
    if hidden:
        examples = counted(hidden, "examples").replace(" ", " more ", 1)
        yield f"{examples}, all line numbers, lengths and scripts: --output report.html"


def _numbers(numbers: dict[str, Any]) -> str:
    from weft.data.check.finding import counted

    parts = [counted(numbers["rows"], "rows")]
    if langs := tuple(numbers.get("languages", {}).values()):
        parts.append(f"{direction(*langs)}{how_to_name(*langs)}")
    lengths = []
    for name, column in numbers["columns"].items():
        median = column["characters"]["median"]
        lengths.append(f"{name} {median:,.0f} characters")
    parts.append(f"median length: {', '.join(lengths)}")
    parts.append(numbers["signature"])
    return "; ".join(part for part in parts if part)


def _most(finding: "Finding") -> int:
    """Return how many examples of a finding a terminal shows: fewer of a note."""
    return 1 if finding.severity == "note" else 3


def _shown(finding: "Finding") -> Iterator[str]:
    yield f"{finding.severity.upper():8} {finding.code} ({finding.part}): {finding.message}"
    yield f"{'':8} {finding.remedy}"
    for example in finding.examples[: _most(finding)]:
        detail = f" ({example.about})" if example.about else ""
        yield f"{'':10} {example.where}{detail}: {example.with_marks('»', '«')}"
