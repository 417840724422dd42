"""The words of many texts as numbers: what duplicates, near-duplicates and alignment are told from.

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

MOST_WORDS = 64  # of a text; what a longer one is like is told from its beginning
_MOST_CHARS = 1024  # of a text; folded, and compared as duplicates, is all of it
# characters for each space, from which on a text of a script without spaces has none
_FEW_SPACES = 12


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
        self.texts, self._vocabulary = texts, vocabulary

    @cached_property
    def _numbered(self) -> tuple[Ids, Ids]:
        """How many words each text has, and the ids of all of them in a row."""
        split = _characters if _is_unspaced(self.texts) else _words
        number = self._vocabulary.__getitem__
        lists = [list(map(number, split(text))) for text in self.folded]
        counts: Ids = np.fromiter(map(len, lists), np.int64, len(lists))
        return counts, np.fromiter(
            chain.from_iterable(lists), np.int64, int(counts.sum())
        )

    @property
    def counts(self) -> Ids:
        """How many words of each text are counted."""
        return self._numbered[0]

    @property
    def ids(self) -> Ids:
        """The words of all texts, one after another."""
        return self._numbered[1]

    @cached_property
    def starts(self) -> Ids:
        """Where each text's words begin among `ids`, and where the last one's end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def folded(self) -> list[str]:
        """The texts as duplicates are compared."""
        return list(map(fold, self.texts))

    @property
    def num_ids(self) -> int:
        """How many different words there are on all sides that share the vocabulary and have been
        counted.
        """
        return len(self._vocabulary)

    @cached_property
    def text_of(self) -> Ids:
        """For each word the number of its text."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def mixed(values: npt.NDArray[np.integer], salt: int = 0) -> Hashes:
    """Return a 64-bit hash of each value, evenly spread (the finalizer of SplitMix64, Steele et al.
    2014).
    """
    z = values.astype(np.uint64) + np.uint64(
        (salt * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _is_unspaced(texts: Sequence[str]) -> bool:
    sample = texts[:: -(-len(texts) // 2_000) or 1]
    spaces = sum(text.count(" ") for text in sample)
    return is_spaceless(count_scripts(sample)) and _FEW_SPACES * spaces < sum(
        map(len, sample)
    )


def _words(folded: str) -> list[str]:
    return folded[:_MOST_CHARS].split(" ", MOST_WORDS)[:MOST_WORDS]


def _characters(folded: str) -> list[str]:
    return list(folded[:_MOST_CHARS].replace(" ", "")[:MOST_WORDS])
