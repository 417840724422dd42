"""How long a run is: its steps, by the recipe or by the clock, and what they will take, by short
trials.
"""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.config import Recipe, TrainingSection
from weft.console import stages
from weft.data.texts import Corpus, Texts
from weft.errors import UsageError, WeftError
from weft.folder.layout import RunFolder
from weft.tasks.task import Task
from weft.training.budget import (
    EVALUATIONS,
    PUBLISHING,
    SHARE,
    Budget,
    Costs,
    TimePlan,
    read_time_plan,
    settle_time_plan,
)
from weft.training.distributed import World
from weft.training.log import evaluation_seconds, roughly, seconds_left
from weft.training.schedule import about_long_warmup, shorter_warmup
from weft.training.trainer import Batches, Plan

EPOCHS = 30  # how often the text is read where the recipe sets no max_steps
FEWEST_STEPS, MOST_STEPS = 500, 100_000
JUDGED = 200  # rows of dev that the verdict at the end looks at

AnyTask = Task[Any, Any, Any]


@dataclass(frozen=True)
class Asked:
    """The run's folder, the minutes that were asked for, when the command began, and whether the
    run goes on.
    """

    out: Path
    minutes: float | None
    began: float
    goes_on: bool


@dataclass(frozen=True)
class Planned:
    """Settings and lengths of a run, what they cost, and who keeps the time where the clock ends
    it.
    """

    settings: TrainingSection
    plan: Plan
    costs: Costs
    keeper: Budget | None = None
    notes: tuple[str, ...] = ()

    def length(self, step: int, metrics: Path | None, evaluates: bool) -> str:
        """How long the run will take after `step`, by evaluations that it has made, else by what is
        foreseen.
        """
        if self.keeper is not None:
            return f"{self.keeper.plan.minutes:g} minutes in all"
        made = evaluation_seconds(metrics) if metrics is not None else []
        eval_every = self.plan.eval_every if evaluates else None
        steps = self.plan.max_steps
        left = seconds_left(
            step, steps, self.costs.step, eval_every, made or [self.costs.evaluation]
        )
        return f"{roughly(left + self.costs.ending)}{' left' if step else ''}"


def settle_plan(
    asked: Asked,
    recipe: Recipe,
    task: AnyTask,
    batches: Batches[Any],
    texts: Texts[Any],
    parts: int,
    world: World,
) -> Planned:
    """The plan of a run: the first process tries what a step takes, and asks the clock where that
    ends the run.
    """
    files = RunFolder(asked.out)
    costs = (
        _costs(task, batches, recipe, parts, texts, world)
        if world.is_first
        else Costs(1.0)
    )
    by_clock = _settle_time(asked, files, recipe, task, costs, world)
    if by_clock is None:
        plan = make_plan(recipe, batches, texts)
        return Planned(
            recipe.training, plan, costs, notes=_of_warmup(asked, recipe.training, plan)
        )
    settings, plan = by_clock.applied(recipe.training), by_clock.plan()
    keeper = Budget(
        files.plan, by_clock, settings, costs, asked.began, texts.dev is not None
    )
    mine = keeper if plan.is_open and world.is_first else None
    return Planned(
        settings, plan, costs, mine, _replaced(asked, recipe.training, by_clock)
    )


