"""The words of texts and their pairs as sparse features, each by how often a text has it and how
few texts do.

Shapes: N texts, F features, M of them that a text has. Source: Spärck Jones 1972, "A Statistical
Interpretation of Term Specificity"; logarithms and lengths as in scikit-learn's TfidfVectorizer
with `sublinear_tf`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.known import words_and_numbers_of

Ids = NDArray[np.int64]

UNKNOWN, END = -1, -2


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of N texts by the features that each has: from `begins[i]` on those of text i, (M,),
    each with its value.
    """

    begins: Ids
    features: Ids
    values: NDArray[np.float32]
    num_features: int

    def __len__(self) -> int:
        return len(self.begins)


@dataclass(frozen=True, eq=False)
class WordsAndPairs:
    """The words and pairs of neighbours that some texts have, each a feature.

    A feature's value is 1 + ln of how often a text has it, times its inverse document frequency, 1
    + ln((1 + N) / (1 + texts that have it)); a text's features have length 1 together. One more
    feature, the last, is 1 in every text.
    """

    words: Mapping[str, int]
    keys: Ids  # of the features, sorted
    frequency: NDArray[np.float64]  # the inverse document frequency of each

    @classmethod
    def of(cls, texts: Sequence[str]) -> "WordsAndPairs":
        """Collect the words and pairs of texts."""
        words: dict[str, int] = {}
        for text in texts:
            for word in words_and_numbers_of(text):
                words.setdefault(word, len(words))
        text_of, key_of = _occurrences(words, texts)
        keys, feature = np.unique(key_of, return_inverse=True)
        _, met, _ = _counted(text_of, feature, len(keys))
        num_texts = np.bincount(met, minlength=len(keys))
        ratio = (1 + len(texts)) / (1 + num_texts)
        frequency = 1 + np.log(ratio)
        return cls(words, keys, frequency)

    def rows(self, texts: Sequence[str]) -> SparseRows:
        """Return the features of each text; words and pairs that are not known are left out."""
        text, key = _occurrences(self.words, texts)
        is_known = np.isin(key, self.keys)
        text = text[is_known]
        feature = np.searchsorted(self.keys, key[is_known])
        text, feature, count = _counted(text, feature, len(self.keys))
        values = 1 + np.log(count)
        values *= self.frequency[feature]
        squares = np.bincount(text, values**2, minlength=len(texts))
        lengths = np.sqrt(squares)
        values /= lengths[text]
        # a text's last feature is that of all
        every = np.arange(len(texts))
        begins = np.searchsorted(text, every)
        ends = np.append(begins[1:], len(text))
        feature = np.insert(feature, ends, len(self.keys))
        values = np.insert(values, ends, 1.0)
        values = values.astype(np.float32)
        begins += every
        return SparseRows(begins, feature, values, len(self.keys) + 1)


def _counted(text: Ids, feature: Ids, num_features: int) -> tuple[Ids, Ids, Ids]:
    """List each feature of each text once, in their order, with how often the text has it."""
    wide = max(num_features, 1)
    both = text * wide + feature
    met, count = np.unique(both, return_counts=True)
    text, feature = np.divmod(met, wide)
    return text, feature, count


def _occurrences(words: Mapping[str, int], texts: Sequence[str]) -> tuple[Ids, Ids]:
    """List each occurrence of a known word or pair: the text's number, and the key.

    The key of word a is a (V + 1), that of the pair of a and b is a (V + 1) + b + 1.
    """
    ids = np.fromiter(_ids(words, texts), np.int64)
    is_end = ids == END
    text = np.cumsum(is_end) - is_end
    base = len(words) + 1
    is_word = ids >= 0
    is_followed = np.append(is_word[1:], False)
    single = np.flatnonzero(is_word)
    first = np.flatnonzero(is_word & is_followed)
    after = ids[first + 1]
    keys = ids[single] * base
    pairs = ids[first] * base
    pairs += after + 1
    places = np.append(single, first)
    return text[places], np.append(keys, pairs)


def _ids(words: Mapping[str, int], texts: Sequence[str]) -> Iterator[int]:
    """Yield the number of each word, or UNKNOWN, and END behind each text."""
    for text in texts:
        for word in words_and_numbers_of(text):
            yield words.get(word, UNKNOWN)
        yield END
