"""The verbs of the command line, one file a group. What is heavy is imported when its verb runs."""

import typer

from weft.cli import look, train, use

app = typer.Typer(
    name="weft",
    help="Turn your own text into your own Transformer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (train.demo, train.train, use.translate, use.evaluate, look.inspect):
    app.command()(verb)
