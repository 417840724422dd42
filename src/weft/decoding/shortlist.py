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
        """What a source can become, ascending."""
        is_possible = np.zeros(self._size, np.bool_)
        is_possible[self.always] = True
        for i in set(src_ids):
            is_possible[self.targets[self.ends[i - 1] if i else 0 : self.ends[i]]] = (
                True
            )
        return np.flatnonzero(is_possible).astype(np.int32)

    @cached_property
    def _size(self) -> int:
        return 1 + max(
            (int(ids.max()) for ids in (self.always, self.targets) if len(ids)),
            default=0,
        )


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
    """From pairs of ids: the `num_frequent` most frequent targets, and the `num_likely` likeliest
    for a source id.

    Ids of `always` are never left out. Of more text than fits into about 1 GiB, the rest is passed
    over. Of equally likely ones the lower id is taken.
    """
    sources, targets, sizes = _cooccurrences(pairs, src_vocab_size)
    # P and C
    keys, places = np.unique(sources * tgt_vocab_size + targets, return_inverse=True)
    of_key = keys // tgt_vocab_size
    likely = _model_1(places, of_key, sizes, rounds)
    frequency = np.bincount(targets[np.cumsum(sizes) - 1], minlength=tgt_vocab_size)
    frequent = np.argsort(-frequency, kind="stable")[:num_frequent]
    order = np.lexsort((keys, -likely, of_key))
    first = np.searchsorted(of_key, np.arange(src_vocab_size + 2))
    rank = np.arange(len(keys)) - first[of_key[order]]
    chosen = order[(rank < num_likely) & (of_key[order] < src_vocab_size)]
    return Shortlist(
        np.unique([*always, *frequent[frequency[frequent] > 0]]).astype(np.int32),
        (keys[chosen] % tgt_vocab_size).astype(np.int32),
        np.cumsum(np.bincount(of_key[chosen], minlength=src_vocab_size)),
    )


def _cooccurrences(
    pairs: Iterable[Pair], null: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Source and target of each, the null word among the sources; and how many each target position
    has.
    """
    sources, targets, sizes, count = [], [], [], 0
    for src, tgt in pairs:
        if not src or not tgt:
            continue
        count += len(tgt) * (len(src) + 1)
        if count > _MOST_COOCCURRENCES:
            break
        sources.append(np.tile([*src, null], len(tgt)))
        targets.append(np.repeat(tgt, len(src) + 1))
        sizes.append(np.full(len(tgt), len(src) + 1))
    if not sizes:
        return (np.empty(0, np.int64),) * 3
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(sizes)


def _model_1(
    places: NDArray[np.int64],
    of_key: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rounds: int,
) -> NDArray[np.float64]:
    """The probability of each different co-occurrence's target given its source, by expectation
    maximisation.
    """
    likely = np.ones(len(of_key))
    begins = np.cumsum(sizes) - sizes
    for _ in range(rounds if len(sizes) else 0):
        shares = likely[places]
        shares /= np.repeat(np.add.reduceat(shares, begins), sizes)
        counts = np.bincount(places, shares, len(of_key))
        likely = counts / np.bincount(of_key, counts)[of_key]
    return likely
