"""A memory of training texts: which of them is most like another, by the tokens that both have.

It is the yardstick of a translator: a model is worth something only above what copying the
translation of the nearest training sentence gives.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Memory:
    """Texts by their tokens; a token counts the more, the fewer texts have it.

    The measure is the cosine of weighted sets: for texts x and y with weights w, the sum of w^2
    over their common tokens, divided by the length of y (that of x is the same for all y).
    """

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        """Build the index of texts by their tokens; `rows` are token ids, not negative."""
        self.size = len(rows)
        lens = [len(row) for row in rows]
        ids = np.fromiter(chain.from_iterable(rows), np.int64)
        texts = np.arange(self.size)
        owners = np.repeat(texts, lens)
        largest = int(ids.max(initial=-1))
        self.vocab_size = largest + 1
        # each token of a text once, sorted by token
        count = max(self.size, 1)
        postings = np.unique(ids * count + owners)
        tokens = postings // count
        self._owners = postings % count
        all_tokens = np.arange(self.vocab_size + 1)
        self._known = range(self.vocab_size)
        self._starts: Ints = np.searchsorted(tokens, all_tokens)
        num_texts = np.diff(self._starts)
        num_texts = np.maximum(num_texts, 1)
        rarity = (self.size + 1) / num_texts
        self._weights = np.log(rarity) ** 2
        weights = self._weights[tokens]
        squares = np.bincount(self._owners, weights, minlength=self.size)
        squares = np.maximum(squares, 1e-9)
        self._lengths = np.sqrt(squares)

    def nearest(self, row: Sequence[int]) -> int:
        """Return the number of the text that is most like `row`.

        Of equals, and where none is like it, the first.
        """
        common = np.zeros(self.size)
        known = [token for token in set(row) if token in self._known]
        for token in known:
            start = self._starts[token]
            end = self._starts[token + 1]
            owners = self._owners[start:end]
            weight = self._weights[token]
            common[owners] += weight
        likeness = common / self._lengths
        return int(likeness.argmax())
