"""The pass of a Transformer in plain NumPy: each of its operations once, on whole arrays.

It is the reference of the native library, which computes the same faster. With weights in float64
all is computed in float64. The positions come with the weights (`weft.predict.weights`).

Shapes: N rows; S source positions; L new positions, T with those before them; D d_model; H heads;
d head_dim; V vocabulary. Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.engine.record import Look, Part, Record
from weft.engine.weights import (
    Attention,
    Floats,
    Layer,
    Linear,
    Norm,
    Side,
    Weights,
)

PAD_ID = 0
# so large a negative score makes a weight zero; it is finite, as a row of -inf would become NaN
_HIDDEN = -1e38
_ROOT_OF_2 = math.sqrt(2)

# for products: the libraries that compute them may take in what lies beside a small matrix, and
# then say that something was no number
quietly = np.errstate(invalid="ignore")

_exact_erf = np.vectorize(math.erf, otypes=[np.float64])

Ids: TypeAlias = NDArray[np.integer]
Flags: TypeAlias = NDArray[np.bool_]
Angles: TypeAlias = tuple[Floats, Floats]
"""The cosines and sines of each position's angles, (L, d / 2) each."""
Sublayer: TypeAlias = Callable[[Floats], Floats]


# Operations
# --------------------------------------------------------------------------------------


@quietly
def linear(x: Floats, layer: Linear) -> Floats:
    """Compute x W^T + b."""
    product = x @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


def softmax(scores: Floats) -> Floats:
    """Compute the softmax of each row of scores."""
    # The largest is subtracted, so that no exponential is infinite; the quotient stays the same.
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - largest)
    total = powers.sum(-1, keepdims=True)
    return powers / total


@quietly
def attention(
    query: Floats, key: Floats, value: Floats, mask: Flags | None
) -> tuple[Floats, Floats]:
    """Compute softmax(Q K^T / sqrt(d)) V (equation 1), and the weights, which are the softmax.

    query (N, H, L, d), key and value (N, H, T, d); weights (N, H, L, T). `mask` is True where a
    query may attend, to one key at least; None: everywhere.
    """
    head_dim = query.shape[-1]
    root = math.sqrt(head_dim)
    transposed = key.swapaxes(-2, -1)
    scores: Floats = np.divide(query, root) @ transposed
    if mask is not None:
        scores = np.where(mask, scores, _HIDDEN)
    weights = softmax(scores)
    return weights @ value, weights


def layer_norm(x: Floats, norm: Norm, eps: float) -> Floats:
    """Compute the norm of Ba et al. 2016: the mean of each vector becomes 0, its variance 1."""
    centred = x - x.mean(-1, keepdims=True)
    return rms_norm(centred, norm, eps)


def rms_norm(x: Floats, norm: Norm, eps: float) -> Floats:
    """Divide each vector by its root mean square (Zhang and Sennrich 2019)."""
    squares = np.square(x)
    mean_square: Floats = squares.mean(-1, keepdims=True)
    root: Floats = np.sqrt(mean_square + eps)
    scaled: Floats = np.divide(x, root)
    scaled = scaled * norm.gain
    return scaled if norm.bias is None else scaled + norm.bias


def relu(x: Floats) -> Floats:
    """Compute max(x, 0), the paper's activation (equation 2)."""
    return np.maximum(x, 0)


def squared_relu(x: Floats) -> Floats:
    """Compute max(x, 0)^2 (So et al. 2021, "Primer")."""
    return np.square(relu(x))


def silu(x: Floats) -> Floats:
    """Compute x sigmoid(x) (Elfwing et al. 2018)."""
    # of a large negative number the exponential is infinite, and the quotient 0, as it should be
    with np.errstate(over="ignore"):
        power: Floats = np.exp(-x)
    quotient: Floats = np.divide(x, 1 + power)
    return quotient


def gelu(x: Floats) -> Floats:
    """Compute x times the chance that a normal number is below x (Hendrycks and Gimpel 2016)."""
    inner: Floats = np.divide(x, _ROOT_OF_2)
    chance = 0.5 * (1 + erf(inner))
    return x * chance


