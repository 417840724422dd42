"""The noise that training reads in a row's plain ids: words cut into other pieces, and words
masked.

Drawn from (seed, epoch, row) alone, so that a batch is the same however the run came to it.
Sources: Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization"; Sennrich
et al. 2016, "Edinburgh Neural Machine Translation Systems for WMT 16", section 2.5, where whole
words are dropped.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, log1p
from operator import ne
from random import Random

import numpy as np
import numpy.typing as npt

from weft.data.pipeline import byte_letters
from weft.data.store import Ids
from weft.data.tokenizer import PAD_ID, UNK_ID, Tokenizer

Draw = Callable[[], float]
REMEMBERED = 2**15  # words
_UNMERGED = 2**62  # the rank of two pieces that are no merge


class Noise:
    """The noise of a run, drawn row by row."""

    def __init__(
        self,
        tokenizers: Sequence[Tokenizer],
        *,
        bpe_dropout: float,
        word_dropout: float,
        seed: int,
        max_len: int,
    ) -> None:
        """Set the noise; `tokenizers` are one a side. A row that would become longer than `max_len`
        ids keeps its pieces.
        """
        cutters = {
            t: BpeCutter(t)
            for t in tokenizers
            if bpe_dropout and t.settings.kind == "bpe"
        }
        self._cutters = [cutters.get(tokenizer) for tokenizer in tokenizers]
        self._bpe_dropout = bpe_dropout
        self._word_dropout = word_dropout
        self._seed = seed
        self.max_len = max_len

    def of(
        self, epoch: int, row: int, *sides: Ids
    ) -> list[tuple[list[int], list[int]]]:
        """Draw the noise of a row; return for each side all its ids, perhaps in new pieces, and the
        same with some masked.
        """
        draw = Random(((self._seed << 64 | epoch) << 64) | row).random
        cut = [
            self._cut(cutter, ids.tolist(), draw)
            for cutter, ids in zip(self._cutters, sides, strict=True)
        ]
        return [(ids, self._masked(ids, draw)) for ids in cut]

    def _cut(self, cutter: "BpeCutter | None", ids: list[int], draw: Draw) -> list[int]:
        if cutter is None:
            return ids
        cut = cutter.cut(ids, self._bpe_dropout, draw)
        return ids if len(cut) > self.max_len else cut

    def _masked(self, ids: list[int], draw: Draw) -> list[int]:
        share = self._word_dropout
        if not share:
            return ids
        masked = list(ids)
        for place in range(len(ids)):
            if draw() < share:
                masked[place] = UNK_ID
        return masked


class BpeCutter:
    """Cuts words anew as a BPE tokenizer does, but with each merge left out with some probability.

    The pieces of a word after each merge, from letters to its usual ones, are remembered, for most
    merges go as ever.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        self._tokenizer = tokenizer
        self._ids: dict[str, int] = model["vocab"]
        # Two ids to how early they merge, and what they merge into.
        self._merges = {
            (self._ids[a], self._ids[b]): (rank, self._ids[a + b])
            for rank, (a, b) in enumerate(model["merges"])
        }
        space = byte_letters(" ")
        self._begins = {i for piece, i in self._ids.items() if piece.startswith(space)}
        self._known = lru_cache(REMEMBERED)(self._ways)

    def cut(self, ids: list[int], dropout: float, draw: Draw) -> list[int]:
        """Cut the text of ids anew; with a dropout of 0 the same ids come back."""
        scale = 1 / log1p(-dropout) if dropout else 0.0
        pieces: list[int] = []
        for word in self._spaced(ids):
            for way in self._known(word):
                # How many merges go as ever before one is left out: geometrically distributed.
                merges = int(log(1 - draw()) * scale) if dropout else len(way)
                if merges >= len(way) - 1:
                    pieces += way[-1]
                else:
                    pieces += self._otherwise(way, merges, dropout, draw)
        return pieces

    def _spaced(self, ids: list[int]) -> Iterator[tuple[int, ...]]:
        """Yield the ids from one piece that begins with a space to the next.

        No pre-token goes over such a place.
        """
        start = 0
        begins = self._begins
        for i in range(1, len(ids)):
            if ids[i] in begins:
                yield tuple(ids[start:i])
                start = i
        yield tuple(ids[start:])

    def _ways(self, ids: tuple[int, ...]) -> list[list[list[int]]]:
        """List for each word that the ids spell its pieces after none of its merges, one, two ...
        and all of them.

        Ids that are no whole UTF-8, as where a text was cut off, have only their own pieces.
        """
        try:
            words = self._tokenizer.words(ids)
        except UnicodeDecodeError:
            return [[list(ids)]]
        letters = self._ids.__getitem__
        return [self._way(list(map(letters, word))) for word in words]

    def _way(self, pieces: list[int]) -> list[list[int]]:
        way = [pieces]
        while True:
            after = self._merged(list(way[-1]), -1, 0.0, float, once=True)
            if len(after) == len(way[-1]):
                return way
            way.append(after)

    def _otherwise(
        self, way: list[list[int]], merges: int, dropout: float, draw: Draw
    ) -> list[int]:
        """Merge the pieces where so many merges went as ever and the next was left out, once."""
        pieces = way[merges]
        usual = way[merges + 1]
        differing = map(ne, pieces, usual)
        left_out = list(differing).index(True)
        return self._merged(list(pieces), left_out, dropout, draw)

    def _merged(
        self,
        pieces: list[int],
        left_out: int,
        dropout: float,
        draw: Draw,
        once: bool = False,
    ) -> list[int]:
        """Merge the earliest pair of those that are not left out, `once` or until none is left.

        Provilkov et al. 2020, algorithm 1; only for a pair that would be the one to merge is
        anything drawn. The pair at `left_out` is left out of the first merge.
        """
        merges = self._merges
        while True:
            first = _UNMERGED
            place = into = 0
            for i, pair in enumerate(pairwise(pieces)):
                merge = merges.get(pair)
                if (
                    merge is not None
                    and merge[0] < first
                    and i != left_out
                    and draw() >= dropout
                ):
                    first, into = merge
                    place = i
            if first == _UNMERGED:
                return pieces
            pieces[place : place + 2] = [into]
            left_out = -1
            if once:
                return pieces


def padded_rows(rows: Sequence[Sequence[int]], most: int) -> npt.NDArray[np.int64]:
    """Pad rows of any length on the right to a matrix of an even width, but of no more than `most`
    if they fit.
    """
    longest = max(map(len, rows))
    even = min(longest + longest % 2, most)
    shape = (len(rows), max(longest, even))
    padded = np.full(shape, PAD_ID, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded
