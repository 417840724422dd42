"""The words that a model has seen in training, kept as hashes: so that using it can say where it
guesses.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]

MOST_WORDS = 500_000  # the most frequent, of a text with more: two megabytes
_CACHED = 100_000  # answers that are remembered
# Characters of scripts that put no space between words (Thai, Lao, Burmese, Khmer, kana, Han): each
# is a word.
_ALONE = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_TAG = re.compile("</?[a-z][^<>]{0,200}>", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s\-‐–—/'’.]+")


@dataclass(frozen=True)
class KnownWords:
    """Hashes of 32 bits of folded words, sorted; another word shares one of n of them by a chance
    of n in 2^32.
    """

    hashes: Hashes
    _answers: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "KnownWords":
        """Collect the words of a text; of more than MOST_WORDS the most frequent."""
        counts = Counter(word for text in texts for word in words_of(text))
        hashes = [_hash(word) for word, _ in counts.most_common(MOST_WORDS)]
        return cls(np.unique(np.array(hashes, np.int32)))

    def joined(self, other: "KnownWords | None") -> "KnownWords":
        """Join the words of both."""
        if other is None:
            return self
        return KnownWords(np.union1d(self.hashes, other.hashes))

    def unknown(self, text: str) -> list[str]:
        """Return the words of a text that are not among them, each once and as the text first
        writes it, in order.
        """
        unknown = {word for word in words_of(text) if not self.knows(word)}
        found: dict[str, str] = {}
        for part in _parts(text) if unknown else ():
            for word in unknown.intersection(words_of(part)):
                found.setdefault(word, _bare(part))
        return list(found.values())

    def knows_nothing_of(self, text: str) -> bool:
        """Return whether no word of it is among them, or it has none."""
        return not any(self.knows(word) for word in words_of(text))

    def knows(self, word: str) -> bool:
        """Return whether a word as `words_of` gives it is among them."""
        known = self._answers.get(word)
        if known is None:
            known = self._has(_hash(word))
            if len(self._answers) >= _CACHED:
                self._answers.clear()
            self._answers[word] = known
        return known

    def _has(self, number: int) -> bool:
        place = int(np.searchsorted(self.hashes, number))
        return place < len(self.hashes) and int(self.hashes[place]) == number


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text, without case and marks around them; what has a digit is none, nor
    is a tag.
    """
    for part in _parts(text.casefold()):
        if word := _word_in(part):
            yield word


def words_and_numbers_of(text: str) -> Iterator[str]:
    """Yield the words of a text, without case and marks around them, and what has a digit."""
    for part in _parts(text.casefold()):
        if word := _bare(part):
            yield word


def _parts(text: str) -> list[str]:
    """Divide a text where words end, without tags; marks around words are still there."""
    if "<" in text:
        text = _TAG.sub(" ", text)
    if not text.isascii():
        text = _ALONE.sub(r" \1 ", unicodedata.normalize("NFC", text))
    return _BETWEEN.split(text)


@lru_cache(maxsize=_CACHED)
def _word_in(part: str) -> str:
    """Return the word in what stands between two spaces; nothing where there is none."""
    word = _bare(part)
    return "" if any(map(str.isdigit, word)) else word


@lru_cache(maxsize=_CACHED)
def _bare(part: str) -> str:
    """Cut off what is no letter, mark of a letter or number at either end."""
    if part.isalpha():
        return part
    while part and not (part[0].isalnum()):
        part = part[1:]
    while part and not _may_end_a_word(part[-1]):
        part = part[:-1]
    return part


def _may_end_a_word(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter).startswith("M")


def _hash(word: str) -> int:
    """Hash a word to a signed number of 32 bits."""
    number = zlib.crc32(word.encode("utf-8", "surrogatepass"))
    return number - 2**32 if number >= 2**31 else number
