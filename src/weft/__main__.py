"""The command line's door: errors of the user become one line and an exit code."""

import atexit
import gc
import io
import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any

from weft.errors import OtherVersion

_PLAIN = warnings.formatwarning  # Python's own
LEFT = 130  # the exit code of a process that Ctrl-C ended
# turns for which a thread waits awake for the others; GNU OpenMP's own is a hundred times as many
SPINS = "3000"


def main() -> None:
    """Run a verb; exit with the code that its outcome has, also where Ctrl-C comes before the verb
    is loaded.

    A library that is being imported may turn Ctrl-C into an error of its own, which is no news
    then.
    """
    # else Python looks over all that PyTorch has loaded once more, for a second or so
    atexit.register(gc.freeze)
    came: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    # in the background it is not
    is_asked = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_asked:
        signal.signal(signal.SIGINT, leave)
    try:
        _run()
    except (KeyboardInterrupt, Exception) as error:
        if not came and not isinstance(error, KeyboardInterrupt):
            raise
        print("weft: left at once; what was saved stays", file=sys.stderr)
        sys.exit(LEFT)
    finally:
        if is_asked:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _run() -> None:
    _wait_briefly()
    _write_anywhere()
    import typer

    from weft.cli import app
    from weft.cli.arguments import about_arguments
    from weft.console.wording import say_lines
    from weft.errors import WeftError

    warnings.formatwarning = _in_one_line
    # What the option parser raises: the base of this class, whose module moves between versions of
    # typer.
    option_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        code = app(standalone_mode=False, prog_name="weft")
        _flush()
        if code == LEFT:
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except WeftError as error:
        say_lines((f"weft: {line}" for line in str(error).split("\n")), sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except option_error as error:
        verb = " ".join(
            ["weft", *(word for word in sys.argv[1:2] if not word.startswith("-"))]
        )
        say_lines([f"weft: {about_arguments(error, verb)}"], sys.stderr)
        sys.exit(2)


def _in_one_line(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> str:
    """Return a warning of ours as errors are said; those of others as Python says them."""
    return (
        f"weft: {message}\n"
        if issubclass(category, OtherVersion)
        else _PLAIN(message, category, *place, **more)
    )


def _flush() -> None:
    """Let go of what is still to be written; whoever reads our output may have seen enough."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_anywhere() -> None:
    """Let what a person reads reach every terminal: what its encoding has not is written as an
    escape.

    Text and JSON for files and pipes are written in UTF-8 where they are written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _wait_briefly() -> None:
    """Let threads that wait for one another soon sleep, so that another program on a core does not
    stop them all.

    OpenMP reads it when torch is loaded. Whoever has decided it otherwise is left alone.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


if __name__ == "__main__":
    main()
