"""Rows that say nearly the same, found without comparing each with each (Broder 1997, "On the
resemblance and containment of documents").

Of a row's words those are kept that come first in several random orders: two rows have the same
first word as often as they share words (Jaccard's index). Orders are taken three at a time, as
bands (Leskovec et al., "Mining of Massive Datasets", section 3.4): rows that agree in a band are
candidates. Of each order eight bits are kept as well (Li and König 2010, "b-bit minwise hashing"),
by which most candidates are dismissed before their words are compared.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np
import numpy.typing as npt

from weft.data.equals import later_of_equals

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]

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
_IS_SPACELESS = np.zeros(0x110000, np.bool_)  # by code point
for _start in range(0, len(_SPACELESS), 3):
    _first = ord(_SPACELESS[_start])
    _last = ord(_SPACELESS[_start + 2])
    _IS_SPACELESS[_first : _last + 1] = True
_SPACE = np.uint32(ord(" "))
_LINE_END = np.uint32(ord("\n"))
_AS_CODES = ("utf-32-le", "surrogatepass")
_NONE = np.uint64(0)  # in place of a band, of a row that is too short
_MULTIPLIERS = np.frombuffer(
    b"".join(blake2b(bytes([n]), digest_size=8).digest() for n in range(SKETCH)), "<u8"
).astype(np.uint64) | np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LAST = np.uint64(2**64 - 1)
_HIGH = np.uint64(56)
_HALF = np.uint64(29)


def words_in(folded: str) -> list[str]:
    """Return the words of a folded text."""
    read = folded[:_MOST_CHARS]
    return read.split() if read.isascii() else _WORD.findall(read)


def sketch(folded: Sequence[Sequence[str]]) -> tuple[Hashes, Bytes]:
    """Return the bands (rows, BANDS) and the sketches (rows, SKETCH) of rows with these sides."""
    size = len(folded[0])
    least = np.full((SKETCH, size), _LAST)
    is_long = np.zeros(size, np.bool_)
    for number, side in enumerate(folded):
        words, letters, num_letters = _divided(side)
        num_words = np.fromiter(map(len, words), np.int64, size)
        is_long |= num_words + num_letters >= MIN_WORDS
        hashes = _hashes_of_words(words, number)
        _take_least(least, hashes, num_words)
        hashes = _hashes_of_letters(letters, number)
        _take_least(least, hashes, num_letters)
    return _banded(least, is_long)


def _divided(texts: Sequence[str]) -> tuple[list[list[str]], Codes, Positions]:
    """Divide folded texts as `words_in` does, all at once: return the words of each but for letters
    that are one, the code points of those, and how many each text has.
    """
    read = [text[:_MOST_CHARS] for text in texts]
    others = map(_unless_ascii, read)
    joined = "\n".join(others) + "\n"
    content = joined.encode(*_AS_CODES)
    codes = np.frombuffer(content, np.uint32)
    is_alone = _IS_SPACELESS[codes]
    ends = np.flatnonzero(codes == _LINE_END)
    before = np.cumsum(is_alone)
    counts = np.diff(before[ends], prepend=0)
    between = np.where(is_alone, _SPACE, codes)
    content = between.tobytes()
    left = content.decode(*_AS_CODES).split("\n")
    # nothing is left of ASCII, which was not looked at
    both = zip(left, read, strict=False)
    words = [(some or text).split() for some, text in both]
    return words, codes[is_alone], counts


def _unless_ascii(text: str) -> str:
    return "" if text.isascii() else text


def _hashes_of_words(words: Sequence[Sequence[str]], side: int) -> Hashes:
    """Hash each word of a side; one of another side has another hash."""
    numbers = defaultdict[str, int]()
    numbers.default_factory = numbers.__len__  # the next number for a new word
    each = chain.from_iterable(words)
    ids = np.fromiter(map(numbers.__getitem__, each), np.int64)
    hashes = _hashed(numbers, side)
    return hashes[ids]


def _hashes_of_letters(letters: Codes, side: int) -> Hashes:
    """Hash each letter that is a word."""
    counts = np.bincount(letters)
    different = np.flatnonzero(counts)
    hashes = np.zeros(len(counts), np.uint64)
    characters = map(chr, different.tolist())
    hashes[different] = _hashed(characters, side)
    return hashes[letters]


def _hashed(words: Iterable[str], side: int) -> Hashes:
    salt = bytes([side])
    digests = []
    for word in words:
        content = word.encode("utf-8", "surrogatepass")
        digest = blake2b(content, digest_size=8, salt=salt)
        digests.append(digest.digest())
    hashes = np.frombuffer(b"".join(digests), "<u8")
    return hashes.astype(np.uint64)


def _take_least(least: Hashes, hashes: Hashes, counts: Positions) -> None:
    """Put in each order the first word of each row where it comes before what is there."""
    having = np.flatnonzero(counts)
    lens = counts[having]
    starts = np.cumsum(lens) - lens
    if not len(having):
        return
    for place, multiplier in zip(least, _MULTIPLIERS, strict=True):
        in_order = hashes * multiplier
        first = np.minimum.reduceat(in_order, starts)
        place[having] = np.minimum(place[having], first)


def _banded(least: Hashes, is_told: npt.NDArray[np.bool_]) -> tuple[Hashes, Bytes]:
    """Join the first words of three orders each to a band, and keep eight bits of each."""
    bands = np.zeros((len(is_told), BANDS), np.uint64)
    kept = (least.T * _MIX) >> _HIGH
    for number, first in enumerate(least):
        band = number // _ORDERS
        mixed = (bands[:, band] ^ first) * _MIX
        bands[:, band] = mixed ^ (mixed >> _HALF)
    bands[~is_told] = _NONE
    return bands, kept.astype(np.uint8)


def candidates(
    bands: Callable[[int], Hashes], sketches: Bytes, same: Hashes
) -> tuple[Positions, Positions]:
    """Find the rows that may be near an earlier one, and that, each two once; one band is held at a
    time.

    Rows with an equal hash in `same` are the same, and not near.
    """
    rows: list[Positions] = []
    others: list[Positions] = []
    for band in range(BANDS):
        keys = bands(band)
        later, first = later_of_equals(keys, _NONE)
        is_other = same[later] != same[first]
        later = later[is_other]
        first = first[is_other]
        agreed = sketches[later] == sketches[first]
        is_alike = agreed.sum(1) >= _LEAST_AGREED
        rows.append(later[is_alike])
        others.append(first[is_alike])
    return _each_once(np.concatenate(rows), np.concatenate(others))


def _each_once(rows: Positions, others: Positions) -> tuple[Positions, Positions]:
    """Leave out what was there before."""
    most = others.max(initial=0) + 1
    both = rows * most + others
    _, places = np.unique(
        both,
        return_index=True,
    )
    places.sort()
    return rows[places], others[places]


def near_rows(
    rows: Positions, others: Positions, are_near: npt.NDArray[np.bool_]
) -> tuple[Positions, Positions]:
    """Return the rows that are near an earlier one, in their order, and the first that was found
    for each; of candidates that were compared.
    """
    near, places = np.unique(rows[are_near], return_index=True)
    return near, others[are_near][places]


def are_near(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether each side of two rows is the same, or but for a word or a few of many."""
    return all(map(_is_near, one, other))


def _is_near(one: str, other: str) -> bool:
    if one == other:
        return True
    words = set(words_in(one))
    others = set(words_in(other))
    if min(len(words), len(others)) < MIN_WORDS - 1:
        return False
    alone = max(len(words - others), len(others - words))
    if alone < _ONE_WORD:
        return True
    shared = len(words & others)
    return shared >= _ALIKE * len(words | others)
