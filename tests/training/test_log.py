"""metrics.jsonl: one object a line, lines of steps done again dropped, and what a person is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from weft.training.checkpoint import Progress
from weft.training.log import Log, StepFacts


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def run(log: Log, first: int, last: int, max_steps: int = 10) -> None:
    """Steps first..last, each with its own number as the loss."""
    progress = Progress(step=first - 1)
    with log.running(progress, max_steps):
        for step in range(first, last + 1):
            progress.step, progress.seconds = step, step / 2
            log.step(progress, StepFacts(loss=step, learning_rate=0.5, grad_norm=2.0, tokens=100, seconds=0.5))


def test_a_line_every_so_many_steps_and_at_the_end(tmp_path: Path) -> None:
    log = Log(tmp_path / "run" / "metrics.jsonl", every=4, quiet=True)
    run(log, 1, 10)
    assert [(line["step"], line["loss"]) for line in lines(tmp_path / "run" / "metrics.jsonl")] == [
        (4, 2.5),
        (8, 6.5),
        (10, 9.5),
    ]


def test_the_fields_of_a_line(tmp_path: Path) -> None:
    log = Log(tmp_path / "m", every=4, quiet=True)
    run(log, 1, 4)
    expected = {
        "step": 4,
        "epoch": 0,
        "loss": 2.5,
        "learning_rate": 0.5,
        "grad_norm": 2.0,
        "tokens_per_second": 200,
        "seconds": 2.0,
    }
    assert lines(tmp_path / "m") == [expected]


def test_an_evaluation_is_a_line_with_its_scores(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "m")
    log.evaluation(Progress(step=6, epoch=1), {"dev_bleu": 12.345678, "dev_loss": 1.5}, improved=True)
    assert lines(tmp_path / "m") == [{"step": 6, "epoch": 1, "dev_bleu": 12.345678, "dev_loss": 1.5}]
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "step 6: dev bleu 12.35  dev loss 1.5000  (best so far)\n"


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


@pytest.mark.parametrize("damage", [b"[]\n", b'{"step": null}\n', b'{"loss": 1}\n', b"\n\n", b"12\n"])
def test_rewinding_drops_lines_that_are_none(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "m"
    path.write_bytes(b'{"step": 1}\n' + damage + b'{"step": 2}\n')
    Log(path, quiet=True).rewind(2)
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


def test_rewinding_without_a_file_makes_none(tmp_path: Path) -> None:
    Log(tmp_path / "m", quiet=True).rewind(3)
    Log(None, quiet=True).rewind(3)
    assert list(tmp_path.iterdir()) == []


def test_quiet_is_silent_and_keeps_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "m", every=1, quiet=True)
    log.note("hidden")
    run(log, 1, 2)
    assert capfd.readouterr() == ("", "")
    assert len(lines(tmp_path / "m")) == 2


def test_notes_are_plain_lines_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither wrapped nor read as markup."""
    text = "[red]not markup[/red] " + "long " * 60 + "文字"
    Log().note(text)
    assert capfd.readouterr() == ("", text + "\n")
