"""A run that ends at a time that was asked for: the clock decides, once, when its decay begins.

While the plateau of the schedule (warm-up, stable, decay) lasts, its length is open. After each
step the rest is foreseen from the speed that was measured; as soon as the rest of the time is just
enough for the decay, the decay begins, and the number of steps is fixed and written down. From
there on nothing depends on the clock.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.config import TrainingSection
from weft.errors import FolderError, UsageError
from weft.folder import durable
from weft.training.mixtures import borders_of
from weft.training.schedule import learning_rate, peak_rate
from weft.training.trainer import OPEN, Plan

# the most times its own steps that are proposed to a run that the clock left far fewer than usual
MOST_TIMES = 20
# the most evaluations of a run, and the largest share of its time that they may take
MOST_EVALUATIONS = 15
LARGEST_EVALUATION_SHARE = 0.15
LEAST_STEPS = 20
# of the time that a run needs at least: what takes more is worth making smaller
GOOD_PART = 0.25
# how many of the latest steps tell the speed, and which share of all if that is more
WINDOW = 20
WINDOW_SHARE = 0.25
PUBLISHING = 2.0  # seconds, for files


@dataclass(frozen=True)
class Costs:
    """The seconds that are foreseen: of a step, of an evaluation on dev, and after the last
    step.
    """

    step: float
    evaluation: float = 0.0
    ending: float = PUBLISHING


@dataclass(frozen=True)
class SmallerKeys:
    """The recipe's keys that make a run take less time.

    `batch` makes a step smaller. `held_out`, in brackets, leaves less text for dev and test; ""
    where they have files of their own.
    """

    batch: str = "batches.tokens_per_batch"
    held_out: str = ""


@dataclass(frozen=True)
class TimePlan:
    """A run's plan by the clock, as it is kept in its folder.

    `recipe_steps` is what the recipe said when the run began, `usual_steps` what the run would have
    without a clock; None where an earlier version wrote the plan. `max_steps` is None until the
    decay begins. `later_eval_every` takes the place of `eval_every` in a run that got another
    number of steps than the clock had decided. `decisions` says when what was decided: `step`,
    `seconds` of the run's time that were used, `decay_begins`, `max_steps`. `borders` are the steps
    after which mixtures have ended (`weft.training.mixtures`), those that are to come once the
    number of steps is decided.
    """

    minutes: float
    recipe_steps: int | None
    eval_every: int
    save_every: int
    warmup_steps: int
    learning_rate: float
    expected_steps: int
    max_steps: int | None = None
    decisions: list[dict[str, Any]] = field(default_factory=list)
    usual_steps: int | None = None
    later_eval_every: int | None = None
    borders: list[int] = field(default_factory=list)

    def applied(self, settings: TrainingSection) -> TrainingSection:
        """Return the settings with the plan's schedule."""
        planned = {
            "schedule": "wsd",
            "warmup_steps": self.warmup_steps,
            "learning_rate": self.learning_rate,
        }
        return settings.model_copy(update=planned)

    def plan(self) -> Plan:
        """Return the lengths of the run, open until the number of steps is decided."""
        steps = self.max_steps or self.expected_steps
        eval_every = self.later_eval_every or self.eval_every
        return Plan(steps, eval_every, self.save_every, is_open=self.max_steps is None)

    def ended_by(self, plan: Plan) -> "TimePlan":
        """Return the plan of a run that ends as `plan` says, and no more by the clock.

        On the plateau it keeps its evaluations: its steps so far are those of the new length.
        """
        if plan.max_steps == self.max_steps:
            return self
        if self.max_steps is None:
            return replace(self, max_steps=plan.max_steps)
        return replace(
            self,
            max_steps=plan.max_steps,
            later_eval_every=plan.eval_every,
            save_every=plan.save_every,
            borders=[],
        )

    def as_settings(self, max_steps: int | None) -> dict[str, Any]:
        """Return the keys of `training` that make a run of `max_steps` the same without a clock."""
        return {
            "schedule": "wsd",
            "warmup_steps": self.warmup_steps,
            "learning_rate": self.learning_rate,
            "max_steps": max_steps,
            "eval_every": self.eval_every,
        }


def read_time_plan(path: Path) -> TimePlan | None:
    """Read the plan by the clock of an earlier start; None where there was none.

    Raises FolderError where it is damaged.
    """
    if not path.is_file():
        return None
    try:
        return TimePlan(**durable.read_json(path))
    except TypeError:
        raise FolderError(
            f"{path}: does not hold a plan; restore the file, or start over with --fresh"
        ) from None


def more_steps(plan: TimePlan | None, steps: int) -> int:
    """Return 2 * steps; the steps of a run without a clock, where the clock left it far fewer, but
    at most `MOST_TIMES` its own.

    One more if that is the recipe's own max_steps, which a run by the clock takes to mean: let the
    clock decide.
    """
    more = 2 * steps
    if plan is None:
        return more
    usual = plan.usual_steps or plan.recipe_steps or 0
    more = max(more, min(usual, MOST_TIMES * steps))
    return more + 1 if more == plan.recipe_steps else more


