"""The weights that a run keeps of its way, to look back at.

They are apart from the checkpoints, which a run resumes from: half as exact, and without the
optimizer's state.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from weft.folder import durable
from weft.folder.snapshots import snapshots_in

MOST = 8


class Snapshots:
    """The snapshots of one run, in one folder: weights in float16, `MOST` at most.

    One is due before the first step, and whenever the number of steps has doubled: 0, 1, 2, 4, 8 …
    The first and the newest ones stay. So the beginning is seen, however long the run becomes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_due(self, step: int) -> bool:
        """Return whether the weights after a step are to be kept."""
        return step & (step - 1) == 0

    def save(self, step: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights after a step, then remove what is too much."""
        durable.make_folder(self.folder)
        halves = {name: tensor.to(torch.float16) for name, tensor in weights.items()}
        with durable.replacing(self.folder / f"step-{step}.safetensors") as temporary:
            save_file(halves, temporary)
        found = snapshots_in(self.folder)
        for spare in found[1 : max(len(found) - MOST, 0) + 1]:
            spare.weights.unlink()

    def begin_at(self, step: int) -> None:
        """Remove the snapshots of later steps, which the run is to take anew."""
        durable.remove_leftovers(self.folder)
        for kept in snapshots_in(self.folder):
            if kept.step > step:
                kept.weights.unlink()
