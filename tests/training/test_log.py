"""metrics.jsonl: one object a line, lines of steps done again dropped, and what a person is
told.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from weft.training import log as log_module
from weft.training.checkpoint import Progress
from weft.training.log import (
    Log,
    StepFacts,
    evaluation_seconds,
    in_words,
    roughly,
    seconds_left,
    spoken,
)
from weft.training.scores import is_decided_by_loss


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def run(log: Log, first: int, last: int, max_steps: int = 10) -> None:
    """Steps first..last, each with its own number as the loss."""
    progress = Progress(step=first - 1)
    with log.running(progress, max_steps):
        for step in range(first, last + 1):
            progress.step, progress.seconds = step, step / 2
            log.step(
                progress,
                StepFacts(
                    loss=step, learning_rate=0.5, grad_norm=2.0, tokens=100, seconds=0.5
                ),
            )


def test_a_line_every_so_many_steps_and_at_the_end(tmp_path: Path) -> None:
    log = Log(tmp_path / "run" / "metrics.jsonl", every=4, quiet=True)
    run(log, 1, 10)
    assert [
        (line["step"], line["loss"])
        for line in lines(tmp_path / "run" / "metrics.jsonl")
    ] == [
        (4, 2.5),
        (8, 6.5),
        (10, 9.5),
    ]


@dataclass
class Clock:
    """Stands in for the module `time` of the log, and is moved by hand."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(log_module, "time", made := Clock())
    return made


def test_the_fields_of_a_line(tmp_path: Path, clock: Clock) -> None:
    log = Log(tmp_path / "m", every=4, quiet=True)
    run(log, 1, 4)
    expected = {
        "step": 4,
        "epoch": 0,
        "loss": 2.5,
        "learning_rate": 0.5,
        "grad_norm": 2.0,
        "tokens_per_second": 200,
        "data_wait_share": 0.0,
        "seconds": 2.0,
        "seconds_left": 0.0,
    }
    assert lines(tmp_path / "m") == [expected]


def test_an_evaluation_is_a_line_with_its_scores(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path / "m")
    log.evaluation(
        Progress(step=6, epoch=1),
        {"dev_bleu": 12.345678, "dev_loss": 1.5},
        True,
        seconds=2.345,
    )
    expected = {
        "step": 6,
        "epoch": 1,
        "dev_bleu": 12.345678,
        "dev_loss": 1.5,
        "evaluation_seconds": 2.35,
    }
    assert lines(tmp_path / "m") == [expected]
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "step 6: dev bleu 12.35  dev loss 1.5000  (best so far)\n"


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"dev_bleu": 0.2042, "dev_loss": 5.5}, "(lowest loss so far)"),
        ({"dev_bleu": 5.0, "dev_loss": 5.5}, "(best so far)"),
        ({"dev_loss": 5.5}, "(best so far)"),
    ],
)
def test_an_evaluation_that_its_loss_makes_the_best_is_said_to_have_the_lowest_loss(
    scores: dict[str, float], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    by_loss = is_decided_by_loss(scores)
    Log().evaluation(Progress(step=25), scores, True, by_loss=by_loss)
    assert capfd.readouterr().err.endswith(f"  {said}\n")


def test_rewinding_drops_what_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "m"
    log = Log(path, every=1, quiet=True)
    run(log, 1, 5)
    log.evaluation(Progress(step=5), {"dev_bleu": 1.0}, improved=True)
    run(log, 6, 9)
    with path.open("ab") as file:
        file.write(b'{"step": 10, "lo')  # what a kill leaves
    log.rewind(5)
    assert [line["step"] for line in lines(path)] == [1, 2, 3, 4, 5, 5]
    run(log, 6, 10)
    assert [line["step"] for line in lines(path)] == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    "damage", [b"[]\n", b'{"step": null}\n', b'{"loss": 1}\n', b"\n\n", b"12\n"]
)
def test_rewinding_drops_lines_that_are_none(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "m"
    path.write_bytes(b'{"step": 1}\n' + damage + b'{"step": 2}\n')
    Log(path, quiet=True).rewind(2)
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


def test_rewinding_without_a_file_makes_none(tmp_path: Path) -> None:
    Log(tmp_path / "m", quiet=True).rewind(3)
    Log(None, quiet=True).rewind(3)
    assert list(tmp_path.iterdir()) == []


def test_quiet_is_silent_and_keeps_the_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path / "m", every=1, quiet=True)
    log.note("hidden")
    run(log, 1, 2)
    assert capfd.readouterr() == ("", "")
    assert len(lines(tmp_path / "m")) == 2


