"""The verb that looks text over before anything is trained: check."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.recipe import choose_recipe
from weft.cli.streams import print_json
from weft.cli.use import AsJson
from weft.console.wording import remark, say_lines
from weft.data.languages import direction, how_to_name
from weft.folder import durable

if TYPE_CHECKING:
    from weft.data.check.finding import Finding
    from weft.data.checkup import Checkup

HANGING = 9  # where a finding's words begin, behind its severity
FATAL_EXIT = 3  # as for text that training refuses


def check(
    data: Annotated[
        list[str],
        typer.Argument(help="Text to train on: pairs, documents or labelled rows."),
    ],
    dev: Annotated[
        str | None, typer.Option(help="Text that is to choose the best step.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Text that is to be scored.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="The recipe that the text is for; else it is guessed."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="section.key=value of the recipe; repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", help="Write the whole report: page.html, or data as .json."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look text over for what would make training wrong; exit 3 where there is such a thing."""
    from weft.data.checkup import check_up
    from weft.data.texts import Sources

    if output is not None:
        from weft.inspection.suffixes import FORMATS, refuse_other_suffixes

        refuse_other_suffixes(output, FORMATS)
        durable.refuse_no_place(output)
    chosen = choose_recipe(recipe, settings or [], data)
    wanted, notes = chosen.recipe, [*chosen.said, *chosen.doubts]
    if wanted.task == "language-modelling" and len(data) == 2:
        notes.append(
            f"if the two files translate each other, join them by a comma: {','.join(data)}"
        )
    found = check_up(wanted, Sources(tuple(data), dev, test))
    found.notes += notes
    if output is not None:
        from weft.inspection.check_page import write_checkup

        write_checkup(found, output)
        remark(f"written to {output}")
    if as_json:
        print_json(found.to_json())
    else:
        _say(found, output is not None)
    if found.is_fatal:
        raise typer.Exit(FATAL_EXIT)


def _say(found: "Checkup", has_report: bool) -> None:
    """Print the report, the gravest finding first, each on two lines and a few of its examples
    below.
    """
    parts = [f"{name}: {_numbers(numbers)}" for name, numbers in found.parts.items()]
    say_lines([*found.notes, *parts], sys.stdout)
    for finding in found.findings:
        say_lines(("", *_shown(finding)), sys.stdout, HANGING)
    counts = found.counts()
    said = f"fatal: {counts['fatal']}, warnings: {counts['warning']}, notes: {counts['note']}"
    hidden = [] if has_report else _hidden(found)
    say_lines(("", *hidden, f"{said}; {found.words()}"), sys.stdout)


def _hidden(found: "Checkup") -> Iterator[str]:
    hidden = sum(
        max(len(finding.examples) - _most(finding), 0) for finding in found.findings
    )
    if hidden:
        yield f"{hidden} more examples, lengths and scripts: --output report.html"


def _numbers(numbers: dict[str, Any]) -> str:
    lengths = (
        f"{name} {c['characters']['median']:,.0f} characters"
        for name, c in numbers["columns"].items()
    )
    langs = tuple(numbers.get("languages", {}).values())
    languages = f"{direction(*langs)}{how_to_name(*langs)}" if langs else ""
    parts = [
        f"{numbers['rows']:,} rows",
        languages,
        f"median length: {', '.join(lengths)}",
        numbers["signature"],
    ]
    return "; ".join(part for part in parts if part)


def _most(finding: "Finding") -> int:
    """Return how many examples of a finding a terminal shows; a grave one has more."""
    return 1 if finding.severity == "note" else 3


def _shown(finding: "Finding") -> Iterator[str]:
    yield f"{finding.severity.upper():8} {finding.code} ({finding.part}): {finding.message}"
    yield f"{'':8} {finding.remedy}"
    for where, text, about in finding.examples[: _most(finding)]:
        yield f"{'':10} {where}{f' ({about})' if about else ''}: {text}"
