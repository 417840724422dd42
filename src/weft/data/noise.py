"""What training reads in the place of a row's plain ids: words cut into other pieces, and words blotted out.

Drawn from (seed, epoch, row) alone, so that a batch is the same however the run came to it. Sources: Provilkov et
al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization"; Sennrich et al. 2016, "Edinburgh Neural
Machine Translation Systems for WMT 16", section 2.5, where whole words are dropped.
"""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt

from weft.data.store import Ids
from weft.data.tokenizer import PAD_ID, UNK_ID, Tokenizer

Draw = Callable[[], float]
_UNMERGED = 2**62  # the rank of two pieces that are no merge


class Noise:
    """Draws the noise of a run's rows."""

    def __init__(
        self,
        tokenizers: Sequence[Tokenizer],
        *,
        bpe_dropout: float,
        word_dropout: float,
        seed: int,
        max_len: int,
    ) -> None:
        """`tokenizers`: one a side. A row that the noise would make longer than `max_len` ids keeps its pieces."""
        cutters = {t: BpeCutter(t) for t in tokenizers if bpe_dropout and t.settings.kind == "bpe"}
        self._cutters = [cutters.get(tokenizer) for tokenizer in tokenizers]
        self._bpe_dropout, self._word_dropout = bpe_dropout, word_dropout
        self._seed, self.max_len = seed, max_len

    def of(self, epoch: int, row: int, *sides: Ids) -> list[tuple[list[int], list[int]]]:
        """For the ids of each side: all of them, in new pieces perhaps, and the same with some blotted out."""
        draw = Random(((self._seed << 64 | epoch) << 64) | row).random
        cut = [self._cut(cutter, ids.tolist(), draw) for cutter, ids in zip(self._cutters, sides, strict=True)]
        return [(ids, self._blotted(ids, draw)) for ids in cut]

    def _cut(self, cutter: "BpeCutter | None", ids: list[int], draw: Draw) -> list[int]:
        if cutter is None:
            return ids
        cut = cutter.cut(ids, self._bpe_dropout, draw)
        return ids if len(cut) > self.max_len else cut

    def _blotted(self, ids: list[int], draw: Draw) -> list[int]:
        share = self._word_dropout
        return [UNK_ID if draw() < share else i for i in ids] if share else ids


class BpeCutter:
    """Cuts text that a BPE tokenizer has cut already once more, each merge left out with some probability."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        self._tokenizer = tokenizer
        self._ids: dict[str, int] = model["vocab"]
        # Two ids to how early they merge, and what they merge into.
        self._merges = {
            (self._ids[a], self._ids[b]): (rank, self._ids[a + b]) for rank, (a, b) in enumerate(model["merges"])
        }

    def cut(self, ids: list[int], dropout: float, draw: Draw) -> list[int]:
        """Ids that spell the same; with a dropout of 0 these very ids. What is no whole UTF-8 stays as it is."""
        try:
            words = self._tokenizer.words(ids)
        except UnicodeDecodeError:  # a text that was cut off inside a character
            return ids
        return [i for word in words for i in self._merged([self._ids[letter] for letter in word], dropout, draw)]

    def _merged(self, pieces: list[int], dropout: float, draw: Draw) -> list[int]:
        """Merge the earliest pair of those that are not left out this time, until none is left.

        Provilkov et al. 2020, algorithm 1; only for a pair that would be the one to merge is anything drawn.
        """
        merges = self._merges
        while len(pieces) > 1:
            first, place, into = _UNMERGED, 0, 0
            for i, pair in enumerate(pairwise(pieces)):
                found = merges.get(pair)
                if found is not None and found[0] < first and draw() >= dropout:
                    (first, into), place = found, i
            if first == _UNMERGED:
                break
            pieces[place : place + 2] = [into]
        return pieces


def padded_rows(rows: Sequence[Sequence[int]], most: int) -> npt.NDArray[np.int64]:
    """Rows of any length as a matrix, padded on the right to an even width, but to no more than `most`."""
    longest = max(map(len, rows))
    padded = np.full((len(rows), max(longest, min(longest + longest % 2, most))), PAD_ID, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded
