"""The parts of a Transformer as operations of a graph: what `weft.engine.plain` computes in NumPy.

Shapes: N rows; S source positions; L new positions, P those before them, T both; D d_model; H
heads, J heads of keys and values; d head_dim; V vocabulary. Source: Vaswani et al. 2017, "Attention
Is All You Need", section 3.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.config import LayerShape
from weft.engine.weights import activation_named
from weft.predict.weights import NORM_EPS, angles, sinusoids
from weft.ship.onnx.graph import Graph, Value
from weft.ship.tensors import constant

# so large a negative score makes a weight zero; finite, as a row of -inf would become NaN
_HIDDEN = -1e38

Sublayer = Callable[[Value], Value]
Places = Callable[[Value], Value]
"""A function that takes the rows of a table of positions, (L, _) or (N, L, _)."""
Angles = tuple[Value, Value]
"""The cosines and sines of positions, each broadcast to (N, J, L, d / 2)."""


@dataclass(frozen=True)
class KeysValues:
    """The keys and values of an attention, (N, J, T, d) each."""

    key: Value
    value: Value

    def extended(self, new: "KeysValues") -> "KeysValues":
        """Append new positions."""
        join = self.key.graph.join
        key = join([self.key, new.key], 2)
        return KeysValues(key, join([self.value, new.value], 2))


class Layers:
    """The layers of a model of some shape, in a graph."""

    def __init__(self, graph: Graph, shape: LayerShape) -> None:
        self.graph = graph
        self.shape = shape

    # Embedding
    # ----------------------------------------------------------------------------------

    def embedded(
        self,
        name: str,
        tokens: Value,
        ids: Value,
        places: Places,
        beside: Sequence[Value] = (),
    ) -> Value:
        """Return the vectors of ids (N, L), looked up in a table (V, D), with their positions'.

        What is `beside` is added to the tokens' own vectors.
        """
        shape = self.shape
        x = tokens.rows(ids)
        for part in beside:
            x = x + part
        if shape.scale_embeddings:
            x = x * math.sqrt(shape.d_model)
        if shape.positions != "rotary":
            x = x + places(self._positions(name))
        return self.norm(f"{name}.norm", x) if shape.embedding_norm else x

    def _positions(self, name: str) -> Value:
        """Return the table of positions: learned ones, or those that the paper's formula gives."""
        shape = self.shape
        if shape.positions == "learned":
            return self.graph.weight(f"{name}.positions.table")
        table = sinusoids(shape.max_len, shape.d_model)
        return self.graph.array(constant("sinusoids", table))

    def angles(self, places: Places) -> Angles | None:
        """Return the angles by which queries and keys are turned; None where positions are no
        rotary ones.
        """
        shape = self.shape
        if shape.positions != "rotary":
            return None
        cosines, sines = angles(shape.max_len, shape.dim_of_head)
        cosine = self.graph.array(constant("cosines", cosines))
        sine = self.graph.array(constant("sines", sines))
        return places(cosine).unsqueezed(-3), places(sine).unsqueezed(-3)

    # Maps and norms
    # ----------------------------------------------------------------------------------

    def linear(self, name: str, x: Value) -> Value:
        """Compute x W^T + b; b where there is one."""
        product = x @ self.graph.matrix(f"{name}.weight")
        return self.biased(f"{name}.bias", product)

    def biased(self, name: str, x: Value) -> Value:
        """Add a bias, where the model has one of this name."""
        return x + self.graph.weight(name) if self.graph.has(name) else x

    def norm(self, name: str, x: Value) -> Value:
        """Compute the norm of each vector."""
        gain = self.graph.weight(f"{name}.weight")
        if self.shape.norm == "rms":
            return _rms(x, gain)
        bias = f"{name}.bias"
        biases = [self.graph.weight(bias)] if self.graph.has(bias) else []
        return self.graph.op(
            "LayerNormalization", x, gain, *biases, axis=-1, epsilon=NORM_EPS
        )

    def final_norm(self, name: str, x: Value) -> Value:
        """Compute the norm after a stack; post-norm ones have just had one."""
        return self.norm(name, x) if self.shape.norm_first else x

    def residual(self, name: str, number: int, x: Value, sublayer: Sublayer) -> Value:
        """Compute norm(x + sublayer(x)), the paper's residual connection; or, with `norm_first`,
        x + sublayer(norm(x)), where what is added may have a norm of its own.
        """
        own = f"{name}.residuals.{number}"
        if not self.shape.norm_first:
            return self.norm(f"{own}.norm", x + sublayer(x))
        added = sublayer(self.norm(f"{own}.norm", x))
        if self.shape.sandwich_norm:
            added = self.norm(f"{own}.after", added)
        return x + added

    def feed_forward(self, name: str) -> Sublayer:
        """Return what computes outer(activation(inner(x))) (equation 2), or with a gate
        outer(activation(gate(x)) * inner(x)) (Shazeer 2020).
        """
        activation = _ACTIVATIONS[activation_named(self.shape.activation)]
        own = f"{name}.feed_forward"

        def computed(y: Value) -> Value:
            inner = self.linear(f"{own}.inner", y)
            if self.graph.has(f"{own}.gate.weight"):
                between = activation(self.linear(f"{own}.gate", y)) * inner
            else:
                between = activation(inner)
            return self.linear(f"{own}.outer", between)

        return computed

    # Attention
    # ----------------------------------------------------------------------------------

    def queries(self, name: str, x: Value, turned: Angles | None = None) -> Value:
        """Project x to the queries of all heads, (N, H, L, d)."""
        query = self._split(self.linear(f"{name}.query", x), self.shape.num_heads)
        return self._placed(f"{name}.query_norm.weight", query, turned)

    def keys_values(
        self, name: str, x: Value, turned: Angles | None = None
    ) -> KeysValues:
        """Project x to keys and values."""
        heads = self.shape.key_value_heads
        key = self._split(self.linear(f"{name}.key", x), heads)
        value = self._split(self.linear(f"{name}.value", x), heads)
        placed = self._placed(f"{name}.key_norm.weight", key, turned)
        return KeysValues(placed, value)

    def attend(
        self, name: str, query: Value, attended: KeysValues, mask: Value
    ) -> Value:
        """Compute Concat(head_1, ..., head_h) W^O (section 3.2.2), where each head is
        softmax(Q K^T / sqrt(d)) V (equation 1).

        The mask says where a query may attend; it is broadcast to (N, H, L, T).
        """
        graph = self.graph
        key = self._for_all_heads(attended.key)
        value = self._for_all_heads(attended.value)
        head_dim = self.shape.dim_of_head
        scores = (query / math.sqrt(head_dim)) @ key.transposed(0, 1, 3, 2)
        visible = graph.op("Where", mask, scores, _HIDDEN)
        weights = graph.op("Softmax", visible, axis=-1)
        heads = (weights @ value).transposed(0, 2, 1, 3)
        joined = heads.reshaped(0, 0, self.shape.num_heads * head_dim)
        return self.linear(f"{name}.output", joined)

    def _placed(self, gain: str, heads: Value, turned: Angles | None) -> Value:
        """Normalize queries or keys where the model does; turn them where positions are rotary."""
        if self.graph.has(gain):
            heads = _rms(heads, self.graph.weight(gain))
        return heads if turned is None else _rotated(heads, turned)

    def _split(self, x: Value, num_heads: int) -> Value:
        """Cut each position's vector into those of the heads: (N, L, J d) to (N, J, L, d)."""
        parts = x.reshaped(0, 0, num_heads, self.shape.dim_of_head)
        return parts.transposed(0, 2, 1, 3)

    def _for_all_heads(self, x: Value) -> Value:
        """Repeat each key or value for every head that it serves."""
        shape = self.shape
        times = shape.num_heads // shape.key_value_heads
        if times == 1:
            return x
        sizes = self.graph.ints(1, 1, times, 1, 1)
        repeated = self.graph.op("Expand", x.unsqueezed(2), sizes)
        return repeated.reshaped(0, shape.num_heads, -1, shape.dim_of_head)


def _rms(x: Value, gain: Value) -> Value:
    """Divide each vector by its root mean square (Zhang and Sennrich 2019)."""
    mean_square = (x * x).mean() + NORM_EPS
    return x / x.graph.op("Sqrt", mean_square) * gain


def _rotated(x: Value, turned: Angles) -> Value:
    """Turn pairs of numbers, the i-th of both halves, by the angles of their positions (Su et al.
    2021, "RoFormer", equation 34).
    """
    cosine, sine = turned
    a, b = x.halves()
    parts = [a * cosine - b * sine, b * cosine + a * sine]
    return x.graph.join(parts, -1)


def _relu(x: Value) -> Value:
    return x.graph.op("Relu", x)


def _squared_relu(x: Value) -> Value:
    positive = _relu(x)
    return positive * positive


def _silu(x: Value) -> Value:
    return x * x.graph.op("Sigmoid", x)


def _gelu(x: Value) -> Value:
    return x.graph.op("Gelu", x)


_ACTIVATIONS = {
    "relu": _relu,
    "relu2": _squared_relu,
    "silu": _silu,
    "gelu": _gelu,
}
