"""Causes that lie in the course of training: how the run ended, and how its losses went."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.run import Run
from weft.training.schedule import (
    about_long_warmup,
    about_small_factor,
    as_options,
    follows_length,
    rounded_rate,
    shorter_warmup,
    twice_with_shorter_warmup,
)

# after the warm-up, from which on a loss that did not fall says something
ENOUGH_STEPS = 50
# of the loss of guessing: a run of few steps that ends above it had too few
FAR_FROM_LEARNED = 0.6
# times the loss of a new model: a run that ends above it, after enough steps, takes too large ones
WORSE = 1.3
# of the loss of guessing: what ends above it has learned next to nothing
NEAR_GUESSING = 0.9
# times the lowest loss of a curve: a last one above it has risen again
RISEN = 1.001
# of the loss two thirds through the run: a last one below it was still falling
FALLING = 0.97
# a poor model whose run went through its text fewer times than this may need more of them
FEW_EPOCHS = 5
# of the steps without a clock: a run of fewer can become far better, as in the verdict
FEW_OF_USUAL = 0.25
_DIVERGED_EXIT = 4


def unfinished(run: Run, step: Path | None = None) -> Cause:
    """Say how a run ended that left no model; `step` is the last run of several."""
    verdict = run.verdict or {}
    how = f"{verdict.get('outcome')} while {verdict.get('stage')}, after {verdict.get('step', 0):,} steps"
    if verdict.get("exit_code") == _DIVERGED_EXIT:
        remedy = "train with a smaller training.learning_rate, or a longer training.warmup_steps"
        return Cause("diverged", f"{how}: {verdict.get('reason')}", remedy)
    what, named = ("it", "") if step is None else ("the last step", f" {step}")
    remedy = (
        "give the command of the run again: it resumes, and leaves a model when it ends; or make one of what "
        f"{what} has saved (weft finish{named})"
    )
    return Cause("unfinished", f"{how}: {verdict.get('reason')}", remedy)


def not_judged(evidence: Evidence) -> Cause | None:
    """Find that nothing says how good the model is: no figures of its run, and no text is given."""
    if evidence.given is not None or evidence.is_poor_by_run is not None:
        return None
    why = "the run had no dev or test text"
    if evidence.run.verdict is None:
        why = "the folder holds no run"
    return Cause(
        "not-judged",
        f"{why}: nothing here says how good the model is",
        "give text of the kind that it was trained on as well, and the model is tried with it",
    )


def too_few_steps(evidence: Evidence) -> Cause | None:
    """Find that a run ended before it could learn, by a person's stop or by its plan."""
    run = evidence.run
    if not run.can_continue:
        task = evidence.task
        return ended_early(run, task.loss_of_guessing, task.loss_untrained)
    planned = f" of {run.planned_steps:,}" if run.planned_steps else ""
    far = f"stopped at step {run.steps:,}{planned}"
    return Cause("too-few-steps", far, "the same command continues the run")


def ended_early(
    run: Run, loss_of_guessing: float, loss_untrained: float
) -> Cause | None:
    """Find that a run ended while its loss was still falling, or in its warm-up, or soon after it.

    Both losses are in nats a token; `loss_untrained` is that of a new model.
    """
    what = "training"
    curve = run.train_losses
    if len(run.dev_losses) >= 3:
        what = "dev"
        curve = run.dev_losses
    if not curve:
        return None
    least = min(loss for _, loss in curve)
    last_step, last = curve[-1]
    steps, warmup = run.steps, run.warmup_steps
    # worse than a new model after enough steps: more of them would not help
    if last > WORSE * loss_untrained and last_step >= warmup + ENOUGH_STEPS:
        return None
    # a loss that has risen again did not end too early
    if last > RISEN * least:
        return None
    # nor would they where every rate is next to nothing
    is_at_guessing = last > NEAR_GUESSING * loss_of_guessing
    if is_at_guessing and not run.long_warmup and about_small_factor(run.schedule):
        return None
    evidence = _early_by_curve(run, what, curve, loss_of_guessing)
    if not evidence:
        return None
    advice = ""
    is_barely_begun = steps < warmup + ENOUGH_STEPS
    rate = run.learning_rate
    if rate and is_at_guessing and not is_barely_begun:
        ten_times = "ten times training.learning_rate, which is"
        advice = (
            f"; or start over with {ten_times} {rate:g}: it learned next to nothing"
        )
    if run.long_warmup:
        evidence = f"{run.long_warmup}; {evidence}"
    return Cause("too-few-steps", evidence, f"{longer(run)}{advice}", begun_anew(run))


