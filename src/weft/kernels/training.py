"""The native forms of a training step's operations: the kernels of `training.cpp` as autograd
functions.

`weft.kernels.operations` chooses between them and the plain forms. They draw their own dropout
masks. Shapes: the legend in `weft.model.attention`; I and O are the numbers that go in and come
out, R and C rows and columns.
"""

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from weft.kernels import native

LOW = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
# None in a build without oneDNN
_ONEDNN_LINEAR: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
_counting: list[list[int]] = []  # see `counting_workspaces`
HAS_ONEDNN = _ONEDNN_LINEAR is not None
QUERIES_AT_ONCE = 16  # `Workspace::BLOCK` in training.cpp
# of logits that are worked on at a time: few enough to stay in the CPU's cache
CHUNK_ROWS = 512


@dataclass(frozen=True, eq=False)
class Kernels:
    """The kernels of one training: their library, and what they keep from step to step.

    `float32_too` says that oneDNN has the products in float32 as well. `spare` is memory for the
    gradients of logits.
    """

    library: ctypes.CDLL
    float32_too: bool = False
    spare: dict[torch.dtype, Tensor] = field(default_factory=dict)


# those of the training that this thread is in; None: PyTorch's own operations
_in_use: ContextVar[Kernels | None] = ContextVar("kernels", default=None)


@contextlib.contextmanager
def using(kernels: Kernels | None) -> Iterator[None]:
    """Take these kernels inside, forward and backward; None: PyTorch's own operations.

    It holds for this thread alone: models that other threads train or use are not touched.
    """
    before = _in_use.set(kernels)
    try:
        yield
    finally:
        _in_use.reset(before)


def is_in_use() -> bool:
    """Return whether there are kernels to call."""
    return _in_use.get() is not None


def _kernels() -> Kernels:
    """Return the kernels in use. Raises RuntimeError for a backward pass outside of `using`."""
    kernels = _in_use.get()
    if kernels is None:
        raise RuntimeError(
            "no kernels are in use here: a backward pass belongs inside `using`"
        )
    return kernels


def _has_float32_too() -> bool:
    """Return whether oneDNN has the products in float32."""
    kernels = _in_use.get()
    return kernels is not None and kernels.float32_too


def helps_products(x: Tensor) -> bool:
    """Return whether `Linears` computes x's products faster than PyTorch's own layers.

    It does in bfloat16, and in float32 where oneDNN computes them: the default BLAS needs no
    transposed copy.
    """
    return _has_float32_too() or product_type(x) == torch.bfloat16


def onednn_product(
    a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]
) -> Float[Tensor, "R C"]:
    """Compute A B by oneDNN, which on some CPUs is faster in float32 than the default BLAS."""
    return _ONEDNN_LINEAR(a, b.t(), None, "none", [], "")


@cache
def _onednn_has(kind: torch.dtype) -> bool:
    """Return whether oneDNN's linear operation has this type here; an old CPU has no bfloat16."""
    if not HAS_ONEDNN:
        return False
    zeros = torch.zeros(8, 8, dtype=kind)
    try:
        _ONEDNN_LINEAR(zeros, zeros, None, "none", [], "")
    except RuntimeError:
        return False
    return True


def product_type(x: Tensor) -> torch.dtype:
    """Return the type that x has in a product, under autocast or not."""
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return x.dtype


def applied(function: type[Function], *arguments: Any) -> Any:
    """Apply an operation and record its gradient."""
    return function.apply(*arguments)  # type: ignore[no-untyped-call]


def call(name: str, typed: Tensor, *arguments: Any) -> None:
    """Call a kernel in the form for the type of `typed`; of tensors it gets the address.

    Raises MemoryError.
    """
    kernel = getattr(_kernels().library, f"{name}_{LOW[typed.dtype]}")
    values = list(arguments)
    for i, argument in enumerate(arguments):
        if isinstance(argument, Tensor):
            values[i] = argument.data_ptr()
    native.refuse_failure(_kernels().library, kernel(*values), "native kernels")


