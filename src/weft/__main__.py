"""The entry point of the command line: a user's error becomes one line and an exit code."""

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
# packages that training needs, and the use of most models does not
_OF_TRAINING = ("torch", "jaxtyping")
LEFT = 130  # the exit code of a process that Ctrl-C ended
# made since the last garbage collection, before there is a next one
OBJECTS = 100_000
# turns that a waiting thread spins before it sleeps; GNU OpenMP's default is 100 times as many
SPINS = "3000"


def main() -> None:
    """Run a verb and exit with its code, also where Ctrl-C comes before the verb is loaded.

    A library that is being imported may turn Ctrl-C into an error of its own, which is ignored.
    """
    # what imports make stays until the end: to look through it again and again is in vain
    gc.set_threshold(OBJECTS)
    # otherwise Python's last garbage collection walks all of PyTorch, for a second or so
    atexit.register(gc.freeze)
    signals: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    # a process in the background ignores Ctrl-C
    is_foreground = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_foreground:
        signal.signal(signal.SIGINT, leave)
    try:
        _run()
    except (KeyboardInterrupt, Exception) as error:
        if not signals and not isinstance(error, KeyboardInterrupt):
            raise
        print("weft: left at once; what was saved before stays", file=sys.stderr)
        sys.exit(LEFT)
    finally:
        if is_foreground:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _run() -> None:
    _wait_briefly()
    _use_one_blas_thread()
    _write_anywhere()
    import typer

    from weft.cli import app
    from weft.cli.arguments import about_arguments
    from weft.console.wording import say_lines
    from weft.errors import MissingPackage, WeftError

    warnings.formatwarning = _in_one_line
    # The base class of the option parser's errors; its module moves between versions of typer.
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
    except ModuleNotFoundError as error:
        if error.name not in _OF_TRAINING:
            raise
        missing = MissingPackage(sys.argv[1], "PyTorch", "train")
        say_lines([f"weft: {missing}"], sys.stderr)
        sys.exit(missing.exit_code)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except option_error as error:
        words = ["weft", *sys.argv[1:2]]
        verb = " ".join(word for word in words if not word.startswith("-"))
        say_lines([f"weft: {about_arguments(error, verb)}"], sys.stderr)
        sys.exit(2)


def _in_one_line(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> str:
    """Return a warning of Weft in the form of its errors, any other in Python's own form."""
    if issubclass(category, OtherVersion):
        return f"weft: {message}\n"
    return _PLAIN(message, category, *place, **more)


def _flush() -> None:
    """Write what is buffered; drop it where the reader has closed the pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_anywhere() -> None:
    """Write a character that the terminal's encoding lacks as an escape.

    Verbs that write text or JSON to files and pipes use UTF-8 themselves.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _wait_briefly() -> None:
    """Let waiting threads sleep early, so that another program on a core does not stop them all.

    OpenMP reads the variable when torch is loaded. A value that the user has set is kept.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


def _use_one_blas_thread() -> None:
    """Let NumPy's products have one thread: the engine, the search and PyTorch have their own.

    OpenBLAS reads the variable when NumPy is loaded. A value that the user has set is kept.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    main()