def erf(x: Floats) -> Floats:
    """Compute the error function: in float32 to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26), in
    float64 by the C library, number by number.
    """
    if x.dtype == np.float64:
        return _exact_erf(x)
    size = np.abs(x).astype(np.float64)
    t = 1 / (1 + 0.3275911 * size)
    powers = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    series = np.zeros_like(t)
    for factor in reversed(powers):
        series = (series + factor) * t
    value = 1 - series * np.exp(-size * size)
    return np.copysign(value, x).astype(np.float32)


ACTIVATIONS = {
    "relu": relu,
    "relu2": squared_relu,
    "gelu": gelu,
    "silu": silu,
}
NORMS = {"layer": layer_norm, "rms": rms_norm}


def rotate(x: Floats, first: int, rotary: Angles) -> Floats:
    """Turn queries or keys (N, H, L, d) by their positions, the first of which is `first`.

    Number i of the first half and number i of the second are a pair, which is turned by an angle
    whose cosine and sine `rotary` has (Su et al. 2021, "RoFormer", equation 34).
    """
    end = first + x.shape[2]
    cosines = rotary[0][first:end]
    sines = rotary[1][first:end]
    a, b = np.split(x, 2, axis=-1)
    turned_a = a * cosines - b * sines
    turned_b = b * cosines + a * sines
    return np.concatenate([turned_a, turned_b], axis=-1)


# What decoding remembers
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeysValues:
    """The keys and values of one attention, (N, H, T, d) each."""

    key: Floats
    value: Floats

    def extended(self, new: "KeysValues") -> "KeysValues":
        """Append new positions."""
        key = np.concatenate([self.key, new.key], axis=2)
        value = np.concatenate([self.value, new.value], axis=2)
        return KeysValues(key, value)

    def until(self, length: int) -> "KeysValues":
        """Cut to the first `length` positions."""
        key = self.key[:, :, :length]
        value = self.value[:, :, :length]
        return KeysValues(key, value)

    def select(self, rows: Ids) -> "KeysValues":
        """Keep, reorder or repeat rows."""
        return KeysValues(self.key[rows], self.value[rows])


@dataclass(frozen=True)
class Cache:
    """The positions so far of N rows: for each decoder layer their keys and values, the past, and
    those of the encoder's output, the memory, with its padding (N, S).

    A language model has no memory. A new cache is made at each step, none is ever changed.
    """

    past: tuple[KeysValues, ...]
    memory: tuple[KeysValues, ...] = ()
    padding: Flags | None = None

    @property
    def length(self) -> int:
        """Return the number of positions so far."""
        return self.past[0].key.shape[2]

    def until(self, length: int) -> "Cache":
        """Cut to the first `length` positions."""
        past = [part.until(length) for part in self.past]
        return replace(self, past=tuple(past))

    def select(self, rows: Ids) -> "Cache":
        """Keep, reorder or repeat rows."""
        past = [part.select(rows) for part in self.past]
        memory = [part.select(rows) for part in self.memory]
        padding = None if self.padding is None else self.padding[rows]
        return Cache(tuple(past), tuple(memory), padding)


# The model
# --------------------------------------------------------------------------------------


