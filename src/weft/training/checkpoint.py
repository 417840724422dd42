"""A run's state on disk: one file for each kind, whole or not at all, and never the last good one
lost.

A checkpoint is the folder `step-<n>`: model and optimizer as safetensors, progress as JSON, and a
manifest with their SHA-256. `latest` is a file with the newest one's name, for people; it moves
only when that is on disk, and old ones go only after that. Which one is the best stands in the
progress. Learning rates, random numbers and the order of the batches are functions of the progress
and the recipe, and need no file.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from weft.errors import FolderError
from weft.folder import durable
from weft.folder.layout import AVERAGE

MODEL, OPTIMIZER, PROGRESS = (
    "model.safetensors",
    "optimizer.safetensors",
    "progress.json",
)
# of the files above, kept in the manifest; all from the oldest on are read
FORMAT, OLDEST_FORMAT = 6, 3
# fields of the progress that came with a later format
SINCE = {"unlogged_loss": 4, "unlogged_steps": 4, "lengths": 5, "mixture": 6}
LATEST, DAMAGED, FAILURE = "latest", "damaged-", "failure.json"


@dataclass
class Progress:
    """The state of a run that a checkpoint keeps beside weights and optimizer.

    `epoch` and `position` are those of the next micro-batch. `evaluation_due` where the evaluation
    that belongs to `step` was put off by a signal. `loss_scale`, set after the step `scale_set`, is
    what gradients in float16 are multiplied with; else 1. `unlogged_loss` is the sum over the
    `unlogged_steps` since the last logged mean. `mixture` is the number of that of the last step
    (`weft.training.mixtures`). `lengths` are those that the run has had, one
    after the other: the steps `after` which each counted, its `max_steps` (None: the clock has not
    decided), `eval_every` and `patience`.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    evaluations_since_best: int = 0
    evaluation_due: bool = False
    loss_scale: float = 1.0
    scale_set: int = 0
    unlogged_loss: float = 0.0
    unlogged_steps: int = 0
    mixture: int = 0
    lengths: list[dict[str, int | None]] = field(default_factory=list)

    def begin_length(
        self, max_steps: int | None, eval_every: int, patience: int | None
    ) -> None:
        """Note the length of the run from here on, where it is another one than so far."""
        after = 0
        if self.lengths:
            # an older version's may have been reached before it was lengthened
            after = min(self.step, self.lengths[-1]["max_steps"] or self.step)
            if self.lengths[-1]["after"] == after:  # no step was taken by it
                self.lengths.pop()
        if not self.lengths or self.lengths[-1]["max_steps"] != max_steps:
            self.lengths.append({"after": after, "max_steps": max_steps})
        self.lengths[-1]["eval_every"] = eval_every
        self.lengths[-1]["patience"] = patience

    def decide_length(self, max_steps: int) -> None:
        """Note the length that the clock has decided; the steps so far are those of it, too."""
        self.lengths[-1]["max_steps"] = max_steps


@dataclass(frozen=True)
class State:
    """Everything that a run needs to resume as if it had never stopped.

    `average` is the moving average of the weights; empty where the run keeps none.
    """

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    progress: Progress
    average: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def weights_to_use(self) -> Mapping[str, Tensor]:
        """Return the weights that were scored and are to be used: the average where there is
        one.
        """
        return self.average or self.model


