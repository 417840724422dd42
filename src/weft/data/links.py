"""Which tokens of two languages belong together, learned from pairs of texts.

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
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_known = self.keys[places] == keys
        forth = np.where(is_known, self.forth[places], 0)
        back = np.where(is_known, self.back[places], 0)
        of_target = forth / np.maximum(forth.sum(0) + self.no_source[tgt], _TINY)
        totals = np.maximum(back.sum(1) + self.no_target[src], _TINY)
        both: Floats = np.sqrt(of_target * back / totals[:, None])
        return both


def learn_links(
    pairs: Sequence[Pair], src_content: Flags, tgt_content: Flags
) -> TokenLinks:
    """Learn from pairs of ids which content tokens belong together.

    Of more text than fits into the memory, evenly spaced pairs are learned from.
    """
    found = _Cooccurrences.of(pairs, src_content, tgt_content)
    num_targets = len(tgt_content)
    src, tgt = found.keys // num_targets, found.keys % num_targets
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
    most = min(_MOST_FREQUENT, int((counts > 0).sum()) // _ONE_IN)
    is_content = has_letter & (counts > 0)
    is_content[np.argsort(-counts, kind="stable")[:most]] = False
    return is_content


@dataclass(frozen=True)
class _Tokens:
    """The tokens of one side of all pairs (G), and which of them each co-occurrence has (C)."""

    ids: Positions
    place_of: NDArray[np.int32]


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
        both = [
            (_of_content(src, src_content), _of_content(tgt, tgt_content))
            for src, tgt in pairs
        ]
        total = sum(len(src) * len(tgt) for src, tgt in both)
        both = both[:: -(-total // MOST_COOCCURRENCES) or 1]
        keys = [np.empty(0, np.int64)]
        sources = [np.empty(0, np.int32)]
        targets = [np.empty(0, np.int32)]
        begins = [0, 0]
        for src, tgt in both:
            keys.append((src[:, None] * len(tgt_content) + tgt).ravel())
            own = np.arange(begins[0], begins[0] + len(src), dtype=np.int32)
            sources.append(np.repeat(own, len(tgt)))
            own = np.arange(begins[1], begins[1] + len(tgt), dtype=np.int32)
            targets.append(np.tile(own, len(src)))
            begins = [begins[0] + len(src), begins[1] + len(tgt)]
        different, key_of = np.unique(np.concatenate(keys), return_inverse=True)
        src_ids = np.concatenate([np.empty(0, np.int64), *(src for src, _ in both)])
        tgt_ids = np.concatenate([np.empty(0, np.int64), *(tgt for _, tgt in both)])
        return cls(
            different,
            key_of.astype(np.int32),
            _Tokens(src_ids, np.concatenate(sources)),
            _Tokens(tgt_ids, np.concatenate(targets)),
        )


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
        totals = np.bincount(tokens.place_of, shares, len(tokens.ids)) + alone
        shares /= totals[tokens.place_of]
        counts = np.bincount(key_of, shares, len(given))
        probs = counts / np.bincount(given, counts)[given]
        of_nothing = np.bincount(tokens.ids, alone / totals, vocab_size)
        nothing = of_nothing / of_nothing.sum()
    return probs, nothing
