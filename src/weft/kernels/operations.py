"""The operations of a training step in two forms: the plain one in PyTorch, and the native one.

The plain forms of attention and cross-entropy are in `weft.model.attention` and
`weft.training.loss`.
The native form (`weft.kernels.training`) is taken inside `using`, on a CPU, while gradients are
recorded; it computes what the plain one does, but for rounding. Shapes: the legend in
`weft.model.attention`; I and O are the numbers that go in and come out.
"""

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.kernels import native
from weft.kernels import training as kernels
from weft.kernels.activations import ACTIVATIONS, NORMS
from weft.kernels.modules import (
    AnyNorm,
    activation_name,
    norm_name,
)

# of D numbers, in any number of dimensions
Rows: TypeAlias = Float[Tensor, "*N D"]
_PLAIN = (Tensor, nn.Parameter)  # not spread over processes


@contextlib.contextmanager
def using(wanted: bool, products: str = "blas") -> Iterator[None]:
    """Take the native forms inside, forward and backward, or the plain ones; in this thread alone.

    `products` says which library computes matrix products in float32: PyTorch's BLAS, or "onednn",
    which only the native forms use. Raises UnavailableError where there are no native forms.
    """
    chosen = None
    if wanted:
        float32_too = products == "onednn" and kernels.HAS_ONEDNN
        chosen = kernels.Kernels(native.load(), float32_too)
    with kernels.using(chosen):
        yield


def is_spread(tensor: Tensor) -> bool:
    """Return whether a tensor is spread over processes: a DTensor, whose class takes long to
    load.
    """
    return hasattr(tensor, "full_tensor")


def is_native(*tensors: Tensor) -> bool:
    """Return whether the native form is taken for these."""
    if not kernels.is_in_use() or not torch.is_grad_enabled():
        return False
    for tensor in tensors:
        is_on_cpu = type(tensor) in _PLAIN and tensor.device.type == "cpu"
        if not is_on_cpu or tensor.dtype not in kernels.LOW:
            return False
    return True