class PlainTransformer:
    """An encoder-decoder, or without an encoder a language model, by its weights; or an encoder
    alone.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def encode(
        self,
        src: Ids,
        record: Record | None = None,
        beside: Floats | None = None,
    ) -> Floats:
        """Encode source ids (N, S) to the memory (N, S, D); padding is never attended to.

        `beside` (N, S, D) is added to the tokens' vectors.
        """
        weights = self.weights
        assert weights.src is not None
        record = record or Record()
        is_text = src != PAD_ID
        mask = is_text[:, None, None, :]
        x = self._embedded(weights.src, src, record, "encoder", beside=beside)
        record.encoder_states.append(x)
        for layer in weights.encoder:
            x = self._encoder_layer(layer, x, mask, record)
            record.encoder_states.append(x)
        return self.final(x, weights.encoder_norm)

    def prefill(self, src: Ids, record: Record | None = None) -> Cache:
        """Encode source ids; return the cache before the first target position."""
        memory = self.encode(src, record)
        parts = []
        for layer in self.weights.decoder:
            assert layer.cross_attention is not None
            parts.append(self._keys_values(layer.cross_attention, memory))
        padding = src == PAD_ID
        return replace(self.start(len(src)), memory=tuple(parts), padding=padding)

    def start(self, num_rows: int) -> Cache:
        """Return the cache of rows without a position."""
        weights = self.weights
        shape = (num_rows, weights.num_heads, 0, weights.head_dim)
        nothing = np.zeros(shape, np.float32)
        empty = KeysValues(nothing, nothing)
        return Cache(tuple(empty for _ in weights.decoder))

    def decode(
        self,
        ids: Ids,
        cache: Cache,
        beside: Floats | None = None,
        record: Record | None = None,
    ) -> tuple[Floats, Cache]:
        """Decode new positions (N, L) after the cache; return their states (N, L, D) and the
        longer cache.

        `beside` (N, L, D) is added to the tokens' vectors.
        """
        weights = self.weights
        assert weights.tgt is not None
        record = record or Record()
        first = cache.length
        length = ids.shape[1]
        # each position sees itself and those before it
        mask = np.tri(length, first + length, first, dtype=np.bool_)
        x = self._embedded(weights.tgt, ids, record, "decoder", first, beside)
        record.decoder_states.append(x)
        past = []
        for number, layer in enumerate(weights.decoder):
            x, longer = self._decoder_layer(layer, x, cache, number, mask, record)
            past.append(longer)
            record.decoder_states.append(x)
        states = self.final(x, weights.decoder_norm)
        return states, replace(cache, past=tuple(past))

    def output(self, states: Floats) -> Floats:
        """Project states (..., D) to logits (..., V)."""
        projection = self.weights.projection
        assert projection is not None
        return linear(states, projection)

    def _embedded(
        self,
        side: Side,
        ids: Ids,
        record: Record,
        tower: str,
        first: int = 0,
        beside: Floats | None = None,
    ) -> Floats:
        """Return token vectors times their scale, plus those of their positions (sections 3.4 and
        3.5); their sum may have a norm.
        """
        tokens = side.tokens[ids]
        if beside is not None:
            tokens = tokens + beside
        x = tokens * self.weights.embedding_scale
        if side.positions is not None:
            end = first + ids.shape[1]
            x = x + side.positions[first:end]
        record.keep_sum(tower, x)
        return x if side.norm is None else self._normed(x, side.norm)

    def _encoder_layer(
        self,
        layer: Layer,
        x: Floats,
        mask: Flags,
        record: Record,
    ) -> Floats:
        """Compute self-attention over the source, then feed-forward (section 3.1)."""
        part = layer.self_attention

        def self_attention(y: Floats) -> Floats:
            query = self._queries(part, y, 0)
            attended = self._keys_values(part, y, 0)
            return self._heads(part, query, attended, mask, record, "encoder")

        for place, sublayer in enumerate([self_attention, self._feed_forward(layer)]):
            x = self._residual(layer, place, x, sublayer, record, "encoder")
        return x

    def _decoder_layer(
        self,
        layer: Layer,
        x: Floats,
        cache: Cache,
        number: int,
        mask: Flags,
        record: Record,
    ) -> tuple[Floats, KeysValues]:
        """Compute causal self-attention, attention over the memory if there is one, then
        feed-forward; return the states and the longer past.
        """
        past = cache.past[number]
        first = cache.length

        def self_attention(y: Floats) -> Floats:
            nonlocal past
            part = layer.self_attention
            query = self._queries(part, y, first)
            new = self._keys_values(part, y, first)
            past = past.extended(new)
            return self._heads(part, query, past, mask, record, "decoder")

        def cross_attention(y: Floats) -> Floats:
            part = layer.cross_attention
            assert part is not None
            assert cache.padding is not None
            query = self._queries(part, y)
            is_text = ~cache.padding[:, None, None, :]
            memory = cache.memory[number]
            return self._heads(part, query, memory, is_text, record, "cross")

        sublayers: list[Sublayer] = [self_attention]
        if layer.cross_attention is not None:
            sublayers.append(cross_attention)
        sublayers.append(self._feed_forward(layer))
        for place, sublayer in enumerate(sublayers):
            x = self._residual(layer, place, x, sublayer, record, "decoder")
        return x, past

    def _residual(
        self,
        layer: Layer,
        number: int,
        x: Floats,
        sublayer: Sublayer,
        record: Record,
        tower: str,
    ) -> Floats:
        """Compute norm(x + sublayer(x)), the paper's residual connection; or, with `norm_first`,
        x + sublayer(norm(x)), where what is added may have a norm of its own.
        """
        norm = layer.norms[number]
        if not self.weights.norm_first:
            written = sublayer(x)
            state = self._normed(x + written, norm)
        else:
            written = sublayer(self._normed(x, norm))
            added = written
            if layer.after:
                added = self._normed(written, layer.after[number])
            state = x + added
        record.keep_part(tower, Part(x, written, state))
        return state

    def _feed_forward(self, layer: Layer) -> Sublayer:
        """Return what computes outer(activation(inner(x))) (equation 2), or with a gate
        outer(activation(gate(x)) * inner(x)) (Shazeer 2020).
        """
        activation = ACTIVATIONS[self.weights.activation]

        def feed_forward(y: Floats) -> Floats:
            inner = linear(y, layer.inner)
            if layer.gate is None:
                between = activation(inner)
            else:
                gate = linear(y, layer.gate)
                between = activation(gate) * inner
            return linear(between, layer.outer)

        return feed_forward

    def _queries(self, part: Attention, x: Floats, first: int | None = None) -> Floats:
        """Project x to the queries of all heads; those of self-attention stand at positions, from
        `first` on.
        """
        query = linear(x, part.query)
        return self._placed(query, part.query_gain, first)

    def _keys_values(
        self,
        part: Attention,
        x: Floats,
        first: int | None = None,
    ) -> KeysValues:
        """Project x to the keys and values of all heads."""
        key = linear(x, part.key)
        value = linear(x, part.value)
        return KeysValues(
            self._placed(key, part.key_gain, first),
            self._split(value),
        )

    def _placed(
        self,
        x: Floats,
        gain: Floats | None,
        first: int | None,
    ) -> Floats:
        """Split queries or keys into heads, norm them where there are gains, and turn them by their
        positions where these are rotary.
        """
        heads = self._split(x)
        if gain is not None:
            norm = Norm(gain, None)
            heads = rms_norm(heads, norm, self.weights.eps)
        rotary = self.weights.rotary
        if rotary is None or first is None:
            return heads
        return rotate(heads, first, rotary)

    def _split(self, x: Floats) -> Floats:
        """Cut each position's vector into those of the heads: (N, L, H d) to (N, H, L, d)."""
        num_rows, length, _ = x.shape
        num_heads = self.weights.num_heads
        parts = x.reshape(num_rows, length, num_heads, -1)
        return parts.swapaxes(1, 2)

    def _heads(
        self,
        part: Attention,
        query: Floats,
        attended: KeysValues,
        mask: Flags,
        record: Record,
        kind: str,
    ) -> Floats:
        """Compute Concat(head_1, ..., head_h) W^O (section 3.2.2)."""
        look = Look(query, attended.key, attended.value)
        heads, weights = attention(look.query, look.key, look.value, mask)
        record.keep_look(kind, weights, look)
        by_position = heads.swapaxes(1, 2)
        num_rows, length, _, _ = by_position.shape
        concatenated = by_position.reshape(num_rows, length, -1)
        return linear(concatenated, part.output)

    def _normed(self, x: Floats, norm: Norm) -> Floats:
        weights = self.weights
        return NORMS[weights.norm](x, norm, weights.eps)

    def final(self, x: Floats, norm: Norm | None) -> Floats:
        """Return the last states, normed: post-norm stacks have just had a norm, and need none."""
        return x if norm is None else self._normed(x, norm)
