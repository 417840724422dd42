"""weft sweep: rows, seeds and texts as runs of weft train; what it refuses, skips, goes on with."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.cli import app
from weft.errors import WeftError
from weft.folder import durable
from weft.recipes.written import written_value
from weft.sweep import processes
from weft.sweep.processes import Process
from weft.sweep.run import Run, begin

Command = Callable[..., Any]
WEIGHTS = "model.safetensors"
TWO_ROWS = {"base": {}, "wide": {"model.d_ff": 32}}


class Here:
    """A run in this process, in the place of one of its own, which would load PyTorch anew."""

    pid = os.getpid()

    def __init__(self, run: Run) -> None:
        with run.log.open("w") as log:
            try:
                app(list(run.arguments), standalone_mode=False, prog_name="weft")
                self.code = 0
            except WeftError as error:
                log.write(f"weft: {error}\n")
                self.code = error.exit_code

    def poll(self) -> int:
        return self.code


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that were trained, in this process."""
    names: list[str] = []

    def start(run: Run) -> Process:
        begin(run)
        names.append(run.name.partition("/")[2])
        made: Any = Here(run)
        return Process(run, made)

    monkeypatch.setattr(processes, "_start", start)
    return names


@pytest.fixture
def write_sweep(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
) -> Callable[..., Path]:
    """Write the file of a sweep of tiny models."""
    text = write_pairs(216)

    def write(rows: dict[str, Any], seeds: list[int]) -> Path:
        settings = ["training.max_steps=4", "training.eval_every=2", *tiny_settings]
        settings += ["data.dev_size=6", "data.test_size=6"]
        lines = [f'train = "{text}"', f"seeds = {seeds}", 'output = "out"', ""]
        lines.append("[settings]")
        for setting in settings:
            key, _, value = setting.partition("=")
            is_word = not re.fullmatch(r"true|false|[\d.]+", value)
            lines.append(f"{key} = {written_value(value) if is_word else value}")
        for name, values in rows.items():
            lines += ["", f"[rows.{name}]"]
            lines += [
                f"{key} = {written_value(value)}" for key, value in values.items()
            ]
        path = tmp_path / "widths.toml"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    return write


def stamps(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_what_is_finished_is_left_and_what_is_new_is_trained(
    command: Command, write_sweep: Callable[..., Path], trained: list[str]
) -> None:
    file = write_sweep(TWO_ROWS, [1])
    out = file.parent / "out"
    ended = command("sweep", file, "--jobs", 2)
    assert ended.code == 0, ended.err
    assert trained == ["base/seed-1", "wide/seed-1"]
    head, base, *_ = ended.lines
    assert head.split()[:4] == ["row", "BLEU", "on", "dev"]
    assert (base.split()[0], base.split()[-1]) == ("base", "1")
    recorded = json.loads((out / "pairs/wide/seed-1/run/recipe.json").read_bytes())
    assert recorded["recipe"]["training"]["seed"] == 1
    assert recorded["recipe"]["model"]["d_ff"] == 32
    before = stamps(out / "pairs")
    assert command("sweep", file).lines == ended.lines
    assert (len(trained), stamps(out / "pairs")) == (2, before)
    write_sweep({**TWO_ROWS, "narrow": {"model.d_ff": 8}}, [1])
    assert command("sweep", file).code == 0
    assert trained[2:] == ["narrow/seed-1"]
    write_sweep({"base": {}}, [1, 2])
    ended = command("sweep", file)
    assert trained[3:] == ["base/seed-2"]
    assert "±" in ended.lines[1]
    assert before.items() <= stamps(out / "pairs").items()


def test_a_run_that_fails_is_named_and_the_others_go_on(
    command: Command, write_sweep: Callable[..., Path], trained: list[str]
) -> None:
    """The learning rate of the first row makes its losses infinite."""
    rows = {
        "wild": {"training.learning_rate": 1e30, "training.grad_clip_norm": "none"},
        "slow": {"training.learning_rate": 0.001},
    }
    file = write_sweep(rows, [1])
    ended = command("sweep", file)
    assert ended.code == 4
    assert trained == ["wild/seed-1", "slow/seed-1"]
    (failed,) = [line for line in ended.lines if line.startswith("failed: ")]
    assert failed.startswith("failed: pairs/wild/seed-1: ")
    shown = command("sweep", file, "--table")
    assert (shown.code, shown.lines) == (0, ended.lines)
    wild = next(line for line in shown.lines if line.startswith("wild"))
    assert wild.split() == ["wild", "–", "–", "–", "–", "0", "of", "1"]
    plan = command("sweep", file, "--dry-run", "--jobs", 1)
    assert plan.lines[-1] == "1 of 2 runs to train, 1 at a time"


def test_longer_runs_go_on_and_other_ones_are_refused(
    command: Command, write_sweep: Callable[..., Path], trained: list[str]
) -> None:
    file = write_sweep({"base": {}}, [1])
    assert command("sweep", file).code == 0
    longer = {"training.max_steps": 6}
    write_sweep({"base": longer}, [1])
    plan = command("sweep", file, "--dry-run")
    assert plan.lines[0].endswith("base/seed-1  begun")
    ended = command("sweep", file)
    assert (ended.code, ended.lines[1].split()[-3]) == (0, "6")
    write_sweep({"base": {**longer, "model.d_ff": 32}}, [1])
    refused = command("sweep", file, "--table")
    assert refused.code == 2
    (line,) = refused.messages
    assert "rows.base: " in line
    assert "model.d_ff was 24, is 32" in line
    Path(json.loads(file.read_text().split("\n")[0][8:])).write_text("a\tb\n" * 30)
    write_sweep({"base": longer}, [1])
    assert "the train text is another one" in command("sweep", file).messages[0]
    assert len(trained) == 2


def test_several_texts_are_scored_on_test_and_drawn(
    command: Command,
    write_sweep: Callable[..., Path],
    trained: list[str],
) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    file = write_sweep({"base": {}}, [1])
    first, *rest = file.read_text("utf-8").split("\n")
    texts = [f"data.{name}.{first}" for name in ("one", "two")]
    file.write_text("\n".join([*texts, *rest]), "utf-8")
    picture = file.parent / "curves.svg"
    asked = ["--on", "test", "--score", "chrf", "--curves", picture]
    ended = command("sweep", file, *asked)
    assert ended.code == 0, ended.err
    assert ended.lines[0].split()[:5] == ["text", "row", "chrF", "on", "test"]
    assert trained == ["base/seed-1"] * 2
    rows = [line.split() for line in ended.lines[1:3]]
    assert [row[:2] for row in rows] == [["one", "base"], ["two", "base"]]
    verdict = file.parent / "out/one/base/seed-1/run/verdict.json"
    chrf = json.loads(verdict.read_bytes())["test"]["chrf"]
    assert rows[0][2] == rows[1][2] == f"{chrf:.2f}", "the same text and settings"
    drawn = picture.read_text("utf-8")
    assert all(f">{name}/base<" in drawn for name in ("one", "two"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"a": {}, "b": {"model.d_modle": 8}}, "rows.b: recipe: unknown key"),
        ({"a": {"model.d_model": -1}}, "rows.a: recipe: model.d_model = -1: must be"),
        ({"a": {"recipe": "en-dee"}}, "rows.a: recipe "),
        ({"a": {}, "b": {"task": "classification"}}, "rows.b: "),
    ],
    ids=["unknown", "wrong", "recipe", "task"],
)
def test_a_wrong_row_is_refused_before_anything_is_trained(
    command: Command,
    write_sweep: Callable[..., Path],
    trained: list[str],
    rows: dict[str, Any],
    said: str,
) -> None:
    file = write_sweep(rows, [1])
    ended = command("sweep", file)
    assert (ended.code, ended.out, trained) == (2, b"", [])
    assert ended.messages[0].startswith(f"weft: {file}: {said}")
    assert not (file.parent / "out").exists()


