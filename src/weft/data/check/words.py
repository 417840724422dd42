"""The words of many texts as numbers, by which duplicates, near-duplicates and alignment are found.

Words are those of the folded text (case, punctuation and white space aside). Where a script writes
no spaces, each character counts as a word.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from weft.data.scripts import count_scripts, is_spaceless
from weft.data.split import fold

Ids = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64] | npt.NDArray[np.bool_]

MOST_WORDS = 64  # a longer text is compared by its first words, so many
_MOST_CHARS = 1024  # read for words; exact duplicates are compared whole
# characters for each space, from which on a text of a script without spaces has none
_FEW_SPACES = 12
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio


class Vocabulary(dict[str, int]):
    """A number for each word, in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Words:
    """The first words of each text as ids; equal words have equal ids, on every side that shares
    `vocabulary`.
    """

    def __init__(self, texts: Sequence[str], vocabulary: Vocabulary) -> None:
        self.texts = texts
        self._vocabulary = vocabulary

    @cached_property
    def _numbered(self) -> tuple[Ids, Ids]:
        """Give the words of all texts their numbers; return how many each text has, and the numbers
        in a row.
        """
        split = _characters if _is_unspaced(self.texts) else _words
        number = self._vocabulary.__getitem__
        lists = [list(map(number, split(text))) for text in self.folded]
        counts: Ids = np.fromiter(map(len, lists), np.int64, len(lists))
        numbers = chain.from_iterable(lists)
        return counts, np.fromiter(numbers, np.int64, int(counts.sum()))

    @property
    def counts(self) -> Ids:
        """Return how many words of each text are counted."""
        return self._numbered[0]

    @property
    def ids(self) -> Ids:
        """Return the ids of the words of all texts, one text after another."""
        return self._numbered[1]

    @cached_property
    def starts(self) -> Ids:
        """Return where each text's words begin among `ids`, and where the last one's end."""
        return bounds_of(self.counts)

    @cached_property
    def folded(self) -> list[str]:
        """Return the folded texts, as duplicates are compared."""
        return list(map(fold, self.texts))

    @property
    def num_ids(self) -> int:
        """Count the different words of all sides that share the vocabulary and have been
        numbered.
        """
        return len(self._vocabulary)

    @cached_property
    def text_of(self) -> Ids:
        """Return the number of its text for each word."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def bounds_of(counts: Counts) -> Ids:
    """Return where each of several runs of these lengths begins, one after another, and where the
    last one ends.
    """
    return np.concatenate([[0], np.cumsum(counts)])


def mixed(values: npt.NDArray[np.integer], salt: int = 0) -> Hashes:
    """Hash each value to 64 bits, evenly spread (the finalizer of SplitMix64, Steele et al.
    2014).
    """
    step = (salt + 1) * GOLDEN % 2**64
    z = values.astype(np.uint64) + np.uint64(step)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _is_unspaced(texts: Sequence[str]) -> bool:
    stride = -(-len(texts) // 2_000) or 1
    sample = texts[::stride]
    if not is_spaceless(count_scripts(sample)):
        return False
    spaces = sum(text.count(" ") for text in sample)
    return _FEW_SPACES * spaces < sum(map(len, sample))


def _words(folded: str) -> list[str]:
    return folded[:_MOST_CHARS].split(" ", MOST_WORDS)[:MOST_WORDS]


def _characters(folded: str) -> list[str]:
    characters = folded[:_MOST_CHARS].replace(" ", "")
    return list(characters[:MOST_WORDS])
