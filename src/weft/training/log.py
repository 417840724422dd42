"""The log of a run: a live bar on a terminal, plain lines elsewhere, metrics.jsonl always."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from weft.console import stages
from weft.console.wording import WIDEST, wrapped
from weft.folder import durable
from weft.training import checkpoint
from weft.training.scores import EVALUATION_SECONDS
from weft.training.trackers import Tracker

WORTH_SAYING = 0.05  # of a step, that is spent on waiting for its batches
_NEWS = 0.1  # what is foreseen is said anew where it differs by so much
_LEANING = 10  # steps whose foreseen time counts beside those that were measured
# the latest evaluations that tell what the next will take: the first ones of a run are slower
_LATEST = 3


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """The facts of an optimizer step: mean loss in nats a token, and its tokens without padding.

    `waited` is the part of its seconds in which batches were made; `at_peak` the seconds that this
    process's part of its products would take at the machine's matrix peak, 0 where that is unknown.
    """

    loss: float
    learning_rate: float
    grad_norm: float
    tokens: int
    seconds: float
    waited: float = 0.0
    at_peak: float = 0.0


class Foreseen(Protocol):
    """Seconds that a step, an evaluation and what follows training will take, by short trials."""

    @property
    def step(self) -> float: ...
    @property
    def evaluation(self) -> float: ...
    @property
    def ending(self) -> float: ...


class _Sums:
    """The sums over the steps since the last line, or this start; losses stand in the progress."""

    def __init__(self) -> None:
        self.seconds = self.waited = self.at_peak = 0.0
        self.tokens = 0

    def add(self, facts: StepFacts) -> None:
        self.seconds += facts.seconds
        self.waited += facts.waited
        self.at_peak += facts.at_peak
        self.tokens += facts.tokens

    def line(self, facts: StepFacts) -> dict[str, float]:
        """Return the means, and of the last step `facts`; the share of the peak only where it is
        known.

        Where it would be above 1, the peak was measured beside other work, and is not known.
        """
        seconds = max(self.seconds, 1e-9)
        peak = (
            {"peak_share": round(self.at_peak / seconds, 4)}
            if 0 < self.at_peak <= seconds
            else {}
        )
        return {
            "learning_rate": facts.learning_rate,
            "grad_norm": round(facts.grad_norm, 4),
            "tokens_per_second": round(self.tokens / seconds),
            **peak,
            "data_wait_share": round(self.waited / seconds, 4),
        }


@dataclass(frozen=True)
class _Fitting:
    """A line of as many parts as its width holds, the first one bold."""

    parts: Sequence[str]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        first = len(self.parts[0])
        line = fitting(self.parts, options.max_width)
        yield Text.assemble(
            (line[:first], "bold"),
            (line[first:], "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )


class _Bar(Progress):
    """The bar, and below it what fits of the latest line, the time that is left first."""

    parts: Sequence[str] = ("",)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield _Fitting(self.parts)


class Log:
    """Speaks on standard error and appends to a metrics file, one JSON object a line; trackers get
    the same.

    `quiet` says nothing but still keeps the file, `verbose` also says how the machine is used.
    `every` is the number of steps between logged losses.
    """

    def __init__(
        self,
        metrics: Path | None = None,
        every: int = 50,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.metrics, self.every, self.quiet, self.verbose = (
            metrics,
            every,
            quiet,
            verbose,
        )
        # whatever FORCE_COLOR says: nothing is painted anew in a file
        is_terminal = sys.stderr.isatty()
        self.console = Console(
            stderr=True,
            quiet=quiet,
            highlight=False,
            soft_wrap=True,
            force_terminal=is_terminal,
        )
        self.trackers: list[Tracker] = []
        self.foreseen: Foreseen | None = None
        # what the loss in training has and that on dev has not, in words
        self.loss_terms = ""
        # where the clock ends the run
        self.time_left: Callable[[], float] | None = None
        self._bar: _Bar | None = None
        self._sums = _Sums()
        self._steps = self._max_steps = 0
        self._eval_every: int | None = None
        self._evaluations: list[float] = []
        self._began = self._evaluating = self._last_line = 0.0

    def note(self, text: str) -> None:
        """Say a line to the person who waits; a terminal breaks it between words."""
        width = min(self.console.width, WIDEST) if self.console.is_terminal else None
        with stages.aside():
            for part in wrapped(text, width):
                self.console.print(_coloured(part), soft_wrap=True)

    @contextlib.contextmanager
    def running(
        self,
        progress: checkpoint.Progress,
        max_steps: int,
        eval_every: int | None = None,
    ) -> Iterator[None]:
        """Show the bar, on a terminal, while the block runs; `eval_every` is None where nothing is
        evaluated.
        """
        self._max_steps = max_steps
        self._eval_every = eval_every
        self._began = self._last_line = time.monotonic()
        self._steps = 0
        self._evaluating = 0.0
        self._sums = _Sums()
        stages.enter("")  # from here on the steps speak
        try:
            if not self.console.is_terminal or self.quiet:
                yield
                return
            columns = (
                TextColumn("training"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
            )
            with _Bar(*columns, console=self.console, transient=True) as self._bar:
                self._bar.add_task("", total=max_steps, completed=progress.step)
                yield
        finally:
            self._bar = None
            self._to_trackers(lambda tracker: tracker.close())

    def step(self, progress: checkpoint.Progress, facts: StepFacts) -> None:
        """Count one optimizer step; write the means every `every` steps.

        The losses not yet written are kept in the progress, so that a resumed run's mean has all of
        its steps.
        """
        self._sums.add(facts)
        progress.unlogged_loss += facts.loss
        progress.unlogged_steps += 1
        self._steps += 1
        due = progress.step % self.every == 0 or progress.step == self._max_steps
        if not due and self._bar is None:
            return
        left = self._seconds_left(progress.step)
        seconds = {
            "seconds": round(progress.seconds, 2),
            "seconds_left": round(left, 1),
        }
        loss = {"loss": round(progress.unlogged_loss / progress.unlogged_steps, 6)}
        line = {
            "step": progress.step,
            "epoch": progress.epoch,
            **loss,
            **self._sums.line(facts),
            **seconds,
        }
        if due:
            self._append(line)
            self._sums = _Sums()
            progress.unlogged_loss = 0.0
            progress.unlogged_steps = 0
        self._say_step(line)

    def evaluation(
        self,
        progress: checkpoint.Progress,
        scores: Mapping[str, float],
        improved: bool,
        seconds: float = 0.0,
        by_loss: bool = False,
    ) -> None:
        """Write and say the scores on dev, which took so many seconds.

        `by_loss` says that the loss decides which evaluation is the best.
        """
        self._evaluations.append(seconds)
        self._evaluating += seconds
        line = {
            "step": progress.step,
            "epoch": progress.epoch,
            **scores,
            EVALUATION_SECONDS: round(seconds, 2),
        }
        self._append(line)
        shown = "  ".join(
            f"{name.replace('_', ' ')} {_rounded(value)}"
            for name, value in scores.items()
        )
        best = ""
        if improved:
            best = "  (lowest loss so far)" if by_loss else "  (best so far)"
        self.note(f"step {progress.step}: {shown}{best}")

    def rewind(self, step: int) -> None:
        """Drop the lines after `step`: what follows them is done again."""
        if self.metrics is not None:
            drop_lines_after(step, self.metrics)
            self._evaluations = evaluation_seconds(self.metrics)
        self._to_trackers(lambda tracker: tracker.rewind(step))

    def planned(self, step: int, max_steps: int) -> None:
        """Say that the decay begins after `step`: the number of steps is known from now on."""
        self.time_left = None
        self._counts(max_steps)
        self.note(
            f"step {step:,}: the learning rate begins to fall; {max_steps:,} steps in all"
        )

    def expected(self, step: int, max_steps: int) -> None:
        """Note how many steps are foreseen in all after `step`; said where it differs by a
        tenth.
        """
        before = self._max_steps
        if abs(max_steps - before) > _NEWS * before:
            self._counts(max_steps)
            self.note(
                f"step {step:,}: by the speed so far about {max_steps:,} steps in all, not {before:,}"
            )

    def _counts(self, max_steps: int) -> None:
        self._max_steps = max_steps
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], total=max_steps)

    @property
    def evaluations(self) -> list[float]:
        """Return how long each evaluation so far took, in seconds."""
        return [*self._evaluations]

    def _seconds_left(self, step: int) -> float:
        """Estimate the seconds left by the clock since this start.

        What a step costs beside itself (saving, say) is then in it.

        The first steps lean on what was foreseen: they are slower than others.
        """
        if self.time_left is not None:
            return self.time_left()
        seconds = time.monotonic() - self._began - self._evaluating
        evaluations = self._evaluations
        ending = 0.0
        a_step = seconds / max(self._steps, 1)
        foreseen = self.foreseen
        if foreseen is not None:
            evaluations = self._evaluations or [foreseen.evaluation]
            ending = foreseen.ending
            a_step = (seconds + _LEANING * foreseen.step) / (self._steps + _LEANING)
        left = seconds_left(
            step, self._max_steps, a_step, self._eval_every, evaluations
        )
        return left + ending

    def _say_step(self, line: Mapping[str, Any]) -> None:
        known = (
            bool(self._evaluations)
            or self._eval_every is None
            or self.foreseen is not None
        )
        said = _said(line, known, self.verbose, self.loss_terms)
        if self._bar is not None:
            self._bar.parts = said
            self._bar.update(self._bar.task_ids[0], completed=line["step"])
        elif time.monotonic() - self._last_line > 10 or line["step"] == self._max_steps:
            self._last_line = time.monotonic()
            # the clock has not decided yet
            about = "" if self.time_left is None else "about "
            steps = max(self._max_steps, line["step"])
            self.note(f"step {line['step']:,}/{about}{steps:,}: {'  '.join(said)}")

    def _append(self, line: Mapping[str, Any]) -> None:
        if self.metrics is None:
            return
        durable.make_folder(self.metrics.parent)
        durable.append_line(self.metrics, json.dumps(line, ensure_ascii=False).encode())
        self._to_trackers(lambda tracker: tracker.line(line))

    def _to_trackers(self, act: Callable[[Tracker], None]) -> None:
        """Send a line to the trackers; one that fails is left out from there on: it must not end
        a run.
        """
        for tracker in [*self.trackers]:
            try:
                act(tracker)
            except Exception as error:
                self.trackers.remove(tracker)
                self.note(
                    f"note: {tracker.name} failed ({error}); the run continues without it"
                )


def seconds_left(
    step: int,
    max_steps: int,
    seconds_a_step: float,
    eval_every: int | None = None,
    evaluations: Sequence[float] = (),
) -> float:
    """Estimate the seconds that a run still takes after `step`.

    An evaluation that is due after it is still to come.

    Evaluations are taken to last as long as the latest ones did; without any, none is counted.
    """
    ahead = 0
    if eval_every is not None and evaluations:
        ahead = (
            max_steps // eval_every
            - max(step - 1, 0) // eval_every
            + (max_steps % eval_every > 0)
        )
    latest = evaluations[-_LATEST:]
    return (max_steps - step) * seconds_a_step + ahead * sum(latest) / max(
        len(latest), 1
    )


def evaluation_seconds(path: Path) -> list[float]:
    """Read the seconds of the evaluations from a metrics file, which may be missing."""
    if not path.is_file():
        return []
    lines = (_object(line) for line in path.read_bytes().split(b"\n"))
    found = [line[EVALUATION_SECONDS] for line in lines if EVALUATION_SECONDS in line]
    return [float(seconds) for seconds in found if isinstance(seconds, int | float)]


def _said(
    line: Mapping[str, Any], known: bool, verbose: bool = False, terms: str = ""
) -> list[str]:
    """Return a line for a person in parts, what matters most first: a narrow terminal has room for
    the first ones alone.

    Where the time of evaluations is not `known`, what is left is at least that. `terms` name what
    the loss has and that on dev has not.
    """
    named = f" ({terms})" if terms else ""
    peak = (
        [f"{_percent(line['peak_share'])} of peak"]
        if verbose and "peak_share" in line
        else []
    )
    waits = verbose or line["data_wait_share"] >= WORTH_SAYING
    waiting = (
        [f"{100 * line['data_wait_share']:.1f} % waiting for data"] if waits else []
    )
    return [
        f"{'' if known else 'at least '}{spoken(line['seconds_left'])} left",
        f"loss {line['loss']:.3f}{named}",
        f"{line['tokens_per_second']:,} tokens/s",
        *waiting,
        *peak,
        f"gradient {line['grad_norm']:.2f}",
    ]


def fitting(parts: Sequence[str], width: int) -> str:
    """Join as many of the parts, from the first on, as a line of so many columns holds; one at
    least.
    """
    fit = (
        count
        for count in range(len(parts), 1, -1)
        if len("  ".join(parts[:count])) <= width
    )
    return "  ".join(parts[: next(fit, 1)])


def spoken(seconds: float) -> str:
    """Say a time to wait as exactly as one foresees it: "40 seconds", "25 minutes", "4 h 55
    min".
    """
    if seconds < 55:
        return (
            f"{10 * round(seconds / 10)} seconds" if seconds >= 15 else "a few seconds"
        )
    minutes = round(seconds / 60)
    if minutes < 60:
        return "1 minute" if minutes == 1 else f"{minutes} minutes"
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02} min"
        if hours < 48
        else f"{hours // 24} days {hours % 24} h"
    )


def roughly(seconds: float) -> str:
    """Say a time as an estimate: "about 40 seconds", or "a few seconds"."""
    said = spoken(seconds)
    return said if said.startswith("a few") else f"about {said}"


def in_words(number: int) -> str:
    """Say a large number in short: "850,000", "3.9 million"."""
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:,.1f} {name}"
    return f"{number:,}"


def _coloured(text: str) -> Text:
    """Mark what a person looks for on a terminal, in colour."""
    line = Text(text)
    line.highlight_regex(r"^note:", "yellow")
    line.highlight_regex(r"\((best|lowest loss) so far\)$", "green")
    return line


def _percent(share: float) -> str:
    """Say a share in percent, below a tenth with one decimal."""
    return f"{100 * share:.{0 if share >= 0.1 else 1}f} %"


def _rounded(value: float) -> str:
    """Say a score out of a hundred with two decimals, a loss or a fraction with four."""
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"


def say(text: str) -> None:
    """Say one line on standard error."""
    print(text, file=sys.stderr, flush=True)


def drop_lines_after(step: int, path: Path) -> None:
    """Keep the lines of a file of JSON objects, if there is one, whose "step" is at most `step`."""
    if path.is_file():
        kept = [
            line for line in path.read_bytes().split(b"\n") if _at_or_before(line, step)
        ]
        durable.write_bytes(path, b"".join(line + b"\n" for line in kept))


def _at_or_before(line: bytes, step: int) -> bool:
    try:
        return int(_object(line)["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False


def _object(line: bytes) -> dict[str, Any]:
    """Return the object of a line; an empty one where it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
