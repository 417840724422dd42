"""The verb that serves models over HTTP."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from weft.console.wording import say_lines
from weft.errors import MissingPackage, UsageError

# made by tools/demo_model.py
DEMO = Path(__file__).parents[1] / "demo"
_LEVELS = ("error", "warning", "info")
# The packages of the extra, as they are imported.
_PACKAGES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")


def serve(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            help="Model folders; NAME=FOLDER gives a model another name. Of two models for a pair of "
            "languages, the first serves it.",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Serve the small translator, English to Chinese, that comes with Weft, and open its page.",
        ),
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen at; 0.0.0.0 lets other machines in, which takes --keys or --no-keys."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")
    ] = 5000,
    also_port: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            max=65535,
            help="Another port: 8500 is where the plug-ins of OPUS-CAT look; repeatable.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="A file of keys: only who has one may use the server."),
    ] = None,
    no_keys: Annotated[
        bool,
        typer.Option("--no-keys", help="Let other machines use it without a key."),
    ] = False,
    new_key: Annotated[
        str | None,
        typer.Option(help="Make a key for NAME, print it with its line for --keys."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name that this machine is called by, as in http://NAME/; repeatable."
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="A web page of another site that may use the server, such as https://example.org; "
            "repeatable."
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="The address of a proxy in front, which says who asks; repeatable."
        ),
    ] = None,
    pivot: Annotated[
        str,
        typer.Option(
            help="The language over which pairs without a model of their own are translated, such as en."
        ),
    ] = "",
    show_samples: Annotated[
        bool,
        typer.Option(
            "--show-samples",
            help="Show on the page what the models wrote of their dev text while they learned.",
        ),
    ] = False,
    suggestions: Annotated[
        Path | None,
        typer.Option(
            help="Keep better translations that people send (POST /suggest): FILE.tsv becomes FILE.en-de.tsv "
            "and so on, which weft train reads."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads that compute. Default: one for each CPU."),
    ] = None,
    max_text: Annotated[
        int, typer.Option(min=1, help="Most characters of a text.")
    ] = 20_000,
    max_texts: Annotated[
        int, typer.Option(min=1, help="Most texts of a request.")
    ] = 1000,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Most characters of a request's texts.")
    ] = 200_000,
    max_body: Annotated[
        int, typer.Option(min=1, help="Most MiB of a request, without files.")
    ] = 2,
    max_file: Annotated[int, typer.Option(min=1, help="Most MiB of a file.")] = 10,
    max_beam: Annotated[int, typer.Option(min=1, help="Largest beam.")] = 8,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, help="Most tokens that a language model writes.")
    ] = 1024,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Most texts that wait, of all clients.")
    ] = 20_000,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(min=1, help="Most requests of a client. Default: no limit."),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(min=1, help="Seconds after which a request is given up."),
    ] = 60.0,
    drain_seconds: Annotated[
        float,
        typer.Option(min=0, help="Seconds for what still runs when the server ends."),
    ] = 30.0,
    log_level: Annotated[
        str,
        typer.Option(
            help="error, warning, or info, which is a line for each request: never its text."
        ),
    ] = "info",
) -> None:
    """Serve models over HTTP: a page, and the APIs of LibreTranslate, DeepL, OpenAI and others."""
    refuse_missing_packages()
    if new_key is not None:
        _print_key(new_key)
        return
    if demo:
        folders = [*(folders or ()), f"demo={DEMO}"]
    if not folders:
        raise UsageError(
            "give a model's folder: weft serve FOLDER; or try weft serve --demo"
        )
    if keys is not None and no_keys:
        raise UsageError("--keys and --no-keys exclude each other")
    if log_level not in _LEVELS:
        raise UsageError(f"--log-level is one of {', '.join(_LEVELS)}")
    _say("starting")
    from weft.kernels.machine import threads_asked, usable_cores
    from weft.serve.limits import Limits
    from weft.serve.starting import Plan, start

    limits = Limits(
        max_body=max_body * 2**20,
        max_file=max_file * 2**20,
        max_texts=max_texts,
        max_text=max_text,
        max_characters=max_characters,
        max_beam=max_beam,
        max_new_tokens=max_new_tokens,
        max_waiting=max_waiting,
        requests_per_minute=requests_per_minute,
        deadline=deadline,
    )
    plan = Plan(
        folders,
        "127.0.0.1" if host == "localhost" else host,
        [port, *(also_port or ())],
        threads or threads_asked() or usable_cores(),
        limits,
        keys,
        no_keys,
        allow_host or (),
        cors_origin or (),
        proxy or (),
        drain_seconds,
        pivot,
        show_samples,
        suggestions,
        opens_page=demo,
    )
    with _logging(log_level):
        start(plan, _say)


def refuse_missing_packages() -> None:
    """Raise MissingPackage where the extra `serve` is not installed."""
    from importlib.util import find_spec

    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingPackage("weft serve", package, "serve")


def _print_key(name: str) -> None:
    from weft.serve.keys import new_key

    key, line = new_key(name)
    print(line)
    _say(f"the key of {name}, which is not shown again: {key}")
    _say("the line above goes into the file of --keys, which only you can read")


def _say(line: str) -> None:
    """Print a line of the server itself, at once."""
    say_lines([line], sys.stderr)
    sys.stderr.flush()


@contextmanager
def _logging(level: str) -> Iterator[None]:
    """Write the server's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("weft.serve")
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
        log.propagate = True
