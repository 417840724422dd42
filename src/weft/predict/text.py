"""The text and the model of every predictor: single lines, sentences, evaluation mode."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

# A run of white space with a line break in it. It begins where the white space does: else a long
# run without a break would be searched anew from each of its spaces, in quadratic time.
LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n]\s*")


_SENTENCE = 4  # characters at least
_LETTERS = 0.7  # their share that are letters


class Trainable(Protocol):
    """A model that knows whether it is in training."""

    training: bool

    def train(self, mode: bool = True) -> Any:
        """Set the mode as `torch.nn.Module.train` does."""
        ...


def one_line(text: str) -> str:
    """Return a text as a single line, which models learn from: line breaks become spaces."""
    if "\n" in text or "\r" in text:
        text = LINE_BREAKS.sub(" ", text)
    return text.strip()


def looks_like_sentence(text: str) -> bool:
    """Return whether there are words and mostly letters: no time code, table, markup or code."""
    characters = [c for c in text if not c.isspace()]
    letters = sum(c.isalpha() or not c.isascii() for c in characters)
    is_long = len(characters) >= _SENTENCE
    return is_long and letters >= _LETTERS * len(characters)


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
