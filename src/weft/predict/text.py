"""What every predictor does to its text and its model."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

LINE_BREAKS = re.compile(r"\s*[\r\n]\s*")


class Trainable(Protocol):
    """A model that knows whether it is in training."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...


def one_line(text: str) -> str:
    """Models learn from single lines: line breaks become spaces, and none are left at the ends."""
    return LINE_BREAKS.sub(" ", text).strip()


@contextmanager
def evaluating(model: Trainable) -> Iterator[None]:
    """No dropout and no gradients; a model in training goes on training afterwards."""
    was_training = model.training
    model.train(False)
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)