def settings_to_go_on(
    plan: TimePlan | None,
    step: int,
    max_steps: int,
    since_best: int,
    patience: int | None,
) -> dict[str, int]:
    """Return the settings by which `weft train` takes a run further that ended at `step`.

    `max_steps` (0: not known) are the run's; `since_best` are its evaluations since the best. What
    ran out of patience gets more of it, and what has no step left more steps.
    """
    is_open = plan is not None and plan.max_steps is None
    is_impatient = step < max_steps
    if patience is not None and since_best >= patience:
        is_impatient = True
    settings = {}
    if not is_impatient or (step >= max_steps and not is_open):
        settings["training.max_steps"] = more_steps(plan, step)
    if is_impatient:
        settings["training.patience"] = 2 * max(since_best, 1)
    return settings


def usual_save_every(steps: int, eval_every: int) -> int:
    """Return the steps between checkpoints where the recipe does not say them.

    They are at most 500, at most those between evaluations, and at most a tenth of the run. The
    best evaluation so far is saved, too, whenever it is.
    """
    return min(eval_every, 500, math.ceil(steps / 10))


def choose_time_plan(
    path: Path,
    settings: TrainingSection,
    d_model: int,
    costs: Costs,
    minutes: float | None,
    elapsed: float,
    usual: Plan | None = None,
    keys: SmallerKeys = SmallerKeys(),
) -> TimePlan | None:
    """Return the plan of the run's first start, or a new one, written down; None where no time is
    asked for.

    `usual` is the plan of a run without a clock, `keys` are those that a message names.

    More or less time may be given while the plateau lasts; another `training.max_steps` than the
    recipe had when the run began takes the place of the clock. Evaluations and checkpoints follow
    it where the clock had decided another. Raises UsageError where the time does not suffice.
    """
    old = read_time_plan(path)
    if old is None and minutes is None:
        return None
    if old is None:
        assert minutes is not None
        made = _first_plan(settings, d_model, costs, minutes, elapsed, keys)
        made = replace(made, usual_steps=usual.max_steps if usual else None)
    elif settings.max_steps is not None and settings.max_steps != old.recipe_steps:
        assert usual is not None
        made = old.ended_by(usual)
    elif minutes is None or old.max_steps:
        made = old
    else:
        expected = _expected_steps(old, minutes)
        made = replace(old, minutes=minutes, expected_steps=expected)
    durable.write_json(path, asdict(made))
    return made


def _expected_steps(plan: TimePlan, minutes: float) -> int:
    """Return how many steps a run that goes on may have in so many minutes, by its speed so far."""
    revised = [decision.get("expected_steps") for decision in plan.decisions]
    latest = [steps for steps in revised if steps] or [plan.expected_steps]
    return max(round(latest[-1] * minutes / plan.minutes), 1)


