"""Vectors of n-grams in NumPy: sums at the positions of a text, and the mean of a whole text.

`weft.model.ngrams` explains them, and learns them.

Shapes: B texts of L tokens, G n-grams each; N rows of T tokens read, the last L of them new; D
d_model; R rows of a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.engine.weights import Bag, Floats, Matches, Ngrams, Weights

PAD_ID = 0
# a Mersenne prime; below it, the product of two numbers fits into 63 bits
PRIME = 2**31 - 1
# spreads pairs evenly modulo PRIME, by the spectral test of Fishman and Moore 1986
MULTIPLIER = 742_938_285

Ids: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


def ngram_hashes(
    ids: Ids,
    n: int,
    buckets: int,
) -> tuple[Ids, Flags]:
    """Hash each n-gram of each text (B, L) to a bucket, and say which are real: those without
    padding, (B, G) each; G = L - n + 1.

    h begins with n; each id makes it (h * MULTIPLIER + id) mod PRIME, and the bucket is h mod
    `buckets`: the polynomial hash of Karp and Rabin 1987. Ids must be below 2^31.
    """
    num_ngrams = max(ids.shape[1] - n + 1, 0)
    shape = len(ids), num_ngrams
    hashes = np.full(shape, n, np.int64)
    valid = np.ones(shape, np.bool_)
    for offset in range(n):
        end = offset + num_ngrams
        window = ids[:, offset:end]
        hashes *= MULTIPLIER
        hashes += window
        hashes %= PRIME
        valid &= window != PAD_ID
    hashes %= buckets
    return hashes, valid


# Beside the tokens of a language model
# --------------------------------------------------------------------------------------


def beside(weights: Weights, read: Ids, length: int) -> Floats | None:
    """Sum the vectors of n-grams and matches at the last `length` of the tokens read (N, T), to
    (N, L, D); None where the model has none.
    """
    if weights.ngrams is None and weights.matches is None:
        return None
    assert weights.tgt is not None
    shape = len(read), length, weights.d_model
    total = np.zeros(shape, weights.tgt.tokens.dtype)
    if weights.ngrams is not None:
        _add_ngrams(total, weights.ngrams, read)
    if weights.matches is not None:
        _add_matches(total, weights.matches, read)
    return total


def parts_beside(
    weights: Weights, read: Ids, length: int
) -> Iterator[tuple[str, int, Floats]]:
    """Yield the parts of the sum of `beside`: "ngrams" or "matches", the n of them, and their
    vectors (N, L, D).
    """
    assert weights.tgt is not None
    shape = len(read), length, weights.d_model
    dtype = weights.tgt.tokens.dtype
    if weights.ngrams is not None:
        for n in range(2, weights.ngrams.longest + 1):
            vectors = np.zeros(shape, dtype)
            _add_ngrams_of(n, vectors, weights.ngrams, read)
            yield "ngrams", n, vectors
    if weights.matches is not None:
        for place, n in enumerate(weights.matches.lengths):
            vectors = np.zeros(shape, dtype)
            _add_matches_of(place, vectors, weights.matches, read)
            yield "matches", n, vectors


def _add_ngrams(total: Floats, table: Ngrams, read: Ids) -> None:
    """Add the vectors of the n-grams that end at each of the last tokens."""
    for n in range(2, table.longest + 1):
        _add_ngrams_of(n, total, table, read)


def _add_ngrams_of(n: int, total: Floats, table: Ngrams, read: Ids) -> None:
    rows, kept = _ending(read, total.shape[1], n, len(table.vectors))
    real = rows[kept]
    total[kept] += table.vectors.take(real, axis=0)


def _add_matches(total: Floats, table: Matches, read: Ids) -> None:
    """Add the vectors of what followed the last match of each of the last tokens.

    A match of length n is an earlier place where the same n tokens ended.
    """
    for place in range(len(table.lengths)):
        _add_matches_of(place, total, table, read)


def _add_matches_of(place: int, total: Floats, table: Matches, read: Ids) -> None:
    """Add those of the length that stands at this place in the table's lengths."""
    first = read.shape[1] - total.shape[1]
    vocab_size = len(table.vectors) // len(table.lengths)
    behind = _behind_match(read, table.lengths[place])
    behind = behind[:, first:]
    followers = np.take_along_axis(read, behind, axis=1)
    kept = behind > 0
    rows = followers[kept] + place * vocab_size
    total[kept] += table.vectors.take(rows, axis=0)