def test_notes_are_plain_lines_on_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither wrapped nor read as markup."""
    text = "[red]not markup[/red] " + "long " * 60 + "文字"
    Log().note(text)
    assert capfd.readouterr() == ("", text + "\n")


def test_shares_are_those_of_all_steps_since_the_last_line(tmp_path: Path) -> None:
    log, progress = Log(tmp_path / "m", every=2, quiet=True), Progress()
    with log.running(progress, 2):
        for progress.step, (seconds, waited, at_peak) in enumerate(
            [(1.0, 0.0, 0.1), (3.0, 0.02, 0.9)], start=1
        ):
            log.step(
                progress,
                StepFacts(
                    loss=1.0,
                    learning_rate=0.5,
                    grad_norm=2.0,
                    tokens=100,
                    seconds=seconds,
                    waited=waited,
                    at_peak=at_peak,
                ),
            )
    (line,) = lines(tmp_path / "m")
    assert (line["peak_share"], line["data_wait_share"]) == (0.25, 0.005)


def test_a_share_above_a_whole_is_none(tmp_path: Path) -> None:
    log, progress = Log(tmp_path / "m", every=1, quiet=True), Progress()
    with log.running(progress, 2):
        for progress.step, at_peak in enumerate([2.0, 2.1], start=1):
            log.step(
                progress,
                StepFacts(
                    loss=1.0,
                    learning_rate=0.5,
                    grad_norm=2.0,
                    tokens=100,
                    seconds=2.0,
                    waited=0.0,
                    at_peak=at_peak,
                ),
            )
    assert [line.get("peak_share") for line in lines(tmp_path / "m")] == [1.0, None]


@pytest.mark.parametrize(
    ("step", "evaluations", "expected"),
    [
        (0, [], 200.0),  # 100 steps of 2 seconds; what an evaluation takes is not known
        (0, [10.0], 240.0),  # after steps 30, 60, 90 and 100
        (29, [10.0], 182.0),
        (30, [10.0], 180.0),  # that of step 30 itself is still to come
        (31, [10.0], 168.0),
        (100, [10.0], 10.0),
        (99, [100.0, 9.0, 10.0, 11.0], 12.0),  # the latest three count
    ],
)
def test_what_is_left_counts_steps_and_evaluations(
    step: int, evaluations: list[float], expected: float
) -> None:
    assert seconds_left(step, 100, 2.0, 30, evaluations) == expected


def test_what_is_left_where_nothing_is_evaluated() -> None:
    assert seconds_left(40, 100, 2.0, None, []) == 120.0
    assert seconds_left(100, 100, 2.0, 50, [3.0]) == 3.0


def timed(
    log: Log,
    clock: Clock,
    first: int,
    last: int,
    seconds: float,
    evaluation: float = 0.0,
) -> None:
    """Steps of some seconds by the clock; after each fifth an evaluation. The run has 20 steps."""
    progress = Progress(step=first - 1, seconds=1e6)
    with log.running(progress, 20, eval_every=5):
        for progress.step in range(first, last + 1):
            clock.now += seconds
            log.step(
                progress,
                StepFacts(
                    loss=1.0,
                    learning_rate=0.5,
                    grad_norm=2.0,
                    tokens=100,
                    seconds=seconds / 2,
                ),
            )
            if progress.step % 5 == 0:
                clock.now += evaluation
                log.evaluation(progress, {"dev_loss": 1.0}, False, seconds=evaluation)


def test_evaluations_already_made_tell_what_the_others_take(
    tmp_path: Path, clock: Clock
) -> None:
    timed(
        Log(tmp_path / "m", every=1, quiet=True),
        clock,
        1,
        7,
        seconds=3.0,
        evaluation=60.0,
    )
    left = {
        line["step"]: line["seconds_left"]
        for line in lines(tmp_path / "m")
        if "loss" in line
    }
    assert left == {1: 57, 2: 54, 3: 51, 4: 48, 5: 45, 6: 14 * 3 + 180, 7: 13 * 3 + 180}


def test_after_a_stop_the_pace_is_new_and_the_evaluations_are_remembered(
    tmp_path: Path, clock: Clock
) -> None:
    timed(
        Log(tmp_path / "m", every=1, quiet=True),
        clock,
        1,
        10,
        seconds=3.0,
        evaluation=60.0,
    )
    clock.now += 1e5  # a night
    log = Log(tmp_path / "m", every=1, quiet=True)
    log.rewind(7)
    timed(log, clock, 8, 8, seconds=2.0)
    assert lines(tmp_path / "m")[-1]["seconds_left"] == 12 * 2 + 3 * 60


@pytest.mark.parametrize(
    "damage", [b"[]", b"nothing", b'{"evaluation_seconds": "soon"}', b""]
)
def test_the_time_of_evaluations_is_read_from_sound_lines(
    tmp_path: Path, damage: bytes
) -> None:
    assert evaluation_seconds(tmp_path / "none") == []
    (tmp_path / "m").write_bytes(
        b'{"evaluation_seconds": 2}\n' + damage + b'\n{"evaluation_seconds": 3.5}\n'
    )
    assert evaluation_seconds(tmp_path / "m") == [2.0, 3.5]


def test_what_is_said_of_a_step(
    tmp_path: Path, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    log, progress = Log(tmp_path / "m", every=1), Progress(step=3)
    with log.running(progress, 20, eval_every=5):
        clock.now += 60
        log.step(
            progress,
            StepFacts(
                loss=4.25,
                learning_rate=0.5,
                grad_norm=1.5,
                tokens=123_400,
                seconds=60.0,
                waited=0.03,
                at_peak=18.0,
            ),
        )
        log.evaluation(progress, {"dev_loss": 1.0}, False, seconds=30)
        clock.now += 90
        progress.step = 4
        log.step(
            progress,
            StepFacts(
                loss=4.25, learning_rate=0.5, grad_norm=1.5, tokens=100, seconds=60.0
            ),
        )
    said = capfd.readouterr().err.split("\n")
    assert (
        said[0]
        == "step 3/20: at least 17 minutes left  loss 4.250  2,057 tokens/s  gradient 1.50"
    )
    assert (
        said[2] == "step 4/20: 18 minutes left  loss 4.250  2 tokens/s  gradient 1.50"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "a few seconds"),
        (14, "a few seconds"),
        (16, "20 seconds"),
        (44, "40 seconds"),
        (54, "50 seconds"),
        (55, "1 minute"),
        (107, "2 minutes"),
        (3000, "50 minutes"),
        (3590, "1 h 00 min"),
        (294.8 * 60, "4 h 55 min"),
        (50.4 * 3600, "2 days 2 h"),
    ],
)
def test_a_time_is_said_as_exactly_as_one_foresees_it(
    seconds: float, said: str
) -> None:
    assert spoken(seconds) == said
    assert roughly(seconds) == (said if said == "a few seconds" else f"about {said}")


@pytest.mark.parametrize(
    ("number", "said"),
    [(850_000, "850,000"), (3_940_000, "3.9 million"), (1_200_000_000, "1.2 billion")],
)
def test_large_numbers_are_said_in_words(number: int, said: str) -> None:
    assert in_words(number) == said


def test_shares_are_said_where_they_matter_or_are_asked_for() -> None:
    line = {
        "loss": 1.0,
        "grad_norm": 1.0,
        "tokens_per_second": 1,
        "data_wait_share": 0.004,
        "seconds_left": 9.0,
    }
    for share, said in (
        (0.004, "0.4 % of peak"),
        (0.0996, "10.0 % of peak"),
        (0.284, "28 % of peak"),
    ):
        assert said in log_module._said(
            {**line, "peak_share": share}, known=True, verbose=True
        )
        assert said not in log_module._said({**line, "peak_share": share}, known=True)
    assert "0.4 % waiting for data" in log_module._said(line, known=True, verbose=True)
    assert "60.0 % waiting for data" in log_module._said(
        {**line, "data_wait_share": 0.6}, known=True
    )


def test_a_loss_that_dev_has_not_is_named() -> None:
    line = {
        "loss": 1.717,
        "grad_norm": 1.0,
        "tokens_per_second": 1,
        "data_wait_share": 0.0,
        "seconds_left": 9.0,
    }
    assert "loss 1.717" in log_module._said(line, known=True)
    named = log_module._said(line, known=True, terms="smoothed, R-Drop")
    assert "loss 1.717 (smoothed, R-Drop)" in named


@pytest.mark.parametrize(
    ("width", "fits"), [(120, 4), (50, 3), (36, 2), (20, 1), (3, 1)]
)
def test_a_narrow_line_keeps_what_matters_most(width: int, fits: int) -> None:
    parts = ["25 minutes left", "loss 4.250", "2,057 tokens/s", "gradient 1.50"]
    assert log_module.fitting(parts, width) == "  ".join(parts[:fits])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_time_left_stands_first_and_is_never_cut(
    tmp_path: Path, clock: Clock, width: int
) -> None:
    log, progress = Log(tmp_path / "m", every=4), Progress(step=3)
    screen = io.StringIO()
    log.console = Console(
        file=screen,
        force_terminal=True,
        width=width,
        highlight=False,
        color_system=None,
    )
    with log.running(progress, 20, eval_every=5):
        clock.now += 18000 / 17
        log.step(
            progress,
            StepFacts(
                loss=4.25,
                learning_rate=0.5,
                grad_norm=1.5,
                tokens=123_400_000,
                seconds=60.0,
                waited=0.03,
                at_peak=18.0,
            ),
        )
    drawn = [
        line
        for line in screen.getvalue().replace("\r", "\n").split("\n")
        if " left" in line
    ]
    assert drawn
    assert all(
        line.startswith("at least 5 h 00 min left") and len(line) <= width
        for line in drawn
    )
    assert not any("…" in line for line in drawn)


def test_a_terminal_breaks_notes_between_words_and_colours_them() -> None:
    log, screen = Log(), io.StringIO()
    log.console = Console(
        file=screen, force_terminal=True, width=20, color_system="standard"
    )
    log.note("note: no test set is here")
    assert screen.getvalue() == "\x1b[33mnote:\x1b[0m no test set is\n  here\n"


def test_a_terminal_breaks_no_command_and_leaves_no_blank_at_an_end() -> None:
    log, screen = Log(), io.StringIO()
    log.console = Console(file=screen, force_terminal=True, width=40, color_system=None)
    command = (
        "  weft train pairs.tsv --output runs/a-long-name --set training.max_steps=9000"
    )
    log.note(command)
    log.note("  what would help: more text than this, or a longer training of it")
    assert screen.getvalue().split("\n") == [
        command,
        "  what would help: more text than this,",
        "    or a longer training of it",
        "",
    ]


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_nothing_is_painted_anew_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """A program that asks for colours in its log still gets lines, as from any pipe."""
    monkeypatch.setenv(name, "1")
    log = Log()
    log.note("note: no test set is here")
    run(log, 1, 10)
    err = capfd.readouterr().err
    assert "\x1b" not in err
    assert "\r" not in err
    first, last, end = err.split("\n")
    assert (first, last[:12], end) == ("note: no test set is here", "step 10/10: ", "")


def test_the_bar_says_the_same(tmp_path: Path, clock: Clock) -> None:
    log, progress = Log(tmp_path / "m", every=4, verbose=True), Progress(step=3)
    screen = io.StringIO()
    log.console = Console(
        file=screen, force_terminal=True, width=120, color_system=None
    )
    with log.running(progress, 20):
        clock.now += 60
        log.step(
            progress,
            StepFacts(
                loss=4.25,
                learning_rate=0.5,
                grad_norm=1.5,
                tokens=123_400,
                seconds=60.0,
                waited=0.03,
                at_peak=18.0,
            ),
        )
    assert "3/20" in screen.getvalue()
    assert (
        "17 minutes left  loss 4.250  2,057 tokens/s  0.1 % waiting for data  30 % of peak  gradient 1.50"
        in screen.getvalue()
    )
    assert not (tmp_path / "m").exists()  # no line is due


@dataclass
class Notebook:
    """A tracker that keeps what it is told, and may fail at a line."""

    fails_at: int | None = None
    told: list[Any] = field(default_factory=list)
    name: str = "notebook"

    def describe(self) -> str:
        return "notebook: look here"

    def rewind(self, step: int) -> None:
        self.told.append(("rewind", step))

    def line(self, line: Mapping[str, Any]) -> None:
        if line["step"] == self.fails_at:
            raise OSError("no paper")
        self.told.append(line["step"])

    def close(self) -> None:
        self.told.append("close")


def test_trackers_are_told_every_line(tmp_path: Path) -> None:
    log = Log(tmp_path / "m", every=2, quiet=True)
    log.trackers = [notebook := Notebook()]
    log.rewind(3)
    run(log, 4, 10)
    assert notebook.told == [("rewind", 3), 4, 6, 8, 10, "close"]


def test_a_tracker_that_fails_is_left_out_and_the_run_continues(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log(tmp_path / "m", every=1)
    log.trackers = [broken := Notebook(fails_at=3), sound := Notebook()]
    run(log, 1, 4)
    assert (broken.told, sound.told) == ([1, 2], [1, 2, 3, 4, "close"])
    assert [line["step"] for line in lines(tmp_path / "m")] == [1, 2, 3, 4]
    assert (
        "note: notebook failed (no paper); the run continues without it\n"
        in capfd.readouterr().err
    )
