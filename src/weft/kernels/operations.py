"""The operations of a training step in two forms: the plain one in PyTorch, and the native one.

The native form (`weft.kernels.training`) is taken where `enable` allowed it, on a CPU, while
gradients are recorded; it computes what the plain one does, but for rounding. Shapes: the legend in
`weft.model.attention`; I and O are the numbers that go in and come out.
"""

import ctypes
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.kernels import native, training

_PLAIN = (Tensor, nn.Parameter)  # not spread over processes


def enable(wanted: bool, products: str = "blas") -> None:
    """Take the native forms from now on, or the plain ones. Raises UnavailableError where there are
    none.

    `products`: whose those in float32 are, PyTorch's BLAS or "onednn", which only the native forms
    use.
    """
    training.use(native.load() if wanted else None, float32_too=products == "onednn")


def is_native(*tensors: Tensor) -> bool:
    """Return whether the native form is taken for these."""
    return (
        training.is_in_use()
        and torch.is_grad_enabled()
        and all(
            type(t) in _PLAIN and t.device.type == "cpu" and t.dtype in training.LOW
            for t in tensors
        )
    )


def fits_attention(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether the native attention can be taken: the kernel reads all three as one type."""
    return is_native(query, key, value) and query.dtype == key.dtype == value.dtype


def linear(x: Float[Tensor, "*N I"], layer: nn.Linear) -> Float[Tensor, "*N O"]:
    """Compute x W^T + b."""
    return linears(x, layer)[0]


def linears(
    x: Float[Tensor, "*N I"], *layers: nn.Linear
) -> tuple[Float[Tensor, "*N _"], ...]:
    """Apply several linear layers to x, in one product where that is faster."""
    if not _fits_linear(x, *layers):
        return tuple(layer(x) for layer in layers)
    out = training.applied(
        training.Linears,
        x,
        *(p for layer in layers for p in (layer.weight, layer.bias)),
    )
    return out if isinstance(out, tuple) else (out,)


def normed(
    x: Float[Tensor, "*N D"], norm: nn.LayerNorm | nn.RMSNorm
) -> Float[Tensor, "*N D"]:
    """Apply the norm; the result has the type of products, since only they read it."""
    if is_native(x) and x.dtype == torch.float32:
        centred = isinstance(norm, nn.LayerNorm)
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        return training.applied(
            training.Norm,
            x,
            norm.weight,
            bias,
            norm.eps,
            centred,
            training.product_type(x),
        )
    return norm(x)


def add_dropped(
    x: Float[Tensor, "*N D"], y: Float[Tensor, "*N D"], dropout: nn.Dropout
) -> Float[Tensor, "*N D"]:
    """Compute x + dropout(y)."""
    if is_native(x, y) and x.dtype == torch.float32 and x.shape == y.shape:
        p = dropout.p if dropout.training else 0.0
        return training.applied(training.AddDropped, x, y, p) if p > 0 else x + y
    return x + dropout(y)


def dropped(x: Float[Tensor, "*N D"], dropout: nn.Dropout) -> Float[Tensor, "*N D"]:
    """Compute dropout(x)."""
    if is_native(x) and x.dtype == torch.float32 and dropout.training and dropout.p > 0:
        return training.applied(training.AddDropped, None, x, dropout.p)
    return dropout(x)


def feed_forward(
    x: Float[Tensor, "*N D"],
    inner: nn.Linear,
    dropout: nn.Dropout,
    outer: nn.Linear,
    squared: bool = False,
) -> Float[Tensor, "*N D"]:
    """Compute outer(dropout(max(inner(x), 0))), or with the square of the maximum."""
    if _fits_linear(x, inner, outer):
        p = dropout.p if dropout.training else 0.0
        return training.applied(
            training.FeedForward,
            x,
            inner.weight,
            inner.bias,
            outer.weight,
            outer.bias,
            p,
            squared,
        )
    between = F.relu(inner(x))
    return outer(dropout(between.square() if squared else between))


def gated(
    gate: Float[Tensor, "*N F"],
    inner: Float[Tensor, "*N F"],
    activation: nn.SiLU | nn.GELU,
) -> Float[Tensor, "*N F"]:
    """Compute activation(gate) * inner."""
    if is_native(gate, inner) and gate.dtype == inner.dtype:
        return training.applied(
            training.Gated, gate, inner, isinstance(activation, nn.GELU)
        )
    return activation(gate) * inner


def rotated(
    x: Float[Tensor, "B H L K"], cos: Float[Tensor, "L _"], sin: Float[Tensor, "L _"]
) -> Float[Tensor, "B H L K"]:
    """Turn pairs of numbers by angles: the i-th of both halves of K by their position's i-th."""
    if is_native(x, cos, sin) and cos.dtype == sin.dtype == torch.float32:
        return training.applied(training.Rotated, x, cos, sin)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attention(
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "B H T K"]:
    """Compute attention by the native kernel; plain: `weft.model.attention.attention`."""
    return training.applied(training.Attention, query, key, value, mask, dropout)


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
    return training.applied(
        training.CrossEntropy, *inputs, label_smoothing, pad_id, r_drop
    )


def total_norm(tensors: Sequence[Tensor]) -> Float[Tensor, ""]:
    """Compute the Euclidean norm of all their numbers together."""
    is_float32 = all(t.dtype == torch.float32 for t in tensors)
    if not tensors or not is_float32 or not is_native(*tensors):
        return nn.utils.get_total_norm(tensors)
    pieces = [t.contiguous() for t in tensors]
    numbers = ctypes.c_int64 * len(pieces)
    places = numbers(*(t.data_ptr() for t in pieces))
    sizes = numbers(*(t.numel() for t in pieces))
    sums = torch.empty(len(pieces), dtype=torch.float64)
    training.call("sums_of_squares", pieces[0], places, sizes, len(pieces), sums)
    return sums.sum().sqrt().float()


def _fits_linear(x: Tensor, *layers: nn.Linear) -> bool:
    alike = len({layer.bias is None for layer in layers}) == 1
    return (
        x.numel() > 0
        and alike
        and training.helps_products(x)
        and is_native(x, *(layer.weight for layer in layers))
    )
