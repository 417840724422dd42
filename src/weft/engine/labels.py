"""A classifier's logits, read as `weft.engine.stream` reads those of tokens: the labels after each
part, and the share of each part, place and n-gram.

Pooled states are a mean, or the first, and a bag is a mean: so all of it is a sum, and exact.

Shapes: L tokens; C labels, K of them shown; D d_model; E the width of a bag's vector; G n-grams; R
rows of shares; P rows of a lens; H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.engine.ngrams import lookups
from weft.engine.plain import PlainTransformer
from weft.engine.plain_models import POOLINGS
from weft.engine.record import Record
from weft.engine.stream import (
    Ids,
    Numbers,
    Row,
    Traced,
    carried,
    embedding_shares,
    log_sum_exp,
    part_rows,
    traced,
)
from weft.engine.weights import Bag, ClassifierWeights, Floats


@dataclass(frozen=True, eq=False)
class BagPart:
    """The n-grams of one length in a bag: where they begin in the text, and what each adds to the
    mean (G, E).
    """

    n: int
    vectors: Numbers


@dataclass(frozen=True, eq=False)
class LabelPass:
    """A classifier at work on one text (L): a deep record, and what its bag is the sum of.

    `multi_label` says that each label is decided alone.
    """

    weights: ClassifierWeights
    ids: Ids
    multi_label: bool
    record: Record
    bag: list[BagPart]

    @cached_property
    def logits(self) -> Numbers:
        """Return the logits (C)."""
        states = []
        if self.weights.encoder is not None:
            parts = self.record.encoder_parts
            states.append(parts[-1].after)
        return self.logits_of(states, len(self.bag))

    def logits_of(self, states: Sequence[Floats], num_lengths: int) -> Numbers:
        """Return the logits (C) where the encoder stops at a state (1, L, D), if any, and the bag
        has its first lengths alone.
        """
        weights = self.weights
        vectors = []
        if weights.encoder is not None:
            vectors.append(self._pooled(states[0]))
        if weights.bag is not None:
            total = np.zeros(weights.bag.tokens.shape[1])
            for part in self.bag[:num_lengths]:
                total = total + part.vectors.sum(0)
            vectors.append(total)
        projection = weights.projection
        logits = np.concatenate(vectors) @ projection.weight.T.astype(np.float64)
        if projection.bias is not None:
            logits = logits + projection.bias
        return logits

    def _pooled(self, state: Floats) -> Numbers:
        encoder = self.weights.encoder
        assert encoder is not None
        states = PlainTransformer(encoder).final(state, encoder.encoder_norm)
        pool = POOLINGS[self.weights.pooling]
        pooled = pool(states, self.ids[None])
        return pooled[0].astype(np.float64)

    def probabilities(self, logits: Numbers) -> Numbers:
        """Return the probability of each label: to be the one, or, of several, to hold."""
        if self.multi_label:
            return np.exp(-np.logaddexp(0.0, -logits))
        return np.exp(logits - log_sum_exp(logits)[..., None])


def label_pass(
    weights: ClassifierWeights, ids: Sequence[int], multi_label: bool
) -> LabelPass:
    """Read a text, and record all of it."""
    record = Record(deep=True)
    row = np.array(ids)
    if weights.encoder is not None:
        PlainTransformer(weights.encoder).encode(row[None], record)
    bag = [] if weights.bag is None else _bag_parts(weights.bag, row)
    return LabelPass(weights, row, multi_label, record, bag)


def _bag_parts(bag: Bag, ids: Ids) -> list[BagPart]:
    """Return the n-grams of each length; what is unknown, and so has no weight, adds zeros."""
    found = []
    total = 0.0
    for lookup in lookups(bag, ids[None]):
        rows = lookup.rows[0]
        weights = lookup.kept[0].astype(np.float64)
        if lookup.weights is not None:
            weights = weights * lookup.weights[rows]
        total += weights.sum()
        vectors = lookup.vectors[rows] * weights[:, None]
        found.append((lookup.n, vectors))
    return [BagPart(n, vectors / (total or 1.0)) for n, vectors in found]


@dataclass(frozen=True, eq=False)
class LabelLens:
    """The probability of each label after each part (P, C)."""

    rows: list[Row]
    probabilities: Numbers


def label_lens(passed: LabelPass, order: Sequence[int]) -> LabelLens:
    """Project the pooled states after each part of the encoder, the bag left out; then add the bag,
    length by length of its n-grams. The last row is what the model itself said; `order` is that of
    the labels.
    """
    rows: list[Row] = []
    logits: list[Numbers] = []
    states = []
    encoder = passed.weights.encoder
    if encoder is not None:
        states = [passed.record.encoder_states[0]]
        states += [part.after for part in passed.record.encoder_parts]
        rows = [Row("embedding"), *part_rows(encoder.encoder)]
        logits = [passed.logits_of([state], 0) for state in states]
    for number, part in enumerate(passed.bag, start=1):
        rows.append(Row("bag", n=part.n))
        logits.append(passed.logits_of(states[-1:], number))
    probabilities = passed.probabilities(np.stack(logits))
    return LabelLens(rows, probabilities[:, list(order)])


@dataclass(frozen=True, eq=False)
class LabelShares:
    """The shares (K, R) of each row in the logit (K) of each label, above the "mean" of the labels,
    or where each is decided alone above "zero": `above` says which. Their sum differs from the
    logit by `error` at most.

    `places` (K, L) is what comes from each place of the encoder; `ngrams` has for each length n of
    a bag what each n-gram adds (K, G), the tokens themselves as n = 1. `carried` is what each head
    has written from each token into the first label's logit, (layers, H, L, L). None, or empty,
    where there is no such part.
    """

    rows: list[Row]
    values: Numbers
    logit: Numbers
    above: str
    error: float
    places: Numbers | None
    ngrams: list[tuple[int, Numbers]]
    carried: Numbers | None


def label_shares(passed: LabelPass, labels: Sequence[int]) -> LabelShares:
    """Divide the logits of labels among all that added to them; the last row has all biases."""
    weights = passed.weights
    readout, bias = _readout(passed, labels)
    rows: list[Row] = []
    values: list[Numbers] = []
    places = by_head = None
    if weights.encoder is not None:
        back = _back(passed, readout)
        rows, by_place = embedding_shares(
            weights.encoder, passed.ids, back.start, "encoder"
        )
        rows += [outlet.row for outlet in back.outlets]
        by_place += [outlet.share() for outlet in back.outlets]
        places = np.sum(by_place, axis=0)
        values = [each.sum(-1) for each in by_place]
        bias = bias + back.biases.sum(-1)
        by_head = carried(back.first(), "self", "encoder", passed.record)
    ngrams = []
    for part in passed.bag:
        width = part.vectors.shape[1]
        shares = readout[:, -width:] @ part.vectors.T
        ngrams.append((part.n, shares))
        rows.append(Row("bag", n=part.n))
        values.append(shares.sum(-1))
    rows.append(Row("biases"))
    values.append(bias)
    table = np.stack(values, axis=1)
    logit = _above(passed, labels)
    error = float(np.abs(table.sum(1) - logit).max())
    above = "zero" if passed.multi_label else "mean"
    return LabelShares(rows, table, logit, above, error, places, ngrams, by_head)


def _readout(passed: LabelPass, labels: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Return the direction of each label's logit among the vectors that are projected, (K, D + E),
    and its own bias (K).
    """
    projection = passed.weights.projection
    weight = projection.weight.astype(np.float64)
    bias = np.zeros(len(weight))
    if projection.bias is not None:
        bias = projection.bias.astype(np.float64)
    if not passed.multi_label:
        weight = weight - weight.mean(0)
        bias = bias - bias.mean()
    return weight[list(labels)], bias[list(labels)]


def _back(passed: LabelPass, readout: Numbers) -> Traced:
    """Take the directions of labels back through pooling and encoder."""
    encoder = passed.weights.encoder
    assert encoder is not None
    length = len(passed.ids)
    shape = len(readout), length, encoder.d_model
    direction = np.zeros(shape)
    pooled = readout[:, None, : encoder.d_model]
    if passed.weights.pooling == "first":
        direction[:, :1] = pooled
    else:
        direction[:] = pooled / length
    return traced(encoder, "encoder", passed.record, direction)


def _above(passed: LabelPass, labels: Sequence[int]) -> Numbers:
    mean = 0.0 if passed.multi_label else passed.logits.mean()
    return passed.logits[list(labels)] - mean