def _behind_match(read: Ids, n: int) -> Ids:
    """Return for each token the place behind the last match of the n tokens that end there, (N, T);
    0 where there is none.
    """
    length = read.shape[1]
    hashes, valid = _ending(read, length, n, PRIME)
    # what is not real gets a number of its own, so that it matches nothing
    unlike_all = -1 - np.arange(length)
    keys = np.where(valid, hashes, unlike_all)
    # places with equal keys stand beside each other, in their order
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    later = order[:, 1:]
    earlier = order[:, :-1]
    is_match = np.diff(ordered) == 0
    place = np.where(is_match, earlier + 1, 0)
    behind = np.zeros_like(read)
    np.put_along_axis(behind, later, place, axis=1)
    return behind


def _ending(
    read: Ids,
    length: int,
    n: int,
    buckets: int,
) -> tuple[Ids, Flags]:
    """Hash the n-grams that end at each of the last tokens, and say which are real, (N, L) each."""
    needed = length + n - 1
    first = read.shape[1] - needed
    known = read[:, max(first, 0) :]
    # a text begins with padding, which no real n-gram has
    missing = max(-first, 0)
    around = (0, 0), (missing, 0)
    reached = np.pad(known, around, constant_values=PAD_ID)
    return ngram_hashes(reached, n, buckets)


# The bag of a classifier
# --------------------------------------------------------------------------------------


def bag_means(bag: Bag, ids: Ids) -> Floats:
    """Compute the weighted mean of the vectors of each text's tokens and n-grams, (B, D); zeros for
    a text without any.
    """
    num_texts = len(ids)
    width = bag.tokens.shape[1]
    total = np.zeros((num_texts, width), np.float32)
    weight = np.zeros(num_texts, np.float32)
    for lookup in lookups(bag, ids):
        counts = lookup.kept.sum(1)
        texts = np.flatnonzero(counts)
        if not len(texts):
            continue
        ends = np.cumsum(counts)
        begins = ends - counts
        begins = begins[texts]
        rows = lookup.rows[lookup.kept]
        values = lookup.vectors.take(rows, axis=0)
        if lookup.weights is None:
            weight += counts
        else:
            weights = lookup.weights.take(rows)
            values *= weights[:, None]
            weight[texts] += np.add.reduceat(weights, begins)
        total[texts] += np.add.reduceat(values, begins, axis=0)
    least = np.finfo(np.float32).tiny
    divisor = np.maximum(weight, least)
    mean: Floats = np.divide(total, divisor[:, None])
    return mean


@dataclass(frozen=True)
class Lookup:
    """The rows (B, G) of a table that texts have for n-grams of one length, and which are kept.

    `weights` are those of the table's rows; None where all weigh 1.
    """

    n: int
    vectors: Floats
    weights: Floats | None
    rows: Ids
    kept: Flags


def lookups(bag: Bag, ids: Ids) -> Iterator[Lookup]:
    """Yield the rows of the tokens, then of the n-grams of each length."""
    is_real = ids != PAD_ID
    yield Lookup(1, bag.tokens, bag.token_weights, ids, is_real)
    if bag.hashed is None:
        return
    vectors = bag.hashed.vectors
    for n in range(2, bag.hashed.longest + 1):
        rows, kept = ngram_hashes(ids, n, len(vectors))
        yield Lookup(n, vectors, bag.hashed_weights, rows, kept)
