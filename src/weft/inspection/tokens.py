"""The tokens of a text, the vectors they become, and how sure the model was.

Every inspection begins with them.

Shapes: L tokens; T target tokens, V vocabulary; D d_model; H heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.known import KnownWords
from weft.data.normalize import replace_surrogates
from weft.data.tokenizer import Tokenizer
from weft.engine.plain import NORMS
from weft.engine.weights import Floats, Side, Weights
from weft.errors import UsageError

# what an inspection's data begin with; the version grows where a key changes its meaning, or goes
HEAD: Mapping[str, Any] = MappingProxyType({"format": "weft-inspection", "version": 2})
MAX_TOKENS = 128  # of a text that is looked at, an end symbol counted
MAX_DIMENSIONS = 512  # of each vector, in a file
NUM_ALTERNATIVES = 5
NUM_CHOICES = 50
NUM_NEAREST = 5
_MOST_NAMED = 10  # unknown words


@dataclass(frozen=True)
class Limits:
    """The size that an inspection may have: all arrays in it grow with these and with the model.

    A text is cut after `tokens` tokens, its symbols counted but for a classifier's; of a longer
    translation only the first `tgt_tokens` are looked at. A vector is shown by its first
    `dimensions`, a place by its most probable `alternatives`, and by so many `choices` with their
    logits; a token has so many `nearest` ones. Contributions are computed for so many `labels`, the
    most probable ones.

    Raises UsageError for a number below 1, and for fewer than two tokens.
    """

    tokens: int = MAX_TOKENS
    tgt_tokens: int = 4 * MAX_TOKENS
    dimensions: int = MAX_DIMENSIONS
    alternatives: int = NUM_ALTERNATIVES
    labels: int = 5
    choices: int = NUM_CHOICES
    nearest: int = NUM_NEAREST

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = 2 if name == "tokens" else 1
            if value < least:
                raise UsageError(
                    f"limits: {name} = {value}: it must be at least {least}"
                )


USUAL = Limits()


@dataclass(frozen=True)
class Choice:
    """A token that could stand at one place, with its probability there."""

    piece: str
    id: int
    probability: float

    def to_data(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors (L, D) that a text's tokens enter the first layer with.

    `tokens` are those of the tokens, scaled as the model scales them, and of the n-grams beside
    them; `positions` are added to them, None where the model adds none: recurrent layers, a bag of
    n-grams, and rotary positions, which turn queries and keys instead. `normed` is what a norm
    makes of that sum, None where the first layer reads the sum itself. `beside` names what is added
    to a token's own vector in `tokens`: "ngrams", "matches". So many `dimensions` of each are
    written.
    """

    tokens: Floats
    positions: Floats | None
    beside: Sequence[str] = ()
    dimensions: int = MAX_DIMENSIONS
    normed: Floats | None = None

    def to_data(self) -> dict[str, Any]:
        """Return their width and the first of their numbers."""
        return {
            "width": self.tokens.shape[1],
            "tokens": self._first_dimensions(self.tokens),
            "positions": self._first_dimensions(self.positions),
            "normed": self._first_dimensions(self.normed),
            "beside": [*self.beside],
        }

    def _first_dimensions(self, vectors: Floats | None) -> Floats | None:
        return None if vectors is None else vectors[:, : self.dimensions]


def embedded(
    weights: Weights,
    side: Side | None,
    ids: Sequence[int],
    limits: Limits,
    others: Floats | None = None,
    beside: Sequence[str] = (),
) -> Vectors:
    """Embed ids of a side of the model, and return the parts that the first layer's input is made
    of.

    `others` (L, D) are added to the tokens' own vectors; `beside` says what they are.
    """
    assert side is not None
    tokens = side.tokens[list(ids)]
    if others is not None:
        tokens = tokens + others
    tokens = tokens * weights.embedding_scale
    positions = None if side.positions is None else side.positions[: len(ids)]
    normed = None
    if side.norm is not None:
        x = tokens if positions is None else tokens + positions
        normed = NORMS[weights.norm](x, side.norm, weights.eps)
    return Vectors(tokens, positions, beside, limits.dimensions, normed)


def some_text(text: str, tokenizer: Tokenizer) -> tuple[str, list[int]]:
    """Return the text without what no file can hold, and its ids.

    Raises UsageError where there is nothing in it.
    """
    shown = replace_surrogates(text)
    ids = tokenizer.encode(shown)
    if not shown.strip() or not ids:
        raise UsageError("there is no text to inspect; give a sentence")
    return shown, ids


def unknown_words(known: KnownWords | None, text: str) -> list[str] | None:
    """Return the words of a text that training never had; None where its words are not kept."""
    return None if known is None else known.unknown(text)


def unknown_notes(words: Sequence[str] | None, follows: str) -> list[str]:
    """Name words that training never had, and what `follows` for the answer; say nothing without
    one.
    """
    if not words:
        return []
    counted = f"{len(words):,} words were" if len(words) > 1 else "1 word was"
    named = ", ".join(words[:_MOST_NAMED])
    if len(words) > _MOST_NAMED:
        named += f" and {len(words) - _MOST_NAMED:,} more"
    return [f"{counted} never seen in training: {named}; {follows}"]


def alternatives(
    tokenizer: Tokenizer,
    probabilities: NDArray[np.floating[Any]],
    count: int = NUM_ALTERNATIVES,
) -> list[list[Choice]]:
    """Return the most probable tokens at each place (T, V), first the most probable; of equal ones
    the lower id.
    """
    ids = np.argsort(-probabilities, axis=-1, kind="stable")[:, :count]
    values = np.take_along_axis(probabilities, ids, axis=-1)
    tops = zip(ids.tolist(), values.tolist(), strict=True)
    return [_choices(tokenizer, *top) for top in tops]


def _choices(
    tokenizer: Tokenizer, ids: Sequence[int], probabilities: Sequence[float]
) -> list[Choice]:
    pairs = zip(ids, probabilities, strict=True)
    return [Choice(tokenizer.pieces([i])[0], i, p) for i, p in pairs]


def chosen(
    pieces: Sequence[str],
    ids: Sequence[int],
    probabilities: NDArray[np.floating[Any]],
) -> list[Choice]:
    """Return the tokens that stand there, each with its probability (T, V)."""
    rows = zip(pieces, ids, probabilities, strict=True)
    return [Choice(piece, i, float(row[i])) for piece, i, row in rows]


def stacked(maps: Sequence[Floats]) -> Floats:
    """Return the only text of each layer's maps, (layers, H, L, L); no layer where nothing was
    attended to.
    """
    if not maps:
        return np.empty((0, 1, 0, 0), np.float32)
    return np.stack([layer[0] for layer in maps])
