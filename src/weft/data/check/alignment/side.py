"""A side of a corpus, line by line in numbers."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from weft.data.check.numbers import numbers_in
from weft.data.check.words import Ids, Words

Codes = npt.NDArray[np.int64]

NUM_CONTENT = 8  # words of a line that are used, the rarest
# a word of fewer lines teaches nothing, one of more than a fifth says nothing
_RARE = 3
_COMMON_SHARE = 0.2
# how a line ends, in the scripts that have such a mark; all else is kind 0
_END_MARKS = ("?？؟⁇", "!！", ".。．", ":：", ",，、;；", "\"'”’»」』)）")
_ENDINGS: dict[str, int] = {}
for _kind, _marks in enumerate(_END_MARKS, 1):
    _ENDINGS |= dict.fromkeys(_marks, _kind)
NUM_ENDINGS = 1 + len(_END_MARKS)


class Side:
    """Numbers that measure one side, one entry a line: log length, kind of ending, numbers (0:
    none), rarest words.
    """

    def __init__(self, words: Words) -> None:
        texts = words.texts
        self.words = words
        self.ids = words.ids
        self.length = log_lengths(texts)
        self.ending = _of_each(texts, _ending)
        self.numbers = _of_each(texts, _numbers)

    @cached_property
    def frequency(self) -> Ids:
        """Count how often each word of either side occurs on this one, which is near the number of
        its lines.
        """
        return np.bincount(self.ids, minlength=self.words.num_ids)

    @cached_property
    def content(self) -> Ids:
        """Choose the rarest words of each line that can be learned: ids as (lines, 8), -1 where
        there are fewer.
        """
        size = len(self.length)
        line_of = self.words.text_of
        often = self.frequency[self.ids]
        most = max(_COMMON_SHARE * size, _RARE)
        is_useful = (often >= _RARE) & (often <= most)
        useful = np.flatnonzero(is_useful)
        rarest_first = np.lexsort((often[useful], line_of[useful]))
        word = useful[rarest_first]
        line = line_of[word]
        first_of_line = np.searchsorted(line, line)
        rank = np.arange(len(word)) - first_of_line

        is_kept = rank < NUM_CONTENT
        line = line[is_kept]
        rank = rank[is_kept]
        shape = (size, NUM_CONTENT)
        content = np.full(shape, -1, np.int64)
        content[line, rank] = self.ids[word[is_kept]]
        return content


def log_lengths(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the logarithm of each text's length."""
    lengths: npt.NDArray[np.float64] = np.log1p(_of_each(texts, len))
    return lengths


def _of_each(texts: Sequence[str], function: Callable[[str], int]) -> Ids:
    values = map(function, texts)
    return np.fromiter(values, np.int64, len(texts))


def _ending(text: str) -> int:
    last = text[-1:]
    return _ENDINGS.get(last, 0)


def _numbers(text: str) -> int:
    """Return the numbers in a text, in any order, as one integer; 0 if there are none."""
    values = sorted(value for value, _ in numbers_in(text))
    if not values:
        return 0
    return hash(tuple(values)) or 1
