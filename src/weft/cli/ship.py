"""Verbs that make a model from models: quantize."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.use import AsJson, Folder


def quantize(
    folder: Folder,
    data: Annotated[list[str], typer.Argument(help="Pairs to compare on: text that was not trained on.")],
    output: Annotated[Path, typer.Option("--output", help="The new model folder.")],
    shortlist: Annotated[
        list[str] | None,
        typer.Option(help="Pairs, as for training: learn from them which words a text can become; repeatable."),
    ] = None,
    max_bleu_loss: Annotated[float, typer.Option(help="Write nothing where int8 loses more BLEU.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Make a translator a quarter as large, and faster, in int8; only where it translates as well."""
    from dataclasses import asdict

    from weft.machine import choose_machine
    from weft.quantization import quantize as make

    found = make(folder, data, output, choose_machine("float32"), max_bleu_loss, shortlist or ())
    if as_json:
        print(json.dumps({**asdict(found), "folder": str(output)}, ensure_ascii=False))
        return
    for line in found.lines():
        print(line)
    print(f"weft: wrote {output}", file=sys.stderr)
