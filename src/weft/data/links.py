"""Tokens of two languages that belong together, learned from pairs of texts.

Two models of words for words, one in each direction, are learned (Brown et al. 1993, "The
Mathematics of Statistical Machine Translation", section 4, Model 1); tokens belong together where
both say so. Only content tokens count: those with a letter that are not among the most frequent.

Shapes: C co-occurrences of a source and a target token in a pair, P different ones, G tokens of all
pairs, V vocabulary; S and T content tokens of one pair.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Pair = tuple[Sequence[int], Sequence[int]]

MOST_COOCCURRENCES = 8_000_000  # in about 600 MB, while it learns
_ROUNDS = 5
_TINY = 1e-30
_MOST_FREQUENT = 150
_ONE_IN = 10  # of the different tokens, at most so many are the most frequent
_LEAST_PROBABLE = 0.005  # below it in both directions, a link is not kept


@dataclass(frozen=True)
class TokenLinks:
    """The probabilities of content tokens that belong together, by their `keys`, in ascending
    order: source id * vocabulary + target id.

    `forth` are those of the target given the source, `back` those of the source given the target;
    `no_source` and `no_target` those of each token that none belongs to it.
    """

    keys: Positions
    forth: NDArray[np.float32]
    back: NDArray[np.float32]
    no_source: NDArray[np.float32]
    no_target: NDArray[np.float32]
    src_content: Flags
    tgt_content: Flags

    def between(self, src: Positions, tgt: Positions) -> Floats:
        """Return how likely each source token belongs to each target token (S, T), 0 to 1."""
        keys = src[:, None] * len(self.tgt_content) + tgt
        if not len(self.keys):
            return np.zeros(keys.shape)
        last = len(self.keys) - 1
        places = np.searchsorted(self.keys, keys)
        places = np.minimum(places, last)
        is_known = self.keys[places] == keys
        forth = np.where(is_known, self.forth[places], 0)
        back = np.where(is_known, self.back[places], 0)
        of_targets = forth.sum(0) + self.no_source[tgt]
        of_sources = back.sum(1) + self.no_target[src]
        forth /= np.maximum(of_targets, _TINY)
        back /= np.maximum(of_sources, _TINY)[:, None]
        both: Floats = np.sqrt(forth * back)
        return both


def learn_links(
    pairs: Sequence[Pair], src_content: Flags, tgt_content: Flags
) -> TokenLinks:
    """Learn from pairs of ids which content tokens belong together.

    Of more text than fits into the memory, evenly spaced pairs are learned from.
    """
    found = _Cooccurrences.of(pairs, src_content, tgt_content)
    num_targets = len(tgt_content)
    src = found.keys // num_targets
    tgt = found.keys % num_targets
    forth, no_source = _model_1(found.key_of, found.targets, src, num_targets)
    back, no_target = _model_1(found.key_of, found.sources, tgt, len(src_content))
    is_kept = np.maximum(forth, back) >= _LEAST_PROBABLE
    return TokenLinks(
        found.keys[is_kept],
        forth[is_kept].astype(np.float32),
        back[is_kept].astype(np.float32),
        no_source.astype(np.float32),
        no_target.astype(np.float32),
        src_content,
        tgt_content,
    )


def content_tokens(rows: Iterable[Sequence[int]], has_letter: Flags) -> Flags:
    """Return which ids say what a text is about: those with a letter that are not among the most
    frequent in some rows.
    """
    counts = np.zeros(len(has_letter), np.int64)
    for ids in rows:
        np.add.at(counts, np.asarray(ids, np.int64), 1)
    occurs = counts > 0
    share = int(occurs.sum()) // _ONE_IN
    most = min(_MOST_FREQUENT, share)
    by_frequency = np.argsort(-counts, kind="stable")
    is_content = has_letter & occurs
    is_content[by_frequency[:most]] = False
    return is_content


@dataclass(frozen=True)
class _Tokens:
    """The tokens of one side of all pairs (G), and which of them each co-occurrence has (C)."""

    ids: Positions
    place_of: NDArray[np.int32]

    @classmethod
    def of(
        cls, ids: Sequence[Positions], places: Sequence[NDArray[np.int32]]
    ) -> "_Tokens":
        """Join those of all pairs."""
        every = [np.empty(0, np.int64), *ids]
        return cls(np.concatenate(every), np.concatenate(places))


@dataclass(frozen=True)
class _Cooccurrences:
    """Content tokens of both sides that stand in one pair.

    `keys` are the different ones in ascending order (P), `key_of` says which each is (C).
    """

    keys: Positions
    key_of: NDArray[np.int32]
    sources: _Tokens
    targets: _Tokens

    @classmethod
    def of(
        cls, pairs: Sequence[Pair], src_content: Flags, tgt_content: Flags
    ) -> "_Cooccurrences":
        """Find them; of too many, those of evenly spaced pairs."""
        sources = [_of_content(src, src_content) for src, _ in pairs]
        targets = [_of_content(tgt, tgt_content) for _, tgt in pairs]
        total = sum(map(_product_of_lengths, sources, targets))
        every = -(-total // MOST_COOCCURRENCES) or 1
        sources = sources[::every]
        targets = targets[::every]
        keys = [np.empty(0, np.int64)]
        src_places = [np.empty(0, np.int32)]
        tgt_places = [np.empty(0, np.int32)]
        src_begin = tgt_begin = 0
        for src, tgt in zip(sources, targets, strict=True):
            first = src[:, None] * len(tgt_content)
            keys.append((first + tgt).ravel())
            src_own = np.arange(len(src), dtype=np.int32) + src_begin
            tgt_own = np.arange(len(tgt), dtype=np.int32) + tgt_begin
            src_places.append(np.repeat(src_own, len(tgt)))
            tgt_places.append(np.tile(tgt_own, len(src)))
            src_begin += len(src)
            tgt_begin += len(tgt)
        joined = np.concatenate(keys)
        different, key_of = np.unique(joined, return_inverse=True)
        return cls(
            different,
            key_of.astype(np.int32),
            _Tokens.of(sources, src_places),
            _Tokens.of(targets, tgt_places),
        )


def _product_of_lengths(src: Positions, tgt: Positions) -> int:
    return len(src) * len(tgt)


def _of_content(ids: Sequence[int], is_content: Flags) -> Positions:
    array = np.asarray(ids, np.int64)
    return array[is_content[array]]


def _model_1(
    key_of: NDArray[np.int32], tokens: _Tokens, given: Positions, vocab_size: int
) -> tuple[Floats, Floats]:
    """Estimate the probability of each co-occurrence's token given the other side's (P), and that
    of each token given nothing (V), by expectation maximisation.
    """
    probs = np.ones(len(given))
    nothing = np.ones(vocab_size)
    for _ in range(_ROUNDS if len(given) else 0):
        shares = probs[key_of]
        alone = nothing[tokens.ids]
        of_others = np.bincount(tokens.place_of, shares, len(tokens.ids))
        totals = of_others + alone
        shares /= totals[tokens.place_of]
        counts = np.bincount(key_of, shares, len(given))
        of_given = np.bincount(given, counts)
        probs = counts / of_given[given]
        of_nothing = np.bincount(tokens.ids, alone / totals, vocab_size)
        nothing = of_nothing / of_nothing.sum()
    return probs, nothing
