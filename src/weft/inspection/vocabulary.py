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
    norms = np.sqrt(np.square(table).sum(1))
    least = np.finfo(np.float32).tiny
    own = table[distinct] / np.maximum(norms[distinct], least)[:, None]
    cosines = own @ table.T / np.maximum(norms, least)
    cosines[:, norms == 0] = -2
    cosines[:, PAD_ID] = -2
    cosines[np.arange(len(distinct)), distinct] = -2
    kept = min(count, len(table) - 1)
    best = largest(cosines, kept)
    values = np.take_along_axis(cosines, best, axis=1)
    return Nearest(best[places], values[places].clip(-1, 1))


def largest(values: Floats, count: int) -> Ids:
    """Return where the largest values of each row (L, V) are, (L, count), the largest first; of
    equal ones that are kept the first.
    """
    if count >= values.shape[1]:
        places = np.argsort(-values, axis=1, kind="stable")
        return places[:, :count]
    kept = np.sort(np.argpartition(-values, count - 1, axis=1)[:, :count], axis=1)
    order = np.argsort(-np.take_along_axis(values, kept, axis=1), axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)


def pieces_named(tokenizer: Tokenizer, *tables: Any) -> dict[str, str]:
    """Return the readable piece of every id in these arrays, by the id."""
    found: set[int] = set()
    for table in tables:
        found.update(np.unique(np.asarray(table, np.int64)).tolist())
    return {str(i): tokenizer.pieces([i])[0] for i in sorted(found)}


def cuts_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Any] | None:
    """Return the words of the tokens, each with the pairs of pieces that were joined in it; None
    where the tokenizer joins none.
    """
    words = tokenizer.cuts(tokenizer.decode(ids))
    if words is None:
        return None
    return [[word, [list(pair) for pair in pairs]] for word, pairs in words]


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
        found: Data = {side: each.to_data() for side, each in self.nearest.items()}
        return {"nearest": found, "cuts": dict(self.cuts), "pieces": dict(self.pieces)}


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
        found[side] = nearest(shelf.table, shelf.ids, count)
        named = (np.array(shelf.ids), found[side].ids, *shelf.others)
        pieces[side] = pieces_named(shelf.tokenizer, *named)
        words = cuts_of(shelf.tokenizer, shelf.ids) if shelf.is_read else None
        if words is not None:
            cuts[side] = words
    return Lexicon(found, cuts, pieces)
