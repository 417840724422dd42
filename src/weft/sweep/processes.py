"""The runs of a sweep as processes: as many at a time as fit, and stopped in order."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from weft.errors import Interrupted, LeftAtOnce, UsageError
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.kernels.machine import usable_cores
from weft.sweep.run import Outcome, Run, begin, end

CHILD = (sys.executable, "-m", "weft.sweep.child")
TICK = 0.1  # seconds between two looks at the processes
_LEAST = 2**30  # bytes that a further run may need where none has shown how much
_GPUS = ("nvidia[0-9]*", "kfd")  # below /dev


@dataclass
class Process:
    """A run's process and when it began; `peak` are the bytes of memory that it has needed."""

    run: Run
    process: "subprocess.Popen[bytes]"
    began: float = field(default_factory=time.monotonic)
    peak: int = 0


def usual_jobs(threads: int) -> int:
    """Return how many runs of so many threads the cores have room for; one at a time on a GPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    devices = Path("/dev")
    if not hidden and any(any(devices.glob(name)) for name in _GPUS):
        return 1
    return max(usable_cores() // threads, 1)


def run_all(
    runs: Sequence[Run],
    jobs: int,
    began: Callable[[Run], None],
    ended: Callable[[Run, Outcome], None],
) -> None:
    """Run all, at most `jobs` at a time and no more than the memory has room for; say of each that
    it `began` and how it `ended`.

    One signal (Ctrl-C, SIGTERM) lets every run save and stop, a second one ends them at once.
    Raises Interrupted, LeftAtOnce.
    """
    waiting = deque(runs)
    going: list[Process] = []
    peak = _LEAST
    told = 0  # how many signals the runs were told of
    with _signals() as signals:
        while going or (waiting and not signals):
            if not signals and len(going) < jobs and waiting:
                is_room = not going or peak <= _free_bytes()
                if is_room and (run := _next(waiting)) is not None:
                    going.append(_start(run))
                    began(run)
                    continue
            if told < len(signals):
                told += 1
                _stop(going, is_first=told == 1)
            for one in [*going]:
                peak = max(peak, _peak_of(one))
                if (code := one.process.poll()) is not None:
                    going.remove(one)
                    if signals and code < 0:
                        code = LeftAtOnce.exit_code
                    seconds = time.monotonic() - one.began
                    ended(one.run, end(one.run, code, seconds))
            time.sleep(TICK)
    if len(signals) > 1:
        raise LeftAtOnce(
            "left at once; what was saved stays, and the same command goes on"
        )
    if signals:
        raise Interrupted("interrupted; the same command goes on with all that is left")


def _next(waiting: deque[Run]) -> Run | None:
    """Take the first run that no other process trains; None where there is none for now."""
    for _ in range(len(waiting)):
        run = waiting.popleft()
        if not _is_busy(run.folder):
            return run
        waiting.append(run)
    return None


def _is_busy(folder: Path) -> bool:
    """Return whether a process trains in a folder: one that a killed sweep has left, perhaps."""
    lock = RunFolder(folder).lock
    if not lock.is_file():
        return False
    try:
        with durable.held(lock, folder):
            return False
    except UsageError:
        return True


def _start(run: Run) -> Process:
    """Start a run in a session of its own, so that a terminal's Ctrl-C is for the sweep alone."""
    begin(run)
    with run.log.open("wb") as log:
        process = subprocess.Popen(
            [*CHILD, *run.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return Process(run, process)


def _stop(going: Sequence[Process], is_first: bool) -> None:
    """Let the runs save and stop, or end them at once."""
    for one in going:
        if is_first:
            one.process.terminate()
        else:
            one.process.kill()


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Give a list to which the signals that ask to stop are added while the block runs.

    A process in the background ignores Ctrl-C, and goes on doing so.
    """
    found: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        found.append(number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, note)
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _free_bytes() -> float:
    """Return what Linux says is available without swapping; elsewhere infinity."""
    return _bytes_in(Path("/proc/meminfo"), "MemAvailable:") or float("inf")


def _peak_of(one: Process) -> int:
    """Return the most memory that a process has had at a time, as far as that is known."""
    status = Path(f"/proc/{one.process.pid}/status")
    one.peak = max(one.peak, _bytes_in(status, "VmHWM:"))
    return one.peak


def _bytes_in(path: Path, name: str) -> int:
    """Return a number of bytes that Linux tells; 0 where it does not."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith(name)]
    return 1024 * int(found[0]) if found else 0
