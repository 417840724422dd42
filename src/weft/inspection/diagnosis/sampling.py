"""The part of a text that a model is tried on."""

from dataclasses import replace
from typing import Any

MOST_ROWS = 400  # of a text are looked at, spread over all of it
MOST_CHARACTERS = 20_000  # of documents, of which one may be a whole library


def spread_rows(count: int) -> list[int]:
    """Return the numbers of at most MOST_ROWS of `count` rows, spread over all."""
    most = min(count, MOST_ROWS)
    return [i * count // most for i in range(most)]


def sample(text: Any) -> Any:
    """Return at most MOST_ROWS rows of a text, spread over all."""
    return text.select(spread_rows(len(text)))


def beginnings(documents: Any) -> Any:
    """Return the beginnings of some documents, equally long, together MOST_CHARACTERS at most."""
    some = sample(documents)
    most = MOST_CHARACTERS // len(some)
    return replace(some, texts=[document[:most] for document in some.texts])
