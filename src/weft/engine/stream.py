"""The residual stream, read: the tokens that the model would write after each part (the logit
lens), and the share of a logit that each part has written.

A logit is a direction times the last state. Sublayers only add to the stream, and a norm whose
scale is held as this pass computed it (frozen) is a linear map; so the direction can be carried
back to every sum, wherever the norms stand, and the shares of all that was added make up the logit.
Lens: nostalgebraist 2020, "interpreting GPT: the logit lens". Shares: Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits".

It is computed in float64, from what the plain pass recorded; it is the reference of faster ones.

Shapes: L positions of a tower, T of them where a token is written; S source positions; D d_model; H
heads; d head_dim; V vocabulary; R rows of shares; P rows of a lens. `...` are any more dimensions
before: labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.engine.ngrams import beside, parts_beside
from weft.engine.plain import PlainTransformer, quietly
from weft.engine.record import Look, Part, Record
from weft.engine.weights import Floats, Layer, Linear, Norm, Weights

Numbers: TypeAlias = NDArray[Any]  # in float64
Ids: TypeAlias = NDArray[np.int64]

BOS_ID = 2
NUM_LEADING = 3
"""The tokens that a lens has at each place."""


@dataclass(frozen=True)
class Row:
    """A part of a model: of a `layer`, from 0, or of n-grams of `n` tokens."""

    part: str
    layer: int | None = None
    n: int | None = None


# A pass
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pass:
    """The plain Transformer at work on one text in one step: the ids that the decoder read (T), a
    deep record, and the logits (T, V) of what follows each.
    """

    weights: Weights
    ids: Ids
    record: Record
    logits: Floats

    @cached_property
    def log_total(self) -> Numbers:
        """Return the logarithm of the sum of each place's exponentials (T)."""
        return log_sum_exp(self.logits)


def translation_pass(
    weights: Weights, src: Sequence[int], tgt_in: Sequence[int]
) -> Pass:
    """Read a source and what the decoder reads, bos first, and record all of it."""
    record = Record(deep=True)
    model = PlainTransformer(weights)
    cache = model.prefill(np.array([src]), record)
    ids = np.array(tgt_in)
    states, _ = model.decode(ids[None], cache, record=record)
    return Pass(weights, ids, record, model.output(states[0]))


def language_pass(weights: Weights, ids: Sequence[int]) -> Pass:
    """Read a text, and record all of it."""
    record = Record(deep=True)
    model = PlainTransformer(weights)
    batch = np.array([ids])
    others = beside(weights, batch, len(ids))
    states, _ = model.decode(batch, model.start(1), others, record)
    return Pass(weights, batch[0], record, model.output(states[0]))


def log_sum_exp(logits: Numbers | Floats) -> Numbers:
    """Compute log(sum(exp(x))) over the last dimension."""
    largest = logits.max(-1, keepdims=True)
    powers = np.exp(logits - largest)
    sums = powers.sum(-1, dtype=np.float64)
    total: Numbers = np.log(sums)
    return total + largest[..., 0]


# What the model would say after each part
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lens:
    """The most probable tokens after each part, `ids` and `probabilities` (P, T, 3), and there the
    probability of what was `written` in the end (P, T).
    """

    rows: list[Row]
    ids: Ids
    probabilities: Numbers
    written: Numbers


def lens(passed: Pass, written: Sequence[int]) -> Lens:
    """Apply the last norm, if there is one, and the output's matrix to the stream after each part.

    `written` are the tokens (T) that were chosen. The last row is what the model itself said.
    """
    model = PlainTransformer(passed.weights)
    record = passed.record
    rows = [Row("embedding"), *part_rows(passed.weights.decoder)]
    norm = passed.weights.decoder_norm
    states = [record.decoder_states[0]]
    states += [part.after for part in record.decoder_parts[:-1]]
    said = []
    for state in states:
        last = model.final(state[0], norm)
        said.append(model.output(last))
    return lens_of([*said, passed.logits], rows, written)


