"""The curves of runs, read from what they wrote down while they trained."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import is_pack, refuse_no_folder, run_of_steps
from weft.folder.model_folder import RunFolder
from weft.training.scores import EVALUATION_SECONDS, is_better, is_decided_by_loss

# Keys of a recipe that change the loss in training and not on dev, under the names that a reader
# knows.
_IN_TRAINING_ALONE = {
    ("model", "dropout"): "dropout",
    ("model", "attention_dropout"): "dropout",
    ("model", "activation_dropout"): "dropout",
    ("model", "ngram_dropout"): "dropout",
    ("model", "head_dropout"): "dropout",
    ("training", "label_smoothing"): "label smoothing",
    ("training", "class_weights"): "class weights",
    ("training", "r_drop"): "R-Drop",
    # keys of older runs
    ("model", "layer_dropout"): "layer dropout",
    ("batches", "bpe_dropout"): "BPE-dropout",
    ("batches", "word_dropout"): "word dropout",
}


@dataclass(frozen=True)
class History:
    """The training losses and evaluations on dev in a run's metrics.jsonl, each with its step.

    `disturbed` are the names of what makes the training loss another than that on dev; None where
    the run's recipe cannot be read.
    """

    folder: Path
    losses: list[tuple[int, float]]
    evaluations: list[Mapping[str, float]]
    disturbed: tuple[str, ...] | None = None
    # steps and learning rates, if logged
    rates: list[tuple[int, float]] = field(default_factory=list)
    # the pass through the text that the last step belongs to, from 0; None where none is logged
    epoch: int | None = None

    @property
    def loss_key(self) -> str | None:
        """Return the key of the evaluations that is a loss."""
        return next((key for key in self._keys if key.endswith("loss")), None)

    @property
    def score_key(self) -> str | None:
        """Return the key that is shown beside the losses: the first that is none."""
        return next((key for key in self._keys if not key.endswith("loss")), None)

    @property
    def best(self) -> Mapping[str, float] | None:
        """Return the evaluation that the trainer keeps; of equal ones the first."""
        best: Mapping[str, float] | None = None
        for line in self.evaluations:
            if self._keys[0] in line and is_better(_scores(line), _scores(best or {})):
                best = line
        return best

    @property
    def is_chosen_by_loss(self) -> bool:
        """Return whether the loss chose the best evaluation, and no other score."""
        first = self._keys[0]
        return first.endswith("loss") or is_decided_by_loss(_scores(self.best or {}))

    @property
    def _keys(self) -> list[str]:
        keys = [key for line in self.evaluations for key in line if key != "step"]
        return list(dict.fromkeys(keys))

    def values(self, key: str) -> tuple[list[int], list[float]]:
        """Return steps and values of one key of the evaluations."""
        lines = [line for line in self.evaluations if key in line]
        steps = [int(line["step"]) for line in lines]
        values = [line[key] for line in lines]
        return steps, values


def _scores(line: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of an evaluation, without its step."""
    return {key: value for key, value in line.items() if key != "step"}


def read_history(folder: Path) -> History:
    """Return the curves of a run that has ended or still goes on.

    An incomplete line, such as the last one of a killed run, is left out.

    Raises FolderError where the folder is missing or nothing was logged.
    """
    path = RunFolder(folder).metrics
    refuse_no_folder(folder)
    if is_pack(folder):
        raise FolderError(
            f"{folder}: a pack has no run, and so no curves; give the run's folder"
        )
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        said = f"{path}: missing; no run has logged anything here yet"
        if step := run_of_steps(folder):
            said = f"{folder}: holds runs in steps; give that of one, such as {step}"
        raise FolderError(said) from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    lines = [line for line in map(_line, content.split(b"\n")) if line]
    losses = [(int(line["step"]), line["loss"]) for line in lines if "loss" in line]
    rates = [
        (int(line["step"]), line["learning_rate"])
        for line in lines
        if "learning_rate" in line
    ]
    evaluations: list[Mapping[str, float]] = [
        line for line in lines if "loss" not in line and len(line) > 1
    ]
    if not losses and not evaluations:
        raise FolderError(
            f"{path}: no step is logged in it yet; wait for the run's first steps"
        )
    epochs = re.findall(rb'"epoch": (\d+)', content)
    epoch = int(epochs[-1]) if epochs else None
    return History(folder, losses, evaluations, _disturbed(folder), rates, epoch)


def _disturbed(folder: Path) -> tuple[str, ...] | None:
    """Return what makes a run's training loss another than that on dev, by its recipe."""
    try:
        recipe = durable.read_json(RunFolder(folder).recipe)["recipe"]
        values = {
            (part, key): recipe[part].get(key) for part, key in _IN_TRAINING_ALONE
        }
    except (FolderError, KeyError, TypeError, AttributeError):
        return None
    names = [name for place, name in _IN_TRAINING_ALONE.items() if values[place]]
    return tuple(dict.fromkeys(names))


def _line(raw: bytes) -> dict[str, float]:
    """Return the finite numbers of a line, step first, without epoch and clock.

    Return {} unless it is an object with a step.
    """
    try:
        line = json.loads(raw)
        step = int(line["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}
    if not _is_number(line.get("loss", 0)):
        return {}
    numbers = {
        k: v
        for k, v in line.items()
        if k not in ("step", "epoch", EVALUATION_SECONDS) and _is_number(v)
    }
    return {"step": step, **numbers}


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
    )
