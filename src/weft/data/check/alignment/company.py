"""The words that keep each other company in lines that belong together."""

import numpy as np
import numpy.typing as npt

from weft.data.check.alignment.side import NUM_CONTENT, Codes, Side
from weft.data.check.words import Ids, mixed

Chances = npt.NDArray[np.float32]

_NUM_CLOSENESS = 2 * NUM_CONTENT + 1  # sums of 0, 1 or 2 for each of them
# words keep company that meet this many times as often as by chance, and at least twice
_CHANCE = 4.0
_LEAST_TOGETHER = 2
_CLOSE = 8.0  # and this many times more often still where they are close
SLICE = 1 << 13  # lines that are scored together


class Company:
    """Counts of which words stand together in partners; `partner` is -1 where a line has none."""

    size = (NUM_CONTENT + 1) * _NUM_CLOSENESS

    def __init__(self, src: Side, tgt: Side, partner: Ids) -> None:
        num_lines = len(src.length)
        self._partner = partner.copy()
        is_src_word = src.content >= 0
        is_tgt_word = tgt.content >= 0
        self._num_src = is_src_word.sum(1)
        self._num_tgt = is_tgt_word.sum(1)
        self._src = mixed(src.content)
        self._tgt = mixed(tgt.content, 1)
        # By chance two words meet in as large a share of one's lines as the other has of all; where
        # there is no word, infinitely often, so that nothing exceeds it.
        self._chance_src = _frequencies(src) * (_CHANCE / num_lines)
        self._chance_tgt = _frequencies(tgt)
        pairs = num_lines * NUM_CONTENT**2
        num_cells = max(4 * pairs, 1 << 16)
        num_cells = min(num_cells, 1 << 25)
        bits = int(num_cells - 1).bit_length()
        self._shift = np.uint64(64 - bits)
        num_cells = 1 << bits
        self._counts = np.zeros(num_cells, np.int32)
        taught = np.flatnonzero(partner >= 0)
        for start in range(0, len(taught), SLICE):
            src_lines = taught[start : start + SLICE]
            tgt_lines = partner[src_lines]
            cells = self._cells(src_lines, tgt_lines)
            chance = self._chance(src_lines, tgt_lines)
            is_word = np.isfinite(chance)
            met, often = _counted(cells[is_word])
            self._counts[met] += often

    def shared(self, src: Ids, tgt: Ids) -> tuple[Codes, Codes]:
        """Return codes of how well source words are kept company by the target's, and target words
        by the source's.

        A code says how many words there are, and for how many of them the other line has some
        company, or close.
        """
        cells = self._cells(src, tgt)
        together = self._counts[cells]
        # a pair that has taught itself says nothing of itself
        is_taught = self._partner[src] == tgt
        others = together - is_taught[:, None, None]
        # small numbers, exact in float32 as in any other type, and compared in less time
        met = others.astype(np.float32)
        chance = self._chance(src, tgt)
        least = np.maximum(chance, _LEAST_TOGETHER - 1)
        is_company = met > least
        is_close = is_company & (met > _CLOSE * chance)
        closeness = is_company.view(np.int8)
        closeness = closeness + is_close.view(np.int8)
        num_src = self._num_src[src]
        num_tgt = self._num_tgt[tgt]
        is_told = (num_src > 0) & (num_tgt > 0)
        num_src = num_src * is_told
        num_tgt = num_tgt * is_told
        src_code = _company_code(num_src, closeness.max(2))
        tgt_code = _company_code(num_tgt, closeness.max(1))
        return src_code, tgt_code

    def _chance(self, src: Ids, tgt: Ids) -> Chances:
        """Return how often each two words of the lines meet by chance, times `_CHANCE`."""
        src_chance = self._chance_src[src]
        tgt_chance = self._chance_tgt[tgt]
        column = src_chance[:, :, None]
        row = tgt_chance[:, None, :]
        return column * row

    def _cells(self, src: Ids, tgt: Ids) -> Ids:
        """Return the cell in which each two words of the lines are counted."""
        src_hash = self._src[src]
        tgt_hash = self._tgt[tgt]
        column = src_hash[:, :, None]
        row = tgt_hash[:, None, :]
        both = column ^ row
        cells = both >> self._shift
        return cells.astype(np.int64)


def _counted(cells: Ids) -> tuple[Ids, Ids]:
    """Return each cell once, and how often it is among all."""
    ordered = np.sort(cells)
    is_new = ordered[1:] != ordered[:-1]
    is_first = np.append(True, is_new)
    begins = np.flatnonzero(is_first)
    begins = begins[: len(ordered)]
    often = np.diff(begins, append=len(ordered))
    return ordered[begins], often


def _company_code(number: Ids, closeness: Ids) -> Codes:
    """Join how many words a line has and the sum of how close they are to the other line's."""
    return number * _NUM_CLOSENESS + closeness.sum(1)


def _frequencies(side: Side) -> Chances:
    """Return in how many lines each content word is; infinite where there is none."""
    of_words = np.append(side.frequency, 0)
    of_words = of_words.astype(np.float32)
    often = of_words[side.content]
    is_word = side.content >= 0
    return np.where(is_word, often, np.float32(np.inf))
