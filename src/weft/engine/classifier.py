"""A classifier without PyTorch: the native engine's states of a text, pooled, and its n-grams.

Shapes: B texts of L tokens; D d_model; E the width of a text's vector; C labels.
"""

import numpy as np

from weft.engine.bindings import Engine, Session
from weft.engine.ngrams import PAD_ID, Ids, bag_means
from weft.engine.weights import ClassifierWeights, Floats, Linear
from weft.kernels.native import UnavailableError


def native_classifier_of(weights: ClassifierWeights) -> "NativeClassifier | None":
    """Return the engine's form of a classifier; None where there is none on this machine."""
    try:
        return NativeClassifier(weights)
    except UnavailableError:
        return None


class NativeClassifier:
    """A classifier by its weights, for any number of threads.

    The logits of a text are the same bit for bit whatever stands beside it.
    """

    def __init__(self, weights: ClassifierWeights) -> None:
        """Pack the weights of the encoder, if there is one.

        Raises UnavailableError where there is no native library, or none for these weights.
        """
        self.weights = weights
        self.engine = None if weights.encoder is None else Engine(weights.encoder)
        # sessions that no thread uses now
        self._idle: list[Session] = []

    def logits(self, ids: Ids) -> Floats:
        """Return the logits of each label (B, C) for texts (B, L), which are filled up with 0 on
        the right. Raises MemoryError.
        """
        parts = []
        if self.engine is not None:
            parts.append(self._pooled(self.engine, ids))
        if self.weights.bag is not None:
            parts.append(bag_means(self.weights.bag, ids))
        vectors = np.concatenate(parts, axis=1)
        return _projected(vectors, self.weights.projection)

    def _pooled(self, engine: Engine, ids: Ids) -> Floats:
        """Return the mean of each text's states, or the first of them, (B, D); zeros for a text
        without tokens.
        """
        is_real = ids != PAD_ID
        counts = is_real.sum(1)
        ends = np.cumsum(counts)
        real = ids[is_real]
        states = self._states(engine, real, ends)
        texts = np.flatnonzero(counts)
        begins = ends - counts
        begins = begins[texts]
        shape = len(ids), engine.d_model
        pooled = np.zeros(shape, np.float32)
        if not len(texts):
            return pooled
        if self.weights.pooling == "first":
            pooled[texts] = states[begins]
            return pooled
        sums = np.add.reduceat(states, begins, axis=0)
        lengths = counts[texts]
        lengths = lengths.astype(np.float32)
        pooled[texts] = sums / lengths[:, None]
        return pooled

    def _states(self, engine: Engine, ids: Ids, ends: Ids) -> Floats:
        """Return the states of texts that lie end to end, by a session that no other thread has."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = engine.session(0, 1)
        tokens = ids.astype(np.int32)
        states = session.states(tokens, ends)
        self._idle.append(session)
        return states


def _projected(vectors: Floats, projection: Linear) -> Floats:
    """Project vectors (B, E) to logits (B, C), each by a product of its own: how a product of
    several rows adds up depends on how many there are.
    """
    rows = vectors[:, None]
    products = rows @ projection.weight.T
    products = products[:, 0]
    return products if projection.bias is None else products + projection.bias
