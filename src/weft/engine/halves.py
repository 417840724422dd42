"""Weights in 16 bits, as a browser is given them: rounded, and laid out as bytes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.engine.weights import (
    Attention,
    ClassifierWeights,
    Layer,
    Linear,
    Side,
    Weights,
    changed,
    named_arrays,
)
from weft.errors import UsageError

AnyWeights = TypeVar("AnyWeights", Weights, ClassifierWeights)
_ALIGNED = 4  # bytes that an array begins at a multiple of
_LARGEST = float(np.finfo(np.float16).max)
_SCALES = ".scales"


@dataclass(frozen=True, eq=False)
class Packed:
    """The arrays of a model: for each path its type, shape and offset in `data`.

    Floats have 16 bits, but for the scales of int8 matrices, which have 32. Numbers are
    little-endian. `count` is how many there are, each once, scales aside.
    """

    entries: list[tuple[str, dict[str, Any]]]
    data: bytes
    count: int


def rounded_to_halves(weights: AnyWeights, sinusoidal: bool) -> AnyWeights:
    """Return the same weights, each number rounded to 16 bits; those in int8 stay as they are, and
    so do positions that a formula gives.

    Raises UsageError for a number that 16 bits cannot hold.
    """
    exact = {
        id(array)
        for name, array in named_arrays(weights)
        if _is_scale(name) or _is_computed(name, sinusoidal)
    }

    def rounded(array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype != np.float32 or id(array) in exact:
            return array
        return _in_16_bits(array).astype(np.float32)

    return changed(weights, rounded)


def packed(weights: AnyWeights, key_value_heads: int, sinusoidal: bool) -> Packed:
    """Write weights as bytes, without what a formula gives: sinusoidal and rotary positions.

    Keys and values that several heads share are there once; so is an array of several parts.
    Raises UsageError as `rounded_to_halves`.
    """
    alone = _without_copies(weights, key_value_heads, sinusoidal)
    entries: list[tuple[str, dict[str, Any]]] = []
    known: dict[int, dict[str, Any]] = {}
    data = bytearray()
    count = 0
    for name, array in named_arrays(alone):
        if id(array) not in known:
            stored = _stored(name, array)
            known[id(array)] = {
                "dtype": stored.dtype.name,
                "shape": list(stored.shape),
                "offset": len(data),
            }
            data += stored.tobytes()
            data += bytes(-len(data) % _ALIGNED)
            count += 0 if _is_scale(name) else stored.size
        entries.append((name, known[id(array)]))
    return Packed(entries, bytes(data), count)


def stored_arrays(
    weights: AnyWeights, key_value_heads: int, sinusoidal: bool
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays that `packed` writes, each in the type that it is written in, by its path;
    one of several parts comes with each.
    """
    alone = _without_copies(weights, key_value_heads, sinusoidal)
    for name, array in named_arrays(alone):
        yield name, _stored(name, array)


def _stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type that it is written in."""
    if array.dtype == np.int8:
        return array
    if _is_scale(name):
        return array.astype("<f4")
    return _in_16_bits(array).astype("<f2")


def _in_16_bits(array: NDArray[Any]) -> NDArray[np.float16]:
    largest = float(np.abs(array).max(initial=0))
    # as no NaN is
    if not largest <= _LARGEST:
        raise UsageError(
            f"a weight of {largest:.3g} does not fit into 16 bits, whose largest number is {_LARGEST:,.0f}; "
            "train with a smaller training.learning_rate or with training.weight_decay"
        )
    return array.astype(np.float16)


def _is_scale(name: str) -> bool:
    return name.endswith(_SCALES)


def _is_computed(name: str, sinusoidal: bool) -> bool:
    """Return whether an array has positions by a formula."""
    parts = name.split(".")
    return "rotary" in parts or (sinusoidal and parts[-1] == "positions")


def _without_copies(
    weights: AnyWeights, key_value_heads: int, sinusoidal: bool
) -> AnyWeights:
    """Return weights without positions that a formula gives, and with shared heads once."""
    if isinstance(weights, ClassifierWeights):
        encoder = weights.encoder
        if encoder is not None:
            encoder = _without_copies(encoder, key_value_heads, sinusoidal)
        return replace(weights, encoder=encoder)

    def side(part: Side | None) -> Side | None:
        return replace(part, positions=None) if part and sinusoidal else part

    times = weights.num_heads // key_value_heads

    def layer(part: Layer) -> Layer:
        cross = part.cross_attention
        return replace(
            part,
            self_attention=_once(part.self_attention, weights.head_dim, times),
            cross_attention=cross and _once(cross, weights.head_dim, times),
        )

    return replace(
        weights,
        src=side(weights.src),
        tgt=side(weights.tgt),
        encoder=tuple(map(layer, weights.encoder)),
        decoder=tuple(map(layer, weights.decoder)),
        rotary=None,
    )


def _once(part: Attention, head_dim: int, times: int) -> Attention:
    """Return an attention whose keys and values are those of the heads that own them."""
    if times == 1:
        return part
    key = _every(part.key, head_dim, times)
    return replace(part, key=key, value=_every(part.value, head_dim, times))


def _every(linear: Linear, head_dim: int, times: int) -> Linear:
    """Return a map with the outputs of one head in so many."""

    def some(rows: NDArray[Any] | None) -> Any:
        if rows is None:
            return None
        heads = rows.reshape(-1, head_dim, *rows.shape[1:])
        kept = heads[::times]
        return np.ascontiguousarray(kept.reshape(-1, *rows.shape[1:]))

    return Linear(some(linear.stored), some(linear.bias), some(linear.scales))