def lens_of(logits: Sequence[Floats], rows: list[Row], written: Sequence[int]) -> Lens:
    """Return the lens by the logits (T, V) after each part."""
    places = np.arange(len(written))
    chosen = list(written)
    ids = []
    probabilities = []
    own = []
    for each in logits:
        leading, tops = _leading(each)
        total = log_sum_exp(each)
        ids.append(leading)
        probabilities.append(np.exp(tops - total[:, None]))
        own.append(np.exp(each[places, chosen] - total))
    return Lens(
        rows,
        np.stack(ids),
        np.stack(probabilities),
        np.stack(own),
    )


def _leading(logits: Floats) -> tuple[Ids, Floats]:
    """Return the ids and logits (T, 3) of the most probable tokens, of equal ones the lower id."""
    left = logits.copy()
    places = np.arange(len(logits))
    found = []
    for _ in range(min(NUM_LEADING, logits.shape[1])):
        best = left.argmax(-1)
        left[places, best] = -np.inf
        found.append(best)
    ids = np.stack(found, axis=-1)
    return ids, np.take_along_axis(logits, ids, axis=-1)


def part_rows(layers: Sequence[Layer]) -> list[Row]:
    """Return a row for each sublayer, in the order of the stream."""
    return [
        Row(name, number)
        for number, layer in enumerate(layers)
        for name, _ in _sublayers(layer)
    ]


def _sublayers(layer: Layer) -> list[tuple[str, Linear]]:
    """Name a layer's sublayers, each with the last of its maps, which writes to the stream."""
    cross = layer.cross_attention
    between = [] if cross is None else [("cross", cross.output)]
    first = ("self", layer.self_attention.output)
    return [first, *between, ("feed-forward", layer.outer)]


# Backwards
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outlet:
    """A sublayer's last map, and the `direction` (..., L, D) by which what it writes counts."""

    row: Row
    part: Part
    output: Linear
    direction: Numbers

    def share(self) -> Numbers:
        """Compute the share (..., L) of what it has written, without its bias."""
        written = self.part.written[0].astype(np.float64)
        if self.output.bias is not None:
            written = written - self.output.bias
        return dot(self.direction, written)

    def bias(self) -> Numbers:
        """Compute the share (..., L) of its bias."""
        if self.output.bias is None:
            return np.zeros(self.direction.shape[:-1])
        return self.direction @ self.output.bias.astype(np.float64)

    @quietly
    def carried(self, weights: Floats, look: Look) -> Numbers:
        """Compute for an attention what each head has written from each key, (..., H, L, keys):
        the attention weight times the share of the value. Their sum is the share.
        """
        values = look.value[0].astype(np.float64)  # H keys d
        num_heads = len(values)
        shape = *self.direction.shape[:-1], num_heads, -1
        weight = self.output.weight.astype(np.float64)
        by_head = self.direction @ weight
        by_head = by_head.reshape(shape)
        by_head = by_head.swapaxes(-2, -3)  # ... H L d
        of_values = by_head @ values.swapaxes(-1, -2)
        return of_values * weights[0]


@dataclass(frozen=True, eq=False)
class Traced:
    """A direction, carried back through a tower: its outlets in the stream's order, the `start`, by
    which the embeddings count, before their norm, if any, (..., L, D), and the share (..., L) of
    all biases.
    """

    outlets: list[Outlet]
    start: Numbers
    biases: Numbers

    def first(self) -> "Traced":
        """Keep the first of several directions alone."""
        outlets = []
        for outlet in self.outlets:
            direction = outlet.direction[0]
            outlets.append(replace(outlet, direction=direction))
        return Traced(outlets, self.start[0], self.biases[0])


def traced(weights: Weights, tower: str, record: Record, direction: Numbers) -> Traced:
    """Take a direction (..., L, D) back from the tower's output to its embeddings."""
    back = _Back(weights, direction)
    if tower == "encoder":
        side, layers, parts = weights.src, weights.encoder, record.encoder_parts
        back.through(weights.encoder_norm, record.encoder_states[-1])
    else:
        side, layers, parts = weights.tgt, weights.decoder, record.decoder_parts
        back.through(weights.decoder_norm, record.decoder_states[-1])
    outlets = []
    places = list(_places(layers, parts))
    for row, layer, number, part, output in reversed(places):
        outlet = back.past(row, layer, number, part, output)
        outlets.append(outlet)
    outlets.reverse()
    assert side is not None
    back.through(side.norm, record.sums[tower])
    return Traced(outlets, back.direction, back.biases)


