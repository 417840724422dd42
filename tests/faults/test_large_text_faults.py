"""X8: a large text lies on disk while several processes look it over; each of them may die, and the
disk may be full.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.data import builtin

pytestmark = pytest.mark.long

COUNTED = Path(__file__).with_name("counted.py")
ROWS, LARGE = 3000, 400
NUM_KILLS = 8
PATIENCE = 60  # seconds

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs without a fault but one that is there twice."""
    path = tmp_path_factory.mktemp("text") / "pairs.en-de.tsv"
    pairs = builtin.pairs("everyday", "en", "de").train
    rows = [
        f"{pairs[n % len(pairs)][0]} {n}\t{pairs[n % len(pairs)][1]} {n}\n"
        for n in range(ROWS)
    ]
    path.write_text("".join([*rows, rows[0]]), "utf-8")
    return path


@pytest.fixture
def start(text: Path) -> Iterator[Start]:
    """Starts `weft check` with a folder of its own for temporary files, and what is to happen."""
    started = []

    def begin(folder: Path, **asked: int) -> subprocess.Popen[str]:
        folder.mkdir(exist_ok=True)
        given = json.dumps({"below": str(folder), "large": LARGE, **asked})
        settings = {
            "TMPDIR": str(folder),
            "WEFT_PROCESSES": "2",
            "OMP_NUM_THREADS": "1",
        }
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, str(COUNTED), given, "check", str(text)]
        started.append(
            subprocess.Popen(
                command, env={**os.environ, **settings}, text=True, **pipes
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> tuple[str, int]:
    """What a command that ended well says of the text, and how many operations it did."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    report, _, count = out.rpartition("operations: ")
    return report, int(count)


def workers(process: int) -> list[int]:
    """The processes that look over the text for this one."""
    children = Path(f"/proc/{process}/task/{process}/children")
    found = map(int, children.read_text().split())
    return [
        n
        for n in found
        if b"weft.data.worker" in Path(f"/proc/{n}/cmdline").read_bytes()
    ]


def wait_for(what: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return found


def test_X8_killed_it_leaves_what_the_next_removes(
    start: Start, tmp_path: Path
) -> None:
    report, count = said(start(tmp_path / "whole"))
    assert "duplicate" in report
    assert list((tmp_path / "whole").iterdir()) == []
    assert count > NUM_KILLS
    for at in range(count // NUM_KILLS, count, count // NUM_KILLS):
        folder = tmp_path / str(at)
        killed = start(folder, at=at)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        assert said(start(folder))[0] == report
        assert [*folder.iterdir()] == [], f"after operation {at}"


def test_X8_what_a_killed_worker_had_to_do_is_done_without_it(
    start: Start, tmp_path: Path
) -> None:
    report, _ = said(start(tmp_path / "whole"))
    process = start(tmp_path / "killed")
    for worker in wait_for(lambda: workers(process.pid)):
        os.kill(worker, signal.SIGKILL)
    assert said(process)[0] == report
    assert list((tmp_path / "killed").iterdir()) == []


def test_X8_a_full_disk_is_one_line_and_nothing_is_left(
    start: Start, tmp_path: Path
) -> None:
    for most in (100, 20_000, 100_000):
        folder = tmp_path / str(most)
        process = start(folder, most=most)
        _, err = process.communicate()
        assert process.returncode == 5, err
        last = err.rstrip("\n").split("\n")[-1]
        assert last.startswith(f"weft: {folder}: a large text cannot be kept there")
        assert "TMPDIR" in last
        assert list(folder.iterdir()) == []