class Checkpoints:
    """The checkpoints of one run, in one folder.

    `facts` (what the run is trained from) are written into every manifest. One of them, `run`, is
    the run's own mark, by which a checkpoint that was put here from another run is told.
    """

    def __init__(
        self, folder: Path, keep: int, facts: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.keep = keep
        self.facts = dict(facts or {})
        self.notes: list[str] = []

    def save(self, state: State) -> Path:
        """Write a checkpoint, then remove what is needed no longer: not the best one, nor the
        newest `keep`.
        """
        durable.make_folder(self.folder)
        step = state.progress.step
        path = self.folder / f"step-{step}"
        facts = {"format": FORMAT, "step": step, **self.facts}
        with durable.writing_folder(path, facts, replace=True) as temporary:
            save_file(dict(state.model), temporary / MODEL)
            save_file(dict(state.optimizer), temporary / OPTIMIZER)
            if state.average:
                save_file(dict(state.average), temporary / AVERAGE)
            durable.write_json(temporary / PROGRESS, asdict(state.progress))
        self._rotate(state.progress)
        return path

    def load_latest(self) -> State | None:
        """Return the newest sound checkpoint; None where the run has none at all.

        A damaged one is set aside under another name and noted, and the one before it is used.
        Raises FolderError where there are checkpoints and none is sound: a run is never silently
        begun anew.
        """
        durable.remove_leftovers(self.folder)
        state = self._first_sound(self.newest_first())
        if state is not None:  # the process may have ended before it came to this
            self._rotate(state.progress)
        return state

    def load_best(self, step: int) -> State | None:
        """Return the checkpoint of the best step; where there is none, or a damaged one, the newest
        sound one.
        """
        best = self.folder / f"step-{step}"
        return self._first_sound(
            [*([best] if best.is_dir() else []), *self.newest_first()]
        )

    @property
    def newest_step(self) -> int:
        """Return the step of the newest checkpoint; 0 where there is none."""
        return next((_step_of(path) or 0 for path in self.newest_first()), 0)

    @property
    def holds_any(self) -> bool:
        """Return whether there is a checkpoint, sound or not."""
        return bool(self.newest_first()) or any(self.folder.glob(f"{DAMAGED}*"))

    def keep_failure(self, facts: Mapping[str, Any]) -> None:
        """Write down which micro-batches made a loss or gradient that is not finite."""
        durable.make_folder(self.folder)
        durable.write_json(self.folder / FAILURE, facts)

    def _rotate(self, progress: Progress) -> None:
        """Write which checkpoint is the newest, and remove those neither among the newest nor the
        best.
        """
        durable.write_text(self.folder / LATEST, f"step-{progress.step}")
        for old in self.newest_first()[self.keep :]:
            if old != self.folder / f"step-{progress.best_step}":
                shutil.rmtree(old, ignore_errors=True)

    def _first_sound(self, paths: list[Path]) -> State | None:
        """Return the first that can be loaded; those before it are set aside."""
        for path in dict.fromkeys(paths):
            try:
                return self._load(path)
            except FolderError as error:
                aside = path.with_name(DAMAGED + path.name)
                # the same step, damaged before
                shutil.rmtree(aside, ignore_errors=True)
                durable.rename(path, aside)
                self.notes.append(
                    f"checkpoint set aside as {DAMAGED}{path.name}: {error}"
                )
        if self.holds_any:
            why = (
                "; ".join(self.notes)
                or f"those set aside as {DAMAGED}* are all there is"
            )
            raise FolderError(
                f"{self.folder}: no sound checkpoint is left; {why}; start over with --fresh"
            )
        return None

    def _load(self, path: Path) -> State:
        state = load_state(path)
        manifest = durable.read_json(path / durable.MANIFEST)
        if manifest.get("run") != self.facts.get("run"):
            raise FolderError(
                f"{path}: is a checkpoint of another run; put it back where it belongs"
            )
        return state

    def newest_first(self) -> list[Path]:
        """Return the folders of the checkpoints."""
        steps = {p: _step_of(p) for p in self.folder.glob("step-*") if p.is_dir()}
        return sorted(
            (p for p, step in steps.items() if step is not None),
            key=lambda p: -(steps[p] or 0),
        )


def load_state(path: Path) -> State:
    """Read one checkpoint, every file checked against its manifest. Raises FolderError."""
    manifest = durable.read_manifest(path)
    written_format = manifest.get("format")
    if (
        not isinstance(written_format, int)
        or not OLDEST_FORMAT <= written_format <= FORMAT
    ):
        raise FolderError(
            f"{path}: is of format {written_format}, this version reads {OLDEST_FORMAT} to {FORMAT}"
        )
    missing = {MODEL, OPTIMIZER, PROGRESS} - set(manifest["files"])
    if missing:
        raise FolderError(
            f"{path}: lacks {', '.join(sorted(missing))}; the checkpoint is incomplete"
        )
    written = durable.read_json(path / PROGRESS)
    names = {
        f.name
        for f in fields(Progress)
        if SINCE.get(f.name, OLDEST_FORMAT) <= written_format
    }
    if not isinstance(written, dict) or written.keys() != names:
        raise FolderError(
            f"{path / PROGRESS}: does not hold {', '.join(sorted(names))}; not this version's progress"
        )
    average = read_tensors(path / AVERAGE) if AVERAGE in manifest["files"] else {}
    return State(
        read_tensors(path / MODEL),
        read_tensors(path / OPTIMIZER),
        Progress(**written),
        average,
    )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return a safetensors file's tensors. Raises FolderError where it is missing or malformed."""
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise FolderError(f"{path}: missing; the folder is incomplete") from None
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise FolderError(
            f"{path}: not a sound safetensors file ({str(error)[:100]})"
        ) from None


def _step_of(path: Path) -> int | None:
    """Return the step that a checkpoint's manifest names; else, where that is damaged, the one of
    its name.
    """
    try:
        return int(durable.read_json(path / durable.MANIFEST)["step"])
    except (FolderError, KeyError, TypeError, ValueError):
        number = path.name.removeprefix("step-")
        return int(number) if number.isdecimal() else None
