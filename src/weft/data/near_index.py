"""An index that finds the nearest of many texts: those that share rare words are compared.

Letters in signatures: N texts, T words of all of them, K candidates.
"""

import math
from array import array
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from weft.data.equals import sorted_once
from weft.data.nearness import (
    Places,
    Words,
    are_spaceless,
    as_letters,
    count_edits,
    number_of,
    numbered,
    words_of,
)

Rows = NDArray[np.int32]
Floats = NDArray[np.float32]

_MOST_WORDS = 2_000  # of a text that is compared
_MOST_FOUND = 50_000  # texts that are found for a query, by its rarest words
_MOST_CANDIDATES = 200  # texts that are compared with it
_MOST_KEYS = 1 << 22
_ODD = np.uint32(31)
_OTHER_ODD = np.uint32(0x85EBCA6B)
_BLOCK = 1 << 20  # words that are sorted at once


class NearIndex:
    """The words of N texts, and in which texts each of them stands.

    `words` (T) are numbers, `starts` (N + 1) say where each text begins among them. A key is a
    hash of a word, or of two letters that stand together where a script has no spaces; `rows` are
    the texts that have each key, one key after the other, from `first` (keys + 1) on.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        words = array("I")
        starts = array("q", [0])
        for text in texts:
            words.extend(map(number_of, words_of(text)))
            starts.append(len(words))
        self.words: Words = np.frombuffer(words, np.uint32)
        self.starts: Places = np.frombuffer(starts, np.int64)
        self.num_keys = _num_keys(len(self))
        self.first = self._count_keys()
        self.rows = self._sort_rows()
        self.lengths = np.minimum(np.diff(self.starts), _MOST_WORDS + 1)
        # what a query adds up for each text, 0 before and after it
        self._sums = np.zeros(len(self), np.float32)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def find(
        self, text: str, count: int, least: float, without: Collection[int] = ()
    ) -> list[tuple[int, float]]:
        """Return the texts that are nearest to one, at most `count`, with their nearness, which is
        at least `least`; of equal ones the latest first.

        The texts that share its rarest words are compared with it, those that share most of them:
        a text that shares nothing but very common words with it may be missed.
        """
        query = numbered(words_of(text))
        if not 0 < len(query) <= _MOST_WORDS:
            return []
        rows = self._candidates(query, least)
        if without:
            rows = np.setdiff1d(rows, list(without), assume_unique=True)
        if not len(rows):
            return []
        near = self._compare(query, rows)
        order = np.lexsort((rows, near))[::-1]
        order = order[:count]
        found = zip(rows[order].tolist(), near[order].tolist(), strict=True)
        return [(row, near) for row, near in found if near >= least]

    def _candidates(self, query: Words, least: float) -> Places:
        """Return the texts (K) that share the rarest words of a query, and are not so much longer
        or shorter that they cannot be near.
        """
        with self._lock:
            for rows in self._found(query):
                # every word saves an edit, and a rare one is less likely to be there by chance
                rarity = math.log1p(len(self) / len(rows))
                worth = np.float32(1 + rarity / 10)
                np.add.at(self._sums, rows, worth)
            found = np.flatnonzero(self._sums > 0)
            shared = self._sums.take(found)
            self._sums[found] = 0
        ratios = _length_ratios(len(query), least)
        lengths = self.lengths.take(found)
        return _largest(found, shared * ratios.take(lengths))

    def _found(self, query: Words) -> Iterator[Rows]:
        """Yield the texts that have each of the rarest keys of a query; of a common one alone the
        latest.
        """
        end_of_text = self.starts[:0]
        keys = sorted_once(_keys(query, end_of_text, self.num_keys))
        stops = self.first[keys + 1]
        sizes = stops - self.first[keys]
        order = np.argsort(sizes, kind="stable")
        sizes = sizes[order]
        is_kept = np.cumsum(sizes) <= _MOST_FOUND
        is_kept[np.searchsorted(sizes, 1) :][:1] = True
        for place in np.flatnonzero(is_kept & (sizes > 0)):
            stop = stops[order[place]]
            size = min(sizes[place], _MOST_FOUND)
            yield self.rows[stop - size : stop]

    def _compare(self, query: Words, rows: Places) -> NDArray[np.float64]:
        """Return how near each candidate is to the query (K)."""
        starts = self.starts[rows]
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        shifts = starts - ends + lengths
        places = np.repeat(shifts, lengths)
        places += np.arange(len(places))
        text, others = as_letters(query, self.words[places], ends)
        edits = np.array(count_edits(text, others))
        longest = np.maximum(lengths, len(query))
        return 1 - edits / longest

    def _blocks(self) -> Iterator[tuple[Places, Rows]]:
        """Yield the keys of the words of some texts, in their order, and the text of each; a text
        has a key once.
        """
        count = len(self.words)
        stops = np.arange(0, count + _BLOCK, _BLOCK)
        bounds = np.searchsorted(self.starts, stops, side="right") - 1
        bounds[-1] = len(self)
        for first, last in pairwise(sorted_once(bounds).tolist()):
            starts = self.starts[first : last + 1]
            begin = starts[0]
            words = self.words[begin : starts[-1]]
            ends = starts[1:] - begin - 1
            keys = _keys(words, ends, self.num_keys)
            rows = np.arange(first, last)
            rows = np.repeat(rows, np.diff(starts))
            both = sorted_once(keys << 32 | rows)
            keys = both >> 32
            yield keys, both.astype(np.int32)  # the lower half

    def _count_keys(self) -> Places:
        counts = np.zeros(self.num_keys + 1, np.int64)
        for keys, _ in self._blocks():
            counts[1:] += np.bincount(keys, minlength=self.num_keys)
        return np.cumsum(counts)

    def _sort_rows(self) -> Rows:
        """Return the texts that have each key, in their order."""
        rows = np.empty(self.first[-1], np.int32)
        free = self.first[:-1].copy()
        for keys, own in self._blocks():
            is_new = keys[1:] != keys[:-1]
            begins = np.flatnonzero(np.append(True, is_new))
            sizes = np.diff(begins, append=len(keys))
            within = np.arange(len(keys))
            within -= np.repeat(begins, sizes)
            places = free[keys] + within
            rows[places] = own
            free[keys[begins]] += sizes
        return rows


def _largest(rows: Places, worth: Floats) -> Places:
    """Return the texts that are worth most, of those that are worth anything."""
    is_possible = worth > 0
    rows = rows[is_possible]
    if len(rows) <= _MOST_CANDIDATES:
        return rows
    worth = worth[is_possible]
    order = np.argpartition(-worth, _MOST_CANDIDATES)
    return rows[order[:_MOST_CANDIDATES]]


@lru_cache(64)
def _length_ratios(length: int, least: float) -> Floats:
    """Return for each length the ratio of the shorter to the longer of both; 0 below `least`, and
    for what is longer than any text that is compared.
    """
    lengths = np.arange(_MOST_WORDS + 2, dtype=np.float32)
    longest = np.maximum(lengths, length)
    ratios = np.minimum(lengths, length) / longest
    ratios[ratios < least] = 0
    ratios[lengths > _MOST_WORDS] = 0
    return ratios.astype(np.float32)


def _num_keys(count: int) -> int:
    """Return how many keys there are for so many texts, a power of two."""
    return min(1 << (8 * count).bit_length(), _MOST_KEYS)


def _keys(words: Words, last: Places, num_keys: int) -> Places:
    """Return a key for each word; `last` are the places of those that end a text."""
    numbers = words.copy()
    is_letter = are_spaceless(words)
    is_pair = is_letter[:-1] & is_letter[1:]
    last = last[last < len(is_pair)]
    is_pair[last] = False
    first = words[:-1][is_pair]
    second = words[1:][is_pair]
    numbers[:-1][is_pair] = first * _ODD + second
    numbers ^= numbers >> np.uint32(15)
    numbers *= _OTHER_ODD
    numbers ^= numbers >> np.uint32(13)
    numbers &= np.uint32(num_keys - 1)
    return numbers.astype(np.int64)
