"""The native forms of a training step's operations: the kernels of `training.cpp` as autograd
functions.

`weft.kernels.operations` chooses between them and the plain forms. They draw their own dropout
masks. Shapes: the legend in `weft.model.attention`; I and O are the numbers that go in and come
out, R and C rows and columns.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from weft.kernels import native

LOW = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_library: ctypes.CDLL | None = None
_float32_too = False  # whether products in float32 are oneDNN's
# None in a build without oneDNN
_ONEDNN_LINEAR: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
# memory for gradients of logits, kept from one step to the next
_spare: dict[torch.dtype, Tensor] = {}
_counting: list[list[int]] = []  # see `counting_rooms`
HAS_ONEDNN = _ONEDNN_LINEAR is not None
QUERIES_AT_ONCE = 16  # `Room::BLOCK` in training.cpp
# of logits that are worked on at a time: few enough to stay near the processor
CHUNK_ROWS = 512


def use(library: ctypes.CDLL | None, float32_too: bool) -> None:
    """Call this library from now on; `float32_too`: oneDNN has the products in float32 as well."""
    # switches for the process, like torch.set_num_threads
    global _library, _float32_too
    _library, _float32_too = library, float32_too and HAS_ONEDNN
    if library is None:
        _spare.clear()


def is_in_use() -> bool:
    """Return whether there is a library to call."""
    return _library is not None


def helps_products(x: Tensor) -> bool:
    """Return whether products are better taken here than by the BLAS.

    It reads across in float32 at full speed as well.
    """
    return _float32_too or product_type(x) == torch.bfloat16


def onednn_product(
    a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]
) -> Float[Tensor, "R C"]:
    """Return a B by oneDNN, whose products in float32 are on some processors faster than the
    default BLAS's.
    """
    return _ONEDNN_LINEAR(a, b.t(), None, "none", [], "")


@cache
def _onednn_has(kind: torch.dtype) -> bool:
    """Return whether oneDNN's linear form computes in this type here: on an older processor it has
    no bfloat16.
    """
    if not HAS_ONEDNN:
        return False
    try:
        _ONEDNN_LINEAR(
            torch.zeros(8, 8, dtype=kind),
            torch.zeros(8, 8, dtype=kind),
            None,
            "none",
            [],
            "",
        )
    except RuntimeError:
        return False
    return True


def product_type(x: Tensor) -> torch.dtype:
    """Return the type that x has in a product, under autocast or not."""
    return (
        torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    )


def applied(function: type[Function], *arguments: Any) -> Any:
    """Apply an operation and record its gradient."""
    return function.apply(*arguments)  # type: ignore[no-untyped-call]


def call(name: str, typed: Tensor, *arguments: Any) -> None:
    """Call a kernel in the form for the type of `typed`. Raises MemoryError where there is too
    little.
    """
    given = [a.data_ptr() if isinstance(a, Tensor) else a for a in arguments]
    refuse_failure(getattr(_library, f"{name}_{LOW[typed.dtype]}")(*given))


def refuse_failure(status: int) -> None:
    """Raise what a kernel's status says, if that is not 0; see `guarded` in vectors.h."""
    if status == 1:
        raise MemoryError("native kernels")
    if status:
        raise RuntimeError(
            f"native kernels failed with status {status}; please report this"
        )


def dropout_factors(rows: int, cols: int, p: float, seed: int) -> Float[Tensor, "R C"]:
    """Draw what the native forms multiply with: 0, or 1 / (1 - p)."""
    ones, factors = torch.ones(rows, cols), torch.empty(rows, cols)
    call("drop", ones, ones, factors, rows, cols, p, seed)
    return factors


def _draw_seed() -> int:
    """Draw a seed from torch's generator, so that what seeds it seeds the masks."""
    return int(torch.randint(2**62, ()))


