"""Rows that say nearly the same, found without comparing each with each (Broder 1997, "On the
resemblance and containment of documents").

Of a row's words those are kept that come first in several random orders: two rows have the same
first word as often as they share words (Jaccard's index). Orders are taken three at a time, as
bands (Leskovec et al., "Mining of Massive Datasets", section 3.4): rows that agree in a band are
candidates. Of each order eight bits are kept as well (Li and König 2010, "b-bit minwise hashing"),
by which most candidates are dismissed before their words are compared.
"""

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

BANDS = 6
_ORDERS = 3  # of a band
SKETCH = BANDS * _ORDERS  # bytes of a row
MIN_WORDS = 8  # of a side that may differ; in a shorter one a word is too much of it
_ALIKE = 0.8  # of the words that either side has, those that both have
_ONE_WORD = 2  # so many words one of the sides has alone where a word was exchanged
# of the orders in which two rows agree, below which they are not compared
_LEAST_AGREED = 10
_MOST_CHARS = 2048  # of a side that is read for words
# letters of scripts without spaces: a word each
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_SPACELESS}]|[^ {_SPACELESS}]+")
_NONE = np.uint64(0)  # in place of a band, of a row that is too short
_MULTIPLIERS = np.frombuffer(
    b"".join(blake2b(bytes([n]), digest_size=8).digest() for n in range(SKETCH)), "<u8"
).astype(np.uint64) | np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def words_in(folded: str) -> list[str]:
    """Return the words of a folded text."""
    return _WORD.findall(folded[:_MOST_CHARS])


def sketch(folded: Sequence[Sequence[str]]) -> tuple[Hashes, Bytes]:
    """Return the bands (rows, BANDS) and the sketches (rows, SKETCH) of rows with these sides."""
    numbers: dict[str, int] = {}
    lists = []
    is_long = np.zeros(len(folded[0]), np.bool_)
    for place, side in enumerate(folded):
        words = list(map(words_in, side))
        is_long |= np.fromiter(map(len, words), np.int64, len(words)) >= MIN_WORDS
        # a word of one side is another than that of the other
        own = [[f"{place}{word}" for word in row] for row in words]
        lists.append(own)
    rows = [list(chain.from_iterable(row)) for row in zip(*lists, strict=True)]
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    each = chain.from_iterable(rows)
    ids = np.fromiter(
        (numbers.setdefault(word, len(numbers)) for word in each),
        np.int64,
        int(counts.sum()),
    )
    hashes = _hashed(list(numbers))[ids]
    return _sketched(hashes, counts, is_long & (counts > 0))


def _hashed(words: Sequence[str]) -> Hashes:
    contents = (word.encode("utf-8", "surrogatepass") for word in words)
    digests = (blake2b(content, digest_size=8).digest() for content in contents)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _sketched(
    hashes: Hashes, counts: Positions, is_told: npt.NDArray[np.bool_]
) -> tuple[Hashes, Bytes]:
    bands = np.zeros((len(counts), BANDS), np.uint64)
    kept = np.zeros((len(counts), SKETCH), np.uint8)
    told = np.flatnonzero(is_told)
    if not len(told):
        return bands, kept
    hashes = hashes[np.repeat(is_told, counts)]
    lens = counts[told]
    starts = np.cumsum(lens) - lens
    for number, multiplier in enumerate(_MULTIPLIERS):
        least = np.minimum.reduceat(hashes * multiplier, starts)
        kept[told, number] = (least * _MIX) >> np.uint64(56)
        band = number // _ORDERS
        mixed = (bands[told, band] ^ least) * _MIX
        bands[told, band] = mixed ^ (mixed >> np.uint64(29))
    return bands, kept


def near_rows(
    bands: Callable[[int], Hashes],
    sketches: Bytes,
    same: Hashes,
    read: Callable[[int], tuple[str, ...]],
) -> dict[int, int]:
    """Find the rows that are near an earlier one, and return that; one band is held at a time.

    Rows with an equal hash in `same` are the same, and not near. `read` returns the folded sides of
    a row.
    """
    near: dict[int, int] = {}
    for band in range(BANDS):
        keys = bands(band)
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = sorted_keys[1:] != sorted_keys[:-1]
        begins = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        earlier = order[begins]
        agreed = (sketches[order] == sketches[earlier]).sum(1)
        is_candidate = (sorted_keys != _NONE) & (agreed >= _LEAST_AGREED)
        is_candidate &= same[order] != same[earlier]
        for place in np.flatnonzero(is_candidate).tolist():
            later, first = int(order[place]), int(earlier[place])
            if later not in near and are_near(read(later), read(first)):
                near[later] = first
    return near


def are_near(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether each side of two rows is the same, or but for a word or a few of many."""
    return all(map(_is_near, one, other))


def _is_near(one: str, other: str) -> bool:
    if one == other:
        return True
    words, others = set(words_in(one)), set(words_in(other))
    if min(len(words), len(others)) < MIN_WORDS - 1:
        return False
    alone = max(len(words - others), len(others - words))
    return alone < _ONE_WORD or len(words & others) >= _ALIKE * len(words | others)
