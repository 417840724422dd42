"""The nearness of two texts: 1 less the edits that turn one into the other (words put in, left out
or exchanged: the distance of Levenshtein), divided by the words of the longer one.

A text is a run of words, numbers and marks; a letter of a script without spaces stands for a word.
Case does not count. A word is a number here: a hash of 31 bits, or the code point of its one
character.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Places = NDArray[np.int64]

# the blocks of Thai and Lao, Myanmar, Khmer, kana, Han: first and last code point
_SPACELESS = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_NUMBER = r"\d+(?:[.,:'’/-]\d+)*"
# the same in less time
_ASCII = re.compile(rf"{_NUMBER}|\w+|[^\w\s\x1c-\x1f]", re.ASCII)
_LETTER = 1 << 31  # marks the number of a word of one character


def words_of(text: str) -> list[str]:
    """Return the words, numbers and marks of a text, without case."""
    form = _ASCII if text.isascii() else _form()
    found: list[str] = form.findall(text.casefold())
    return found


def nearness(text: str, other: str) -> float:
    """Return how near two texts are, from 0 to 1."""
    query = numbered(words_of(text))
    words = numbered(words_of(other))
    longest = max(len(query), len(words))
    if not (len(query) and len(words)):
        return float(not longest)
    (edits,) = count_edits(*as_letters(query, words, np.array([len(words)])))
    return 1 - edits / longest


def count_edits(text: str, others: Sequence[str]) -> Sequence[int]:
    """Return the distances of Levenshtein from a string to others; by rapidfuzz where it is
    installed.
    """
    distance = _rapid_distance()
    if distance is None:
        return count_edits_plainly(text, others)
    return [distance(text, other) for other in others]


@cache
def _rapid_distance() -> Callable[[str, str], int] | None:
    """Return rapidfuzz's distance; None where it is not installed."""
    if find_spec("rapidfuzz") is None:
        return None
    module = import_module("rapidfuzz.distance.Levenshtein")
    distance: Callable[[str, str], int] = module.distance
    return distance


def count_edits_plainly(text: str, others: Sequence[str]) -> list[int]:
    """Return the same distances, computed here: a column of the table is two integers, whose bits
    say where it rises and falls.

    Source: Hyyrö 2003, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit
    Distances", figure 5.
    """
    masks: dict[str, int] = {}
    for place, letter in enumerate(text):
        masks[letter] = masks.get(letter, 0) | 1 << place
    return [_edits(masks, len(text), other) for other in others]


def _edits(masks: dict[str, int], length: int, other: str) -> int:
    if not length:
        return len(other)
    full = (1 << length) - 1
    last = 1 << (length - 1)
    rises = full
    falls = 0
    edits = length
    for letter in other:
        equal = masks.get(letter, 0)
        level = (((equal & rises) + rises) ^ rises) | equal | falls
        gains = falls | ~(level | rises)
        losses = rises & level
        edits += bool(gains & last) - bool(losses & last)
        gains = gains << 1 | 1
        rises = (losses << 1 | ~(level | gains)) & full
        falls = gains & level & full
    return edits


@cache
def _form() -> re.Pattern[str]:
    spaceless = "".join(f"{chr(first)}-{chr(last)}" for first, last in _SPACELESS)
    # which Python does not count as parts of words
    accents = "".join(filter(_is_accent, map(chr, range(0x300, 0xFE30))))
    letters = rf"[^\W{spaceless}]"
    word = rf"{letters}+(?:[{accents}]+{letters}*)*"
    return re.compile(rf"{_NUMBER}|[{spaceless}]|{word}|[^\w\s]")


def _is_accent(character: str) -> bool:
    if unicodedata.category(character)[0] != "M":
        return False
    return not any(first <= ord(character) <= last for first, last in _SPACELESS)


@lru_cache(1 << 17)
def number_of(word: str) -> int:
    """Return the number that stands for a word: a hash of 31 bits, or its one character."""
    if len(word) == 1:
        return _LETTER | ord(word)
    return crc32(word.encode("utf-8", "surrogatepass")) & (_LETTER - 1)


def numbered(words: Iterable[str]) -> Words:
    """Return the numbers of words."""
    return np.fromiter(map(number_of, words), np.uint32)


def as_letters(query: Words, words: Words, ends: Places) -> tuple[str, list[str]]:
    """Return the query and other texts, whose words end before `ends` (K), as strings: a letter
    for each word of the query, and a single one for all that are not in it.
    """
    own, places = np.unique(query, return_inverse=True)
    found = np.minimum(np.searchsorted(own, words), len(own) - 1)
    letters = np.where(own[found] == words, found + 1, 0)
    text = _decoded(letters)
    starts = [0, *ends.tolist()]
    others = [text[a:b] for a, b in pairwise(starts)]
    return _decoded(places + 1), others


def _decoded(letters: NDArray[np.int64]) -> str:
    return letters.astype(np.uint32).tobytes().decode("utf-32-le", "surrogatepass")


def are_spaceless(words: Words) -> NDArray[np.bool_]:
    """Return which words are letters of a script without spaces."""
    edges = [edge for first, last in _SPACELESS for edge in (first, last + 1)]
    blocks = np.searchsorted(edges, words & np.uint32(_LETTER - 1), side="right")
    return (words >= _LETTER) & (blocks % 2 == 1)
