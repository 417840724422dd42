"""The verb that makes training pairs of text in one language: backtranslate."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.leaving import going_on
from weft.cli.on import BlockRows, OnSentences, Workers, spread_of, writer_for
from weft.cli.options import Seed, To, TopK
from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import progress, refuse_existing, refuse_no_file
from weft.console import stages
from weft.console.wording import remark
from weft.errors import UsageError
from weft.folder import durable
from weft.folder.layout import refuse_no_model


def backtranslate(
    model: Annotated[
        Path,
        typer.Argument(
            help="A translator from the language of MONO: the reverse of the one to be trained.",
        ),
    ],
    mono: Annotated[
        list[str],
        typer.Argument(
            help="Text by people in one language: a sentence a line, or pairs, of which one side is read; also .gz."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            help="The pairs (.tsv): the machine's sentence is the source, the person's the target.",
        ),
    ],
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Draw each translation at random rather than search for the best: better to learn from.",
        ),
    ] = False,
    beam_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Without --sample: the beam size. Default: from the recipe."
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --sample: below 1 it draws what is probable. Default: 1."
        ),
    ] = None,
    top_k: TopK = None,
    seed: Seed = None,
    times: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="With --sample: so many translations of each sentence.",
        ),
    ] = 1,
    to: To = None,
    on: OnSentences = None,
    workers: Workers = None,
    block_rows: BlockRows = None,
) -> None:
    """Make training pairs of text in one language: a reverse model writes the other side."""
    spread = spread_of(on, workers, block_rows)
    refuse_no_model(model)
    refuse_missing_text(mono)
    if temperature is not None and not sample:
        raise UsageError("--temperature is for samples; add --sample, or leave it out")
    if output.suffix != ".tsv":
        raise UsageError(
            f"--output {output}: writes TSV; give a name that ends in .tsv"
        )
    refuse_no_file(output)
    if not durable.is_begun(output):
        refuse_existing(output)
    with stages.showing("loading the model"):
        from weft.run.backtranslation import backtranslate as make
        from weft.run.translations import Search

    drawn = 1.0 if temperature is None else temperature
    search = Search(beam_size, drawn if sample else None, top_k, seed, times)
    with going_on(output):
        write = writer_for(spread)
        made = make(model, mono, output, search, remark, progress, to, write)
    for line in made.lines():
        remark(f"weft: {line}")
