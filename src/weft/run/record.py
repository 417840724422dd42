"""The record of a run, while it goes and when it ends: `run/verdict.json`."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.data.check.finding import counted
from weft.errors import FolderError, Interrupted, WeftError
from weft.folder import durable
from weft.folder.layout import DONE, STOPPED_EARLY
from weft.training.checkpoint import Progress

ENDED = (DONE, STOPPED_EARLY)
READING = "reading"  # the first stage, before the run has its folder


@dataclass
class Verdict:
    """The end of a run: done, stopped early, interrupted or failed; never better than the truth.

    A run that `weft finish` made a model of has "finished early" at `step` of `max_steps` (0: not
    known). While it runs, the outcome is "running"; it stays so where the process was killed.
    `stage` is what was being done last; `reason` is one line; `dev` and `test` hold scores,
    `judgement` what the model is good for (`weft.run.judging`); `notes` say what a reader of them
    should know. `lengths` are those that the run has had (`weft.training.checkpoint.Progress`).
    """

    outcome: str = "failed"
    exit_code: int = 1
    stage: str = READING
    reason: str = ""
    step: int = 0
    max_steps: int = 0
    lengths: list[dict[str, int | None]] = field(default_factory=list)
    saved_step: int = 0
    best_step: int = 0
    evaluations_since_best: int = 0
    seconds: float = 0.0
    dev: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    test_summary: str = ""
    judgement: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def patience(self) -> int | None:
        """Return the patience of its latest length; None where it has none, or none is known."""
        return self.lengths[-1].get("patience") if self.lengths else None

    def end(self, outcome: str, exit_code: int, reason: str) -> None:
        """Set how the run ended."""
        self.outcome = outcome
        self.exit_code = exit_code
        self.reason = reason


@dataclass
class RunRecord:
    """A run's verdict and the file that it is kept in, if any; the file never lags behind.

    `path` is None in processes that write nothing.
    """

    path: Path | None
    verdict: Verdict = field(default_factory=Verdict)

    def enter(self, stage: str) -> None:
        """Say and write what is done next: that is what a killed process leaves to be read."""
        if stage != self.verdict.stage:
            stages.enter(stage)
        self.verdict.outcome = "running"
        self.verdict.stage = stage
        self.verdict.reason = f"running as process {os.getpid()}, or killed; the same command continues it"
        self.write()

    def foresee(self, max_steps: int, saved_step: int, notes: Iterable[str]) -> None:
        """Take over what is known before the first step, and what a reader should know."""
        self.verdict.max_steps = max_steps
        self.verdict.saved_step = saved_step
        self.verdict.notes += notes

    def stand_at(self, progress: Progress, saved_step: int) -> None:
        """Take over how far training has come, and the step of the newest checkpoint."""
        self.verdict.step = progress.step
        self.verdict.lengths = [dict(length) for length in progress.lengths]
        self.verdict.saved_step = saved_step
        self.verdict.best_step = progress.best_step
        self.verdict.evaluations_since_best = progress.evaluations_since_best
        self.verdict.dev = dict(progress.best_scores)

    def save_step(self, progress: Progress) -> None:
        """Write down that a checkpoint was saved just now."""
        self.stand_at(progress, progress.step)
        self.enter(self.verdict.stage)

    def end(self, outcome: str) -> None:
        """Say that training came to its end: "done" or "stopped early"."""
        steps = counted(self.verdict.step, "steps")
        self.verdict.end(outcome, 0, f"{outcome} after {steps}")

    def write(self) -> None:
        """Write the verdict, where there is a file for it."""
        if self.path is not None:
            durable.write_json(self.path, asdict(self.verdict))


@contextlib.contextmanager
def keeping_record(path: Path | None) -> Iterator[RunRecord]:
    """Give a record and write it when the block ends, however it ends.

    A block that never entered a stage writes nothing: the folder is not there yet, or is not its
    own.
    """
    record = RunRecord(path)
    verdict = record.verdict
    started = time.monotonic()
    try:
        yield record
    except WeftError as error:
        outcome = "interrupted" if isinstance(error, Interrupted) else "failed"
        verdict.end(outcome, error.exit_code, str(error))
        raise
    except KeyboardInterrupt:
        verdict.end("interrupted", 130, "left at once by Ctrl-C")
        raise
    except Exception as error:
        verdict.end("failed", verdict.exit_code, f"{type(error).__name__}: {error}")
        raise
    finally:
        verdict.seconds = round(time.monotonic() - started, 1)
        if verdict.stage != READING:
            try:
                record.write()
            except FolderError:
                # else an error is on its way that says more
                if verdict.outcome in ENDED:
                    raise


def read_verdict(path: Path) -> Verdict | None:
    """Return the verdict of an earlier start.

    None where there was none, or it is damaged: training does not need it.
    """
    try:
        return Verdict(**durable.read_json(path))
    except (FolderError, TypeError):
        return None