class Linears(Function):
    """The product of several layers as one node, in the place of several casts, products and
    sums.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        low = product_type(x)
        weights, biases = (
            parameters[::2],
            [b for b in parameters[1::2] if b is not None],
        )
        rows = x.to(low).flatten(0, -2)
        matrix = _stacked([w for w in weights if w is not None], low)
        ctx.save_for_backward(rows, matrix)
        ctx.shape, ctx.has_bias = x.shape, bool(biases)
        ctx.widths = [len(w) for w in weights if w is not None]
        out = _product(rows, matrix, torch.cat(biases) if biases else None)
        return out.view(*x.shape[:-1], -1).split_with_sizes(ctx.widths, dim=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        given = _side_by_side([g.reshape(len(rows), -1) for g in gradients])
        to_weights = _to_weight(given, rows).split_with_sizes(ctx.widths)
        to_biases = (
            _column_sums(given).split_with_sizes(ctx.widths)
            if ctx.has_bias
            else [None] * len(to_weights)
        )
        to_x = (
            _times(given, matrix).view(ctx.shape) if ctx.needs_input_grad[0] else None
        )
        return to_x, *(
            t for pair in zip(to_weights, to_biases, strict=True) for t in pair
        )


class FeedForward(Function):
    """Both products and what is between them; of the F numbers a position only those after dropout
    are kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w1: Tensor,
        b1: Tensor | None,
        w2: Tensor,
        b2: Tensor | None,
        p: float,
        squared: bool,
    ) -> Tensor:
        low = product_type(x)
        rows, first, second = x.to(low).flatten(0, -2), w1.to(low), w2.to(low)
        inner = _product(rows, first, b1, then="none" if p or squared else "relu")
        if p or squared:
            call(
                "relu_dropped",
                inner,
                inner,
                *inner.shape,
                p,
                _draw_seed() if p else 0,
                squared,
            )
        ctx.save_for_backward(rows, first, inner, second)
        ctx.shape, ctx.p, ctx.squared, ctx.has_bias = (
            x.shape,
            p,
            squared,
            b1 is not None,
        )
        return _product(inner, second, b2).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, first, inner, second = ctx.saved_tensors
        given = gradient.reshape(len(rows), -1).contiguous()
        to_second = (
            _to_weight(given, inner),
            _column_sums(given) if ctx.has_bias else None,
        )
        between = _times(given, second)
        sums = _column_sums(between, inner, ctx.p, ctx.squared)
        to_first = _to_weight(between, rows), sums if ctx.has_bias else None
        return _times(between, first).view(ctx.shape), *to_first, *to_second, None, None


def _stacked(weights: list[Tensor], low: torch.dtype) -> Tensor:
    """Order the rows of matrices below each other, in the type of products."""
    stacked = torch.empty(sum(map(len, weights)), weights[0].shape[1], dtype=low)
    for part, weight in zip(
        stacked.split_with_sizes([len(w) for w in weights]), weights, strict=True
    ):
        part.copy_(weight)
    return stacked


def _product(
    rows: Tensor, matrix: Tensor, bias: Tensor | None, then: str = "none"
) -> Tensor:
    """Compute rows x matrix^T + bias, `then` "relu" or "none".

    One pass where PyTorch has oneDNN's form of it.
    """
    shift = None if bias is None else bias.to(rows.dtype)
    if _onednn_has(rows.dtype):
        return _ONEDNN_LINEAR(rows, matrix, shift, then, [], "")
    out = F.linear(rows, matrix, shift)
    return out.relu_() if then == "relu" else out


def _times(a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]) -> Float[Tensor, "R C"]:
    """Return a B."""
    return onednn_product(a, b) if _float32_too and a.dtype == torch.float32 else a @ b


def _product_into(
    out: Float[Tensor, "R C"], a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]
) -> None:
    """Compute out = A B."""
    if _float32_too and a.dtype == torch.float32:
        out.copy_(onednn_product(a, b))
    else:
        torch.mm(a, b, out=out)


