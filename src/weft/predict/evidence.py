"""The evidence of a row and its translation once a model has read both: the features by which the
quality of words and of the whole is estimated (`weft.predict.quality`).

Shapes: T target and S source tokens, end symbols included; W words of the target, V of the source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.data.tokenizer import EOS_ID, Tokenizer
from weft.predict.alignment import Floats, firsts, words_of
from weft.predict.doubling import doubled_phrase

Doubles: TypeAlias = NDArray[np.float64]

WORD_FEATURES = (
    # of the word, given all before it
    "probability",
    "log_odds",
    # the words before and behind it, and the means of all of them
    "probability_before",
    "probability_behind",
    "mean_before",
    "mean_behind",
    # log of the ids, which are in the order of their frequency
    "rareness",
    "rareness_of_source",
    # of the source words: how much they wrote, how far away the main one is, how many share it
    "support",
    "support_of_end",
    "displacement",
    "fertility",
    "place",
    "is_last",
)
SENTENCE_FEATURES = ("mean_probability",)
OMISSION_FEATURES = (
    # of the lengths in tokens
    "log_ratio",
    "log_length",
    # of the source words: what they wrote at most, in the mean of all, and of the three words in a
    # row that wrote least
    "mean_support",
    "least_support",
    # the same as shares of what each target token comes from
    "least_share",
    "least_shares_in_all",
    "idle",
    # of the target's tokens
    "mean_log_prob",
    "least_log_prob",
    "end_probability",
)
LEAST_WORDS = 6
"""Words that both sides have, where an omission can be told."""

_MOST_ODDS = 8.0
_LEAST_SUPPORT = 0.01
_TINY = 1e-6
_LEAST_LOG = -3.0
_WINDOW = 3
# share of a target token: a source word without so much in any is idle
_IDLE = 0.15
_MOST_FERTILE = 5
_LAST_PLACE = 30


@dataclass(frozen=True)
class Evidence:
    """A row and its translation, as the model has read both.

    Ids are with their end symbols, the target's only if the translation came to its end.
    `log_probs` (T) are those of the target ids; `support` (T, S) is how much each source token
    supports each target token.
    """

    src_words: Sequence[str]
    tgt_words: Sequence[str]
    src_of: Sequence[int]
    tgt_of: Sequence[int]
    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    log_probs: Sequence[float]
    support: Floats

    @classmethod
    def of(
        cls,
        tokenizers: tuple[Tokenizer, Tokenizer],
        src_ids: Sequence[int],
        tgt_ids: Sequence[int],
        log_probs: Sequence[float],
        support: Floats,
    ) -> "Evidence":
        """Divide both sides into words."""
        src, tgt = tokenizers
        src_words, src_of = words_of(src.spell_each(without_end(src_ids)))
        tgt_words, tgt_of = words_of(tgt.spell_each(without_end(tgt_ids)))
        return cls(
            src_words, tgt_words, src_of, tgt_of, src_ids, tgt_ids, log_probs, support
        )

    @property
    def is_ended(self) -> bool:
        """Return whether the translation came to its end."""
        return len(self.tgt_ids) > len(self.tgt_of)

    @cached_property
    def _src_firsts(self) -> list[int]:
        return firsts(self.src_of)

    @cached_property
    def _tgt_firsts(self) -> list[int]:
        return firsts(self.tgt_of)

    @cached_property
    def word_log_probs(self) -> Doubles:
        """Return the log-probability of each target word (W)."""
        own = np.asarray(self.log_probs[: len(self.tgt_of)], np.float64)
        return np.add.reduceat(own, self._tgt_firsts)

    @cached_property
    def _positive(self) -> Floats:
        """Return the support (T, S) without that which is against a token."""
        positive: Floats = np.maximum(self.support, 0)
        return positive

    @cached_property
    def _by_source_word(self) -> Doubles:
        """Return how much each source word supports each target token, (T, V)."""
        tokens = self._positive[:, : len(self.src_of)]
        summed: Doubles = np.add.reduceat(
            tokens, self._src_firsts, axis=1, dtype=np.float64
        )
        return summed

    @cached_property
    def support_of_words(self) -> Doubles:
        """Return the most that any target token has from each source word (V), as a log."""
        tokens = self._positive[:, : len(self.src_of)]
        most = np.maximum.reduceat(tokens.max(0), self._src_firsts)
        logs: Doubles = np.log(np.maximum(most, _LEAST_SUPPORT).astype(np.float64))
        return logs

    @cached_property
    def shares(self) -> Doubles:
        """Return which share of each target token's support each source token has, (T, S)."""
        positive = self._positive.astype(np.float64)
        shares: Doubles = positive / (positive.sum(1, keepdims=True) + _TINY)
        return shares

    @cached_property
    def shares_of_words(self) -> Doubles:
        """Return the largest share that any target token has from each source word, (V)."""
        tokens = self.shares[:, : len(self.src_of)]
        most: Doubles = np.maximum.reduceat(tokens.max(0), self._src_firsts)
        return most

    def word_features(self) -> Doubles:
        """Return the features of each target word, (W, WORD_FEATURES)."""
        num_words = len(self.tgt_words)
        if not num_words or not self.src_words:
            return np.zeros((num_words, len(WORD_FEATURES)))
        columns = (*self._of_probability(), *self._of_sources(), *self._of_place())
        return np.stack([np.asarray(one, np.float64) for one in columns], axis=1)

    def _of_probability(self) -> Sequence[Doubles]:
        """Return the features of each word by its probability and those of its neighbours."""
        log_probs = self.word_log_probs
        probs = np.exp(log_probs)
        end = np.exp(self.log_probs[-1]) if self.is_ended else 1.0
        numbers = np.arange(len(probs))
        sums = np.cumsum(probs)
        left = numbers[::-1]
        mean_before = (sums - probs) / np.maximum(numbers, 1)
        mean_behind = (sums[-1] - sums) / np.maximum(left, 1)
        return (
            probs,
            _log_odds(log_probs),
            np.concatenate([[1.0], probs[:-1]]),
            np.concatenate([probs[1:], [end]]),
            np.where(numbers > 0, mean_before, 1.0),
            np.where(left > 0, mean_behind, 1.0),
        )

    def _of_sources(self) -> Sequence[Doubles]:
        """Return the features of each word by the source words that it comes from."""
        by_word = np.add.reduceat(
            self._by_source_word[: len(self.tgt_of)], self._tgt_firsts, axis=0
        )
        total = by_word.sum(1)
        main = by_word.argmax(1)
        rareness = _rareness(self.src_ids, self._src_firsts, len(self.src_of))
        num_words, num_src = by_word.shape
        there = (main + 0.5) / num_src
        here = (np.arange(num_words) + 0.5) / num_words
        sharing = np.bincount(main, minlength=num_src)[main]
        from_end = self._positive[: len(self.tgt_of), -1].astype(np.float64)
        return (
            _rareness(self.tgt_ids, self._tgt_firsts, len(self.tgt_of)),
            np.where(total > 0, rareness[main], 0.0),
            np.maximum(np.log(total + _TINY), _LEAST_LOG),
            np.maximum.reduceat(from_end, self._tgt_firsts),
            np.where(total > 0, np.abs(there - here), 0.0),
            np.minimum(sharing, _MOST_FERTILE).astype(np.float64),
        )

    def _of_place(self) -> Sequence[Doubles]:
        """Return the features of each word by its place."""
        numbers = np.arange(len(self.tgt_words), dtype=np.float64)
        is_last = (numbers == numbers[-1]).astype(np.float64)
        return np.minimum(numbers / _LAST_PLACE, 1.0), is_last

    @property
    def can_tell_omissions(self) -> bool:
        """Return whether both sides are long enough for it."""
        return min(len(self.src_words), len(self.tgt_words)) >= LEAST_WORDS

    def omission_features(self) -> Doubles:
        """Return the features of the pair, (OMISSION_FEATURES); both sides have words."""
        log_probs = np.asarray(self.log_probs, np.float64)
        shares = self.shares[:, : len(self.src_of)]
        by_word = np.maximum.reduceat(shares, self._src_firsts, axis=1)
        in_all = np.add.reduceat(shares.sum(0), self._src_firsts)
        most = by_word.max(0)
        ratio = len(self.tgt_ids) / len(self.src_ids)
        return np.array(
            [
                np.log(ratio),
                np.log(len(self.src_words)),
                self.support_of_words.mean(),
                _windows(self.support_of_words).min() / _WINDOW,
                _windows(most).min(),
                _windows(in_all).min(),
                (most < _IDLE).mean(),
                log_probs.mean(),
                log_probs.min(),
                np.exp(log_probs[-1]),
            ]
        )

    def omitted(self) -> list[int]:
        """Return the source words from which least was written: a run of three or more."""
        support = self.support_of_words
        begin = int(_windows(support).argmin())
        end = begin + min(_WINDOW, len(support))
        idle = self.shares_of_words < _IDLE
        while begin > 0 and idle[begin - 1]:
            begin -= 1
        while end < len(support) and idle[end]:
            end += 1
        return list(range(begin, end))

    def doubled(self) -> str:
        """Return a phrase that stands twice, where the source says nothing twice; else nothing."""
        return doubled_phrase(self.tgt_words, self.src_words)


def sentence_features(log_probs: Sequence[float]) -> Doubles:
    """Return the features of a translation by the log-probabilities of its tokens."""
    return np.array([np.exp(np.asarray(log_probs, np.float64)).mean()])


def without_end(ids: Sequence[int]) -> Sequence[int]:
    """Return ids without their end symbol."""
    return ids[:-1] if ids and ids[-1] == EOS_ID else ids


def _log_odds(log_probs: Doubles) -> Doubles:
    others = -np.expm1(np.minimum(log_probs, -_TINY))
    odds = log_probs - np.log(others)
    clipped: Doubles = np.clip(odds, -_MOST_ODDS, _MOST_ODDS)
    return clipped


def _rareness(ids: Sequence[int], begins: Sequence[int], num_tokens: int) -> Doubles:
    """Return the log of the largest id of each word: frequent tokens have small ones."""
    logs = np.log(np.maximum(np.asarray(ids[:num_tokens], np.float64), 1.0))
    most: Doubles = np.maximum.reduceat(logs, begins)
    return most


def _windows(values: Doubles) -> Doubles:
    """Return the sums of three in a row, or of all where there are fewer."""
    width = min(_WINDOW, len(values))
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    sums: Doubles = windows.sum(1)
    return sums