def fits_attention(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether the native attention can be taken: the kernel reads all three as one type."""
    are_alike = query.dtype == key.dtype == value.dtype
    return are_alike and is_native(query, key, value)


def linear(x: Float[Tensor, "*N I"], layer: nn.Linear) -> Float[Tensor, "*N O"]:
    """Compute x W^T + b."""
    return linears(x, layer)[0]


def linears(
    x: Float[Tensor, "*N I"], *layers: nn.Linear
) -> tuple[Float[Tensor, "*N _"], ...]:
    """Apply several linear layers to x, in one product where that is faster."""
    if not _fits_linear(x, *layers):
        return tuple(layer(x) for layer in layers)
    parameters: list[Tensor | None] = []
    for layer in layers:
        parameters += [layer.weight, layer.bias]
    out = kernels.applied(kernels.Linears, x, *parameters)
    return out if isinstance(out, tuple) else (out,)


def normed(x: Rows, norm: AnyNorm) -> Rows:
    """Apply the norm; the result has the type of products, since only they read it."""
    centred = NORMS[norm_name(norm)].centred
    if centred is None or x.dtype != torch.float32 or not is_native(x):
        return norm(x)
    weights = norm.weight, getattr(norm, "bias", None)
    low = kernels.product_type(x)
    return kernels.applied(kernels.Norm, x, *weights, norm.eps, centred, low)


def add_dropped(x: Rows, y: Rows, dropout: nn.Dropout) -> Rows:
    """Compute x + dropout(y)."""
    are_alike = x.shape == y.shape and x.dtype == torch.float32
    if not are_alike or not is_native(x, y):
        return x + dropout(y)
    p = dropout.p if dropout.training else 0.0
    if p == 0:
        return x + y
    return kernels.applied(kernels.AddDropped, x, y, p)


def dropped(x: Rows, dropout: nn.Dropout) -> Rows:
    """Compute dropout(x)."""
    is_active = dropout.training and dropout.p > 0
    if not is_active or x.dtype != torch.float32 or not is_native(x):
        return dropout(x)
    return kernels.applied(kernels.AddDropped, None, x, dropout.p)


def feed_forward(
    x: Rows,
    inner: nn.Linear,
    activation: nn.Module,
    dropout: nn.Dropout,
    outer: nn.Linear,
) -> Rows:
    """Compute outer(dropout(activation(inner(x)))); with a power of ReLU in one operation."""
    power = ACTIVATIONS[activation_name(activation)].power
    if power is None or not _fits_linear(x, inner, outer):
        between = activation(linear(x, inner))
        return linear(dropout(between), outer)
    p = dropout.p if dropout.training else 0.0
    weights = inner.weight, inner.bias, outer.weight, outer.bias
    squared = power == 2
    return kernels.applied(kernels.FeedForward, x, *weights, p, squared)


def gated(
    gate: Float[Tensor, "*N F"],
    inner: Float[Tensor, "*N F"],
    activation: nn.Module,
) -> Float[Tensor, "*N F"]:
    """Compute activation(gate) * inner."""
    number = ACTIVATIONS[activation_name(activation)].number
    are_alike = gate.dtype == inner.dtype
    if number is None or not are_alike or not is_native(gate, inner):
        return activation(gate) * inner
    return kernels.applied(kernels.Gated, gate, inner, number)


def rotated(
    x: Float[Tensor, "B H L d_k"], cos: Float[Tensor, "L _"], sin: Float[Tensor, "L _"]
) -> Float[Tensor, "B H L d_k"]:
    """Turn pairs of numbers by angles: the i-th of both halves of d_k by their position's i-th."""
    are_float32 = cos.dtype == sin.dtype == torch.float32
    if are_float32 and is_native(x, cos, sin):
        return kernels.applied(kernels.Rotated, x, cos, sin)
    cos = cos.to(x.dtype)
    sin = sin.to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    first = a * cos - b * sin
    second = b * cos + a * sin
    return torch.cat([first, second], dim=-1)


def attention(
    query: Float[Tensor, "B H T d_k"],
    key: Float[Tensor, "B H S d_k"],
    value: Float[Tensor, "B H S d_k"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "B H T d_k"]:
    """Compute attention by the native kernel; plain: `weft.model.attention.attention`."""
    return kernels.applied(kernels.Attention, query, key, value, mask, dropout)


def cross_entropy(
    states: Float[Tensor, "N D"],
    projection: nn.Linear,
    labels: Int[Tensor, " N"],
    label_smoothing: float,
    pad_id: int,
    r_drop: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Compute the summed loss and the unsmoothed loss of `projection`'s logits, by the kernel.

    The plain form is `weft.training.loss.smoothed_cross_entropy`. With `r_drop` the second half of
    the rows repeats the first, and the loss is that of `weft.training.loss.r_dropped`.
    """
    inputs = states, projection.weight, projection.bias, labels
    return kernels.applied(
        kernels.CrossEntropy, *inputs, label_smoothing, pad_id, r_drop
    )


def total_norm(tensors: Sequence[Tensor]) -> Float[Tensor, ""]:
    """Compute the Euclidean norm of all their numbers together."""
    kinds = {t.dtype for t in tensors}
    is_float32 = kinds == {torch.float32}
    if not tensors or not is_float32 or not is_native(*tensors):
        return nn.utils.get_total_norm(tensors)
    pieces = [t.contiguous() for t in tensors]
    numbers = ctypes.c_int64 * len(pieces)
    places = numbers(*(t.data_ptr() for t in pieces))
    sizes = numbers(*(t.numel() for t in pieces))
    count = len(pieces)
    sums = torch.empty(count, dtype=torch.float64)
    kernels.call("sums_of_squares", pieces[0], places, sizes, count, sums)
    return sums.sum().sqrt().float()


def _fits_linear(x: Tensor, *layers: nn.Linear) -> bool:
    have_bias = {layer.bias is not None for layer in layers}
    alike = len(have_bias) == 1
    return (
        x.numel() > 0
        and alike
        and kernels.helps_products(x)
        and is_native(x, *(layer.weight for layer in layers))
    )