def _to_weight(
    given: Float[Tensor, "N O"], rows: Float[Tensor, "N I"]
) -> Float[Tensor, "O I"]:
    """Return the gradient of a linear layer's weight, given^T rows; products of a transposed copy
    are faster.
    """
    (n, outs), ins = given.shape, rows.shape[1]
    if outs <= ins:
        across = given.new_empty(outs, n)
        call("transposed", given, given, across, n, outs, given.stride(0))
        return _times(across, rows).float()
    across, gradient = rows.new_empty(ins, n), torch.empty(outs, ins)
    call("transposed", rows, rows, across, n, ins, rows.stride(0))
    turned = _times(across, given)
    call("transposed_to_float", turned, turned, gradient, ins, outs, outs)
    return gradient


def _column_sums(
    given: Float[Tensor, "N O"],
    gate: Float[Tensor, "N O"] | None = None,
    p: float = 0.0,
    squared: bool = False,
) -> Float[Tensor, " O"]:
    """Return the sum of the rows.

    With a gate, what came out of `relu_dropped`, they first pass back through it.
    """
    sums = torch.zeros(given.shape[1])
    call(
        "column_sums",
        given,
        given,
        gate,
        p,
        squared,
        sums,
        *given.shape,
        given.stride(0),
    )
    return sums


def _side_by_side(parts: list[Tensor]) -> Tensor:
    """Join matrices of as many rows, without a copy where they lie side by side already."""
    first, step = parts[0], parts[0].stride(0)
    starts = [
        first.data_ptr() + first.element_size() * sum(p.shape[1] for p in parts[:i])
        for i in range(len(parts))
    ]
    width = sum(p.shape[1] for p in parts)
    together = all(
        p.data_ptr() == start and p.stride() == (step, 1)
        for p, start in zip(parts, starts, strict=True)
    )
    if together and step >= width:
        return first.as_strided((len(first), width), (step, 1))
    return torch.cat(parts, dim=1)


