"""A run's state on disk: one file for each kind, whole or not at all, and never the last good one lost.

A checkpoint is the folder `step-<n>`: model, optimizer and random state as safetensors, progress as JSON, and
a manifest with their SHA-256. `latest` and `best` are files that hold a checkpoint's name; `latest` moves
only when the new checkpoint is on disk, and old ones go only after that.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from weft import durable
from weft.errors import FolderError

MODEL, OPTIMIZER, RANDOM, PROGRESS = (
    "model.safetensors",
    "optimizer.safetensors",
    "random.safetensors",
    "progress.json",
)
LATEST, BEST, DAMAGED = "latest", "best", "damaged-"


@dataclass
class Progress:
    """Where a run stands: what a checkpoint keeps beside weights, optimizer and random state."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    evaluations_since_best: int = 0


@dataclass(frozen=True)
class State:
    """Everything a run needs to go on as if it had never stopped."""

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    random: Mapping[str, Tensor]
    progress: Progress


class Checkpoints:
    """The checkpoints of one run, in one folder.

    `facts` (what the run is trained from) are written into every manifest.
    """

    def __init__(self, folder: Path, keep: int, facts: Mapping[str, Any] | None = None) -> None:
        self.folder, self.keep, self.facts = folder, keep, dict(facts or {})
        self.notes: list[str] = []

    def save(self, state: State, best: bool = False) -> Path:
        """Write a checkpoint, move the pointers, then remove what is no longer needed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        step = state.progress.step
        path = self.folder / f"step-{step}"
        if path.exists():
            shutil.rmtree(path)
        with durable.writing_folder(path, {"step": step, **self.facts}) as temporary:
            save_file(dict(state.model), temporary / MODEL)
            save_file(dict(state.optimizer), temporary / OPTIMIZER)
            save_file(dict(state.random), temporary / RANDOM)
            durable.write_json(temporary / PROGRESS, asdict(state.progress))
        if best:
            durable.write_text(self.folder / BEST, path.name)
        durable.write_text(self.folder / LATEST, path.name)
        self._rotate()
        return path

    def load_latest(self) -> State | None:
        """The newest sound checkpoint; None where the run has none at all.

        A damaged one is set aside under another name and noted, and the one before it is used. Raises
        FolderError where there are checkpoints and none is sound: a run is never silently begun anew.
        """
        durable.remove_leftovers(self.folder)
        paths = self._newest_first()
        for path in paths:
            try:
                return load_state(path)
            except FolderError as error:
                aside = path.with_name(DAMAGED + path.name)
                shutil.rmtree(aside, ignore_errors=True)  # the same step, damaged before
                path.rename(aside)
                self.notes.append(f"checkpoint set aside as {DAMAGED}{path.name}: {error}")
        if paths or any(self.folder.glob(f"{DAMAGED}*")):
            why = "; ".join(self.notes) or f"those set aside as {DAMAGED}* are all there is"
            raise FolderError(f"{self.folder}: no sound checkpoint is left; {why}; give another --out")
        return None

    def best(self) -> Path | None:
        """The checkpoint with the best dev score, else the newest."""
        for name in (BEST, LATEST):
            pointer = self.folder / name
            if pointer.is_file() and (path := self.folder / pointer.read_text().strip()).is_dir():
                return path
        return next(iter(self._newest_first()), None)

    def _newest_first(self) -> list[Path]:
        steps = {p: _step_of(p) for p in self.folder.glob("step-*")} if self.folder.is_dir() else {}
        return sorted((p for p, step in steps.items() if step is not None), key=lambda p: -(steps[p] or 0))

    def _rotate(self) -> None:
        best = self.best()
        for path in self._newest_first()[self.keep :]:
            if path != best:
                shutil.rmtree(path, ignore_errors=True)


def load_state(path: Path) -> State:
    """Read one checkpoint, every file checked against its manifest. Raises FolderError."""
    manifest = durable.read_manifest(path)
    missing = {MODEL, OPTIMIZER, RANDOM, PROGRESS} - set(manifest["files"])
    if missing:
        raise FolderError(f"{path}: lacks {', '.join(sorted(missing))}; the checkpoint is incomplete")
    try:
        progress = Progress(**durable.read_json(path / PROGRESS))
    except TypeError as error:
        raise FolderError(f"{path / PROGRESS}: not this version's progress ({error})") from None
    model, optimizer, random = (read_tensors(path / name) for name in (MODEL, OPTIMIZER, RANDOM))
    return State(model, optimizer, random, progress)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """A safetensors file's tensors. Raises FolderError where it is missing or malformed."""
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise FolderError(f"{path}: missing; the folder is incomplete") from None
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise FolderError(f"{path}: not a sound safetensors file ({str(error)[:100]})") from None


def random_tensors() -> dict[str, Tensor]:
    """The state of torch's random generators, the processor's and each GPU's."""
    states = {"cpu": torch.get_rng_state()}
    return states | {f"cuda.{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}


def set_random_tensors(states: Mapping[str, Tensor]) -> None:
    """Put back what `random_tensors` gave; a GPU that is not there any more is left out."""
    torch.set_rng_state(states["cpu"])
    for i in range(torch.cuda.device_count()):
        if f"cuda.{i}" in states:
            torch.cuda.set_rng_state(states[f"cuda.{i}"], i)


def _step_of(path: Path) -> int | None:
    number = path.name.removeprefix("step-")
    return int(number) if number.isdecimal() and path.is_dir() else None
