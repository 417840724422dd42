"""Arguments and options of `weft serve`."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import TERMS, UNITS

Folders = Annotated[
    list[str] | None,
    typer.Argument(
        help="Model folders, or packs of them (.weft); NAME=FOLDER gives a model another name, and "
        "NAME:en-de=FOLDER says the languages of a translator that does not know them. Of two models for "
        "a pair of languages, the first serves it.",
    ),
]
Demo = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Serve the small translator, English to Chinese, that comes with Weft, and open its page.",
    ),
]

# where it listens, and who may come in
Host = Annotated[
    str,
    typer.Option(
        help="The address to listen at; 0.0.0.0 lets other machines in, which takes --keys or --no-keys."
    ),
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")
]
AlsoPort = Annotated[
    list[int] | None,
    typer.Option(
        min=0,
        max=65535,
        help="Another port: 8500 is where the plug-ins of OPUS-CAT look; repeatable.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="A file of keys: only who has one may use the server."),
]
NoKeys = Annotated[
    bool,
    typer.Option("--no-keys", help="Let other machines use it without a key."),
]
NewKey = Annotated[
    str | None,
    typer.Option(help="Make a key for NAME, print it with its line for --keys."),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        help="Another name that this machine is called by, as in http://NAME/; repeatable."
    ),
]
CorsOrigin = Annotated[
    list[str] | None,
    typer.Option(
        help="A web page of another site that may use the server, such as https://example.org; "
        "repeatable."
    ),
]
Proxy = Annotated[
    list[str] | None,
    typer.Option(
        help="The address of a proxy in front, which says who asks; repeatable."
    ),
]

# what it does
Pivot = Annotated[
    str,
    typer.Option(
        help="The language over which pairs without a model of their own are translated, such as en."
    ),
]
ShowSamples = Annotated[
    bool,
    typer.Option(
        "--show-samples",
        help="Show on the page what the models wrote of their dev text while they learned.",
    ),
]
Suggestions = Annotated[
    Path | None,
    typer.Option(
        help="Keep better translations that people send (POST /suggest): FILE.tsv becomes FILE.en-de.tsv "
        "and so on, which weft train reads."
    ),
]
ServedGlossaries = Annotated[
    list[str] | None,
    typer.Option(
        "--glossary",
        metavar="FILE",
        help=f"{TERMS} NAME=FILE gives it another name, "
        "and NAME:en-de=FILE says its languages. The first for a pair of languages binds it, others are "
        "for who asks for them; repeatable.",
    ),
]
ServedMemories = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="FILE",
        help=f"{UNITS} en-de=FILE says its languages; repeatable.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads that compute. Default: one for each CPU."),
]

# limits
MaxText = Annotated[int, typer.Option(min=1, help="Most characters of a text.")]
MaxTexts = Annotated[int, typer.Option(min=1, help="Most texts of a request.")]
MaxCharacters = Annotated[
    int, typer.Option(min=1, help="Most characters of a request's texts.")
]
MaxBody = Annotated[
    int, typer.Option(min=1, help="Most MiB of a request, without files.")
]
MaxFile = Annotated[int, typer.Option(min=1, help="Most MiB of a file.")]
MaxBeam = Annotated[int, typer.Option(min=1, help="Largest beam.")]
MaxNewTokens = Annotated[
    int, typer.Option(min=1, help="Most tokens that a language model writes.")
]
MaxWaiting = Annotated[
    int, typer.Option(min=1, help="Most texts that wait, of all clients.")
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=1, help="Most requests of a client. Default: no limit."),
]
Deadline = Annotated[
    float,
    typer.Option(min=1, help="Seconds after which a request is given up."),
]
DrainSeconds = Annotated[
    float,
    typer.Option(min=0, help="Seconds for what still runs when the server ends."),
]
LogLevel = Annotated[
    str,
    typer.Option(
        help="error, warning, or info, which is a line for each request: never its text."
    ),
]
