"""Hashed n-grams, matches and bags as operations of a graph; `weft.engine.ngrams` explains them.

Shapes: N rows of T ids read, the last L of them new; D d_model; R rows of a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.config import CausalSection, ClassifierSection
from weft.engine.ngrams import MULTIPLIER, PAD_ID, PRIME
from weft.ship.onnx.graph import Graph, Value


@dataclass(frozen=True)
class Reading:
    """Ids (N, T) that were read, padding among them, and how many of them, the last, are new."""

    ids: Value
    length: Value

    def newest(self, x: Value) -> Value:
        """Return what of x (N, T) belongs to the new ids, (N, L)."""
        first = self.ids.size(1) - self.length
        return x.part(1, first)


def beside(reading: Reading, shape: CausalSection, vocab_size: int) -> Iterator[Value]:
    """Yield what a language model adds to the vectors of new tokens, (N, L, D) each."""
    graph = reading.ids.graph
    if shape.ngrams > 1:
        table = graph.weight("ngrams.hashed.weight")
        for n in range(2, shape.ngrams + 1):
            rows, real = ending(reading.ids, n, shape.ngram_buckets)
            new = reading.newest(rows)
            yield _chosen(table, new, reading.newest(real))
    if shape.match_lengths:
        table = graph.weight("matches.followers.weight")
        for number, n in enumerate(shape.match_lengths):
            followers, known = _followers(reading, n)
            first = number * vocab_size
            yield _chosen(table, followers + first, known)


def bag_mean(ids: Value, shape: ClassifierSection) -> Value:
    """Return the mean (N, D) of the vectors of the tokens and n-grams of texts, a weighted one
    where the model has weights; zeros of a text without any.
    """
    graph = ids.graph
    parts = [_part_of_bag(graph, lookup) for lookup in _lookups(ids, shape)]
    total, weight = parts[0]
    for vectors, weights in parts[1:]:
        total = total + vectors
        weight = weight + weights
    tiny = np.finfo(np.float32).tiny
    least = graph.number(float(tiny))
    divisor = graph.op("Max", weight, least)
    return total / divisor.unsqueezed(1)


@dataclass(frozen=True)
class _Lookup:
    """Rows of a table that texts have, and which of them are real, (N, T) each; `weights` names
    those of the table's rows.
    """

    table: str
    weights: str
    rows: Value
    real: Value


def _lookups(ids: Value, shape: ClassifierSection) -> Iterator[_Lookup]:
    """Yield the rows of the tokens, then of the n-grams of each length."""
    is_text = ids > PAD_ID
    yield _Lookup("bag.tokens.weight", "bag.token_weights", ids, is_text)
    for n in range(2, shape.ngrams + 1):
        rows, real = ending(ids, n, shape.ngram_buckets)
        yield _Lookup("bag.hashed.weight", "bag.hashed_weights", rows, real)


def _part_of_bag(graph: Graph, lookup: _Lookup) -> tuple[Value, Value]:
    """Sum the weighted vectors that a text has, and their weights."""
    rows = lookup.rows
    each = lookup.real.to("float32")
    if graph.has(lookup.weights):
        weights = graph.weight(lookup.weights)
        each = each * weights.rows(rows)
    table = graph.weight(lookup.table)
    vectors = table.rows(rows) * each.unsqueezed(2)
    return vectors.sum(1), each.sum(1)


def ending(ids: Value, n: int, buckets: int) -> tuple[Value, Value]:
    """Return the bucket of the n-gram that ends at each id, and whether it is real: without
    padding, and not begun before the first id.

    The hash is that of Karp and Rabin 1987, in whole numbers of 64 bits as in Weft.
    """
    graph = ids.graph
    before = graph.ints(0, n - 1, 0, 0)
    reached = graph.op("Pad", ids, before, PAD_ID)
    length = ids.size(1)
    hashed = real = None
    for offset in range(n):
        start = graph.ints(offset)
        window = reached.part(1, start, length + start)
        so_far = n * MULTIPLIER if hashed is None else hashed * MULTIPLIER
        hashed = (window + so_far) % PRIME
        is_text = window > PAD_ID
        real = is_text if real is None else real & is_text
    assert hashed is not None
    assert real is not None
    return hashed % buckets, real


def _followers(reading: Reading, n: int) -> tuple[Value, Value]:
    """Return for each new id what followed the last match of the n ids that end there, and whether
    there was one. A match is an earlier place where the same n ids ended.
    """
    ids = reading.ids
    graph = ids.graph
    hashes, real = ending(ids, n, PRIME)
    length = ids.size(1)
    place = graph.range(graph.ints(0), length)
    new_place = place.part(0, length - reading.length)
    # each new place beside all places, (N, L, T)
    new_hash = reading.newest(hashes).unsqueezed(2)
    is_same = graph.op("Equal", new_hash, hashes.unsqueezed(1))
    new_real = reading.newest(real).unsqueezed(2)
    both_real = new_real & real.unsqueezed(1)
    is_earlier = new_place.unsqueezed(1) > place
    is_match = is_same & both_real & is_earlier
    behind = graph.op("Where", is_match, place + 1, 0).largest()
    followers = graph.op("GatherElements", ids, behind, axis=1)
    return followers, behind > 0


def _chosen(table: Value, rows: Value, real: Value) -> Value:
    """Return rows of a table (N, L, D), zeros where they are not real."""
    kept = real.to("float32")
    return table.rows(rows) * kept.unsqueezed(2)