def test_a_text_that_is_not_there(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('train = "no.tsv"\n')
    ended = command("sweep", file)
    assert ended.code == 3
    assert ended.messages == [
        f"weft: {file}: text no: {tmp_path / 'no.tsv'}: no such file"
    ]
    file.write_text("[rows.a]\n")
    ended = command("sweep", file)
    assert ended.code == 2
    assert "no text to train on" in ended.messages[0]
    ended = command("sweep", file, "--table", "--dry-run")
    assert (ended.code, len(ended.messages)) == (2, 1)


def test_how_long_it_takes_is_known_by_the_minutes(
    command: Command, write_sweep: Callable[..., Path]
) -> None:
    rows = {"base": {"minutes": 2}, "wide": {"minutes": 5}}
    file = write_sweep(rows, [1, 2, 3])
    ended = command("sweep", file, "--dry-run", "--jobs", 2)
    assert ended.lines[0].endswith("pairs/base/seed-1  new")
    assert ended.lines[-1] == "6 of 6 runs to train, 2 at a time, 12 minutes in all"
    assert not (file.parent / "out").exists()


def started(file: Path, *more: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "weft", "sweep", str(file), *more]
    # a test run in the background ignores it, and so would its child
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(path: Path, seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.exists()


def weights(out: Path) -> dict[str, str]:
    found = sorted(out.rglob(WEIGHTS))
    models = [path for path in found if path.parent.name.startswith("seed-")]
    return {str(path.relative_to(out)): durable.sha256_of(path) for path in models}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_was_stopped_ends_with_the_same_bits(
    write_sweep: Callable[..., Path], number: int
) -> None:
    """Killed in its second run: the runs notice; the first one is never touched again."""
    file = write_sweep(TWO_ROWS, [1, 2])
    content = file.read_text("utf-8").replace("max_steps = 4", "max_steps = 240")
    content = content.replace("eval_every = 2", "eval_every = 120")
    file.write_text(content, "utf-8")
    out = file.parent / "out"
    sweep = started(file, "--jobs", "1")
    wait_for(out / "pairs" / "base" / "seed-2" / "run" / "metrics.jsonl")
    finished = stamps(out / "pairs" / "base" / "seed-1")
    sweep.send_signal(number)
    _, said = sweep.communicate(timeout=200)
    assert sweep.returncode == (-number if number == signal.SIGKILL else 75), said
    again = started(file, "--jobs", "2")
    _, said = again.communicate(timeout=400)
    assert again.returncode == 0, said
    assert stamps(out / "pairs" / "base" / "seed-1") == finished
    resumed = weights(out)
    assert len(resumed) == 4
    table = started(file, "--table", "--on", "test")
    shown, said = table.communicate(timeout=200)
    assert "p: over seeds and the rows of test\n" in shown
    assert [line for line in said.split("\n") if line and "..." not in line] == []
    shutil.rmtree(out)
    whole = started(file, "--jobs", "2")
    _, said = whole.communicate(timeout=400)
    assert (whole.returncode, weights(out)) == (0, resumed), said