def dropout_factors(rows: int, cols: int, p: float, seed: int) -> Float[Tensor, "R C"]:
    """Draw the factors of dropout with this seed: 0, or 1 / (1 - p)."""
    ones = torch.ones(rows, cols)
    factors = torch.empty(rows, cols)
    call("drop", ones, ones, factors, rows, cols, p, seed)
    return factors


def _draw_seed() -> int:
    """Draw a seed from torch's generator, so that what seeds it seeds the masks."""
    return int(torch.randint(2**62, ()))


class Linears(Function):
    """Several linear layers of one input as one node of the graph, and one product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        low = product_type(x)
        weights = [w for w in parameters[::2] if w is not None]
        biases = [b for b in parameters[1::2] if b is not None]
        rows = x.to(low).flatten(0, -2)
        matrix = _stacked(weights, low)
        ctx.save_for_backward(rows, matrix)
        ctx.shape = x.shape
        ctx.has_bias = bool(biases)
        ctx.widths = [len(w) for w in weights]
        out = _product(rows, matrix, torch.cat(biases) if biases else None)
        return out.view(*x.shape[:-1], -1).split_with_sizes(ctx.widths, dim=-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix = ctx.saved_tensors
        grad = _side_by_side([g.reshape(len(rows), -1) for g in grads])
        grad_weights = _weight_grad(grad, rows).split_with_sizes(ctx.widths)
        grad_biases: Sequence[Tensor | None] = [None] * len(ctx.widths)
        if ctx.has_bias:
            grad_biases = _column_sums(grad).split_with_sizes(ctx.widths)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = _times(grad, matrix).view(ctx.shape)
        pairs = zip(grad_weights, grad_biases, strict=True)
        return grad_x, *(part for pair in pairs for part in pair)


class FeedForward(Function):
    """Two linear layers with ReLU, or its square, and dropout between them.

    Of the F numbers a position it keeps only those after dropout.
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
        rows = x.to(low).flatten(0, -2)
        first = w1.to(low)
        second = w2.to(low)
        is_plain = not p and not squared
        inner = _product(rows, first, b1, then="relu" if is_plain else "none")
        if not is_plain:
            seed = _draw_seed() if p else 0
            size = inner.shape
            call("relu_dropped", inner, inner, *size, p, seed, squared)
        ctx.save_for_backward(rows, first, inner, second)
        ctx.shape = x.shape
        ctx.p = p
        ctx.squared = squared
        ctx.has_bias = b1 is not None
        out = _product(inner, second, b2)
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, first, inner, second = ctx.saved_tensors
        grad = grad.reshape(len(rows), -1).contiguous()
        grad_w2 = _weight_grad(grad, inner)
        grad_b2 = _column_sums(grad) if ctx.has_bias else None
        grad_inner = _times(grad, second)
        sums = _column_sums(grad_inner, inner, ctx.p, ctx.squared)
        grad_w1 = _weight_grad(grad_inner, rows)
        grad_b1 = sums if ctx.has_bias else None
        grad_x = _times(grad_inner, first)
        grad_x = grad_x.view(ctx.shape)
        return grad_x, grad_w1, grad_b1, grad_w2, grad_b2, None, None


def _stacked(weights: list[Tensor], low: torch.dtype) -> Tensor:
    """Join the rows of matrices, in the type of products."""
    heights = [len(w) for w in weights]
    stacked = torch.empty(sum(heights), weights[0].shape[1], dtype=low)
    parts = stacked.split_with_sizes(heights)
    for part, weight in zip(parts, weights, strict=True):
        part.copy_(weight)
    return stacked


def _product(
    rows: Tensor, matrix: Tensor, bias: Tensor | None, then: str = "none"
) -> Tensor:
    """Compute rows matrix^T + bias, `then` "relu" or "none", by oneDNN in one pass if it can."""
    shift = None if bias is None else bias.to(rows.dtype)
    if _onednn_has(rows.dtype):
        return _ONEDNN_LINEAR(rows, matrix, shift, then, [], "")
    out = F.linear(rows, matrix, shift)
    return out.relu_() if then == "relu" else out


def _times(a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]) -> Float[Tensor, "R C"]:
    """Compute A B."""
    if a.dtype == torch.float32 and _has_float32_too():
        return onednn_product(a, b)
    return a @ b


