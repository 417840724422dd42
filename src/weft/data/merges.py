"""The pairs that byte-pair encoding joined in a word (Sennrich et al. 2016, section 3.2)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

Pair: TypeAlias = tuple[str, str]


def merge_ranks(merges: Sequence[Sequence[str]]) -> dict[Pair, int]:
    """Return the place of each pair in the order in which they were learned."""
    return {(left, right): rank for rank, (left, right) in enumerate(merges)}


def merges_of(word: str, ranks: Mapping[Pair, int]) -> list[Pair]:
    """Return the pairs that are joined in a word, in their order: the pair that was learned first,
    of equal ones the leftmost, until no pair is known.
    """
    pieces = list(word)
    never = len(ranks)
    found: list[Pair] = []
    while True:
        pairs = list(pairwise(pieces))
        found_ranks = [ranks.get(pair, never) for pair in pairs]
        best = min(found_ranks, default=never)
        if best == never:
            return found
        place = found_ranks.index(best)
        pair = pairs[place]
        end = place + 2
        found.append(pair)
        pieces[place:end] = ["".join(pair)]
