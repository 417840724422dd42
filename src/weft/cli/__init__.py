"""The verbs of the command line, one file for each group.

A verb imports what is slow to load when it runs.
"""

from collections.abc import Callable
from typing import Annotated

import typer

from weft.cli import (
    backtranslate,
    check,
    clean,
    demo,
    detect,
    look,
    measure,
    push,
    serve,
    ship,
    sweep,
    train,
    translate,
    use,
)
from weft.cli.command import Command, Group
from weft.folder.version import installed_version

app = typer.Typer(
    name="weft",
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # our own help is written in weft.cli.command
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def weft(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
) -> None:
    """Turn your own text into your own Transformer."""
    if version:
        print(f"weft {installed_version()}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


VERBS = (
    demo.demo,
    check.check,
    clean.clean,
    train.train,
    train.finish,
    sweep.sweep,
    translate.translate,
    use.generate,
    use.classify,
    detect.detect,
    serve.serve,
    measure.evaluate,
    measure.compare,
    measure.score,
    ship.quantize,
    ship.average,
    ship.distill,
    backtranslate.backtranslate,
    ship.pack,
    ship.export,
    push.push,
    look.inspect,
    look.diagnose,
    look.selfcheck,
    look.plot,
)


def _summary(verb: Callable[..., object]) -> str:
    """Return the first paragraph of a verb's docstring, in one line."""
    paragraph = (verb.__doc__ or "").split("\n\n", maxsplit=1)[0]
    return " ".join(paragraph.split())


for verb in VERBS:
    app.command(cls=Command, short_help=_summary(verb))(verb)
