"""The two modes of a model: in training it has dropout and gradients, in use neither."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch


@runtime_checkable
class Trainable(Protocol):
    """A model that knows whether it is in training."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """Set the mode as `torch.nn.Module.train` does."""
        ...


@contextmanager
def evaluating(model: Trainable) -> Iterator[None]:
    """Use a model without dropout and gradients; one in training goes on training afterwards.

    Never around a `yield` to a caller: until the next piece is asked for, the caller's own code
    runs.
    """
    was_training = model.training
    if was_training:
        model.train(False)
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            model.train(True)
