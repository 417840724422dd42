"""Verbs that look inside: inspect."""

import sys
from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="A model folder.")]


def inspect(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    output: Annotated[Path, typer.Option("--output", help="Where to write: page.html, or data as .json.")],
) -> None:
    """Show what a model looks at while it translates: every layer, every head, every token."""
    from weft.inspection.attention import inspect_translation
    from weft.inspection.report import refuse_other_suffixes, write_report
    from weft.machine import choose_machine
    from weft.tasks import Translation

    refuse_other_suffixes(output)
    inspection = inspect_translation(Translation.load(folder, choose_machine("float32")), text)
    write_report(inspection, output)
    if inspection.cut:
        print(f"weft: the text was cut after {inspection.max_src_len - 1} tokens", file=sys.stderr)
    if not inspection.finished:
        print("weft: the translation found no end and was cut at its limit", file=sys.stderr)
    print(f"written to {output}", file=sys.stderr)