def _product_into(
    out: Float[Tensor, "R C"], a: Float[Tensor, "R I"], b: Float[Tensor, "I C"]
) -> None:
    """Compute out = A B."""
    if a.dtype == torch.float32 and _has_float32_too():
        out.copy_(onednn_product(a, b))
    else:
        torch.mm(a, b, out=out)


def _weight_grad(
    grad: Float[Tensor, "N O"], rows: Float[Tensor, "N I"]
) -> Float[Tensor, "O I"]:
    """Compute the gradient of a linear layer's weight, grad^T rows, from the output's gradient.

    A transposed copy of the narrower of both is made first: its products are faster.
    """
    n, outs = grad.shape
    ins = rows.shape[1]
    if outs <= ins:
        across = grad.new_empty(outs, n)
        call("transposed", grad, grad, across, n, outs, grad.stride(0))
        return _times(across, rows).float()
    across = rows.new_empty(ins, n)
    call("transposed", rows, rows, across, n, ins, rows.stride(0))
    product = _times(across, grad)
    out = torch.empty(outs, ins)
    call("transposed_to_float", product, product, out, ins, outs, outs)
    return out


def _column_sums(
    grad: Float[Tensor, "N O"],
    gate: Float[Tensor, "N O"] | None = None,
    p: float = 0.0,
    squared: bool = False,
) -> Float[Tensor, " O"]:
    """Sum the rows, as a bias's gradient.

    `gate` is an output of `relu_dropped`: then `grad` becomes that of its input first, in place.
    """
    sums = torch.zeros(grad.shape[1])
    step = grad.stride(0)
    call("column_sums", grad, grad, gate, p, squared, sums, *grad.shape, step)
    return sums


def _side_by_side(parts: list[Tensor]) -> Tensor:
    """Join matrices of as many rows, without a copy where they lie side by side already."""
    first = parts[0]
    step = first.stride(0)
    width = 0
    are_beside = True
    for part in parts:
        start = first.data_ptr() + first.element_size() * width
        is_next = part.data_ptr() == start
        are_beside &= is_next and part.stride() == (step, 1)
        width += part.shape[1]
    if are_beside and step >= width:
        return first.as_strided((len(first), width), (step, 1))
    return torch.cat(parts, dim=1)


class Norm(Function):
    """LayerNorm, (x - mean) / deviation * weight + bias for each row; RMSNorm unless `centred`."""

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
        size = _row_size(x)
        mean = torch.empty(size[0]) if centred else None
        inverse = torch.empty(size[0])
        call("layer_norm", out, x, weight, bias, out, mean, inverse, *size, eps)
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.has_bias = bias is not None
        return out

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        x, weight, mean, inverse = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = torch.empty_like(x)
        grad_weight = torch.zeros_like(weight)
        grad_bias = torch.zeros_like(weight) if ctx.has_bias else None
        saved = x, weight, mean, inverse
        grads = grad_x, grad_weight, grad_bias
        call("layer_norm_backward", grad, grad, *saved, *grads, *_row_size(x))
        return grad_x, grad_weight, grad_bias, None, None, None


