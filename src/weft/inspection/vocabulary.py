"""The tokens of a vocabulary that an inspection names: the nearest ones of each, and their pieces.

Shapes: L tokens; V vocabulary; D d_model; N nearest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weft.data.tokenizer import PAD_ID, Tokenizer
from weft.engine.stream import Ids
from weft.engine.weights import Floats

Data: TypeAlias = dict[str, Any]

_LEAST = -2.0  # below each cosine


@dataclass(frozen=True, eq=False)
class Nearest:
    """The tokens whose vectors are the most like each token's own, `ids` and `cosines` (L, N)."""

    ids: Ids
    cosines: Floats

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        return {"ids": self.ids, "cosines": self.cosines}


def nearest(table: Floats, ids: Sequence[int], count: int) -> Nearest:
    """Find the nearest tokens by cosine in the table of token vectors (V, D), the token itself left
    out, and those that have no vector.
    """
    distinct, places = np.unique(list(ids), return_inverse=True)
    squares = np.square(table)
    norms = np.sqrt(squares.sum(1))
    least = np.finfo(np.float32).tiny
    divisor = np.maximum(norms, least)
    products = table[distinct] @ table.T
    cosines = products / divisor
    cosines /= divisor[distinct, None]
    rows = np.arange(len(distinct))
    cosines[:, norms == 0] = _LEAST
    cosines[:, PAD_ID] = _LEAST
    cosines[rows, distinct] = _LEAST
    kept = min(count, len(table) - 1)
    best = largest(cosines, kept)
    values = np.take_along_axis(cosines, best, axis=1)
    values = values.clip(-1, 1)
    return Nearest(best[places], values[places])


def largest(values: Floats, count: int) -> Ids:
    """Return where the largest values of each row (L, V) are, (L, count), the largest first; of
    equal ones that are kept the first.
    """
    width = values.shape[1]
    least = min(count, width) - 1
    parted = np.argpartition(-values, least, axis=1)
    kept = np.sort(parted[:, :count], axis=1)
    largest_ones = np.take_along_axis(values, kept, axis=1)
    order = np.argsort(-largest_ones, axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)


def pieces_named(tokenizer: Tokenizer, *tables: Any) -> dict[str, str]:
    """Return the readable piece of every id in these arrays, by the id."""
    flat = [np.asarray(table, np.int64).flatten() for table in tables]
    every = np.unique(np.concatenate(flat))
    found = {}
    for number in every.tolist():
        (piece,) = tokenizer.pieces([number])
        found[str(number)] = piece
    return found


def cuts_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Any] | None:
    """Return the words of the tokens, each with the pairs of pieces that were joined in it; None
    where the tokenizer joins none.
    """
    words = tokenizer.cuts(tokenizer.decode(ids))
    if words is None:
        return None
    found = []
    for word, pairs in words:
        joined = [list(pair) for pair in pairs]
        found.append([word, joined])
    return found


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The tokens that an inspection names, by side: "source" and "target", or "text".

    `nearest` has those that are like each token of a side, `cuts` the pairs of pieces that were
    joined in each word that is read, `pieces` every token by its id.
    """

    nearest: Mapping[str, Nearest]
    cuts: Mapping[str, list[Any]]
    pieces: Mapping[str, dict[str, str]]

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        found: Data = {}
        for side, each in self.nearest.items():
            found[side] = each.to_data()
        return {
            "nearest": found,
            "cuts": dict(self.cuts),
            "pieces": dict(self.pieces),
        }


@dataclass(frozen=True)
class Shelf:
    """A side's tokenizer, token vectors (V, D) and tokens, and other ids that are to be named."""

    tokenizer: Tokenizer
    table: Floats
    ids: Sequence[int]
    others: Sequence[Ids] = ()
    is_read: bool = True


def lexicon_of(shelves: Mapping[str, Shelf], count: int) -> Lexicon:
    """Find so many nearest tokens of each, and name all."""
    found = {}
    cuts = {}
    pieces = {}
    for side, shelf in shelves.items():
        alike = nearest(shelf.table, shelf.ids, count)
        found[side] = alike
        pieces[side] = pieces_named(
            shelf.tokenizer,
            shelf.ids,
            alike.ids,
            *shelf.others,
        )
        words = cuts_of(shelf.tokenizer, shelf.ids)
        if words is not None and shelf.is_read:
            cuts[side] = words
    return Lexicon(found, cuts, pieces)
