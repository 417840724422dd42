"""The progress of slow stages: a live status line on a terminal, few lines elsewhere.

The module imports nothing heavy, so that something is shown before PyTorch is loaded. A process has
one standard error: one status line is shown at a time, and where none is, these functions do
nothing.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TextIO, TypeVar

from weft.console.wording import remark

TICK = 0.25  # seconds between two paintings of the live line
SLOW = 1.0  # seconds that a stage takes before a line about it is written to a pipe
AGAIN = 10.0  # seconds between two lines of one stage in a pipe
NARROW = 80  # columns of a terminal that does not report its width
EVERY = 5_000  # items between two counts

T = TypeVar("T")


class StageLine:
    """The status line, which shows one stage after another."""

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._is_live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.RLock()
        self.stage = self._count = ""
        self._began = self._due = 0.0
        self._painted = False

    def enter(self, stage: str, at_once: bool = False) -> None:
        """Show another stage; an empty one clears the line.

        A pipe gets a line only after `SLOW` seconds, or `at_once`.
        """
        with self._lock:
            self.stage = stage
            self._count = ""
            self._began = self._clock()
            self._due = self._began + (0.0 if at_once else SLOW)
            self.tick()

    def count(self, text: str) -> None:
        """Set the count beside the stage."""
        self._count = text

    def tick(self) -> None:
        """Update the live line; in a pipe, write a line when one is due."""
        with self._lock:
            if self._is_live:
                self._paint()
            elif self.stage and self._clock() >= self._due:
                self._due = self._clock() + AGAIN
                self._write(self._text() + "\n")

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Hold the line back while the block writes other lines."""
        with self._lock:
            self._wipe()
            yield

    def _paint(self) -> None:
        self._wipe()
        if self.stage:
            width = os.get_terminal_size(self._stream.fileno()).columns or NARROW
            self._write(self._text(width - 1))
            self._painted = True

    def _wipe(self) -> None:
        if self._painted:
            self._write("\r\x1b[2K")
            self._painted = False

    def _text(self, width: int = sys.maxsize) -> str:
        """Return the line; where it is too long for the width, the stage is cut."""
        end = " ..."
        if self._count:
            end += f" {self._count}"
        seconds = self._clock() - self._began
        if seconds >= SLOW:
            end += f" ({seconds:.0f} s)"
        room = max(width - len(end), 8)
        return f"{self.stage[:room]}{end}"[:width]

    def _write(self, text: str) -> None:
        # a status that cannot be written must not end a run
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


_shown: list[StageLine] = []  # at most one


@contextlib.contextmanager
def showing(first: str, quiet: bool = False) -> Iterator[None]:
    """Show `first` at once, then the stages that the block enters.

    Within another such block, the outer one shows them. Of several processes that train together,
    only the first shows any.
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


def enter(stage: str) -> None:
    """Show another stage; an empty one clears the line, so that others can write."""
    for line in _shown:
        line.enter(stage)


def count(
    number: int, unit: str, total: int | None = None, passed: float = 0.0
) -> None:
    """Show how many items of a unit, a plural, the stage has done.

    Of a known total, the time left is shown as well, as `passed` seconds foretell it.
    """
    if (total or number) == 1:
        unit = unit.removesuffix("es" if unit.endswith("ches") else "s")
    said = f"{number:,} {unit}"
    if total is not None:
        left = timedelta(seconds=round(passed / number * (total - number)))
        said = f"{number:,} of {total:,} {unit}, {left} left"
    for line in _shown:
        line.count(said)


def counted(
    items: Iterable[T], unit: str, every: int = EVERY, total: int | None = None
) -> Iterator[T]:
    """Yield the items and show their count after every `every` of them."""
    began = time.monotonic()
    for number, item in enumerate(items, start=1):
        if number % every == 0:
            count(number, unit, total, time.monotonic() - began)
        yield item


def each(items: Sequence[T], unit: str) -> Iterator[T]:
    """Yield the items and show after each how many of them are done."""
    return counted(items, unit, every=1, total=len(items))


@contextlib.contextmanager
def within(stage: str) -> Iterator[None]:
    """Show another stage while the block runs, then the one before it again."""
    before = "".join(line.stage for line in _shown)
    enter(stage)
    try:
        yield
    finally:
        enter(before)


def say(message: str) -> None:
    """Print a line on standard error, above the status line."""
    for line in _shown:
        with line.aside():
            remark(f"weft: {message}")


def aside() -> contextlib.AbstractContextManager[None]:
    """Hold the status line back while the block writes other lines."""
    return _shown[0].aside() if _shown else contextlib.nullcontext()


def _keep_alive(line: StageLine, over: threading.Event) -> None:
    while not over.wait(TICK):
        line.tick()
