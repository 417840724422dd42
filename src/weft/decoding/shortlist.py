"""A lexical shortlist: the target tokens that a source can become, learned from pairs of texts.

The last product of a step then has a few hundred outputs for a sentence, not the whole vocabulary
(Jean et al. 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section
3.2; L'Hostis et al. 2016, "Vocabulary Selection Strategies for Neural Machine Translation"). What
is likely is learned by IBM's Model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine
Translation", section 4).

Shapes: C co-occurrences of a source and a target token in a pair, P different ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_MOST_COOCCURRENCES = 40_000_000  # about 1 GiB while it is learned

Pair = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class Shortlist:
    """Target ids `always` possible, and those of source id i: `targets` from `ends[i - 1]` to
    `ends[i]`.
    """

    always: NDArray[np.int32]
    targets: NDArray[np.int32]
    ends: NDArray[np.int64]

    def of(self, src_ids: Sequence[int]) -> NDArray[np.int32]:
        """List the target ids that a source can become, ascending."""
        is_possible = np.zeros(self._size, np.bool_)
        is_possible[self.always] = True
        for i in set(src_ids):
            begin = self.ends[i - 1] if i else 0
            is_possible[self.targets[begin : self.ends[i]]] = True
        return np.flatnonzero(is_possible).astype(np.int32)

    @cached_property
    def _size(self) -> int:
        lists = (self.always, self.targets)
        largest = [int(ids.max()) for ids in lists if len(ids)]
        return 1 + max(largest, default=0)


def learn_shortlist(
    pairs: Iterable[Pair],
    src_vocab_size: int,
    tgt_vocab_size: int,
    *,
    always: Sequence[int] = (),
    num_frequent: int = 200,
    num_likely: int = 100,
    rounds: int = 5,
) -> Shortlist:
    """Learn from pairs of ids: the `num_frequent` most frequent target ids, and the `num_likely`
    likeliest of each source id.

    Ids of `always` are never left out. Of more text than fits into about 1 GiB, the rest is passed
    over. Of equally likely ones the lower id is taken.
    """
    sources, targets, sizes = _cooccurrences(pairs, src_vocab_size)
    # P and C
    both = sources * tgt_vocab_size + targets
    keys, key_of = np.unique(both, return_inverse=True)
    key_sources = keys // tgt_vocab_size
    probs = _model_1(key_of, key_sources, sizes, rounds)
    # a target position's last co-occurrence: one each
    tgt_ids = targets[np.cumsum(sizes) - 1]
    frequency = np.bincount(tgt_ids, minlength=tgt_vocab_size)
    frequent = np.argsort(-frequency, kind="stable")[:num_frequent]
    frequent = frequent[frequency[frequent] > 0]
    order = np.lexsort((keys, -probs, key_sources))
    sorted_sources = key_sources[order]
    first = np.searchsorted(key_sources, np.arange(src_vocab_size + 2))
    rank = np.arange(len(keys)) - first[sorted_sources]
    is_null = sorted_sources >= src_vocab_size
    chosen = order[(rank < num_likely) & ~is_null]
    counts = np.bincount(key_sources[chosen], minlength=src_vocab_size)
    return Shortlist(
        np.unique([*always, *frequent]).astype(np.int32),
        (keys[chosen] % tgt_vocab_size).astype(np.int32),
        np.cumsum(counts),
    )


def _cooccurrences(
    pairs: Iterable[Pair], null: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """List the source and the target id of each co-occurrence (C), and how many of them each target
    position has; the null word is one of the sources.
    """
    sources = []
    targets = []
    sizes = []
    count = 0
    for src, tgt in pairs:
        if not src or not tgt:
            continue
        num_sources = len(src) + 1
        count += len(tgt) * num_sources
        if count > _MOST_COOCCURRENCES:
            break
        sources.append(np.tile([*src, null], len(tgt)))
        targets.append(np.repeat(tgt, num_sources))
        sizes.append(np.full(len(tgt), num_sources))
    if not sizes:
        return (np.empty(0, np.int64),) * 3
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(sizes)


def _model_1(
    key_of: NDArray[np.int64],
    key_sources: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rounds: int,
) -> NDArray[np.float64]:
    """Estimate the probability of each different co-occurrence's target given its source (P), by
    expectation maximisation.
    """
    probs = np.ones(len(key_sources))
    begins = np.cumsum(sizes) - sizes
    for _ in range(rounds if len(sizes) else 0):
        shares = probs[key_of]
        shares /= np.repeat(np.add.reduceat(shares, begins), sizes)
        counts = np.bincount(key_of, shares, len(key_sources))
        totals = np.bincount(key_sources, counts)
        probs = counts / totals[key_sources]
    return probs
