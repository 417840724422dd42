"""A Transformer's weights as NumPy arrays, in the paper's parts: what every engine is made of.

Shapes: D d_model, d_k head_dim, M inputs, N outputs, L positions, V vocabulary, R rows of a table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from weft.kernels.activations import GATES

Floats: TypeAlias = NDArray[np.float32]
Numbers = TypeVar("Numbers", bound=NDArray[Any])
W = TypeVar("W")


@dataclass(frozen=True)
class Linear:
    """y = weight x + bias; weight (N, M), bias (N).

    The matrix is `stored` (N, M) in float32, or in int8 with `scales` (N), by which its rows are to
    be multiplied.
    """

    stored: Floats | NDArray[np.int8]
    bias: Floats | None
    scales: Floats | None = None

    @cached_property
    def weight(self) -> Floats:
        """Return the matrix in float32, or in float64 where the weights are cast to it."""
        if self.scales is None:
            return cast("Floats", self.stored)
        floats = self.stored.astype(self.scales.dtype)
        return floats * self.scales[:, None]

    def rows(self, numbers: NDArray[np.integer]) -> Floats:
        """Return some rows of the matrix."""
        stored = self.stored[numbers]
        if self.scales is None:
            return cast("Floats", stored)
        return stored.astype(self.scales.dtype) * self.scales[numbers][:, None]

    def mean_row(self) -> Floats:
        """Compute the mean of all rows of the matrix."""
        count = len(self.stored)
        scales = np.ones(count) if self.scales is None else self.scales
        mean = scales.astype(np.float64) @ self.stored / count
        return cast("Floats", mean.astype(self.rows(np.arange(0)).dtype))

    def repeated(self, head_dim: int, times: int) -> "Linear":
        """Repeat the outputs of each head, so that so many heads have them."""
        if times == 1:
            return self
        stored = _repeated(self.stored, head_dim, times)
        bias = None if self.bias is None else _repeated(self.bias, head_dim, times)
        scales = None
        if self.scales is not None:
            scales = _repeated(self.scales, head_dim, times)
        return Linear(stored, bias, scales)


@dataclass(frozen=True)
class Norm:
    """A norm's gain and bias, (D) each."""

    gain: Floats
    bias: Floats | None


@dataclass(frozen=True)
class Attention:
    """The four maps of an attention; a head's rows lie together. Gains (d_k) of a query and a key
    that are normed.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    query_gain: Floats | None = None
    key_gain: Floats | None = None


@dataclass(frozen=True)
class Layer:
    """The weights of a layer; an encoder's and a language model's have no cross-attention.

    `norms` has one for each sublayer, `after` one for the output of each, if any. A `gate` is
    activated, and multiplied with what `inner` gives.
    """

    norms: tuple[Norm, ...]
    self_attention: Attention
    cross_attention: Attention | None
    inner: Linear
    outer: Linear
    gate: Linear | None = None
    after: tuple[Norm, ...] = ()


@dataclass(frozen=True)
class Side:
    """Token vectors (V, D), those of the positions (L, D), if any, and a norm of their sum, if
    any.
    """

    tokens: Floats
    positions: Floats | None
    norm: Norm | None = None


@dataclass(frozen=True)
class Ngrams:
    """Vectors of n-grams of 2 to `longest` tokens, (R, D): an n-gram has the row that its hash
    points to.
    """

    vectors: Floats
    longest: int


@dataclass(frozen=True)
class Matches:
    """Vectors of the token that followed a match, (K V, D): V of them for each of K `lengths`."""

    vectors: Floats
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Bag:
    """Vectors of a text's tokens (V, D), and of its n-grams, if any.

    A row counts by its weight: `token_weights` (V), `hashed_weights` (R). Without them all count
    alike.
    """

    tokens: Floats
    hashed: Ngrams | None = None
    token_weights: Floats | None = None
    hashed_weights: Floats | None = None


@dataclass(frozen=True)
class Weights:
    """The weights of a Transformer; without an encoder a language model, without a decoder an
    encoder alone.

    `activation` and `norm` are names of `weft.kernels.activations`. `rotary`: cosines and sines,
    (L, d_k / 2) each. A language model's tokens may have vectors of `ngrams` and `matches` beside
    them.
    """

    num_heads: int
    head_dim: int
    norm_first: bool
    norm: str
    activation: str
    eps: float
    embedding_scale: float
    src: Side | None
    tgt: Side | None
    encoder: tuple[Layer, ...]
    decoder: tuple[Layer, ...]
    encoder_norm: Norm | None
    decoder_norm: Norm | None
    projection: Linear | None
    rotary: tuple[Floats, Floats] | None = None
    ngrams: Ngrams | None = None
    matches: Matches | None = None

    @property
    def d_model(self) -> int:
        """Return D, the width of the states."""
        side = self.tgt or self.src
        assert side is not None
        return side.tokens.shape[1]


@dataclass(frozen=True)
class ClassifierWeights:
    """The weights of a classifier: an encoder with pooled states, a bag of n-grams, or both.

    `pooling` is "mean" or "first". The projection gives a logit for each label; its inputs are the
    encoder's vector, then the bag's.
    """

    encoder: Weights | None
    pooling: str
    bag: Bag | None
    projection: Linear


def named_arrays(part: object, name: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of weights, each by its path: `encoder.0.inner.stored`."""
    inner: list[tuple[str, object]] = []
    if isinstance(part, np.ndarray):
        yield name, part
    elif isinstance(part, tuple):
        inner = [(str(number), value) for number, value in enumerate(part)]
    elif is_dataclass(part):
        inner = [(field.name, getattr(part, field.name)) for field in fields(part)]
    for last, value in inner:
        path = f"{name}.{last}" if name else last
        yield from named_arrays(value, path)


def changed(weights: W, change: Callable[[NDArray[Any]], NDArray[Any]]) -> W:
    """Return the same weights with each array changed; one that several parts share, once."""
    known: dict[int, NDArray[Any]] = {}

    def changed_part(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            if id(part) not in known:
                known[id(part)] = change(part)
            return known[id(part)]
        if isinstance(part, tuple):
            return tuple(map(changed_part, part))
        if not is_dataclass(part) or isinstance(part, type):
            return part
        values = {}
        for field in fields(part):
            value = getattr(part, field.name)
            values[field.name] = changed_part(value)
        return replace(part, **values)

    with_changes: W = changed_part(weights)
    return with_changes


def in_float64(weights: W) -> W:
    """Return the same weights in float64: by them the plain pass hardly rounds.

    What is stored in int8 stays so; its scales are in float64.
    """

    def cast_floats(array: NDArray[Any]) -> NDArray[Any]:
        is_float = array.dtype == np.float32
        return array.astype(np.float64) if is_float else array

    return changed(weights, cast_floats)


def _repeated(rows: Numbers, head_dim: int, times: int) -> Numbers:
    by_head = rows.reshape(-1, head_dim, *rows.shape[1:])
    repeated = by_head.repeat(times, axis=0)
    return cast("Numbers", repeated.reshape(-1, *rows.shape[1:]))


def activation_named(name: str) -> str:
    """Return the activation that a recipe names; of a feed-forward part with a gate, the gate's."""
    return GATES.get(name, name)
