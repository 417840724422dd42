"""The verb that looks text over before anything is trained: check."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.recipe import choose_recipe
from weft.cli.streams import print_json
from weft.cli.use import AsJson

if TYPE_CHECKING:
    from weft.checkup import Checkup
    from weft.data.check.finding import Finding

FATAL_EXIT = 3  # as for text that training refuses


def check(
    data: Annotated[list[str], typer.Argument(help="Text to train on: pairs, documents or labelled rows.")],
    dev: Annotated[str | None, typer.Option(help="Text that is to choose the best step.")] = None,
    test: Annotated[str | None, typer.Option(help="Text that is to be scored.")] = None,
    recipe: Annotated[
        str | None, typer.Option(help="The recipe that the text is for; else it is guessed.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="section.key=value of the recipe; repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the whole report: page.html, or data as .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look text over for what would make training wrong; exit 3 where there is such a thing."""
    from weft.checkup import check_up
    from weft.texts import Sources

    if output is not None:
        from weft.inspection.suffixes import FORMATS, refuse_other_suffixes

        refuse_other_suffixes(output, FORMATS)
    chosen = choose_recipe(recipe, settings or [], data)
    wanted, notes = chosen.recipe, [*chosen.said, *chosen.doubts]
    if wanted.task == "language-modelling" and len(data) == 2:
        notes.append(f"if the two files translate each other, join them by a comma: {','.join(data)}")
    found = check_up(wanted, Sources(tuple(data), dev, test))
    found.notes += notes
    if output is not None:
        from weft.inspection.check_page import write_checkup

        write_checkup(found, output)
        print(f"written to {output}", file=sys.stderr)
    if as_json:
        print_json(found.to_json())
    else:
        print("\n".join(_report(found)))
    if found.is_fatal:
        raise typer.Exit(FATAL_EXIT)


def _report(found: "Checkup") -> Iterator[str]:
    """The whole report, a finding on two lines and its examples below."""
    yield from found.notes
    for name, numbers in found.parts.items():
        yield f"{name}: {_numbers(numbers)}"
    for finding in found.findings:
        yield from _shown(finding)
    counts = found.counts()
    said = f"fatal: {counts['fatal']}, warnings: {counts['warning']}, notes: {counts['note']}"
    yield f"\n{said}; {found.words()}"


def _numbers(numbers: dict[str, Any]) -> str:
    lengths = (f"{name} {c['characters']['median']:,.0f} characters" for name, c in numbers["columns"].items())
    languages = " to ".join(numbers["languages"].values()) if "languages" in numbers else ""
    parts = [f"{numbers['rows']:,} rows", languages, f"median length: {', '.join(lengths)}", numbers["signature"]]
    return "; ".join(part for part in parts if part)


def _shown(finding: "Finding") -> Iterator[str]:
    yield f"\n{finding.severity.upper():8} {finding.code} ({finding.part}): {finding.message}"
    yield f"{'':8} {finding.remedy}"
    for where, text, about in finding.examples:
        yield f"{'':10} {where}{f' ({about})' if about else ''}: {text}"