def _places(
    layers: Sequence[Layer], parts: Sequence[Part]
) -> Iterator[tuple[Row, Layer, int, Part, Linear]]:
    """Yield each recorded sublayer with its layer, its number in it, and its last map."""
    recorded = iter(parts)
    for place, layer in enumerate(layers):
        for number, (name, output) in enumerate(_sublayers(layer)):
            yield Row(name, place), layer, number, next(recorded), output


class _Back:
    """A direction that goes backwards, and the share of the biases that it has passed."""

    def __init__(self, weights: Weights, direction: Numbers) -> None:
        self.weights = weights
        self.direction = direction
        self.biases = np.zeros(direction.shape[:-1])

    def past(
        self, row: Row, layer: Layer, number: int, part: Part, output: Linear
    ) -> Outlet:
        """Return the outlet of a sublayer, and leave its connection behind."""
        if not self.weights.norm_first:
            entered = part.before + part.written
            self.through(layer.norms[number], entered)
        stream = self.direction
        if layer.after:
            # only what is added passes this norm, the stream goes by
            self.through(layer.after[number], part.written)
        outlet = Outlet(row, part, output, self.direction)
        self.biases += outlet.bias()
        self.direction = stream
        return outlet

    def through(self, norm: Norm | None, x: Floats) -> None:
        """Leave a norm behind, whose scale is that of what entered it (1, L, D)."""
        if norm is None:
            return
        if norm.bias is not None:
            self.biases += self.direction @ norm.bias.astype(np.float64)
        entered = x[0].astype(np.float64)
        is_centred = self.weights.norm == "layer"
        direction = self.direction * norm.gain
        if is_centred:
            entered = entered - entered.mean(-1, keepdims=True)
            direction = direction - direction.mean(-1, keepdims=True)
        mean_square = np.square(entered).mean(-1, keepdims=True)
        self.direction = direction / np.sqrt(mean_square + self.weights.eps)


def dot(direction: Numbers, vectors: Numbers | Floats) -> Numbers:
    """Compute the product (..., L) of each direction (..., L, D) and its vector (L, D)."""
    product: Numbers = np.einsum("...d,...d->...", direction, vectors)
    return product


# The shares of written tokens
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shares:
    """The shares (R, T) of each row in the logit (T) of each written token, above the mean logit of
    the vocabulary. Their sum differs from the logit by `error` at most.

    `source` (T) is what the looks at the source have written, and `tokens` (T, S) the same by its
    tokens; None where there is no source.
    `carried` has for "cross" (layers, H, T, S) and "decoder" (layers, H, T, T) what each head has
    written from each key.
    """

    rows: list[Row]
    values: Numbers
    logit: Numbers
    error: float
    source: Numbers | None
    tokens: Numbers | None
    carried: dict[str, Numbers]


@quietly
def shares(passed: Pass, written: Sequence[int]) -> Shares:
    """Divide the logits of the tokens (T) that were written among all that added to them.

    The last row, `biases`, has all biases: those of norms too.
    """
    weights = passed.weights
    readout = _readout(weights, written)
    back = traced(weights, "decoder", passed.record, readout)
    rows, values = embedding_shares(weights, passed.ids, back.start)
    for outlet in back.outlets:
        rows.append(outlet.row)
        values.append(outlet.share())
    rows.append(Row("biases"))
    values.append(back.biases + _own_bias(weights, written))
    table = np.stack(values)
    logit = _above_mean(passed, written)
    differences = np.abs(table.sum(0) - logit)
    error = differences.max()
    by_head = {"decoder": carried(back, "self", "decoder", passed.record)}
    source = tokens = None
    if weights.src is not None:
        by_head["cross"] = carried(back, "cross", "cross", passed.record)
        tokens = by_head["cross"].sum((0, 1))
        source = np.zeros(len(written))
        for outlet in back.outlets:
            if outlet.row.part == "cross":
                source += outlet.share()
    return Shares(rows, table, logit, float(error), source, tokens, by_head)


