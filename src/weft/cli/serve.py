"""The verb that serves models over HTTP."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft import DEMO
from weft.cli.serve_options import (
    AllowHost,
    AlsoPort,
    CorsOrigin,
    Deadline,
    Demo,
    DrainSeconds,
    Folders,
    Host,
    KeyFile,
    LogLevel,
    MaxBeam,
    MaxBody,
    MaxCharacters,
    MaxFile,
    MaxNewTokens,
    MaxText,
    MaxTexts,
    MaxWaiting,
    NewKey,
    NoKeys,
    Pivot,
    Port,
    Proxy,
    RequestsPerMinute,
    ServedGlossaries,
    ServedMemories,
    ShowSamples,
    Suggestions,
    Threads,
)
from weft.console.wording import say_lines
from weft.errors import UsageError
from weft.packages import require

_LEVELS = ("error", "warning", "info")
# The packages of the extra, as they are imported.
_PACKAGES = (
    *("fastapi", "starlette", "uvicorn", "h11"),
    *("python_multipart", "prometheus_client"),
)


def serve(
    folders: Folders = None,
    demo: Demo = False,
    host: Host = "127.0.0.1",
    port: Port = 5000,
    also_port: AlsoPort = None,
    keys: KeyFile = None,
    no_keys: NoKeys = False,
    new_key: NewKey = None,
    allow_host: AllowHost = None,
    cors_origin: CorsOrigin = None,
    proxy: Proxy = None,
    pivot: Pivot = "",
    glossary: ServedGlossaries = None,
    memory: ServedMemories = None,
    show_samples: ShowSamples = False,
    suggestions: Suggestions = None,
    threads: Threads = None,
    max_text: MaxText = 20_000,
    max_texts: MaxTexts = 1000,
    max_characters: MaxCharacters = 200_000,
    max_body: MaxBody = 2,
    max_file: MaxFile = 10,
    max_beam: MaxBeam = 8,
    max_new_tokens: MaxNewTokens = 1024,
    max_waiting: MaxWaiting = 20_000,
    requests_per_minute: RequestsPerMinute = None,
    deadline: Deadline = 60.0,
    drain_seconds: DrainSeconds = 30.0,
    log_level: LogLevel = "info",
) -> None:
    """Serve models over HTTP: a page, and the APIs of LibreTranslate, DeepL, OpenAI and others."""
    _refuse_missing_packages()
    _refuse_options_as_values(new_key=new_key)
    if new_key is not None:
        _print_key(new_key)
        return
    if demo:
        folders = [*(folders or ()), f"demo={DEMO}"]
    if not folders:
        raise UsageError(
            "give a model's folder: weft serve FOLDER; or try weft serve --demo"
        )
    _refuse_options_as_values(
        keys=keys, suggestions=suggestions, host=host, pivot=pivot, log_level=log_level
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
        host="127.0.0.1" if host == "localhost" else host,
        ports=[port, *(also_port or ())],
        threads=threads or threads_asked() or usable_cores(),
        limits=limits,
        keys=keys,
        is_open=no_keys,
        hosts=allow_host or (),
        origins=cors_origin or (),
        proxies=proxy or (),
        drain_seconds=drain_seconds,
        pivot=pivot,
        show_samples=show_samples,
        glossaries=glossary or (),
        memories=memory or (),
        suggestions=suggestions,
        opens_page=demo,
    )
    with _logging(log_level):
        start(plan, _say)


def _refuse_missing_packages() -> None:
    """Raise MissingPackage where the extra `serve` is not installed, UnfitPackage where it is too
    old.
    """
    for package in _PACKAGES:
        require("weft serve", package, "serve")


def _refuse_options_as_values(**given: Path | str | None) -> None:
    """Raise UsageError where an option stands in the place of another one's value."""
    for name, value in given.items():
        if str(value).startswith("--"):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} needs a value, and {value} stands in its place")


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
    # what the format does not show is not looked for
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
        log.propagate = True
