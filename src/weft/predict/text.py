"""What every predictor does to its text and its model."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

# A run of white space with a line break in it. It begins where the white space does: else a long
# run without a break would be searched anew from each of its spaces, in quadratic time.
LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n]\s*")


# characters of a sentence at least, and their share that are letters
_SENTENCE, _LETTERS = 4, 0.7


class Trainable(Protocol):
    """A model that knows whether it is in training."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """As `torch.nn.Module.train`."""
        ...


def one_line(text: str) -> str:
    """Models learn from single lines: line breaks become spaces, and none are left at the ends."""
    if "\n" in text or "\r" in text:
        text = LINE_BREAKS.sub(" ", text)
    return text.strip()


def looks_like_sentence(text: str) -> bool:
    """Return whether there are words and mostly letters: no time code, table, markup or code."""
    characters = [c for c in text if not c.isspace()]
    return len(characters) >= _SENTENCE and sum(
        c.isalpha() or not c.isascii() for c in characters
    ) >= _LETTERS * len(characters)


@contextmanager
def evaluating(model: Trainable) -> Iterator[None]:
    """No dropout and no gradients; a model in training goes on training afterwards.

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
