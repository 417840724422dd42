"""The rare words that two lines have alike."""

import numpy as np
import numpy.typing as npt

from weft.data.check.alignment.side import Codes, Side
from weft.data.check.words import Ids, Words, bounds_of

Flags = npt.NDArray[np.bool_]

_NAME_SHARE = 0.01


class Names:
    """Rare words that both sides write alike: names, terms, what was left as it is."""

    size = 5

    def __init__(self, src: Side, tgt: Side) -> None:
        self._num_ids = src.words.num_ids
        num_lines = len(src.length)
        rare = max(_NAME_SHARE * num_lines, 1)
        is_name = np.ones(self._num_ids, np.bool_)
        for often in (src.frequency, tgt.frequency):
            is_rare = (often > 0) & (often <= rare)
            is_name &= is_rare
        _, self._ids, self._bounds = _only(src.words, is_name)
        lines, ids, _ = _only(tgt.words, is_name)
        keys = lines * self._num_ids + ids
        self._tgt_keys = np.unique(keys)

    def shared(self, src: Ids, tgt: Ids) -> Codes:
        """Return 0 for a source line without such words; else 1 plus how many of them the target
        has, 3 at most.
        """
        size = len(src)
        start = self._bounds[src]
        end = self._bounds[src + 1]
        counts = end - start
        has_names = len(self._tgt_keys) > 0 and counts.any()
        if not has_names:
            return np.zeros(size, np.int64)
        rows = np.arange(size)
        row = np.repeat(rows, counts)
        first_of_row = np.cumsum(counts) - counts
        offset_of_row = start - first_of_row
        offset = np.repeat(offset_of_row, counts)
        place = np.arange(len(row)) + offset
        ids = self._ids[place]
        keys = tgt[row] * self._num_ids + ids
        at = np.searchsorted(self._tgt_keys, keys)
        last = len(self._tgt_keys) - 1
        at = np.minimum(at, last)
        nearest = self._tgt_keys[at]
        is_hit = nearest == keys
        hits = np.bincount(row[is_hit], minlength=size)
        codes = 1 + np.minimum(hits, 3)
        return np.where(counts > 0, codes, 0)


def _only(words: Words, wanted: Flags) -> tuple[Ids, Ids, Ids]:
    """Return the wanted words: their lines, their ids, and where each line's begin."""
    kept = wanted[words.ids]
    kept_before = bounds_of(kept)
    bounds = kept_before[words.starts]
    lines = words.text_of[kept]
    return lines, words.ids[kept], bounds
