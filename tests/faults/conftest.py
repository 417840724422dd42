"""Trainings in processes of their own that can be killed, starved of disk, or sent a signal at any
operation.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch

import weft

SERVER = Path(__file__).with_name("fork_server.py")
SETTINGS = (
    "training.max_steps=8",
    "training.save_every=3",
    "training.eval_every=5",
    "training.keep_checkpoints=1",
    "training.grad_accum_steps=2",
    "training.num_samples=1",
    "data.test_size=0",
    "model.dropout=0.2",
)


@dataclass(frozen=True)
class Ended:
    """How a training ended: its exit code, negative where a signal ended it, and what it said."""

    code: int
    said: str
    events: list[str] = field(default_factory=list)


Run = Callable[..., Ended]


class Forks:
    """The server of forked trainings."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def run(self, **asked: Any) -> Ended:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        events = (
            Path(asked["events"]).read_text().split("\n")[:-1]
            if "events" in asked
            else []
        )
        return Ended(answer["code"], answer["said"], events)

    def stop(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    server = Forks()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def tiny_run(
    forks: Forks, write_pairs: Callable[[int], str], tiny_settings: tuple[str, ...]
) -> Run:
    """Train 8 steps on 210 pairs, some held out for dev, in a process of its own.

    Saves fall on steps 3, 5, 6 and 8, evaluations on 5 and 8; only the newest checkpoint and the
    best are kept.
    """
    text = write_pairs(210)

    def run(out: Path, *settings: str, **asked: Any) -> Ended:
        asked = {"train": text, **asked}
        return forks.run(
            out=str(out), settings=[*tiny_settings, *SETTINGS, *settings], **asked
        )

    return run


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing happened to: its folder, and every operation that it did."""

    out: Path
    events: list[str]

    def numbers(self, pattern: str) -> list[int]:
        """The numbers of the operations that match."""
        return [n for n, event in enumerate(self.events) if re.search(pattern, event)]


@pytest.fixture(scope="session")
def undisturbed(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    ended = tiny_run(folder / "out", events=str(folder / "events"))
    assert ended.code == 0, ended.said
    return Undisturbed(folder / "out", ended.events)


TIMING = (
    "seconds",
    "tokens_per_second",
    "peak_share",
    "data_wait_share",
    "seconds_left",
    "evaluation_seconds",
)
# pid, mark, clock
VARYING = ("run/lock", "run/recipe.json", "manifest.json", "README.md")


def outcome(out: Path) -> dict[str, Any]:
    """Everything that a run leaves, by file: weights and text as bytes, logs without what a clock
    says.

    Checkpoints' manifests name the run's own mark, and are compared by what they list.
    """
    found: dict[str, Any] = {}
    for path in sorted(p for p in out.rglob("*") if p.is_file()):
        name, content = path.relative_to(out).as_posix(), path.read_bytes()
        # one file a start, where that package is installed
        if name.startswith("run/tensorboard/"):
            continue
        if name in VARYING:
            found[name] = None
        elif name == "run/metrics.jsonl":
            lines = [json.loads(line) for line in content.split(b"\n")[:-1]]
            found[name] = [
                {k: v for k, v in line.items() if k not in TIMING} for line in lines
            ]
        elif name == "run/verdict.json":
            found[name] = {
                k: v
                for k, v in json.loads(content).items()
                if k not in ("seconds", "notes")
            }
        elif name == "run/machine.json":
            found[name] = {**json.loads(content), "peak_flops": None}
        elif name.endswith("progress.json"):
            found[name] = {**json.loads(content), "seconds": None}
        elif name.endswith("/manifest.json"):
            listed = json.loads(content)
            found[name] = (
                [listed["step"], *sorted(listed["files"])]
                if "step" in listed
                else listed
            )
        else:
            found[name] = content
    return found


def differences(out: Path, other: Path) -> list[str]:
    """The names of the files in which two runs differ."""
    ours, theirs = outcome(out), outcome(other)
    return sorted(
        name
        for name in ours.keys() | theirs.keys()
        if ours.get(name, ...) != theirs.get(name, ...)
    )


def verdict(out: Path) -> dict[str, Any]:
    """What a run says of its own end."""
    return json.loads((out / "run" / "verdict.json").read_bytes())


# The table of rows, tests and results: `make reliability` writes it into docs/reliability.md.

ROW = re.compile(r"test_((?:[A-Z]\d+_)+)", re.IGNORECASE)
MARKS = ("<!-- table: written by `make reliability` -->\n", "<!-- end of the table -->")


def rows_of(test: str) -> list[str]:
    """The rows that a test's name begins with: T8 and T9 of `test_T8_T9_one_signal_saves`."""
    named = ROW.match(test)
    return named[1].upper().rstrip("_").split("_") if named else []


def table(results: dict[str, list[str]]) -> str:
    """A line for each row of rows.toml: its tests that passed, failed, or were left out."""
    rows = tomllib.loads(Path(__file__).with_name("rows.toml").read_text("utf-8"))
    lines = [
        "| row | fault | what Weft does | tests | result |",
        "|---|---|---|---|---|",
    ]
    for row, said in rows.items():
        found = results.get(row, [])
        counts = [
            f"{found.count(how)} {how}" for how in ("failed", "skipped") if how in found
        ]
        result = ", ".join(counts) or ("passed" if found else "no test")
        lines.append(
            f"| {row} | {said['fault']} | {said['answer']} | {len(found)} | {result} |"
        )
    return "".join(line + "\n" for line in lines)


class Reliability:
    """Collects the results of the fault tests of a session."""

    def __init__(self, path: Path) -> None:
        self.path, self.results = path, defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            for row in rows_of(report.nodeid.split("::")[-1]):
                self.results[row].append(report.outcome)

    def pytest_sessionfinish(self) -> None:
        before, _, rest = self.path.read_text("utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, Weft {weft.__version__}"
        found = f"{date.today()}, {versions}:\n\n{table(self.results)}"
        self.path.write_text(f"{before}{MARKS[0]}\n{found}\n{MARKS[1]}{after}", "utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--reliability",
        metavar="FILE",
        type=Path,
        help="write the table of fault tests into FILE",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (path := config.getoption("--reliability", None)) is not None:
        config.pluginmanager.register(Reliability(path))
