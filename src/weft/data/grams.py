"""The letters of a text, and the n-grams of letters that end at each: by them languages are told
apart.

A word is read with the space before it and the space behind it. Case, digits, marks, tags and
addresses tell nothing and are left out. An n-gram is a number, a hash of its letters.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ORDERS = 4  # letters of the longest n-gram
NUM_KEYS = 2**20
# Stands in a text for letters that are not known: those around a piece of a word.
UNKNOWN_LETTERS = "\ue000"
NO_SCRIPT = ""  # that of the space between words

_NOT_TEXT = re.compile(
    r"</?[A-Za-z!][^<>]{0,500}>|[A-Za-z]{2,20}://[!-~]+|[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]+"
)
# Where no space divides words, each letter stands for one.
SPACELESS = frozenset(
    ["CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"]
)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER_ODD = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Grams:
    """The n-grams that end at each of N letters, a space being one.

    `keys` and `contexts` (ORDERS, N) are those of the n-grams of 1 to ORDERS letters and of the
    letters before their last; -1 where they would begin before their word, or hold unknown letters.
    `scripts` names the scripts of the letters, `script` (N) is the place of each letter's own in
    it, `words` (N) the number of its word.
    """

    keys: Ints
    contexts: Ints
    scripts: Sequence[str]
    script: Ints
    words: Ints

    def __len__(self) -> int:
        return len(self.script)


def grams_of(text: str, without: str = NO_SCRIPT) -> Grams:
    """Read the n-grams of a text; letters of the script `without` are passed over."""
    codes, scripts, script = _letters(text, without)
    is_space = codes == 0
    keys = _keys(codes, is_space)
    contexts = np.full_like(keys, -1)
    contexts[1:, 1:] = keys[:-1, :-1]
    alone = np.array([name in SPACELESS for name in scripts], bool)[script]
    begins = alone.copy()
    begins[1:] |= is_space[:-1]
    words = np.cumsum(begins[1:])
    return Grams(
        keys=keys[:, 1:],
        contexts=contexts[:, 1:],
        scripts=scripts,
        script=script[1:],
        words=words - words[:1],
    )


def without_accents(text: str) -> str:
    """Return a text without the accents over and under its letters."""
    parts = unicodedata.normalize("NFD", text)
    kept = [letter for letter in parts if not "\u0300" <= letter <= "\u036f"]
    return unicodedata.normalize("NFC", "".join(kept))


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter or of a mark over one, by its Unicode name; "" for all else."""
    if letter == UNKNOWN_LETTERS:
        return "UNKNOWN"
    if unicodedata.category(letter)[0] not in "LM":
        return NO_SCRIPT
    return re.split("[ -]", unicodedata.name(letter, "UNNAMED"), maxsplit=1)[0]


def _letters(text: str, without: str) -> tuple[Any, Sequence[str], Ints]:
    """Return the code points of the letters, 0 for the spaces between words; all scripts, and the
    place of each letter's own among them.
    """
    if "<" in text or "://" in text or "@" in text:
        text = _NOT_TEXT.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    data = f" {text.lower()} ".encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, np.uint32)
    different, place = np.unique(codes, return_inverse=True)
    names = [script_of(chr(code)) for code in different.tolist()]
    names = [name * (name != without) for name in names]
    scripts = list(dict.fromkeys(names))
    own = np.array([scripts.index(name) for name in names])
    script = own[place.reshape(-1)]
    is_letter = script != scripts.index(NO_SCRIPT)
    is_kept = is_letter.copy()
    is_kept[0] = True
    is_kept[1:] |= is_letter[:-1]  # one space behind each word
    return np.where(is_letter, codes, 0)[is_kept], scripts, script[is_kept]


def _keys(codes: Any, is_space: Any) -> Ints:
    """Return the keys of the n-grams that end at each letter, its space with a word."""
    numbers = np.arange(len(codes))
    is_gap = codes == ord(UNKNOWN_LETTERS)
    ended = np.where(is_space, numbers, np.where(is_gap, numbers + 1, 0))
    begins = np.zeros(len(codes), np.int64)
    # a space ends the word before it
    begins[1:] = np.maximum.accumulate(ended)[:-1]
    places = numbers - begins
    places[is_gap] = -1
    places[1:][is_space[1:] & is_gap[:-1]] = -1
    letters = codes.astype(np.uint64) + np.uint64(1)
    spelled = letters
    keys = np.empty((ORDERS, len(codes)), np.int64)
    for order in range(ORDERS):
        if order:
            longer = np.zeros_like(letters)
            longer[1:] = spelled[:-1] * _OTHER_ODD + letters[1:]
            spelled = longer
        keys[order] = np.where(places >= order, _hashed(spelled), -1)
    return keys


def _hashed(numbers: NDArray[np.uint64]) -> Ints:
    """Return the upper bits of numbers, once all bits are mixed."""
    mixed = numbers ^ (numbers >> np.uint64(31))
    mixed = mixed * _ODD
    mixed = mixed ^ (mixed >> np.uint64(29))
    mixed = mixed * _OTHER_ODD
    upper = mixed >> np.uint64(44)
    return upper.astype(np.int64)
