"""The length of a run: its steps, by the recipe or by the clock, and what they will take."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.config import Recipe, TrainingSection, size_keys
from weft.console import stages
from weft.data.base import Corpus
from weft.data.column import Column
from weft.data.texts import Texts
from weft.errors import UsageError, WeftError
from weft.folder.layout import RunFolder
from weft.run.request import Request
from weft.tasks.trainable import TrainableTask
from weft.training.budget import (
    LARGEST_EVALUATION_SHARE,
    MOST_EVALUATIONS,
    PUBLISHING,
    Budget,
    Costs,
    SmallerKeys,
    TimePlan,
    choose_time_plan,
    read_time_plan,
    usual_save_every,
)
from weft.training.checkpoint import Checkpoints
from weft.training.distributed import World, clip_gradients
from weft.training.log import evaluation_seconds, roughly, seconds_left
from weft.training.mixtures import AnyBatches
from weft.training.optimizer import build_optimizer
from weft.training.schedule import (
    about_long_warmup,
    about_small_factor,
    as_options,
    shorter_warmup,
)
from weft.training.trainer import Plan

EPOCHS = 30  # how often the text is read where the recipe sets no max_steps
FEWEST_STEPS, MOST_STEPS = 500, 100_000
JUDGED = 700  # rows of dev that the verdict at the end looks at, and learns doubt from

AnyTask = TrainableTask[Any, Any, Any]


@dataclass(frozen=True)
class Planned:
    """Settings and lengths of a run, what they cost, and who keeps the time where the clock ends
    it.
    """

    settings: TrainingSection
    plan: Plan
    costs: Costs
    keeper: Budget | None = None
    borders: tuple[int, ...] = ()  # of mixtures, as far as the clock has decided them
    notes: tuple[str, ...] = ()

    def length(self, step: int, metrics: Path | None, evaluates: bool) -> str:
        """Say how long the run will take after `step`.

        Evaluations count with what they have taken so far, else with what is foreseen.
        """
        if self.keeper is not None:
            minutes = self.keeper.plan.minutes
            return f"{minutes:g} {'minute' if minutes == 1 else 'minutes'} in all"
        made = evaluation_seconds(metrics) if metrics is not None else []
        evaluations = made or [self.costs.evaluation]
        eval_every = self.plan.eval_every if evaluates else None
        steps = self.plan.max_steps
        left = seconds_left(step, steps, self.costs.step, eval_every, evaluations)
        return f"{roughly(left + self.costs.ending)}{' left' if step else ''}"


@dataclass(frozen=True)
class Workload:
    """The work that a run's steps are chosen for; each batch is cut into so many `parts`."""

    recipe: Recipe
    task: AnyTask
    batches: AnyBatches[Any]
    texts: Texts[Any]
    parts: int


def choose_plan(
    request: Request, is_resumed: bool, work: Workload, world: World
) -> Planned:
    """Choose a run's steps: by the recipe, or by the clock where minutes were asked for.

    The first process tries what a step takes; `is_resumed` says that the run has begun before.
    """
    recipe = work.recipe
    costs = Costs(1.0)
    if world.is_first:
        costs = _costs(work, world)
    by_clock = _plan_by_clock(request, is_resumed, work, costs, world)
    if by_clock is None:
        plan = make_plan(recipe, work.batches, work.texts)
        notes: tuple[str, ...] = ()
        if not is_resumed:
            notes = (
                *_warmup_notes(recipe.training, plan),
                *_factor_notes(recipe.training, plan),
                *_evaluation_notes(recipe.training, plan, work.batches, work.texts),
            )
        return Planned(recipe.training, plan, costs, notes=notes)
    settings = by_clock.applied(recipe.training)
    plan = by_clock.plan()
    keeper = None
    if plan.is_open and world.is_first:
        path = RunFolder(request.out).plan
        evaluates = work.texts.dev is not None
        keeper = Budget(path, by_clock, settings, costs, request.began, evaluates)
    notes = _replaced(request, recipe.training, by_clock)
    if not is_resumed:
        notes += _factor_notes(recipe.training)
    return Planned(settings, plan, costs, keeper, tuple(by_clock.borders), notes)


def make_plan(recipe: Recipe, batches: AnyBatches[Any], texts: Texts[Any]) -> Plan:
    """Choose the steps in all, between evaluations and between checkpoints, by the recipe.

    What it leaves open: a short run is evaluated less often than others, as scoring a row of dev
    takes about as long as training on one.
    """
    settings = recipe.training
    epoch = _steps_an_epoch(settings, batches)
    steps = settings.max_steps or min(max(EPOCHS * epoch, FEWEST_STEPS), MOST_STEPS)
    eval_every = settings.eval_every or _usual_eval_every(steps, epoch, texts)
    save_every = settings.save_every or usual_save_every(steps, eval_every)
    return Plan(steps, eval_every, save_every)


