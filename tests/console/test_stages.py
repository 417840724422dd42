"""The word within a second, and none of the silences before the first step."""

import io
import os
import pty
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import weft
from weft.console import stages
from weft.console.stages import StageLine
from weft.data import builtin

LONGEST = 4.0  # seconds without a word; on a free machine less than one


class Screen(io.StringIO):
    """Standard error, of a terminal or a pipe."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    def fileno(self) -> int:
        return 0


class Clock:
    """Moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((30, 24)))
    monkeypatch.setenv("TERM", "xterm")


def test_a_pipe_is_told_the_first_stage_at_once_and_others_when_they_are_slow(
    clock: Clock,
) -> None:
    line = StageLine(screen := Screen(False), clock)
    line.enter("loading PyTorch", at_once=True)
    assert screen.getvalue() == "loading PyTorch ...\n"
    line.enter("reading a.tsv")
    clock.now += 0.9
    line.tick()
    line.enter("encoding")
    clock.now += 1.1
    line.count("5,000 pairs")
    for _ in range(4):
        line.tick()
    clock.now += 10
    line.tick()
    line.enter("")
    clock.now += 100
    line.tick()
    assert screen.getvalue().split("\n")[1:] == [
        "encoding ... 5,000 pairs (1 s)",
        "encoding ... 5,000 pairs (11 s)",
        "",
    ]


def test_of_a_known_total_the_time_left_is_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr(stages, "TICK", 1e6)
    counts: list[str] = []
    monkeypatch.setattr(StageLine, "count", lambda _, text: counts.append(text))
    with stages.showing("scoring"):
        for _ in stages.counted(range(1200), "windows", every=600, total=1200):
            clock.now += 0.5
    with stages.showing("scoring"):
        assert [*stages.counted("a", "windows", every=1, total=1)] == ["a"]
    assert counts == [
        "600 of 1,200 windows, 0:05:00 left",
        "1,200 of 1,200 windows, 0:00:00 left",
        "1 of 1 window, 0:00:00 left",
    ]
    capfd.readouterr()


@pytest.mark.usefixtures("narrow")
def test_a_terminal_has_one_line_that_never_wraps_and_makes_room(clock: Clock) -> None:
    line = StageLine(screen := Screen(True), clock)
    line.enter("reading a-long-name.en-de.tsv")
    line.count("120,000 pairs")
    clock.now += 3
    line.tick()
    with line.aside():
        screen.write("a note\n")
    line.tick()
    line.enter("")
    later = "reading  ... 120,000 pairs (3"
    assert screen.getvalue().split("\r\x1b[2K") == [
        "reading a-long-name.en-de ...",
        later,
        f"a note\n{later}",
        "",
    ]


def test_nothing_is_shown_where_nobody_asked(capfd: pytest.CaptureFixture[str]) -> None:
    with stages.showing("first", quiet=True), stages.within("compiling"):
        stages.enter("reading")
        stages.count(3, "pairs")
        with stages.aside():
            assert [*stages.counted("abc", "letters")] == ["a", "b", "c"]
    assert capfd.readouterr() == ("", "")


def test_of_several_processes_the_first_shows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for rank in "10":
        monkeypatch.setenv("RANK", rank)
        with stages.showing(f"first of {rank}"), stages.showing("inner"):
            pass
    assert capfd.readouterr() == ("", "first of 0 ...\n")


def test_a_stage_within_another_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    monkeypatch.setattr(StageLine, "tick", lambda self: entered.append(self.stage))
    monkeypatch.setattr(stages, "TICK", 1e6)
    with stages.showing("measuring"), stages.within("compiling"):
        pass
    assert entered == ["measuring", "compiling", "measuring", ""]


def heard(command: list[str]) -> Iterator[tuple[float, bytes]]:
    """What a child writes to its terminal, with the seconds since its start."""
    began = time.monotonic()
    child, screen = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    try:
        while True:
            try:
                said = os.read(screen, 1 << 16)
            except OSError:  # how a terminal says that its other end is closed
                return
            if not said:
                return
            yield time.monotonic() - began, said
    finally:
        os.close(screen)
        os.waitpid(child, 0)


@pytest.mark.long
def test_a_run_is_never_long_silent(
    tmp_path: Path, tiny_settings: tuple[str, ...]
) -> None:
    pairs = builtin.pairs("everyday", "en", "de").train[:3000]
    path = tmp_path / "many.en-de.tsv"
    path.write_bytes("".join(f"{a}\t{b}\n" for a, b in pairs).encode())
    more = (
        "tokenizer.src.kind=bpe",
        "tokenizer.tgt.kind=bpe",
        "training.max_steps=1",
        "data.test_size=2",
    )
    options = [
        f"--set={setting}" for setting in (*tiny_settings, *more, "data.dev_size=2")
    ]
    words = [
        *heard(
            [
                sys.executable,
                "-m",
                "weft",
                "train",
                f"--train={path}",
                f"--out={tmp_path / 'o'}",
                *options,
            ]
        )
    ]
    times = [0.0, *(seconds for seconds, _ in words)]
    screen = b"".join(said for _, said in words).decode()
    assert times[1] < LONGEST
    assert max(b - a for a, b in pairwise(times)) < LONGEST
    assert (
        screen.index("loading PyTorch ...")
        < screen.index("reading ")
        < screen.index("encoding the text ...")
    )
    assert weft.load(tmp_path / "o")
