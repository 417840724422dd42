"""A memory of training texts: which of them is most like another, by the tokens that both have.

It is the yardstick of a translator: a model is worth something only above what copying the
translation of the nearest training sentence gives.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Memory:
    """Texts by their tokens; a token counts the more, the fewer texts have it.

    The measure is the cosine of weighted sets: for texts x and y with weights w, the sum of w^2
    over their common tokens, divided by the length of y (that of x is the same for all y).
    """

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        """`rows` are token ids, not negative."""
        self.size = len(rows)
        lens = np.array([len(row) for row in rows], np.int64)
        ids = np.array([i for row in rows for i in row], np.int64)
        owners = np.repeat(np.arange(self.size), lens)
        self.vocab_size = int(ids.max(initial=-1)) + 1
        # each token of a text once, sorted by token
        both = np.unique(ids * max(self.size, 1) + owners)
        self._ids, self._owners = both // max(self.size, 1), both % max(self.size, 1)
        self._starts: Ints = np.searchsorted(self._ids, np.arange(self.vocab_size + 1))
        self._weights = (
            np.log((self.size + 1) / np.maximum(np.diff(self._starts), 1)) ** 2
        )
        squares = np.bincount(
            self._owners, self._weights[self._ids], minlength=self.size
        )
        self._lengths = np.sqrt(np.maximum(squares, 1e-9))

    def nearest(self, row: Sequence[int]) -> int:
        """Return the number of the text that is most like it; of equals, and where none is like it,
        the first.
        """
        common = np.zeros(self.size)
        for token in set(row):
            if 0 <= token < self.vocab_size:
                common[self._owners[self._starts[token] : self._starts[token + 1]]] += (
                    self._weights[token]
                )
        return int((common / self._lengths).argmax())
