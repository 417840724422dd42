"""What a run says while it runs: a live bar on a terminal, plain lines elsewhere, metrics.jsonl always."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from weft import durable
from weft.training import checkpoint


@dataclass(frozen=True)
class StepFacts:
    """One optimizer step: mean loss in nats a token, and its source and target tokens without padding."""

    loss: float
    learning_rate: float
    grad_norm: float
    tokens: int
    seconds: float


class Log:
    """Speaks on standard error and appends to a metrics file, one JSON object a line.

    `quiet` says nothing but still keeps the file. `every` is the number of steps between logged losses.
    """

    def __init__(self, metrics: Path | None = None, every: int = 50, quiet: bool = False) -> None:
        self.metrics, self.every, self.quiet = metrics, every, quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._loss_sum = self._seconds = 0.0
        self._tokens = self._steps = 0
        self._max_steps = 0
        self._last_line = 0.0

    def note(self, text: str) -> None:
        """One line for the person who waits."""
        self.console.print(text, markup=False)

    @contextlib.contextmanager
    def running(self, progress: checkpoint.Progress, max_steps: int) -> Iterator[None]:
        """Show the bar, on a terminal, while the block runs."""
        self._max_steps = max_steps
        self._last_line = time.monotonic()
        if not self.console.is_terminal or self.quiet:
            yield
            return
        columns = (
            TextColumn("training"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}  {task.fields[speed]} tokens/s  left"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=self.console, transient=True) as bar:
            self._bar = bar
            self._task = self._bar.add_task("", total=max_steps, completed=progress.step, loss="-", speed="-")
            try:
                yield
            finally:
                self._bar, self._task = None, None

    def step(self, progress: checkpoint.Progress, facts: StepFacts) -> None:
        """Count one optimizer step; write the mean loss every `every` steps."""
        self._loss_sum += facts.loss
        self._steps += 1
        self._tokens += facts.tokens
        self._seconds += facts.seconds
        due = progress.step % self.every == 0 or progress.step == self._max_steps
        if due:
            line = {
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": round(self._loss_sum / self._steps, 6),
                "learning_rate": facts.learning_rate,
                "grad_norm": round(facts.grad_norm, 4),
                "tokens_per_second": round(self._tokens / max(self._seconds, 1e-9)),
                "seconds": round(progress.seconds, 2),
            }
            self._append(line)
            self._say_step(progress, line)
            self._loss_sum, self._steps, self._tokens, self._seconds = 0.0, 0, 0, 0.0
        elif self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                completed=progress.step,
                loss=f"{self._loss_sum / self._steps:.3f}",
                speed=f"{self._tokens / max(self._seconds, 1e-9):,.0f}",
            )

    def evaluation(self, progress: checkpoint.Progress, scores: Mapping[str, float], improved: bool) -> None:
        """Write and say the scores on dev."""
        self._append({"step": progress.step, "epoch": progress.epoch, **scores})
        shown = "  ".join(f"{name.replace('_', ' ')} {_rounded(value)}" for name, value in scores.items())
        self.note(f"step {progress.step}: {shown}{'  (best so far)' if improved else ''}")

    def rewind(self, step: int) -> None:
        """Drop the lines after `step`: what follows them is done again."""
        if self.metrics is not None:
            drop_lines_after(step, self.metrics)

    def _say_step(self, progress: checkpoint.Progress, line: Mapping[str, Any]) -> None:
        speed = f"{line['tokens_per_second']:,}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.step, loss=f"{line['loss']:.3f}", speed=speed)
        elif time.monotonic() - self._last_line > 10 or progress.step == self._max_steps:
            self._last_line = time.monotonic()
            left = progress.seconds / progress.step * (self._max_steps - progress.step)
            self.note(
                f"step {progress.step}/{self._max_steps}: loss {line['loss']:.3f}  {speed} tokens/s  "
                f"{left / 60:.1f} minutes left"
            )

    def _append(self, line: Mapping[str, Any]) -> None:
        if self.metrics is None:
            return
        durable.make_folder(self.metrics.parent)
        durable.append_line(self.metrics, json.dumps(line, ensure_ascii=False).encode())


def _rounded(value: float) -> str:
    """Two decimals of a score out of a hundred, more of a loss or a fraction."""
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"


def say(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)


def drop_lines_after(step: int, path: Path) -> None:
    """Keep the lines of a file of JSON objects, if there is one, whose "step" is at most `step`."""
    if path.is_file():
        kept = [line for line in path.read_bytes().split(b"\n") if _at_or_before(line, step)]
        durable.write_bytes(path, b"".join(line + b"\n" for line in kept))


def _at_or_before(line: bytes, step: int) -> bool:
    try:
        return int(json.loads(line)["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False