def _steps_an_epoch(settings: TrainingSection, batches: AnyBatches[Any]) -> int:
    return max(batches.num_batches(0) // settings.grad_accum_steps, 1)


def _usual_eval_every(steps: int, epoch: int, texts: Texts[Any]) -> int:
    """Return the steps between evaluations that a run has whose recipe leaves them open."""
    evaluations = MOST_EVALUATIONS
    if texts.dev is not None:
        # of an evaluation, in steps
        cost = epoch * _num_characters(texts.dev) / max(_num_characters(texts.train), 1)
        if cost:
            affordable = int(LARGEST_EVALUATION_SHARE * steps / cost)
            evaluations = max(min(affordable, MOST_EVALUATIONS), 1)
    return -(-steps // evaluations)


def _plan_by_clock(
    request: Request, is_resumed: bool, work: Workload, costs: Costs, world: World
) -> TimePlan | None:
    """Return the plan by the clock, if there is one.

    Raises UsageError where the run was begun without one.
    """
    folder = RunFolder(request.out)
    if not world.is_first:
        return read_time_plan(folder.plan)
    minutes = request.minutes
    # one that was stopped before its first checkpoint has no plan by the clock yet
    has_steps = is_resumed and Checkpoints(folder.checkpoints, 1).holds_any
    if has_steps and minutes is not None and not folder.plan.is_file():
        raise UsageError(
            f"{request.out} was started without --minutes, and its schedule depends on its number of steps; continue "
            "without it, end it with weft finish, or start over with --fresh"
        )
    recipe = work.recipe
    usual = make_plan(recipe, work.batches, work.texts)
    width = int(recipe.model.model_dump().get("d_model", 1))
    elapsed = time.monotonic() - request.began
    return choose_time_plan(
        folder.plan,
        recipe.training,
        width,
        costs,
        minutes,
        elapsed,
        usual,
        _smaller_keys(request, work),
    )


def _smaller_keys(request: Request, work: Workload) -> SmallerKeys:
    """Name the recipe's keys that make a step smaller, and those that held out dev and test."""
    data = work.recipe.data.model_dump()
    held_out = []
    for part in ("dev", "test"):
        is_cut = getattr(request, part) is None and not data["builtin"]
        if is_cut and getattr(work.texts, part) is not None:
            held_out += [f"data.{key}" for key in data if key.startswith(f"{part}_")]
    named = f" ({', '.join(held_out)})" if held_out else ""
    return SmallerKeys(size_keys(work.recipe), named)


def _replaced(
    request: Request, settings: TrainingSection, by_clock: TimePlan
) -> tuple[str, ...]:
    """Say what of the recipe gives way to the clock, or of the clock to a number of steps."""
    fixed = by_clock.max_steps
    minutes = request.minutes
    uncounted = "" if minutes is None else ", and --minutes no longer counts"
    if fixed is not None and settings.max_steps == fixed != by_clock.recipe_steps:
        ends = f"training.max_steps = {fixed} ends the run"
        return (f"{ends}{uncounted}; its schedule stays wsd",)
    if fixed is not None and uncounted and minutes != by_clock.minutes:
        steps = f"the run has {fixed} steps in all{uncounted}"
        if any(decision["max_steps"] == fixed for decision in by_clock.decisions):
            steps = f"the learning rate is falling already: {steps}"
        return (steps,)
    changes = []
    if settings.schedule != "wsd":
        changes.append(f"the schedule {settings.schedule} becomes wsd")
    if settings.max_steps:
        changes.append(f"training.max_steps = {settings.max_steps} is left out")
    return (f"by the clock: {' and '.join(changes)}",) if changes else ()


def _warmup_notes(settings: TrainingSection, plan: Plan) -> tuple[str, ...]:
    """Say that the warm-up leaves little of the run to the schedule, where it does."""
    said = about_long_warmup(settings.warmup_steps, plan.max_steps)
    if not said:
        return ()
    return (f"{said}; {as_options(shorter_warmup(settings, plan.max_steps))}",)


def _factor_notes(
    settings: TrainingSection, plan: Plan | None = None
) -> tuple[str, ...]:
    """Say that noam's factor looks like the rate of another schedule, where it does."""
    said = about_small_factor(settings)
    if not said:
        return ()
    # with a shorter warm-up its own factor is proposed
    if plan is not None and about_long_warmup(settings.warmup_steps, plan.max_steps):
        return (said,)
    return (f"{said}; --set training.learning_rate=1",)


def _evaluation_notes(
    settings: TrainingSection, plan: Plan, batches: AnyBatches[Any], texts: Texts[Any]
) -> tuple[str, ...]:
    """Say that the run ends before its first evaluation is due, where it does."""
    if texts.dev is None or plan.eval_every <= plan.max_steps:
        return ()
    epoch = _steps_an_epoch(settings, batches)
    usual = _usual_eval_every(plan.max_steps, epoch, texts)
    # where scoring dev is as dear as the run, half-way is often enough
    usual = max(min(usual, plan.max_steps // 2), 1)
    said = f"training.eval_every ({plan.eval_every:,}) is beyond the {plan.max_steps:,} steps"
    return (
        f"{said}: dev is scored once, at the end; --set training.eval_every={usual}",
    )


def _costs(work: Workload, world: World) -> Costs:
    """Estimate what training, evaluating and ending take, in seconds, by short trials.

    What cannot be tried counts nothing.
    """
    stages.enter("measuring how long a step takes")
    task = work.task
    texts = work.texts
    step = _step_seconds(work, world)
    judged = None
    if texts.dev is not None:
        judged = texts.dev.select(range(min(JUDGED, len(texts.dev))))
    evaluation = _scoring_seconds(task, texts.dev, on_dev=True)
    test = _scoring_seconds(task, texts.test, on_dev=False)
    verdict = _scoring_seconds(task, judged, on_dev=False)
    task.model.train()
    return Costs(step, evaluation, test + verdict + PUBLISHING)


def _scoring_seconds(task: AnyTask, text: Corpus | None, *, on_dev: bool) -> float:
    """Estimate how long scoring a text takes; 0 where there is none, or it cannot be tried."""
    if text is None:
        return 0.0
    with contextlib.suppress(WeftError, RuntimeError, MemoryError):
        scorer = task if on_dev else task.as_used()
        return scorer.scoring_seconds(text, on_dev)
    return 0.0


def _step_seconds(work: Workload, world: World) -> float:
    """Measure a step on a batch of average size, from making the batch to updating the weights.

    The trial leaves no trace in training: each step sets its random numbers itself.
    """
    task = work.task
    settings = work.recipe.training
    place = average_place(work.batches)
    # the first time sets kernels up
    for _ in range(2):
        started = time.perf_counter()
        batch = work.batches.batch(0, place)
        for part in [batch] if work.parts == 1 else batch.parts(work.parts):
            sums = task.compute_loss(part)
            (sums.loss_sum / sums.num_tokens).backward()  # type: ignore[no-untyped-call]
            float(sums.loss_sum.detach())  # a GPU has then done its work
        seconds = time.perf_counter() - started
    update = _update_seconds(task.model, settings)
    task.model.zero_grad()
    return seconds * settings.grad_accum_steps / world.size + update


def _update_seconds(model: nn.Module, settings: TrainingSection) -> float:
    """Measure the update of the weights by the gradients that are there, and take it back.

    Returns 0 where the memory does not suffice for the trial.
    """
    weights = []
    seconds = 0.0
    with contextlib.suppress(RuntimeError, MemoryError):
        weights = [p.detach().clone() for p in model.parameters()]
        optimizer = build_optimizer(model, settings)
        # the first time creates the optimizer's state
        for _ in range(2):
            started = time.perf_counter()
            clip_gradients(model, settings.grad_clip_norm)
            optimizer.step()
            seconds = time.perf_counter() - started
    with torch.no_grad():
        for parameter, before in zip(model.parameters(), weights, strict=False):
            parameter.copy_(before)
    return seconds


def average_place(batches: AnyBatches[Any]) -> int:
    """Return the position in the first epoch of a batch whose size is nearest to the average."""
    sizes = batches.sizes(0)
    distances = np.abs(sizes - sizes.mean())
    return int(distances.argmin())


def largest_place(batches: AnyBatches[Any]) -> int:
    """Return the position in the first epoch of a batch than which no other is larger."""
    return int(batches.sizes(0).argmax())


def _num_characters(text: Corpus) -> int:
    total = 0
    for name in text.COLUMNS:
        column = getattr(text, name)
        is_on_disk = isinstance(column, Column)
        total += column.num_characters if is_on_disk else sum(map(len, column))
    return total
