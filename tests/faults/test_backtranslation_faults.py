"""X5: `weft backtranslate` killed, or out of disk, goes on to the same pairs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

COUNTED = Path(__file__).with_name("counted.py")
OPTIONS = ("--sample", "--seed", "7", "--times", "9")  # more than a buffer holds
NUM_KILLS = 8
# kills itself when so many translations are written
KILLED = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from weft.run.backtranslation import backtranslate
from weft.run.translations import Search

@contextmanager
def bar(count, done):
    left = iter(range(300))
    yield lambda: next(left, None) is None and os.kill(os.getpid(), signal.SIGKILL)

model, mono, out = sys.argv[1:]
search = Search(temperature=1.0, seed=7, times=9)
backtranslate(Path(model), [mono], Path(out), search, progress=bar)
"""

Ended = subprocess.CompletedProcess[str]
Make = Callable[..., Ended]


def ended(*command: object) -> Ended:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, *map(str, command)]
    pipes: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(words, check=False, env=environment, **pipes)


@pytest.fixture(scope="module")
def mono(write_pairs: Callable[[int], str], tmp_path_factory: Any) -> Path:
    """English sentences, a line each."""
    path = tmp_path_factory.mktemp("mono") / "mono.en.txt"
    rows = Path(write_pairs(40)).read_text("utf-8").split("\n")[:-1]
    path.write_text("".join(row.split("\t")[0] + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def make(tiny_folder: Path, mono: Path) -> Make:
    """Give the command whose output is in a folder, with what is to happen to it."""

    def run(folder: Path, **asked: int) -> Ended:
        folder.mkdir(exist_ok=True)
        given = json.dumps({"below": str(folder), **asked})
        command = ("backtranslate", tiny_folder, mono, *OPTIONS)
        return ended(COUNTED, given, *command, "--output", folder / "made.tsv")

    return run


@pytest.fixture(scope="module")
def whole(make: Make, tmp_path_factory: Any) -> tuple[bytes, int]:
    """The pairs of a command that nothing happens to, and the number of its operations."""
    folder = tmp_path_factory.mktemp("whole")
    done = make(folder)
    assert done.returncode == 0, done.stderr
    return (folder / "made.tsv").read_bytes(), int(done.stdout.rpartition(": ")[2])


def test_X5_killed_at_its_operations_on_files_it_goes_on_to_the_same_pairs(
    make: Make, whole: tuple[bytes, int], tmp_path: Path
) -> None:
    pairs, count = whole
    assert count >= 3
    for at in range(1, count + 1, max(1, count // NUM_KILLS)):
        folder = tmp_path / str(at)
        killed = make(folder, at=at)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = make(folder)
        assert again.returncode == 0, again.stderr
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert found == {"made.tsv": pairs}, f"after operation {at}"


def test_X5_killed_while_it_translates_it_goes_on_to_the_same_pairs(
    make: Make, whole: tuple[bytes, int], tiny_folder: Path, mono: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made.tsv"
    done = ended("-c", KILLED, tiny_folder, mono, out)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert 0 < (tmp_path / "made.tsv.partial").read_bytes().count(b"\n") <= 300
    again = make(tmp_path)
    assert again.returncode == 0, again.stderr
    assert out.read_bytes() == whole[0]


def test_X5_with_the_disk_full_it_says_so_and_goes_on_when_there_is_room(
    make: Make, whole: tuple[bytes, int], tmp_path: Path
) -> None:
    for most in (0x1000, 0x4000):
        folder = tmp_path / str(most)
        full = make(folder, most=most)
        assert full.returncode == 5, full.stderr
        assert not (folder / "made.tsv").exists()
        last = full.stderr.rstrip("\n").split("\n")[-1]
        assert "made.tsv" in last
        assert "Traceback" not in full.stderr
        again = make(folder)
        assert again.returncode == 0, again.stderr
        assert (folder / "made.tsv").read_bytes() == whole[0]