class AddDropped(Function):
    """x + dropout(y), or dropout(y) alone; backward draws the mask again from its seed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor | None, y: Tensor, p: float) -> Tensor:
        y = y.contiguous()
        x = None if x is None else x.contiguous()
        out = torch.empty_like(y, dtype=torch.float32)
        ctx.size = _row_size(y)
        ctx.p = p
        ctx.seed = _draw_seed()
        ctx.low = y.dtype
        call("add_dropped", y, x, y, out, *ctx.size, p, ctx.seed)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None]:
        grad_x = grad if ctx.needs_input_grad[0] else None
        grad = grad.contiguous()
        grad_y = torch.empty_like(grad, dtype=ctx.low)
        call("drop", grad_y, grad, grad_y, *ctx.size, ctx.p, ctx.seed)
        return grad_x, grad_y, None


def _row_size(x: Tensor) -> tuple[int, int]:
    """Return the number of rows and their width."""
    return x.numel() // x.shape[-1], x.shape[-1]


class Gated(Function):
    """activation(gate) * inner.

    The gradients of both lie side by side, so that the product behind them reads them as one.
    """

    @staticmethod
    def forward(ctx: Any, gate: Tensor, inner: Tensor, activation: int) -> Tensor:
        ctx.shape = gate.shape
        ctx.activation = activation
        gate = gate.flatten(0, -2)
        inner = inner.flatten(0, -2)
        if not gate.stride() == inner.stride() == (gate.stride(0), 1):
            gate, inner = gate.contiguous(), inner.contiguous()
        out = torch.empty(gate.shape, dtype=gate.dtype)
        step = gate.stride(0)
        call("gated", out, gate, inner, out, *gate.shape, step, activation)
        ctx.save_for_backward(gate, inner)
        return out.view(ctx.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        gate, inner = ctx.saved_tensors
        rows, width = gate.shape
        grad = grad.reshape(rows, width).contiguous()
        grads = gate.new_empty(rows, 2, width)
        size = rows, width, gate.stride(0)
        call("gated_backward", grad, grad, gate, inner, grads, *size, ctx.activation)
        grad_inner, grad_gate = (part.view(ctx.shape) for part in grads.unbind(1))
        return grad_gate, grad_inner, None


class Rotated(Function):
    """Pairs of numbers turned by their position's angles; backward turns the gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.angles = cos, sin
        return _turned(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.angles
        return _turned(grad, cos, sin, -1.0), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, sign: float) -> Tensor:
    """Turn pairs of numbers by the angles, or by `sign` -1.0 the other way."""
    x = _dense(x)
    out = _heads_like(x)
    sizes = native.Sizes(*x.shape[:3], 0, x.shape[3])
    call("rotated", x, _heads(x), _heads(out), ctypes.byref(sizes), cos, sin, sign)
    return out


class Attention(Function):
    """Scores, softmax, dropout and the sum of values, some rows at a time.

    Backward computes the scores again: that costs less than to keep them.
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
        inputs = _dense(query), _dense(key), _dense(value)
        sizes = native.Sizes(*query.shape[:3], key.shape[2], query.shape[3])
        out = _heads_like(query)
        ctx.mask = None
        if mask is not None:
            ctx.mask = _dense(mask.expand(*query.shape[:3], key.shape[2]))
        _count_workspace(sizes, ctx.mask)
        ctx.sizes = sizes
        ctx.dropout = dropout
        ctx.seed = _draw_seed() if dropout else 0
        ctx.save_for_backward(*inputs)
        tensors = *map(_heads, inputs), _mask(ctx.mask), _heads(out)
        call("attention", query, *tensors, ctypes.byref(sizes), dropout, ctx.seed)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        inputs = ctx.saved_tensors
        grad = _dense(grad)
        grads = _grads_like(*inputs)
        heads_of_grads = map(_heads, (grad, *grads))
        tensors = *map(_heads, inputs), _mask(ctx.mask), *heads_of_grads
        sizes = ctypes.byref(ctx.sizes)
        query = inputs[0]
        call("attention_backward", query, *tensors, sizes, ctx.dropout, ctx.seed)
        return grads[0], grads[1], grads[2], None, None


@contextlib.contextmanager
def counting_workspaces() -> Iterator[list[int]]:
    """Hand out a list, to which each attention inside appends the bytes of its `Workspace`s."""
    workspaces = list[int]()
    _counting.append(workspaces)
    try:
        yield workspaces
    finally:
        _counting.pop()


def _count_workspace(sizes: native.Sizes, mask: Tensor | None) -> None:
    """Count the bytes of `Workspace` in training.cpp, of all threads.

    It has a number for each query and key, unless all queries see the same keys.
    """
    for workspaces in _counting:
        see_the_same = mask is None or mask.stride(2) == 0
        queries = 1 if see_the_same else sizes.queries
        vectors = 6 * sizes.width
        blocks = 3 * QUERIES_AT_ONCE
        numbers = (queries + vectors + blocks) * sizes.keys
        workspaces.append(4 * numbers * torch.get_num_threads())


def _dense(x: Tensor) -> Tensor:
    """Return x with each vector of d_k numbers in one piece; a copy where it is not so."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _heads_like(x: Float[Tensor, "B H L d_k"]) -> Float[Tensor, "B H L d_k"]:
    """Make an empty tensor of x's shape, in which the heads of a position lie side by side."""
    batch, heads, length, width = x.shape
    return x.new_empty(batch, length, heads, width).transpose(1, 2)


