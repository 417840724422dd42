"""The files of a run, read for what they say of its training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.config import TrainingSection
from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import DONE, FINISHED_EARLY, STOPPED_EARLY
from weft.folder.model_folder import RunFolder
from weft.inspection.history import History, read_history
from weft.tasks.task import training_hashes
from weft.training.budget import TimePlan, read_time_plan, settings_to_go_on
from weft.training.schedule import about_long_warmup


@dataclass(frozen=True)
class Run:
    """A run by what it wrote about itself; None stands for a file that is not there."""

    verdict: dict[str, Any] | None
    settings: dict[str, Any] | None
    history: History | None
    num_rows: int | None
    # of a run that the clock ends
    time_plan: TimePlan | None = None
    # the same, also where a number of steps has taken the place of the clock
    kept_plan: TimePlan | None = None

    @classmethod
    def of(cls, folder: Path) -> "Run":
        """Read a run's files, as far as they can be read."""
        files = RunFolder(folder)
        hashes = training_hashes(folder)
        num_rows = None if hashes is None else len(hashes.rows)
        verdict = _read_json(files.verdict)
        settings = _read_settings(files)
        kept_plan = _read_kept_plan(files)
        time_plan = _counting(kept_plan, settings)
        history = _history(folder)
        return cls(verdict, settings, history, num_rows, time_plan, kept_plan)

    @property
    def dev_losses(self) -> list[tuple[int, float]]:
        """List step and loss of each evaluation on dev."""
        if self.history is None or self.history.loss_key is None:
            return []
        return list(zip(*self.history.values(self.history.loss_key), strict=True))

    @property
    def train_losses(self) -> list[tuple[int, float]]:
        """List step and loss of each line that was logged in training."""
        return [] if self.history is None else self.history.losses

    @property
    def training(self) -> dict[str, Any]:
        """Return the recipe's section of that name."""
        return (self.settings or {}).get("training") or {}

    @property
    def warmup_steps(self) -> int:
        """Count the steps of its warm-up; 0 where they are not known."""
        return self.training.get("warmup_steps") or 0

    @property
    def learning_rate(self) -> float | None:
        """Return the learning rate of its recipe: with noam, the factor."""
        return self.training.get("learning_rate")

    @property
    def schedule(self) -> TrainingSection:
        """Return the settings of its schedule, as far as they are known."""
        keys = ("schedule", "learning_rate", "warmup_steps")
        known = {key: self.training[key] for key in keys if key in self.training}
        return TrainingSection.model_construct(**known)

    @property
    def steps(self) -> int:
        """Count the steps that it made; up to the last logged loss, where no verdict says more."""
        logged = [step for step, _ in [*self.train_losses, *self.dev_losses]]
        last = max(logged, default=0)
        return int((self.verdict or {}).get("step") or last)

    @property
    def long_warmup(self) -> str:
        """Say that its warm-up took more than half of its steps; "" for a shorter one."""
        return about_long_warmup(self.warmup_steps, self.steps)

    @property
    def planned_steps(self) -> int:
        """Count the steps that it was to make; 0 where they are not known."""
        return (self.verdict or {}).get("max_steps") or 0

    @property
    def to_go_on(self) -> dict[str, int]:
        """Return the settings by which its command takes it further, once it has ended."""
        since_best = (self.verdict or {}).get("evaluations_since_best") or 0
        patience = self.training.get("patience")
        plan = self.kept_plan or self.time_plan
        return settings_to_go_on(
            plan, self.steps, self.planned_steps, since_best, patience
        )

    @property
    def can_continue(self) -> bool:
        """Return whether it was stopped and `weft finish` made a model of what it had saved."""
        return (self.verdict or {}).get("outcome") == FINISHED_EARLY

    @property
    def left_no_model(self) -> bool:
        """Return whether it says that it ended before it had a model to leave."""
        if self.verdict is None:
            return False
        return self.verdict.get("outcome") not in (DONE, STOPPED_EARLY, FINISHED_EARLY)


def _read_settings(files: RunFolder) -> dict[str, Any] | None:
    """Return a run's recipe; a run by the clock planned its own warm-up."""
    recipe = _read_json(files.recipe)
    settings: dict[str, Any] | None = None if recipe is None else recipe.get("recipe")
    plan = _read_json(files.plan)
    if settings is None or plan is None:
        return settings
    training = dict(settings.get("training", {}))
    if "warmup_steps" in plan:
        training["warmup_steps"] = plan["warmup_steps"]
    return {**settings, "training": training}


def _read_kept_plan(files: RunFolder) -> TimePlan | None:
    try:
        return read_time_plan(files.plan)
    except FolderError:
        return None


def _counting(
    plan: TimePlan | None, settings: dict[str, Any] | None
) -> TimePlan | None:
    """Return a run's plan by the clock; None where a number of steps has taken its place."""
    if settings is None or plan is None:
        return None
    steps = settings.get("training", {}).get("max_steps")
    return plan if steps == plan.recipe_steps else None


def _history(folder: Path) -> History | None:
    try:
        return read_history(folder)
    except FolderError:
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = durable.read_json(path)
    except FolderError:
        return None
    return content