def _early_by_curve(
    run: Run, what: str, curve: Sequence[tuple[int, float]], loss_of_guessing: float
) -> str:
    """Say that the loss still fell, or that the run ended in its warm-up or soon after it."""
    steps, warmup = run.steps, run.warmup_steps
    last_step, last = curve[-1]
    before = next(loss for step, loss in curve if 3 * step >= 2 * last_step)
    if len(curve) >= 3 and last < FALLING * before:
        return (
            f"the {what} loss was still falling in the last third of {steps:,} steps, "
            f"from {before:.2f} to {last:.2f}"
        )
    if steps <= warmup:
        return f"the {what} loss was {last:.2f} in the end"
    is_far = len(curve) < 3 or last > FAR_FROM_LEARNED * loss_of_guessing
    if steps < warmup + ENOUGH_STEPS and is_far:
        after = f" after {warmup:,} of warm-up" if warmup else ""
        return f"the run had {steps - warmup:,} steps{after}; the {what} loss was {last:.2f} then"
    return ""


def longer(run: Run) -> str:
    """Say how a run gets more steps: it continues, or begins anew with a shorter warm-up."""
    if anew := begun_anew(run):
        return f"start over: the same command with --fresh {as_options(anew)}"
    settings = run.to_go_on
    instead = ""
    if run.time_plan is not None and "training.max_steps" in settings:
        instead = " in place of --minutes"
    rising = ""
    by_clock = run.kept_plan is not None or run.time_plan is not None
    if "training.max_steps" in settings and (by_clock or follows_length(run.schedule)):
        rising = ", at a higher learning rate"
    given = f"give the same command with {as_options(settings)}{instead}"
    return f"{given}; it continues where it ended{rising}"


def begun_anew(run: Run) -> dict[str, int | float]:
    """Return the settings of a run that begins anew with a shorter warm-up; {} if this one goes on.

    A run by the clock has a warm-up by the clock, and more steps shorten its share.
    """
    if not run.long_warmup or run.time_plan is not None:
        return {}
    return twice_with_shorter_warmup(run.schedule, run.steps)


def _is_near_guessing(run: Run, loss_of_guessing: float) -> bool:
    """Return whether neither the training loss in the end nor the last on dev is much below
    guessing.
    """
    losses = [loss for _, loss in run.train_losses]
    dev = [loss for _, loss in run.dev_losses[-1:]]
    ends = [_last_quarter(losses)] if losses else []
    return min([*ends, *dev], default=0.0) > NEAR_GUESSING * loss_of_guessing


def few_of_usual_steps(evidence: Evidence) -> Cause | None:
    """Find that the clock left a run far fewer steps than it would have had without one."""
    few = left_few_steps(evidence.run)
    return Cause("few-steps", few, longer(evidence.run)) if few else None


def left_few_steps(run: Run) -> str:
    """Say that the clock left a run far fewer steps than it would have had without one; "" for any
    other, and for one that was stopped.
    """
    plan = run.time_plan
    usual = (plan.usual_steps or plan.recipe_steps or 0) if plan is not None else 0
    if not usual or run.can_continue or run.steps > FEW_OF_USUAL * usual:
        return ""
    return f"the clock left the run {run.steps:,} steps; without a time limit it would have {usual:,}"


def few_passes(evidence: Evidence) -> Cause | None:
    """Find that a run went through its text only a few times; its losses need not say so."""
    run = evidence.run
    epoch = None if run.history is None else run.history.epoch
    if epoch is None or epoch >= FEW_EPOCHS:
        return None
    times = "once" if epoch == 0 else f"{epoch + 1} times"
    return Cause(
        "few-passes",
        f"{run.steps:,} steps went through the text less than {times}",
        longer(run),
        begun_anew(run),
    )


