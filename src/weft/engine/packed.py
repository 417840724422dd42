"""A Transformer's weights as the products of `decoding.cpp` want them.

Matrices are cut into panels, heads laid out in lanes, and every width filled up with zeros to whole
registers.

Shapes: D d_model, F d_ff, W the width of all heads together as the engine lays them out, V
vocabulary.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.engine.weights import Attention, Floats, Layer, Linear, Norm, Weights
from weft.kernels import native
from weft.kernels.activations import ACTIVATIONS, NORMS

SOURCE = Path(__file__).with_name("decoding.cpp")
KINDS = ("float32", "bfloat16", "int8")
POINTER, LONG = ctypes.c_void_p, ctypes.c_int64
# of a function of the library: what it returns, and its arguments
Signature: TypeAlias = tuple[Any, Sequence[Any]]
# numbers in four bytes; of int8 the library says
_PER_GROUP = {"float32": 1, "bfloat16": 2}
_ALIGNMENT = 64  # bytes: a cache line, and the widest register
_BFLOAT16_NAN = 0x7FC0
_SIGNATURES: Mapping[str, Signature] = {
    "decoding_lanes": (LONG, ()),
    "decoding_int8_group": (LONG, ()),
}


# The library, and what it reads
# --------------------------------------------------------------------------------------


@cache
def library() -> ctypes.CDLL:
    """Load the compiled functions. Raises UnavailableError with the reason."""
    return declared(native.library(SOURCE), _SIGNATURES)


def declared(compiled: ctypes.CDLL, signatures: Mapping[str, Signature]) -> ctypes.CDLL:
    """Say what some functions of the library take and return."""
    for name, (result, arguments) in signatures.items():
        function = getattr(compiled, name)
        function.restype, function.argtypes = result, arguments
    return compiled


class _Matrix(ctypes.Structure):
    _fields_ = (
        *((name, POINTER) for name in ("weights", "scales", "starts", "bias")),
        ("inputs", LONG),
        ("outputs", LONG),
    )


class _Norm(ctypes.Structure):
    _fields_ = (("gain", POINTER), ("bias", POINTER))


class _Layer(ctypes.Structure):
    _fields_ = (
        ("norms", _Norm * 3),
        ("after", _Norm * 3),
        *(
            (name, _Matrix)
            for name in (
                "self_qkv",
                "self_out",
                "cross_query",
                "cross_kv",
                "cross_out",
                "inner",
                "gate",
                "outer",
                "cross_back",
            )
        ),
        ("self_gains", POINTER * 2),
        ("cross_gains", POINTER * 2),
    )


_WHOLE = (
    *(
        "kind",
        "d_model",
        "d_model_padded",
        "d_ff",
        "head_dim",
        "groups",
        "lanes",
        "steps",
        "norm_first",
    ),
    *(
        "root_mean_square",
        "activation",
        "num_encoder_layers",
        "num_decoder_layers",
        "vocab_size",
        "half",
        "num_heads",
    ),
)


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, LONG) for name in _WHOLE),
        *(
            (name, ctypes.c_double)
            for name in ("eps", "score_scale", "embedding_scale")
        ),
        *(
            (f"{side}_{what}", POINTER)
            for side in ("src", "tgt")
            for what in ("tokens", "positions")
        ),
        *((name, POINTER) for name in ("cosines", "sines")),
        ("encoder", ctypes.POINTER(_Layer)),
        ("decoder", ctypes.POINTER(_Layer)),
        ("encoder_norm", _Norm),
        ("decoder_norm", _Norm),
        ("src_norm", _Norm),
        ("tgt_norm", _Norm),
        ("projection", _Matrix),
        ("listed", _Matrix),
    )


# Forms of numbers
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heads:
    """The layout of heads: in `groups`, in each dimension after dimension, one lane a head."""

    num_heads: int
    head_dim: int

    @property
    def lanes(self) -> int:
        """Count the heads of a group: a power of two, at most the numbers of a register."""
        return min(_lanes(), 1 << (self.num_heads - 1).bit_length())

    @property
    def groups(self) -> int:
        return -(-self.num_heads // self.lanes)

    @property
    def steps(self) -> int:
        """Return the dimensions of a head, padded so that those of a group make whole vectors."""
        return -(-self.head_dim * self.lanes // _lanes()) * _lanes() // self.lanes

    def laid_out(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Order rows of heads, one behind the other, as the engine has them: (W, ...)."""
        rest = rows.shape[1:]
        apart = np.zeros((self.groups * self.lanes, self.steps, *rest), rows.dtype)
        by_head = rows.reshape(self.num_heads, self.head_dim, *rest)
        apart[: self.num_heads, : self.head_dim] = by_head
        grouped = apart.reshape(self.groups, self.lanes, self.steps, *rest)
        return grouped.swapaxes(1, 2).reshape(-1, *rest)

    def into(self, linear: Linear) -> Linear:
        """Return a map to heads, its outputs in the engine's order."""
        return Linear(
            self.laid_out(linear.stored),
            None if linear.bias is None else self.laid_out(linear.bias),
            None if linear.scales is None else self.laid_out(linear.scales),
        )

    def out_of(self, linear: Linear) -> Linear:
        """Return a map from heads, its inputs in the engine's order."""
        stored = self.laid_out(linear.stored.T).T
        return Linear(stored, linear.bias, linear.scales)


