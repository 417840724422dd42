"""A language model and a classifier in plain NumPy: the reference of the native ones.

Shapes: N texts, L new tokens of each; B texts, C labels; V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from weft.engine.ngrams import Ids, bag_means, beside
from weft.engine.plain import PAD_ID, Cache, PlainTransformer, linear
from weft.engine.weights import ClassifierWeights, Floats, Weights


@dataclass(frozen=True)
class WriterCache:
    """Texts under way: their keys and values, and their ids, which n-grams and matches reach back
    to.
    """

    past: Cache
    ids: Ids

    def until(self, length: int) -> "WriterCache":
        """Cut to the first `length` positions."""
        return WriterCache(self.past.until(length), self.ids[:, :length])


class PlainWriter:
    """A language model by its weights."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.model = PlainTransformer(weights)

    def prefill(self, ids: Ids) -> WriterCache:
        """Read beginnings of one length (N, L), without padding; L may be 0."""
        past = self.model.start(len(ids))
        start = WriterCache(past, ids[:, :0])
        if not ids.shape[1]:
            return start
        _, cache = self.decode(ids, start)
        return cache

    def decode(self, ids: Ids, cache: WriterCache) -> tuple[Floats, WriterCache]:
        """Read new tokens (N, L) after those in the cache; return the logits of what follows each
        (N, L, V), and the longer cache.
        """
        read = np.concatenate([cache.ids, ids], axis=1)
        vectors = beside(self.weights, read, ids.shape[1])
        states, past = self.model.decode(ids, cache.past, vectors)
        logits = self.model.output(states)
        return logits, WriterCache(past, read)


class PlainClassifier:
    """A classifier by its weights."""

    def __init__(self, weights: ClassifierWeights) -> None:
        self.weights = weights

    def logits(self, ids: Ids) -> Floats:
        """Return the logits of each label (B, C) for texts (B, L), which are filled up with 0 on
        the right.
        """
        weights = self.weights
        vectors = []
        if weights.encoder is not None:
            encoder = PlainTransformer(weights.encoder)
            states = encoder.encode(ids)
            pool = POOLINGS[weights.pooling]
            vectors.append(pool(states, ids))
        if weights.bag is not None:
            vectors.append(bag_means(weights.bag, ids))
        joined = np.concatenate(vectors, axis=1)
        return linear(joined, weights.projection)


def first_state(states: Floats, ids: Ids) -> Floats:
    """Return the first state of each text."""
    return states[:, 0]


def mean_state(states: Floats, ids: Ids) -> Floats:
    """Compute the mean of each text's states, those of padding left out; zeros where there are no
    others.
    """
    is_real = ids != PAD_ID
    real = states * is_real[:, :, None]
    total: Floats = real.sum(1)
    count = is_real.sum(1)
    divisor = np.maximum(count, 1)
    divisor = divisor.astype(np.float32)
    return total / divisor[:, None]


POOLINGS = {"first": first_state, "mean": mean_state}
