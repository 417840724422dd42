"""A moving average of the weights, evaluated and published in their place.

Training itself continues with the weights.
"""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from weft.errors import FolderError
from weft.training.distributed import copy_into, full_tensor, reshard


class MovingAverage:
    """The average: decay x average + (1 - decay) x weights, after each update.

    After few updates the decay is smaller, (1 + n) / (10 + n) after n of them, so that the initial
    weights are soon forgotten. Source: Polyak and Juditsky 1992, "Acceleration of
    Stochastic Approximation by Averaging"; with this start, TensorFlow's ExponentialMovingAverage.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """Begin with the model's weights as they are now, sharded where they are."""
        self._model = model
        self._names = [name for name, _ in model.named_parameters()]
        self._weights: list[Tensor] = list(model.parameters())
        self._average = [p.detach().clone() for p in self._weights]
        self._decay = decay

    def update(self, step: int) -> None:
        """Update the average with the weights after optimizer step `step`, counted from 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(self._average, self._weights, 1 - decay)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model the averaged weights inside the block, and its own, bit for bit, behind
        it.
        """
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def tensors(self) -> dict[str, Tensor]:
        """Return the averaged weights by name; of several processes, each must ask."""
        return {
            name: full_tensor(tensor)
            for name, tensor in zip(self._names, self._average, strict=True)
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Reset the average to where `tensors` were taken.

        Raises FolderError where they are not of this model.
        """
        named = dict(zip(self._names, self._average, strict=True))
        shapes = {name: tensor.shape for name, tensor in named.items()}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise FolderError(
                "the averaged weights of a checkpoint are missing, or not this run's; restore it"
            )
        for name, average in named.items():
            copy_into(average, tensors[name])

    def _swap(self) -> None:
        reshard(self._model)
        with torch.no_grad():
            for weight, average in zip(self._weights, self._average, strict=True):
                held = weight.clone()
                weight.copy_(average)
                average.copy_(held)
