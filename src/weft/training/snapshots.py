"""The weights that a run keeps of its way, so that `weft inspect --checkpoints` can look back.

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


class Snapshots:
    """The snapshots of one run, in one folder: weights in float16, `count` at most.

    One is due before the first step, and whenever the number of steps has doubled: 0, 1, 2, 4, 8 …
    The first and the newest ones stay. So the beginning is seen, however long the run becomes.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count

    def is_due(self, step: int) -> bool:
        """Return whether the weights after a step are to be kept."""
        return self.count > 0 and step & (step - 1) == 0

    def save(self, step: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights after a step, then remove what is more than `count`."""
        durable.make_folder(self.folder)
        halves = {name: tensor.to(torch.float16) for name, tensor in weights.items()}
        with durable.replacing(self.folder / f"step-{step}.safetensors") as temporary:
            save_file(halves, temporary)
        found = snapshots_in(self.folder)
        for spare in found[1 : len(found) - self.count + 1]:
            spare.weights.unlink()

    def begin_at(self, step: int) -> None:
        """Remove the snapshots of later steps, which the run is to take anew."""
        durable.remove_leftovers(self.folder)
        for kept in snapshots_in(self.folder):
            if kept.step > step:
                kept.weights.unlink()
