"""Flash attention over texts of different lengths that lie end to end: PyTorch's, on GPUs that are
new enough.

Shapes: the legend in `weft.model.attention`; T and S are numbers of tokens of M texts together.
Source: Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
Partitioning".
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

try:  # since PyTorch 2.10
    from torch.nn.attention.varlen import varlen_attn as _varlen_attn
except ImportError:
    _varlen_attn = None  # type: ignore[assignment]

AMPERE = (8, 0)  # the oldest of NVIDIA's generations that it runs on
# numbers of a head: at most so many, and a multiple of so many
WIDEST_HEAD, STEP = 256, 8


def is_available(device: torch.device) -> bool:
    """Return whether there is such a kernel here."""
    if (
        _varlen_attn is None
        or device.type != "cuda"
        or torch.version.hip
        or not torch.cuda.is_available()
    ):
        return False
    return torch.cuda.get_device_capability(device) >= AMPERE


def fits(*heads: Tensor) -> bool:
    """Return whether it takes these: all in one type of half precision, and of a width that it
    knows.
    """
    kind, width, device = heads[0].dtype, heads[0].shape[-1], heads[0].device
    return (
        kind in (torch.bfloat16, torch.float16)
        and all(
            (x.dtype, x.shape[-1], x.device) == (kind, width, device) for x in heads
        )
        and width <= WIDEST_HEAD
        and width % STEP == 0
        and is_available(device)
    )


def attention(
    query: Float[Tensor, "T H K"],
    key: Float[Tensor, "S H K"],
    value: Float[Tensor, "S H K"],
    bounds: tuple[Int[Tensor, " _"], Int[Tensor, " _"]],
    longest: tuple[int, int],
    causal: bool,
) -> Float[Tensor, "T H K"]:
    """Each query looks at the keys of its own text, if `causal` at none after its own place.

    `bounds`, in int32, are where each text begins, of queries and of keys, and the end; `longest`
    is the length of the longest text of each.
    """
    # how far to the left and to the right; -1: all the way
    window = (-1, 0) if causal else (-1, -1)
    call: Any = _varlen_attn
    return call(query, key, value, *bounds, *longest, window_size=window)
