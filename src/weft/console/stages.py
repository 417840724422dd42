"""What is being done before training and after it, said meanwhile: a live line on a terminal, few
lines elsewhere.

It imports nothing heavy, so that a person reads a word before PyTorch is loaded. A process has one
standard error: one line is shown at a time, and where none is shown these functions do nothing.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

from weft.console.wording import remark

TICK = 0.25  # seconds between two pictures of the live line
SLOW = 1.0  # seconds that a stage may take before a pipe is told of it
AGAIN = 10.0  # seconds between two lines of one stage in a pipe
NARROW = 80  # columns of a terminal that does not tell its own
EVERY = 5_000  # items between two counts

T = TypeVar("T")


class StageLine:
    """The line of one stage after another; a thread of its own keeps it alive while others
    compute.
    """

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._clock = stream, clock
        self._is_live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.RLock()
        self.what = self._count = ""
        self._began = self._due = 0.0
        self._painted = False

    def enter(self, what: str, at_once: bool = False) -> None:
        """What is done from now on; nothing where `what` is empty. A pipe is told of it when it
        turns out slow.
        """
        with self._lock:
            self.what, self._count, self._began = what, "", self._clock()
            self._due = self._began + (0.0 if at_once else SLOW)
            self.tick()

    def count(self, text: str) -> None:
        """How far the stage has come."""
        self._count = text

    def tick(self) -> None:
        """Paint the live line anew; in a pipe, write one where that is due."""
        with self._lock:
            if self._is_live:
                self._paint()
            elif self.what and self._clock() >= self._due:
                self._due = self._clock() + AGAIN
                self._write(self._text() + "\n")

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Room for other lines while the block runs."""
        with self._lock:
            self._wipe()
            yield

    def _paint(self) -> None:
        self._wipe()
        if self.what:
            width = os.get_terminal_size(self._stream.fileno()).columns or NARROW
            self._write(self._text(width - 1))
            self._painted = True

    def _wipe(self) -> None:
        if self._painted:
            self._write("\r\x1b[2K")
            self._painted = False

    def _text(self, width: int = sys.maxsize) -> str:
        """Where there is no room for all of it, a long name of a file gives way."""
        seconds = self._clock() - self._began
        lasted = f" ({seconds:.0f} s)" if seconds >= SLOW else ""
        far = f" ...{' ' if self._count else ''}{self._count}{lasted}"
        return f"{self.what[: max(width - len(far), 8)]}{far}"[:width]

    def _write(self, text: str) -> None:
        # a word that cannot be said must not end a run
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


_shown: list[StageLine] = []  # at most one


@contextlib.contextmanager
def showing(first: str, quiet: bool = False) -> Iterator[None]:
    """Say `first` at once and show the stages of the block; within another such block, that one
    shows them.

    Of several processes that train together, only the first shows any.
    """
    if quiet or _shown or os.environ.get("RANK", "0") != "0":
        enter(first)
        yield
        return
    line = StageLine(sys.stderr)
    _shown.append(line)
    line.enter(first, at_once=True)
    over = threading.Event()
    thread = threading.Thread(
        target=_keep_alive, args=(line, over), name="stages", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        line.enter("")
        _shown.remove(line)


def enter(what: str) -> None:
    """What is done from now on; empty where others speak."""
    for line in _shown:
        line.enter(what)


def count(number: int, unit: str) -> None:
    """How far the stage has come."""
    for line in _shown:
        line.count(f"{number:,} {unit}")


def counted(items: Iterable[T], unit: str, every: int = EVERY) -> Iterator[T]:
    """Yield the items, while every so many of them are counted aloud."""
    for number, item in enumerate(items, start=1):
        if number % every == 0:
            count(number, unit)
        yield item


@contextlib.contextmanager
def within(what: str) -> Iterator[None]:
    """A stage in the midst of another, which goes on behind the block."""
    before = "".join(line.what for line in _shown)
    enter(what)
    try:
        yield
    finally:
        enter(before)


def say(message: str) -> None:
    """A line of its own on standard error, beside what is being done."""
    for line in _shown:
        with line.aside():
            remark(f"weft: {message}")


def aside() -> contextlib.AbstractContextManager[None]:
    """Room for a line of something else."""
    return _shown[0].aside() if _shown else contextlib.nullcontext()


def _keep_alive(line: StageLine, over: threading.Event) -> None:
    while not over.wait(TICK):
        line.tick()
