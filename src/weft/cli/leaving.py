"""The end of a verb by a signal: what it has begun is removed, and it is said what was written."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from weft.errors import Interrupted, LeftAtOnce


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what is temporary is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except Exception as error:
        if signals:  # a library has turned it into an error of its own
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def all_or_nothing(output: Path) -> Iterator[None]:
    """Raise LeftAtOnce in the place of Ctrl-C or SIGTERM; it says whether `output` was written."""
    before = _state(output)
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        written = "nothing was written"
        if _state(output) != before:
            written = f"{output} was written before"
        raise LeftAtOnce(f"left at once; {written}") from None


@contextlib.contextmanager
def going_on(output: Path) -> Iterator[None]:
    """Raise Interrupted in the place of Ctrl-C or SIGTERM: what is made of `output` is kept beside
    it.
    """
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        raise Interrupted(
            f"{output}: interrupted; the same command continues it"
        ) from None


def _state(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file or folder takes the place of another; None without any."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