def make_plan(recipe: Recipe, batches: Batches[Any], texts: Texts[Any]) -> Plan:
    """Steps in all, between evaluations and between checkpoints, where the recipe leaves them open.

    A short run is evaluated less often than others: scoring a row of dev takes about as long as
    training on one.
    """
    settings = recipe.training
    epoch = max(batches.num_batches(0) // settings.grad_accum_steps, 1)
    steps = settings.max_steps or min(max(EPOCHS * epoch, FEWEST_STEPS), MOST_STEPS)
    evaluations = EVALUATIONS
    if texts.dev is not None:
        # of an evaluation, in steps
        cost = epoch * _size(texts.dev) / max(_size(texts.train), 1)
        evaluations = (
            max(min(int(SHARE * steps / cost), EVALUATIONS), 1) if cost else EVALUATIONS
        )
    eval_every = settings.eval_every or -(-steps // evaluations)
    return Plan(steps, eval_every, settings.save_every or min(eval_every, 500))


def _settle_time(
    asked: Asked,
    files: RunFolder,
    recipe: Recipe,
    task: AnyTask,
    costs: Costs,
    world: World,
) -> TimePlan | None:
    """Return the plan by the clock, if there is one. Raises UsageError where the run was begun
    without one.
    """
    if not world.is_first:
        return read_time_plan(files.plan)
    if asked.goes_on and asked.minutes is not None and not files.plan.is_file():
        raise UsageError(
            f"{asked.out} was begun without --minutes, and its schedule asks for its number of steps; go on "
            "without it, end it with weft finish, or begin anew with --fresh"
        )
    width = int(recipe.model.model_dump().get("d_model", 1))
    elapsed = time.monotonic() - asked.began
    return settle_time_plan(
        files.plan, recipe.training, width, costs, asked.minutes, elapsed
    )


def _replaced(
    asked: Asked, settings: TrainingSection, by_clock: TimePlan
) -> tuple[str, ...]:
    """What of the recipe gives way to the clock, or of the clock to a number of steps."""
    fixed, uncounted = (
        by_clock.max_steps,
        "" if asked.minutes is None else ", and --minutes no longer counts",
    )
    if fixed is not None and settings.max_steps == fixed != by_clock.recipe_steps:
        return (
            f"training.max_steps = {fixed} ends the run{uncounted}; its schedule stays wsd",
        )
    if fixed is not None and uncounted and asked.minutes != by_clock.minutes:
        return (
            f"the learning rate is falling already: the run has {fixed} steps in all{uncounted}",
        )
    ways = (
        []
        if settings.schedule == "wsd"
        else [f"the schedule {settings.schedule} becomes wsd"]
    )
    steps = (
        [f"training.max_steps = {settings.max_steps} is left out"]
        if settings.max_steps
        else []
    )
    return (f"by the clock: {' and '.join([*ways, *steps])}",) if ways or steps else ()


def _of_warmup(asked: Asked, settings: TrainingSection, plan: Plan) -> tuple[str, ...]:
    """Of a run that begins: that its warm-up leaves little of it to the schedule."""
    said = about_long_warmup(settings.warmup_steps, plan.max_steps)
    return (
        (f"{said}; {shorter_warmup(plan.max_steps)}",)
        if said and not asked.goes_on
        else ()
    )


def _costs(
    task: AnyTask,
    batches: Batches[Any],
    recipe: Recipe,
    parts: int,
    texts: Texts[Any],
    world: World,
) -> Costs:
    """What training, evaluating and ending will take, by short trials; what cannot be tried counts
    nothing.
    """
    stages.enter("measuring how long a step takes")
    step = _expected_seconds(task, batches, recipe, parts) / world.size
    judged = (
        texts.dev.select(range(min(JUDGED, len(texts.dev))))
        if texts.dev is not None
        else None
    )
    found = {
        "evaluation": (texts.dev, True),
        "test": (texts.test, False),
        "verdict": (judged, False),
    }
    seconds = dict.fromkeys(found, 0.0)
    for name, (text, on_dev) in found.items():
        if text is not None:
            with contextlib.suppress(WeftError, RuntimeError, MemoryError):
                seconds[name] = (task if on_dev else task.as_used()).scoring_seconds(
                    text, on_dev
                )
    task.model.train()
    return Costs(
        step, seconds["evaluation"], seconds["test"] + seconds["verdict"] + PUBLISHING
    )


def _expected_seconds(
    task: AnyTask, batches: Batches[Any], recipe: Recipe, parts: int
) -> float:
    """Of a step: time a batch of middling length, forward and backward; each step sets its random
    numbers.
    """
    middle = batches.batch(0, batches.num_batches(0) // 2)
    for _ in range(2):
        started = time.perf_counter()
        for part in [middle] if parts == 1 else middle.parts(parts):
            sums = task.compute_loss(part)
            (sums.loss_sum / sums.num_tokens).backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - started
    task.model.zero_grad()
    return seconds * recipe.training.grad_accum_steps


def _size(text: Corpus) -> int:
    """In characters."""
    return sum(len(cell) for row in text.rows() for cell in row)
