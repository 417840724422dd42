"""The verb that publishes a model: push."""

from typing import Annotated

import typer

from weft.cli.leaving import terminable
from weft.cli.options import AsJson, Folder
from weft.cli.recipe import refuse_missing_text
from weft.cli.streams import print_json
from weft.console import stages
from weft.console.wording import remark
from weft.folder.layout import refuse_no_model


def push(
    folder: Folder,
    name: Annotated[
        str,
        typer.Argument(
            help="The repository: OWNER/MODEL, or MODEL for one of your own."
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text to compare what goes up with the model on, not trained on. Default: the run's held-out text."
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Let everyone see it; without, only you. Needs --license."
        ),
    ] = False,
    license_: Annotated[
        str,
        typer.Option(
            "--license",
            "--licence",
            help="The license of the model, for the card, such as cc-by-4.0.",
        ),
    ] = "",
    data_terms: Annotated[
        str,
        typer.Option(help="The terms of the text that it learned from, for the card."),
    ] = "",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Put it in the place of what the repository has."
        ),
    ] = False,
    uncertified: Annotated[
        bool,
        typer.Option("--uncertified", help="Send without comparing; the card says so."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a model on the Hugging Face Hub, in the form of transformers, with a certificate and a
    card.

    What goes up is what `weft export --to huggingface` writes, or a folder that weft export wrote
    before; a model that transformers does not compute goes as Weft opens it. Nothing of run/ goes.
    The token is that of `hf auth login`, or of HF_TOKEN.
    """
    texts = data or []
    refuse_no_model(folder)
    refuse_missing_text(texts)
    with stages.showing("asking the Hub"), terminable():
        from weft.ship.pushing import push as send
        from weft.ship.target import Asked

        asked = Asked(license_, data_terms, is_certified=not uncertified)
        made = send(folder, name, texts, asked, public, replace)
    if as_json:
        print_json(made.to_json())
        return
    for line in made.lines():
        print(line)
    who = "public" if made.is_public else "private"
    size = sum(made.files.values()) / 1e6
    remark(f"weft: pushed to {made.address} ({who}): {made.form}, {size:,.1f} MB")
    remark(f"the commit is {made.commit}")