class Norm(Function):
    """(x - mean) / deviation * weight + bias for each row, or RMSNorm's form without mean and
    bias.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        eps: float,
        centred: bool,
        low: torch.dtype,
    ) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x, dtype=low)
        rows, cols = x.numel() // x.shape[-1], x.shape[-1]
        mean, inverse = torch.empty(rows) if centred else None, torch.empty(rows)
        call("layer_norm", out, x, weight, bias, out, mean, inverse, rows, cols, eps)
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.has_bias = bias is not None
        return out

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        x, weight, mean, inverse = ctx.saved_tensors
        given, to_x = gradient.contiguous(), torch.empty_like(x)
        to_weight = torch.zeros_like(weight)
        to_bias = torch.zeros_like(weight) if ctx.has_bias else None
        size = (x.numel() // x.shape[-1], x.shape[-1])
        call(
            "layer_norm_backward",
            given,
            given,
            x,
            weight,
            mean,
            inverse,
            to_x,
            to_weight,
            to_bias,
            *size,
        )
        return to_x, to_weight, to_bias, None, None, None


class AddDropped(Function):
    """x + dropout(y), or dropout(y) alone; the mask is not kept but drawn again on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor | None, y: Tensor, p: float) -> Tensor:
        y, seed = y.contiguous(), _draw_seed()
        x = None if x is None else x.contiguous()
        out = torch.empty_like(y, dtype=torch.float32)
        size = (y.numel() // y.shape[-1], y.shape[-1])
        call("add_dropped", y, x, y, out, *size, p, seed)
        ctx.size, ctx.p, ctx.seed, ctx.low = size, p, seed, y.dtype
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        given = gradient.contiguous()
        to_y = torch.empty_like(given, dtype=ctx.low)
        call("drop", to_y, given, to_y, *ctx.size, ctx.p, ctx.seed)
        return gradient if ctx.needs_input_grad[0] else None, to_y, None


class Gated(Function):
    """activation(gate) * inner; the gradients of both lie side by side, as one product reads
    them.
    """

    @staticmethod
    def forward(ctx: Any, gate: Tensor, inner: Tensor, is_gelu: bool) -> Tensor:
        ctx.shape, ctx.is_gelu = gate.shape, is_gelu
        gate, inner = gate.flatten(0, -2), inner.flatten(0, -2)
        if not gate.stride() == inner.stride() == (gate.stride(0), 1):
            gate, inner = gate.contiguous(), inner.contiguous()
        out = torch.empty(gate.shape, dtype=gate.dtype)
        call("gated", out, gate, inner, out, *gate.shape, gate.stride(0), is_gelu)
        ctx.save_for_backward(gate, inner)
        return out.view(ctx.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        gate, inner = ctx.saved_tensors
        given = gradient.reshape(gate.shape).contiguous()
        to = gate.new_empty(len(gate), 2, gate.shape[1])
        call(
            "gated_backward",
            given,
            given,
            gate,
            inner,
            to,
            *gate.shape,
            gate.stride(0),
            ctx.is_gelu,
        )
        to_inner, to_gate = (part.view(ctx.shape) for part in to.unbind(1))
        return to_gate, to_inner, None


class Rotated(Function):
    """Pairs of numbers turned by their position's angles, and back again for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.angles = cos, sin
        return _turned(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.angles
        return _turned(gradient, cos, sin, -1.0), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, way: float) -> Tensor:
    x, out = _dense(x), _heads_like(x)
    sizes = native.Sizes(*x.shape[:3], 0, x.shape[3])
    call("rotated", x, _heads(x), _heads(out), ctypes.byref(sizes), cos, sin, way)
    return out


class Attention(Function):
    """Scores, softmax, dropout and the sum of values, some rows at a time; the way back computes
    scores anew.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        dropout: float,
    ) -> Tensor:
        query, key, value = _dense(query), _dense(key), _dense(value)
        sizes = native.Sizes(*query.shape[:3], key.shape[2], query.shape[3])
        out = _heads_like(query)
        ctx.mask = (
            None
            if mask is None
            else _dense(mask.expand(*query.shape[:3], key.shape[2]))
        )
        _count_room(sizes, ctx.mask)
        ctx.sizes, ctx.dropout, ctx.seed = (
            sizes,
            dropout,
            _draw_seed() if dropout else 0,
        )
        ctx.save_for_backward(query, key, value)
        heads = [_heads(t) for t in (query, key, value)]
        call(
            "attention",
            query,
            *heads,
            _mask(ctx.mask),
            _heads(out),
            ctypes.byref(sizes),
            dropout,
            ctx.seed,
        )
        return out

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value = ctx.saved_tensors
        gradient = _dense(gradient)
        to = _room_for(query, key, value)
        heads = [_heads(t) for t in (query, key, value)]
        rest = [_heads(t) for t in (gradient, *to)]
        sizes = ctypes.byref(ctx.sizes)
        call(
            "attention_backward",
            query,
            *heads,
            _mask(ctx.mask),
            *rest,
            sizes,
            ctx.dropout,
            ctx.seed,
        )
        return to[0], to[1], to[2], None, None


@contextlib.contextmanager
def counting_rooms() -> Iterator[list[int]]:
    """Hand out a list that gets the bytes which the threads of each attention inside take on the
    way back.
    """
    rooms = list[int]()
    _counting.append(rooms)
    try:
        yield rooms
    finally:
        _counting.pop()


def _count_room(sizes: native.Sizes, mask: Tensor | None) -> None:
    """Count what `Room` in training.cpp holds.

    A number for each query and key, unless all queries see the same keys.
    """
    for rooms in _counting:
        queries = 1 if mask is None or mask.stride(2) == 0 else sizes.queries
        numbers = (queries + 6 * sizes.width + 3 * QUERIES_AT_ONCE) * sizes.keys
        rooms.append(4 * numbers * torch.get_num_threads())


def _dense(x: Tensor) -> Tensor:
    """Make each vector of K lie in one piece."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _heads_like(x: Float[Tensor, "B H L K"]) -> Float[Tensor, "B H L K"]:
    """Make room for a like tensor in which the heads of a position lie side by side."""
    batch, heads, length, width = x.shape
    return x.new_empty(batch, length, heads, width).transpose(1, 2)


def _room_for(*heads: Float[Tensor, "B H L K"]) -> list[Float[Tensor, "B H L K"]]:
    """Make room for the like of each tensor.

    What shares a piece of memory gets it side by side, for `_side_by_side`.
    """
    places = [x.untyped_storage().data_ptr() for x in heads]
    room: list[Tensor] = []
    while len(room) < len(heads):
        batch, count, length, width = heads[len(room)].shape
        joint = places.count(places[len(room)])
        parts = heads[0].new_empty(batch, length, joint, count, width)
        room += [parts[:, :, i].transpose(1, 2) for i in range(joint)]
    return room


def _heads(x: Tensor) -> Any:
    return ctypes.byref(native.Heads(x.data_ptr(), *x.stride()[:3]))


def _mask(mask: Tensor | None) -> Any:
    return ctypes.byref(
        native.Mask()
        if mask is None
        else native.Mask(mask.data_ptr(), *mask.stride()[:3])
    )


def _taken(rows: int, cols: int, low: torch.dtype) -> Float[Tensor, "R C"]:
    """Take room for a matrix from what is kept.

    So large a piece would come from the system anew in every step, page by page.
    """
    spare = _spare.pop(low, None)
    if spare is None or spare.numel() < rows * cols:
        spare = torch.empty(rows * cols, dtype=low)
    return spare[: rows * cols].view(rows, cols)


def _give_back(matrix: Tensor) -> None:
    whole = matrix.new_empty(0).set_(matrix.untyped_storage())
    _spare[matrix.dtype] = whole


class CrossEntropy(Function):
    """The cross-entropy in blocks of rows: logits, losses and both gradients while they are in
    cache.

    Of the whole batch nothing of the logits' size exists but their gradient, in the type of
    products.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        label_smoothing: float,
        pad_id: int,
        r_drop: float,
    ) -> tuple[Tensor, Tensor]:
        low = product_type(states)
        rows, matrix = states.to(low).contiguous(), weight.to(low)
        copies = 2 if r_drop else 1
        count, size = len(rows) // copies, CHUNK_ROWS // copies
        name, weights = (
            ("cross_entropy_twice", [r_drop]) if r_drop else ("cross_entropy", [])
        )
        losses, sums = torch.empty(count, 2), torch.zeros(len(weight))
        to_states, slope = torch.empty_like(rows), _taken(len(rows), len(weight), low)
        for first in range(0, count, size):
            part = slice(first, min(first + size, count))
            parts = [
                slice(part.start + shift, part.stop + shift)
                for shift in range(0, len(rows), count)
            ]
            for own in parts:
                _product_into(slope[own], rows[own], matrix.t())
            logits, shape = [slope[own] for own in parts], slope[part].shape
            call(
                name,
                slope,
                *logits,
                bias,
                labels[part],
                losses[part],
                *shape,
                label_smoothing,
                pad_id,
                *weights,
            )
            for own in parts:
                _product_into(to_states[own], slope[own], matrix)
                if bias is not None:
                    sums += _column_sums(slope[own])
        ctx.save_for_backward(rows, to_states, sums if bias is not None else None)
        ctx.slope = slope
        loss, nll = losses.double().sum(0).float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.slope is None:
            raise RuntimeError(
                "this loss cannot go back a second time: its gradients' memory was given away"
            )
        rows, to_states, sums = ctx.saved_tensors
        to_weight = _to_weight(ctx.slope, rows).mul_(scale)
        _give_back(ctx.slope)
        ctx.slope = None  # another backward pass would find others' numbers in it
        return (
            to_states * scale,
            to_weight,
            None if sums is None else sums * scale,
            None,
            None,
            None,
            None,
        )