def _first_plan(
    settings: TrainingSection,
    d_model: int,
    costs: Costs,
    minutes: float,
    elapsed: float,
    keys: SmallerKeys,
) -> TimePlan:
    free = 60 * minutes - elapsed - costs.ending
    affordable = LARGEST_EVALUATION_SHARE * free / max(costs.evaluation, 1e-9)
    evaluations = max(min(int(affordable), MOST_EVALUATIONS), 1)
    steps = int((free - evaluations * costs.evaluation) / max(costs.step, 1e-9))
    if steps < LEAST_STEPS:
        raise UsageError(
            f"--minutes {minutes:g} is too short: in seconds, the start took {elapsed:.0f}, scoring dev takes "
            f"{costs.evaluation:.0f}, scoring test and publishing {costs.ending:.0f}, and each step "
            f"{costs.step:.2g}; give {_what_suffices(costs, elapsed, keys)}"
        )
    eval_every = math.ceil(steps / evaluations)
    save_every = min(usual_save_every(steps, eval_every), math.ceil(60 / costs.step))
    return TimePlan(
        minutes=minutes,
        recipe_steps=settings.max_steps,
        eval_every=eval_every,
        save_every=settings.save_every or max(save_every, 1),
        warmup_steps=min(settings.warmup_steps, steps // 5),
        learning_rate=peak_rate(settings, d_model),
        expected_steps=steps,
    )


def _what_suffices(costs: Costs, elapsed: float, keys: SmallerKeys) -> str:
    """Say how many minutes suffice, and what would need fewer, if it takes a good part of them."""
    scoring = costs.evaluation + costs.ending - PUBLISHING
    steps = LEAST_STEPS * costs.step
    needed = elapsed + costs.evaluation + costs.ending + steps
    ways = [f"at least --minutes {math.ceil(10 * needed * 1.2 / 60) / 10:g}"]
    if scoring > GOOD_PART * needed:
        ways.append(f"less text for dev and test{keys.held_out}")
    if steps > GOOD_PART * needed:
        ways.append(f"a smaller {keys.batch} or a smaller model")
    *all_but_last, last = ways
    before = ", ".join(all_but_last)
    return f"{before}, or {last}" if before else last


class Budget:
    """Decides by the clock when the decay begins, and writes that down before the first step that
    depends on it.
    """

    def __init__(
        self,
        path: Path,
        plan: TimePlan,
        settings: TrainingSection,
        costs: Costs,
        began: float,
        evaluates: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with a plan; `began` is when the command began, by `clock`.

        `settings` are those of the plan.
        """
        self.path, self.plan, self.settings, self.costs = path, plan, settings, costs
        self._clock, self._began, self._evaluates = clock, began, evaluates
        self._marks: list[float] = []
        self._evaluations: list[float] = []
        self._paused = 0.0
        self._shares: Sequence[float] = ()

    def begin(self, used: float, evaluations: list[float]) -> None:
        """Count the seconds that earlier starts of the run have used; from now on steps are
        taken.
        """
        self._began -= used
        self._evaluations = [*evaluations]
        self._marks = [self._clock()]

    def evaluated(self, seconds: float) -> None:
        """Note that an evaluation has taken so many seconds."""
        self._evaluations.append(seconds)
        self._paused += seconds

    def decide(self, step: int) -> int:
        """Return the total of steps if the decay must begin after `step`, else 0."""
        self._marks.append(self._clock() - self._paused)
        steps = self._steps_if_now(step)
        if (
            step < self.settings.warmup_steps
            or self.elapsed + self._left(step, steps) < 60 * self.plan.minutes
        ):
            return 0
        self._fix_steps(step, steps)
        return steps

    def passed(self, step: int, shares: Sequence[float]) -> list[int]:
        """Return the borders between mixtures up to `step`: a mixture ends where its share of the
        steps that are expected in all is reached.
        """
        self._shares = shares
        found = self.plan.borders
        expected = self.expected(step)
        ended = [*found]
        for share in shares[len(found) : -1]:
            if step < round(share * expected):
                break
            ended.append(max([step, *ended[-1:]]))
        if ended != found:
            self.plan = replace(self.plan, borders=ended)
            durable.write_json(self.path, asdict(self.plan))
        return [border for border in ended if border <= step]

    @property
    def elapsed(self) -> float:
        """Return the seconds of the time that are used."""
        return self._clock() - self._began

    def time_left(self) -> float:
        """Return the seconds of the time that are left."""
        return max(60 * self.plan.minutes - self.elapsed, 0.0)

    def expected(self, step: int) -> int:
        """Return how many steps there will be in all, by the speed so far."""
        rest = self.time_left() - self._ending()
        return step + max(int(rest / max(self._seconds_a_step(), 1e-9)), 1)

    def reconsider(self, step: int) -> int:
        """Estimate anew how many steps there will be in all, and write it down."""
        steps = self.expected(step)
        self._add_decision(step, None, None, expected_steps=steps)
        return steps

    def _steps_if_now(self, step: int) -> int:
        """Return the steps in all if the decay began at `step`.

        The plateau then reaches `step` and no further, and the rate of all steps so far is its own.
        """
        steps = max(math.ceil(step / (1 - self.settings.decay_fraction)), step + 1)
        while self._rate(step, steps) != self._rate(step, OPEN):
            steps += 1
        return steps

    def _rate(self, step: int, max_steps: int) -> float:
        return learning_rate(self.settings, 1, step, max_steps)

    def _seconds_a_step(self) -> float:
        """Return the seconds of the latest steps; what was foreseen fills in until WINDOW steps are
        measured.
        """
        count = len(self._marks) - 1
        window = min(count, max(WINDOW, int(WINDOW_SHARE * count)))
        foreseen = max(WINDOW - count, 0)
        lasted = self._marks[-1] - self._marks[-1 - window]
        return (lasted + foreseen * self.costs.step) / max(window + foreseen, 1)

    def _evaluation(self) -> float:
        latest = self._evaluations[-3:]
        return sum(latest) / len(latest) if latest else self.costs.evaluation

    def _ending(self) -> float:
        slower = (
            self._evaluation() / self.costs.evaluation
            if self._evaluations and self.costs.evaluation
            else 1
        )
        return PUBLISHING + max(self.costs.ending - PUBLISHING, 0.0) * slower

    def _left(self, step: int, max_steps: int) -> float:
        every = self.plan.eval_every
        # one more where the end is no multiple; what is due at `step` itself is still to come
        evaluations = max_steps // every + (max_steps % every > 0)
        evaluations_left = evaluations - max(step - 1, 0) // every
        evaluating = evaluations_left * self._evaluation() if self._evaluates else 0.0
        return (max_steps - step) * self._seconds_a_step() + evaluating + self._ending()

    def _fix_steps(self, step: int, steps: int) -> None:
        ends = borders_of(self._shares, steps, self.plan.borders, step)
        self.plan = replace(self.plan, max_steps=steps, borders=ends)
        self._add_decision(step, step + 1, steps)

    def _add_decision(
        self, step: int, decay_begins: int | None, max_steps: int | None, **more: Any
    ) -> None:
        facts: dict[str, Any] = {
            "step": step,
            "seconds": round(self.elapsed, 1),
            "decay_begins": decay_begins,
            "max_steps": max_steps,
            **more,
        }
        self.plan = replace(self.plan, decisions=[*self.plan.decisions, facts])
        durable.write_json(self.path, asdict(self.plan))
