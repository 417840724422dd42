"""Runs as processes: as many at a time as asked, a signal for all, what failed and why.

The processes are small programs in the place of `weft train`.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from weft.config import TranslationRecipe
from weft.errors import Interrupted, LeftAtOnce
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.sweep import processes
from weft.sweep.processes import run_all, usual_jobs
from weft.sweep.run import Outcome, Run, outcome_of

BRIEF = "import time, sys; a = time.time(); time.sleep(0.3); print(a, time.time())"
FAILS = (
    "import sys; print('weft: note\\nweft: no such text', file=sys.stderr); sys.exit(3)"
)
SAVES = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *a: sys.exit(75)); "
    "print('ready', flush=True); time.sleep(60)"
)
STAYS = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(60)"
)


@pytest.fixture(autouse=True)
def _small_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "CHILD", (sys.executable, "-S", "-E", "-c"))


def made(folder: Path, number: int, program: str) -> Run:
    out = folder / "text" / "row" / f"seed-{number}"
    return Run("text", "row", number, out, (program,), TranslationRecipe())


class Said:
    """What was told of the runs, in this order."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: dict[int, Outcome] = {}

    def begin(self, run: Run) -> None:
        self.began.append(run.seed)

    def end(self, run: Run, outcome: Outcome) -> None:
        self.ended[run.seed] = outcome


def go(runs: list[Run], jobs: int) -> Said:
    said = Said()
    run_all(runs, jobs, said.begin, said.end)
    return said


def test_two_at_a_time_are_two(tmp_path: Path) -> None:
    runs = [made(tmp_path, number, BRIEF) for number in range(4)]
    assert go(runs, 2).began == [0, 1, 2, 3]
    times = [list(map(float, run.log.read_text().split())) for run in runs]
    together = [sum(a <= begin < b for a, b in times) for begin, _ in times]
    assert max(together) == 2


def test_a_run_that_fails_stops_no_other(tmp_path: Path) -> None:
    runs = [made(tmp_path, 0, FAILS), made(tmp_path, 1, "print('all is well')")]
    runs.append(made(tmp_path, 2, "import os; os.kill(os.getpid(), 9)"))
    said = go(runs, 1)
    assert said.began == [0, 1, 2]
    failed = said.ended[0]
    assert (failed.state, failed.reason, failed.exit_code) == (
        "failed",
        "no such text",
        3,
    )
    assert said.ended[1].state == "begun"  # it has left no model
    assert said.ended[2].reason.startswith("ended by signal 9")
    assert outcome_of(runs[0]).reason == "no such text"


def test_the_seconds_of_all_starts_are_kept(tmp_path: Path) -> None:
    run = made(tmp_path, 0, BRIEF)
    seconds = [go([run], 1).ended[0].seconds for _ in range(2)]
    assert 0.2 < seconds[0] < seconds[1] - 0.2


def signalled(runs: list[Run], times: int) -> threading.Thread:
    """Send SIGTERM to this process when the first two runs are ready."""

    def send() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            logs = [run.log for run in runs[:2]]
            if all(log.is_file() and "ready" in log.read_text() for log in logs):
                break
            time.sleep(0.02)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_one_signal_lets_all_save_and_begins_no_other(tmp_path: Path) -> None:
    runs = [made(tmp_path, number, SAVES) for number in range(3)]
    thread = signalled(runs, times=1)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="the same command goes on"):
        go(runs, 2)
    thread.join()
    assert [outcome_of(run).state for run in runs] == ["begun", "begun", "new"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    runs = [made(tmp_path, number, STAYS) for number in range(2)]
    thread = signalled(runs, times=2)
    with pytest.raises(LeftAtOnce):
        go(runs, 2)
    thread.join()
    assert [outcome_of(run).state for run in runs] == ["begun", "begun"]


def test_a_run_that_another_process_trains_is_waited_for(tmp_path: Path) -> None:
    runs = [made(tmp_path, number, "print('all is well')") for number in range(2)]
    lock = RunFolder(runs[0].folder).lock
    lock.parent.mkdir(parents=True)
    ordered: list[int] = []
    held = durable.held(lock, runs[0].folder)
    held.__enter__()

    def ended(run: Run, outcome: Outcome) -> None:
        ordered.append(run.seed)
        if run.seed == 1:
            held.__exit__(None, None, None)

    run_all(runs, 1, lambda run: None, ended)
    assert ordered == [1, 0]


def test_no_further_run_begins_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_free_bytes", lambda: 2.0**29)
    runs = [made(tmp_path, number, BRIEF) for number in range(3)]
    go(runs, 3)
    times = [list(map(float, run.log.read_text().split())) for run in runs]
    assert times[0][1] <= times[1][0]
    assert times[1][1] <= times[2][0]


def test_as_many_as_the_cores_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 16)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [usual_jobs(threads) for threads in (1, 3, 16, 20)] == [16, 5, 1, 1]
