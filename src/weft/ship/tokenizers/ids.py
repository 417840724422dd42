"""Places of the ids of a model's tokenizers in the one list of ids that another program has.

Weft's two sides may have a vocabulary each, whose ids both begin at 0. Most programs have a single
list: there the target's ids stay as they are, as they are what a model writes, and the source's
stand behind them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.data.pipeline import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from weft.data.tokenizer import Tokenizer

Ids: TypeAlias = NDArray[np.int64]
Side: TypeAlias = Literal["src", "tgt"]

_NUM_SPECIALS = len(SPECIALS)
_NOWHERE = -1


@dataclass(frozen=True, eq=False)
class IdMap:
    """A list of `size` ids, and where in it each of Weft's ids stands: id i of the source at
    `src[i]`, id i of the target at `tgt[i]`; with one tokenizer both are the same array.

    A table E of that list is filled by `E[ids.src] = ...` and `E[ids.tgt] = ...`. Where a target
    has a table for each side, each is filled by its own line, and rows that no line fills are never
    read. Where it has one table for both, the map must have `own_eos`, as the two lines would
    otherwise write the special rows twice.
    """

    src: Ids
    tgt: Ids
    size: int

    @property
    def is_joined(self) -> bool:
        """Return whether there are two vocabularies."""
        return self.src is not self.tgt

    @property
    def has_own_eos(self) -> bool:
        """Return whether the source's special ids are others than the target's."""
        return self.pad != int(self.src[PAD_ID])

    @property
    def pad(self) -> int:
        """Return the id that fills rows of either side; a mask hides it, so that its row is never
        read.
        """
        return int(self.tgt[PAD_ID])

    @property
    def bos(self) -> int:
        """Return the id that a decoder begins with."""
        return int(self.tgt[BOS_ID])

    @property
    def eos(self) -> int:
        """Return the id that a decoder ends with."""
        return int(self.tgt[EOS_ID])

    @property
    def src_eos(self) -> int:
        """Return the id that a source ends with."""
        return int(self.src[EOS_ID])

    def to(self, side: Side, ids: Sequence[int] | NDArray[Any]) -> Ids:
        """Return the list's ids for Weft's, in an array of any shape."""
        return self._of(side)[np.asarray(ids, np.int64)]

    def back(self, side: Side, ids: Sequence[int] | NDArray[Any]) -> Ids:
        """Return Weft's ids for the list's, in an array of any shape; -1 for an id that is none of
        this side's.
        """
        own = self._of(side)
        places = np.full(self.size, _NOWHERE, np.int64)
        places[own] = np.arange(len(own))
        return places[np.asarray(ids, np.int64)]

    def _of(self, side: Side) -> Ids:
        return self.src if side == "src" else self.tgt


def same(tokenizer: Tokenizer) -> IdMap:
    """Return the map of one tokenizer for everything: all ids are as they were."""
    ids = np.arange(tokenizer.vocab_size)
    return IdMap(ids, ids, len(ids))


def joined(src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, own_eos: bool) -> IdMap:
    """Return the map of two vocabularies in one list: the target's ids stay, the source's follow.

    With `own_eos` all ids of the source follow, the special ones too, as a model with one table
    needs it: source and target end with different rows of it. Else both sides share the special
    ids, as a model with a table for each side can, and the source's other ids follow.
    """
    num_src = src_tokenizer.vocab_size
    tgt = np.arange(tgt_tokenizer.vocab_size)
    if own_eos:
        return IdMap(len(tgt) + np.arange(num_src), tgt, len(tgt) + num_src)
    src = np.arange(num_src)
    src[_NUM_SPECIALS:] += len(tgt) - _NUM_SPECIALS
    return IdMap(src, tgt, len(tgt) + num_src - _NUM_SPECIALS)