def not_learning(evidence: Evidence) -> Cause | None:
    """Find that the loss stayed near that of guessing."""
    losses = [loss for _, loss in evidence.run.train_losses]
    if not losses:
        return None
    guessing = evidence.task.loss_of_guessing
    if not _is_near_guessing(evidence.run, guessing):
        return None
    last = _last_quarter(losses)
    said = f"the training loss was {last:.2f} nats in the end, and guessing has {guessing:.2f}"
    hardly_moved = losses[-1] < min(
        1.01 * min(losses), WORSE * evidence.task.loss_untrained
    )
    remedy, settings = _other_rate(evidence.run, hardly_moved)
    return Cause("not-learning", said, remedy, settings)


def _other_rate(run: Run, hardly_moved: bool) -> tuple[str, dict[str, float]]:
    """Return what to do where nothing was learned, and its settings: larger steps where the loss
    hardly moved, smaller ones where it jumps.
    """
    if not hardly_moved:
        advice = (
            "the loss jumps: try a tenth of that, or a longer training.warmup_steps"
        )
        return f"{_learning_rate_now(run)}{advice}", _with_rate(run, 0.1)
    if small := about_small_factor(run.schedule):
        return f"{small}: try 1", {"training.learning_rate": 1.0}
    advice = "the loss hardly moved: try ten times that, and again, until it falls"
    return f"{_learning_rate_now(run)}{advice}", _with_rate(run, 10.0)


def _with_rate(run: Run, times: float) -> dict[str, float]:
    """Return the setting of so many times the run's learning rate; {} where that is not known."""
    rate = run.learning_rate
    return {"training.learning_rate": rounded_rate(times * rate)} if rate else {}


def unstable(evidence: Evidence) -> Cause | None:
    """Find that the training loss fell and then rose again."""
    losses = [loss for _, loss in evidence.run.train_losses]
    if len(losses) < 4:
        return None
    least = min(losses)
    last = _last_quarter(losses)
    has_risen = last > 1.15 * least and least < 0.9 * losses[0]
    if not has_risen:
        return None
    return Cause(
        "unstable",
        f"the training loss fell from {losses[0]:.2f} to {least:.2f} and then rose to {last:.2f}",
        f"{_learning_rate_now(evidence.run)}try a third of it, or a longer training.warmup_steps",
        _with_rate(evidence.run, 1 / 3),
    )


def _last_quarter(losses: Sequence[float]) -> float:
    """Average the last quarter of the logged losses, each of which varies by its few batches."""
    return mean(losses[-max(len(losses) // 4, 1) :])


def _learning_rate_now(run: Run) -> str:
    rate = run.learning_rate
    return f"training.learning_rate is {rate:g}; " if rate else ""


def long_warm_up(evidence: Evidence) -> Cause | None:
    """Find a warm-up that takes most of the run."""
    run = evidence.run
    # the clock chooses its own warm-up
    if not run.planned_steps or run.time_plan is not None:
        return None
    said = about_long_warmup(run.warmup_steps, run.planned_steps)
    if not said:
        return None
    settings = shorter_warmup(run.schedule, run.planned_steps)
    remedy = f"start over (--fresh) with {as_options(settings)}"
    return Cause("long-warm-up", said, remedy, settings)


def over_fitting(evidence: Evidence) -> Cause | None:
    """Find that the loss rose on dev while it fell in training."""
    dev, train = evidence.run.dev_losses, evidence.run.train_losses
    if len(dev) < 2 or not train:
        return None
    where, least = min(dev, key=lambda evaluation: evaluation[1])
    _, last = dev[-1]
    _, own = train[-1]
    have_parted = last > 1.1 * least and own < 0.8 * last
    if not have_parted:
        return None
    return Cause(
        "over-fitting",
        f"the dev loss was {least:.2f} at step {where:,} and rose to {last:.2f}, while the training loss "
        f"fell to {own:.2f}",
        "train on more text, or with more model.dropout, a smaller model.d_model or fewer steps",
    )
