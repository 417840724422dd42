"""The tokens of a text, the vectors they become, and how sure the model was.

Every inspection begins with them.

Shapes: the legend in `weft.model.attention`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.normalize import replace_surrogates
from weft.data.tokenizer import PAD_ID, Tokenizer
from weft.errors import UsageError
from weft.model.transformer import Embedding

MAX_TOKENS = 128  # of a text that is looked at, an end symbol counted
MAX_DIMENSIONS = 64  # of each vector, in a file
NUM_ALTERNATIVES = 5
NOTHING: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Choice:
    """A token that could stand at one place, with its probability there."""

    piece: str
    id: int
    probability: float

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; the probability is rounded to four decimals."""
        return {
            "piece": self.piece,
            "id": self.id,
            "probability": round(self.probability, 4),
        }


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors that a text's tokens enter the first layer with.

    `tokens` are those of the tokens, scaled as the model scales them, and of the n-grams beside
    them; `positions` are added to them, None where the model adds none: recurrent layers, a bag of
    n-grams, and rotary positions, which turn queries and keys instead. `beside` names what is added
    to a token's own vector in `tokens`: "ngrams", "matches".
    """

    tokens: Float[Tensor, "L D"]
    positions: Float[Tensor, "L D"] | None
    beside: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return their width and the first `MAX_DIMENSIONS` of their numbers.

        These are rounded to three decimals.
        """
        return {
            "width": self.tokens.shape[1],
            "tokens": _first_dimensions(self.tokens),
            "positions": _first_dimensions(self.positions),
            "beside": [*self.beside],
        }


def _first_dimensions(vectors: Float[Tensor, "L D"] | None) -> Any:
    return None if vectors is None else rounded(vectors[:, :MAX_DIMENSIONS].tolist(), 3)


def embedded(
    embedding: Embedding,
    ids: Int[Tensor, "1 L"],
    beside: Mapping[str, Float[Tensor, "1 L D"]] = NOTHING,
) -> Vectors:
    """Embed ids, and return the parts that the first layer's input is the sum of."""
    tokens = (
        (sum(beside.values(), embedding.tokens(ids)) * embedding.scale)[0].float().cpu()
    )
    table = embedding.positions(ids.shape[1])
    is_added = table.shape[1] == tokens.shape[1]
    positions = table.float().cpu() if is_added else None
    return Vectors(tokens, positions, tuple(beside))


def some_text(text: str, tokenizer: Tokenizer) -> tuple[str, list[int]]:
    """Return the text without what no file can hold, and its ids.

    Raises UsageError where there is nothing in it.
    """
    shown = replace_surrogates(text)
    ids = tokenizer.encode(shown)
    if not shown.strip() or not ids:
        raise UsageError("there is no text to inspect; give a sentence")
    return shown, ids


def alternatives(
    tokenizer: Tokenizer,
    probabilities: Float[Tensor, "T V"],
    count: int = NUM_ALTERNATIVES,
) -> list[list[Choice]]:
    """Return the most probable tokens at each place, first the most probable; of equal ones the
    lower id.
    """
    values, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    tops = zip(ids[:, :count].tolist(), values[:, :count].tolist(), strict=True)
    return [_choices(tokenizer, *top) for top in tops]


def _choices(
    tokenizer: Tokenizer, ids: Sequence[int], probabilities: Sequence[float]
) -> list[Choice]:
    pairs = zip(ids, probabilities, strict=True)
    return [Choice(tokenizer.pieces([i])[0], i, p) for i, p in pairs]


def padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "B L"]:
    """Fill rows of ids to the length of the longest with the pad id."""
    width = max(map(len, rows))
    fill = [PAD_ID] * width
    return torch.tensor([[*row, *fill[len(row) :]] for row in rows])


def stacked(maps: Sequence[Tensor]) -> Float[Tensor, "layers H L L2"]:
    """Return the only text of each layer's maps, on the CPU; no layer where nothing was
    attended to.
    """
    if not maps:
        return torch.empty(0, 1, 0, 0)
    return torch.stack([layer[0].float().cpu() for layer in maps])


def rounded(value: Any, decimals: int = 4) -> Any:
    """Round a number, or all numbers in lists within lists."""
    if not isinstance(value, list):
        return round(value, decimals)
    return [rounded(each, decimals) for each in value]
