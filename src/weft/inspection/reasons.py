"""Contributions of each token of a text to a classifier's labels, by derivatives and by leaving it
out.

Derivatives are quotients of differences, which the plain NumPy pass computes in float64. Texts
without a token are read by what classifies on this machine, which is faster.

Shapes: L tokens of the text, N rows, C labels, E the width of a bag's vector, D d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.engine.ngrams import bag_means, lookups
from weft.engine.plain import PlainTransformer, linear
from weft.engine.plain_models import POOLINGS
from weft.engine.weights import Bag, ClassifierWeights, in_float64
from weft.predict.classifier import ClassifierModel

T = TypeVar("T")
Numbers: TypeAlias = NDArray[Any]  # in float64

# the part by which a vector is made longer: an error of the quotient is in proportion to it, and
# that of rounding to 1e-16 through it
_STEP = 2e-8
_TOKENS_AT_ONCE = 2048


@dataclass(frozen=True)
class Reasons:
    """A classifier and the ids of one text, bos first where the model wants it.

    `model` gives the same logits as the weights.
    """

    weights: ClassifierWeights
    model: ClassifierModel
    multi_label: bool
    row: Sequence[int]

    @cached_property
    def log_probs(self) -> Numbers:
        """Return each label's log-probability (C): to be the one, or, of several, to hold."""
        return self._log_probs(np.array([self.row]))[0]

    def quick_log_probs(self) -> Numbers:
        """Return nearly the same, by what classifies on this machine."""
        return self._log_softmax(self.model.logits(np.array([self.row])))[0]

    def left_out(self, fixed: int) -> Numbers:
        """Compute how far each label's log-probability falls where a token is missing (L, C).

        The first `fixed` tokens cannot be left out.
        """
        row = list(self.row)
        whole = self._log_softmax(self.model.logits(np.array([row])))
        falls = np.zeros((len(row), whole.shape[1]))
        if len(row) == 1:
            return falls
        rows = []
        for place in range(fixed, len(row)):
            before = row[:place]
            after = row[place + 1 :]
            rows.append(before + after)
        for some in self._parts(range(len(rows))):
            ids = np.array([rows[number] for number in some])
            rest = self._log_softmax(self.model.logits(ids))
            places = fixed + np.array(some)
            falls[places] = whole - rest
        return falls

    def gradient(self) -> Numbers:
        """Compute gradient times vector of each token, through the layers and through the bag
        (L, C).
        """
        total = self._of_layers()
        if self.weights.bag is not None:
            total += self._of_bag(self.weights.bag)
        return total

    def _of_layers(self) -> Numbers:
        """Compute by how much log-probabilities grow with the length of each token's vector."""
        ids = np.array(self.row)
        total = np.zeros((len(ids), len(self.log_probs)))
        encoder = self._exact.encoder
        if encoder is None:
            return total
        assert encoder.src is not None
        vectors = encoder.src.tokens[ids]
        for some in self._parts(range(len(ids))):
            places = np.array(some)
            longer = np.zeros((len(places), *vectors.shape))
            rows = np.arange(len(places))
            longer[rows, places] = vectors[places] * _STEP
            copies = np.tile(ids, (len(places), 1))
            above = self._log_probs(copies, longer)
            total[places] = (above - self.log_probs) / _STEP
        return total

    def _of_bag(self, bag: Bag) -> Numbers:
        """Compute each token's share in the bag; that of an n-gram is divided among its tokens.

        The bag is a mean, so that each vector's share is exact. Where none of the n-grams has a
        weight, as in a text of unknown words, nothing has a share.
        """
        ids = np.array([self.row])
        width = bag.tokens.shape[1]
        projection = self._exact.projection.weight[:, -width:]
        grads = self._grads() @ projection  # C E
        total = np.zeros((len(self.row), len(grads)))
        sum_of_weights = 0.0
        for lookup in lookups(bag, ids):
            rows = lookup.rows[0]
            weights = lookup.kept[0].astype(np.float64)
            if lookup.weights is not None:
                weights *= lookup.weights[rows]
            vectors = lookup.vectors[rows].astype(np.float64)
            shares = (vectors @ grads.T) * weights[:, None]
            sum_of_weights += weights.sum()
            for offset in range(lookup.n):
                total[offset : offset + len(shares)] += shares / lookup.n
        return total / (sum_of_weights or 1.0)

    def _grads(self) -> Numbers:
        """Return the derivative of each label's log-probability by each logit (C, C)."""
        probabilities = np.exp(self.log_probs)
        own = np.eye(len(probabilities))
        if self.multi_label:
            return own * (1 - probabilities)
        return own - probabilities

    def _parts(self, rows: Sequence[T]) -> list[Sequence[T]]:
        """Divide rows as long as the text into parts that fit into memory together."""
        size = max(1, _TOKENS_AT_ONCE // len(self.row))
        starts = range(0, len(rows), size)
        return [rows[start : start + size] for start in starts]

    def _log_probs(
        self, ids: NDArray[np.int64], beside: Numbers | None = None
    ) -> Numbers:
        """Return the log-probabilities (N, C) of rows (N, L); `beside` (N, L, D) is added to the
        vectors that enter the layers.
        """
        weights = self._exact
        parts = []
        if weights.encoder is not None:
            states = PlainTransformer(weights.encoder).encode(ids, beside=beside)
            parts.append(POOLINGS[weights.pooling](states, ids))
        if weights.bag is not None:
            parts.append(bag_means(weights.bag, ids).astype(np.float64))
        logits = linear(np.concatenate(parts, axis=1), weights.projection)
        return self._log_softmax(logits)

    def _log_softmax(self, logits: Numbers) -> Numbers:
        """Return the log-probability of each label, to be the one or to hold, by logits (N, C)."""
        exact = logits.astype(np.float64)
        if self.multi_label:
            return -np.logaddexp(0.0, -exact)
        total: Numbers = np.logaddexp.reduce(exact, axis=-1, keepdims=True)
        return exact - total

    @cached_property
    def _exact(self) -> ClassifierWeights:
        return in_float64(self.weights)