def quantized(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantize a matrix (N, M) to int8 with a scale for each row (N): weight = int8 times scale.

    To the nearest of 255 steps, symmetric.

    Scales are rounded up to 17 binary digits: 127 of them are exact then, and what was quantized
    stays as it is.
    """
    largest = np.abs(weight).max(1, initial=0.0)
    bits = (largest / np.float32(127)).view(np.int32)
    scales = ((bits + 0x7F) & ~0x7F).view(np.float32)
    steps = np.maximum(scales, np.finfo(np.float32).tiny)
    # what is not finite becomes 0
    with np.errstate(invalid="ignore"):
        return np.rint(weight / steps[:, None]).astype(np.int8), scales


def to_bfloat16(numbers: Floats) -> NDArray[np.uint16]:
    """Round to bfloat16, to even where two are equally near: the upper half of each number's
    bits.
    """
    bits = numbers.view(np.uint32)
    is_odd = (bits >> 16) & 1
    rounded = bits + (is_odd + np.uint32(0x7FFF))
    upper = (rounded >> 16).astype(np.uint16)
    upper[np.isnan(numbers)] = _BFLOAT16_NAN
    return upper


# The whole
# --------------------------------------------------------------------------------------


def refuse_missing(activation: str, norm: str) -> None:
    """Raise UnavailableError where an activation or a norm has no native code."""
    if ACTIVATIONS[activation].number is None:
        raise native.UnavailableError(f"{activation} has no native code")
    if NORMS[norm].centred is None:
        raise native.UnavailableError(f"the norm {norm} has no native code")


class Packed:
    """A Transformer's weights for products of one `kind`: `model` is what the library reads of
    them, for as long as this is there.
    """

    def __init__(self, weights: Weights, kind: str) -> None:
        self._library = library()
        self._kept: list[object] = []  # what the structures point to
        self.kind = kind
        vocab_size = 0
        projection = _Matrix()
        if weights.projection is not None:
            vocab_size = len(weights.projection.stored)
            projection = self._matrix(weights.projection, missing=-float("inf"))
        heads = Heads(weights.num_heads, weights.head_dim)
        d_model = weights.d_model
        first = (weights.encoder or weights.decoder)[0]
        rotary = weights.rotary
        src = weights.src
        tgt = weights.tgt
        self.model = _Model(
            kind=KINDS.index(kind),
            d_model=d_model,
            d_model_padded=_filled(d_model),
            d_ff=_filled(first.inner.stored.shape[0]),
            head_dim=weights.head_dim,
            groups=heads.groups,
            lanes=heads.lanes,
            steps=heads.steps,
            norm_first=weights.norm_first,
            root_mean_square=not NORMS[weights.norm].centred,
            activation=ACTIVATIONS[weights.activation].number,
            num_encoder_layers=len(weights.encoder),
            num_decoder_layers=len(weights.decoder),
            vocab_size=vocab_size,
            half=rotary[0].shape[1] if rotary else 0,
            num_heads=weights.num_heads,
            eps=weights.eps,
            score_scale=weights.head_dim**-0.5,
            embedding_scale=weights.embedding_scale,
            src_tokens=self._rows(src.tokens if src else None),
            src_positions=self._rows(src.positions if src else None),
            tgt_tokens=self._rows(tgt.tokens if tgt else None),
            tgt_positions=self._rows(tgt.positions if tgt else None),
            cosines=self._pointer(rotary[0]) if rotary else None,
            sines=self._pointer(rotary[1]) if rotary else None,
            encoder=self._layers(weights.encoder, heads),
            decoder=self._layers(weights.decoder, heads),
            encoder_norm=self._norm(weights.encoder_norm),
            decoder_norm=self._norm(weights.decoder_norm),
            src_norm=self._norm(src.norm if src else None),
            tgt_norm=self._norm(tgt.norm if tgt else None),
            projection=projection,
        )
        self._heads = heads
        self._projection = weights.projection
        self._decoder = weights.decoder

    def add_lists(self) -> None:
        """Pack the output matrix for sentences with a shortlist, if that is not done."""
        assert self._projection is not None
        if not self.model.listed.weights:
            self.model.listed = self._matrix(self._projection, is_packed=False)

    def add_shares(self) -> None:
        """Pack the maps that shares go back through, if that is not done."""
        for number, layer in enumerate(self._decoder):
            native_layer = self.model.decoder[number]
            if layer.cross_attention is None or native_layer.cross_back.weights:
                continue
            out = self._heads.out_of(layer.cross_attention.output)
            back = Linear(np.ascontiguousarray(out.weight.T), None)
            native_layer.cross_back = self._matrix(back, kind="float32")

    def _layers(self, layers: tuple[Layer, ...], heads: Heads) -> ctypes.Array[_Layer]:
        array = (_Layer * len(layers))(*(self._layer(layer, heads) for layer in layers))
        self._kept.append(array)
        return array

    def _layer(self, layer: Layer, heads: Heads) -> _Layer:
        own, cross = layer.self_attention, layer.cross_attention
        self_qkv = _joined(
            *(heads.into(part) for part in (own.query, own.key, own.value))
        )
        native_layer = _Layer(
            norms=(_Norm * 3)(*(self._norm(norm) for norm in layer.norms)),
            after=(_Norm * 3)(*(self._norm(norm) for norm in layer.after)),
            self_gains=self._gains(own),
            gate=_Matrix() if layer.gate is None else self._matrix(layer.gate),
            self_qkv=self._matrix(self_qkv),
            self_out=self._matrix(heads.out_of(own.output)),
            inner=self._matrix(layer.inner),
            outer=self._matrix(layer.outer),
        )
        if cross is not None:
            native_layer.cross_query = self._matrix(heads.into(cross.query))
            native_layer.cross_kv = self._matrix(
                _joined(heads.into(cross.key), heads.into(cross.value))
            )
            native_layer.cross_out = self._matrix(heads.out_of(cross.output))
            native_layer.cross_gains = self._gains(cross)
        return native_layer

    def _matrix(
        self,
        linear: Linear,
        missing: float = 0.0,
        is_packed: bool = True,
        kind: str | None = None,
    ) -> _Matrix:
        """Pack a matrix in panels, or one output behind the other, for products of the engine's own
        kind or of another.

        Outputs that only pad have the bias `missing`.
        """
        kind = kind or self.kind
        num_outputs, num_inputs = linear.stored.shape
        outputs = _filled(num_outputs)
        inputs = _filled(num_inputs)
        biases = np.full(outputs, missing, np.float32)
        biases[:num_outputs] = 0.0 if linear.bias is None else linear.bias
        scales = starts = None
        group = _PER_GROUP.get(kind) or int(self._library.decoding_int8_group())
        numbers: NDArray[Any]
        if kind == "int8":
            numbers, steps = _in_int8(linear)
            offset = np.int32(-128 if group == 4 else 0)
            scales = self._pointer(_filled_with(0.0, steps, (outputs,)))
            whole = _filled_with(0, numbers, (outputs, inputs))
            starts = self._pointer(offset * whole.sum(1, dtype=np.int32))
            whole = whole if group == 4 else whole.astype(np.int16)
        else:
            whole = _filled_with(0.0, linear.weight, (outputs, inputs))
            whole = to_bfloat16(whole) if kind == "bfloat16" else whole
        panels = whole.reshape(outputs // _lanes(), _lanes(), inputs // group, group)
        return _Matrix(
            weights=self._pointer(panels.swapaxes(1, 2) if is_packed else panels),
            scales=scales,
            starts=starts,
            bias=self._pointer(biases),
            inputs=inputs,
            outputs=outputs,
        )

    def _norm(self, norm: Norm | None) -> _Norm:
        if norm is None:
            return _Norm()
        bias = np.zeros_like(norm.gain) if norm.bias is None else norm.bias
        return _Norm(*(self._rows(part[None]) for part in (norm.gain, bias)))

    def _gains(self, attention: Attention) -> ctypes.Array[ctypes.c_void_p]:
        gains = (attention.query_gain, attention.key_gain)
        pointers = (POINTER * 2)()
        for place, gain in enumerate(gains):
            if gain is not None:
                pointers[place] = self._pointer(gain)
        return pointers

    def _rows(self, table: Floats | None) -> int | None:
        """Pad rows of d_model numbers with zeros."""
        if table is None:
            return None
        missing = _filled(table.shape[1]) - table.shape[1]
        return self._pointer(np.pad(table, ((0, 0), (0, missing))))

    def _pointer(self, array: NDArray[Any]) -> int:
        """Keep a copy that begins at a whole cache line, and return its address."""
        kept = _aligned(array)
        self._kept.append(kept)
        return kept.ctypes.data


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array, row after row, to memory that begins at a whole cache line."""
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _lanes() -> int:
    """Return how many numbers a register of this CPU holds."""
    return int(library().decoding_lanes())


def _filled(size: int) -> int:
    return -(-size // _lanes()) * _lanes()


def _in_int8(linear: Linear) -> tuple[NDArray[np.int8], Floats]:
    """Return a matrix in int8 and its scales: as a folder stores them, or quantized here."""
    if linear.scales is None:
        return quantized(linear.weight)
    return linear.stored.astype(np.int8, copy=False), linear.scales


def _filled_with(
    value: float, part: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return an array of this shape that begins with the part and is the value elsewhere."""
    whole = np.full(shape, value, part.dtype)
    whole[tuple(slice(size) for size in part.shape)] = part
    return whole


def _joined(*linears: Linear) -> Linear:
    """Join several maps of one input, their outputs behind each other."""
    stored = np.concatenate([linear.stored for linear in linears])
    biases = [linear.bias for linear in linears if linear.bias is not None]
    scales = [linear.scales for linear in linears if linear.scales is not None]
    return Linear(
        stored,
        np.concatenate(biases) if biases else None,
        np.concatenate(scales) if scales else None,
    )