def _grads_like(*heads: Float[Tensor, "B H L d_k"]) -> list[Float[Tensor, "B H L d_k"]]:
    """Make empty tensors for the gradients of queries, keys and values.

    Gradients of what shares a piece of memory lie side by side in one, for `_side_by_side`.
    """
    places = [x.untyped_storage().data_ptr() for x in heads]
    grads: list[Tensor] = []
    while len(grads) < len(heads):
        batch, count, length, width = heads[len(grads)].shape
        joint = places.count(places[len(grads)])
        room = heads[0].new_empty(batch, length, joint, count, width)
        parts = room.transpose(1, 3).unbind(2)
        grads += parts
    return grads


def _heads(x: Tensor) -> Any:
    """Describe a tensor of (B, H, L, d_k) to a kernel; it must live as long as the call."""
    return ctypes.byref(native.Heads(x.data_ptr(), *x.stride()[:3]))


def _mask(mask: Tensor | None) -> Any:
    """Describe a mask to a kernel; None hides nothing."""
    if mask is None:
        return ctypes.byref(native.Mask())
    return ctypes.byref(native.Mask(mask.data_ptr(), *mask.stride()[:3]))


def _take_matrix(rows: int, cols: int, low: torch.dtype) -> Float[Tensor, "R C"]:
    """Take a matrix's memory from what is kept, or new memory.

    A piece of this size would come from the system anew in every step, page by page.
    """
    spare = _kernels().spare.pop(low, None)
    if spare is None or spare.numel() < rows * cols:
        spare = torch.empty(rows * cols, dtype=low)
    return spare[: rows * cols].view(rows, cols)


def _give_back(matrix: Tensor) -> None:
    """Keep the memory behind a matrix for `_take_matrix`."""
    _kernels().spare[matrix.dtype] = matrix.new_empty(0).set_(matrix.untyped_storage())


class CrossEntropy(Function):
    """Cross-entropy in blocks of rows: logits, losses and both gradients while they are in cache.

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
        rows = states.to(low).contiguous()
        matrix = weight.to(low)
        # with r_drop the rows are there twice, and a kernel reads both copies of a row
        copies = 2 if r_drop else 1
        name = "cross_entropy_twice" if r_drop else "cross_entropy"
        settings = [label_smoothing, pad_id, *([r_drop] if r_drop else [])]
        count = len(rows) // copies
        size = CHUNK_ROWS // copies
        losses = torch.empty(count, 2)
        grad_bias = torch.zeros(len(weight))
        grad_states = torch.empty_like(rows)
        grad_logits = _take_matrix(len(rows), len(weight), low)
        for first in range(0, count, size):
            end = min(first + size, count)
            chunk = slice(first, end)
            starts = range(0, len(rows), count)
            places = [slice(first + start, end + start) for start in starts]
            # the logits stand where their gradient will
            logits = [grad_logits[place] for place in places]
            for place, part in zip(places, logits, strict=True):
                _product_into(part, rows[place], matrix.t())
            of_rows = labels[chunk], losses[chunk]
            size_of = logits[0].shape
            call(name, grad_logits, *logits, bias, *of_rows, *size_of, *settings)
            for place, part in zip(places, logits, strict=True):
                _product_into(grad_states[place], part, matrix)
                if bias is not None:
                    grad_bias += _column_sums(part)
        saved_bias = grad_bias if bias is not None else None
        ctx.save_for_backward(rows, grad_states, saved_bias)
        ctx.grad_logits = grad_logits
        loss, nll = losses.double().sum(0).float()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.grad_logits is None:
            raise RuntimeError(
                "this loss cannot go back a second time: its gradients' memory was given away"
            )
        rows, grad_states, grad_bias = ctx.saved_tensors
        grad_weight = _weight_grad(ctx.grad_logits, rows).mul_(scale)
        _give_back(ctx.grad_logits)
        ctx.grad_logits = None  # another backward pass would find others' numbers in it
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_states * scale, grad_weight, scaled_bias, None, None, None, None
