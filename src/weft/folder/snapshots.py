"""The weights that a run has kept of its way: its snapshots and its checkpoints, in files."""

from dataclasses import dataclass
from pathlib import Path

from weft.errors import FolderError
from weft.folder.arrays import Arrays, is_finite, read_arrays
from weft.folder.layout import AVERAGE, WEIGHTS, RunFolder


@dataclass(frozen=True)
class Kept:
    """A file with the weights after so many steps."""

    step: int
    weights: Path


def kept_weights(run: RunFolder) -> list[Kept]:
    """Return what a run has kept, each step once; of a step that has both, the checkpoint's, which
    is exact.
    """
    found = [*snapshots_in(run.snapshots), *_checkpoints_in(run.checkpoints)]
    return sorted({kept.step: kept for kept in found}.values(), key=lambda k: k.step)


def snapshots_in(folder: Path) -> list[Kept]:
    """Return the snapshots in a folder, ordered by their steps."""
    paths = folder.glob("step-*.safetensors")
    found = []
    for path in paths:
        step = _step(path.stem)
        if step is not None:
            found.append(Kept(step, path))
    return sorted(found, key=lambda kept: kept.step)


def _checkpoints_in(folder: Path) -> list[Kept]:
    """Return the checkpoints in a folder, with the weights that were scored: of the average, if
    any.
    """
    found = []
    for path in folder.glob("step-*"):
        files = [path / AVERAGE, path / WEIGHTS]
        weights = next((file for file in files if file.is_file()), None)
        step = _step(path.name)
        if weights is not None and step is not None:
            found.append(Kept(step, weights))
    return found


def _step(name: str) -> int | None:
    number = name.removeprefix("step-")
    return int(number) if number.isdecimal() else None


def read_kept(folder: Path, kept: Kept) -> Arrays:
    """Map the weights of an earlier step of the model in a folder, in float32.

    Raises FolderError where they are damaged, or not of the shapes that the model's own have.
    """
    arrays = read_arrays(kept.weights)
    own = read_arrays(folder / WEIGHTS)
    if _shapes(arrays) != _shapes(own):
        raise FolderError(f"{kept.weights}: not weights of the model in {folder}")
    if not all(is_finite(array) for array in arrays.values()):
        raise FolderError(f"{kept.weights}: holds NaN or infinity; the file is damaged")
    return arrays


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}