@quietly
def source_shares(weights: Weights, src: Sequence[int], tgt: Sequence[int]) -> Numbers:
    """Compute what the looks at each source token have written of each target token's logit above
    the mean of the vocabulary (T, S): the sum over all layers and heads.

    `src` ends with eos, as the model reads it; `tgt` is what was written, without bos.
    """
    return source_looks(weights, src, tgt)[0]


def source_looks(
    weights: Weights, src: Sequence[int], tgt: Sequence[int]
) -> tuple[Numbers, Numbers]:
    """Compute the shares of source tokens (T, S), and how even the looks were that wrote them (T).

    That is the mean entropy of the weights, each counted by what its head carried, as a share of
    the most possible.
    """
    passed = translation_pass(weights, src, [BOS_ID, *tgt[:-1]])
    readout = _readout(weights, tgt)
    back = traced(weights, "decoder", passed.record, readout)
    by_head = carried(back, "cross", "cross", passed.record)
    looks = np.concatenate(passed.record.cross)  # layers H T S
    shares: Numbers = by_head.sum((0, 1))
    if len(src) == 1:
        return shares, np.zeros(len(tgt))
    return shares, _evenness(looks.astype(np.float64), by_head)


def _evenness(looks: Numbers, by_head: Numbers) -> Numbers:
    """Compute how even looks (layers, H, T, S) were, each counted by what it carried."""
    smallest = np.finfo(np.float64).tiny
    above_0 = np.maximum(looks, smallest)
    products = looks * np.log(above_0)
    entropies = -products.sum(-1)
    sizes = np.abs(by_head)
    counts = sizes.sum(-1)
    weighted = counts * entropies
    even = weighted.sum((0, 1))
    carried_in_all = counts.sum((0, 1))
    most = carried_in_all * np.log(looks.shape[-1])
    divisor = np.maximum(most, smallest)
    evenness: Numbers = even / divisor
    return evenness


def embedding_shares(
    weights: Weights, ids: Ids, direction: Numbers, tower: str = "decoder"
) -> tuple[list[Row], list[Numbers]]:
    """Divide what the embeddings of ids (L) count for by a direction (..., L, D) among tokens,
    positions, n-grams and matches.
    """
    side = weights.tgt if tower == "decoder" else weights.src
    assert side is not None
    scale = np.float64(weights.embedding_scale)
    rows = [Row("token")]
    tokens = side.tokens[ids] * scale
    values = [dot(direction, tokens)]
    if side.positions is not None:
        rows.append(Row("positions"))
        positions = side.positions[: len(ids)]
        values.append(dot(direction, positions))
    if tower == "decoder":
        for part, n, vectors in parts_beside(weights, ids[None], len(ids)):
            rows.append(Row(part, n=n))
            scaled = vectors[0] * scale
            values.append(dot(direction, scaled))
    return rows, values


def _readout(weights: Weights, written: Sequence[int]) -> Numbers:
    """Return the direction (T, D) of each token's logit above the mean."""
    projection = weights.projection
    assert projection is not None
    mean = projection.weight.mean(0, dtype=np.float64)
    return projection.weight[list(written)] - mean


def _own_bias(weights: Weights, written: Sequence[int]) -> Numbers:
    projection = weights.projection
    assert projection is not None
    if projection.bias is None:
        return np.zeros(len(written))
    bias = projection.bias.astype(np.float64)
    return bias[list(written)] - bias.mean()


def _above_mean(passed: Pass, written: Sequence[int]) -> Numbers:
    places = np.arange(len(written))
    mean = passed.logits.mean(-1, dtype=np.float64)
    return passed.logits[places, list(written)] - mean


def carried(back: Traced, part: str, kind: str, record: Record) -> Numbers:
    """Collect what the heads of each layer's "self" or "cross" have carried (..., layers, H, L,
    keys); `kind` is that of the attention in the record.
    """
    maps = getattr(record, kind)
    found = []
    for outlet in back.outlets:
        if outlet.row.part == part:
            number = outlet.row.layer
            assert number is not None
            look = record.looks[kind][number]
            found.append(outlet.carried(maps[number], look))
    return np.stack(found)
