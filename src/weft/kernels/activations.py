"""The table of activations and norms: what they are in PyTorch, and in native code.

The model builds its parts from it, the kernels of training and the decoding engine find in it what
they have code for. A new entry runs everywhere by its PyTorch module, once its name is among those
that `weft.config` lets a recipe use. For native code, its struct joins those in vectors.h, and the
entry gets the struct's number there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class SquaredReLU(nn.Module):
    """max(x, 0) squared. Source: So et al. 2021, "Primer: Searching for Efficient Transformers",
    section 3.
    """

    def forward(self, x: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        return F.relu(x).square()


@dataclass(frozen=True)
class Activation:
    """An activation: its module, and its number in vectors.h; None: it has no native code.

    `power` is set where it is a power of max(x, 0). The gradient is then known from the output, and
    the kernels compute both linear layers of a feed-forward part and all between them as one.
    """

    module: type[nn.Module]
    number: int | None = None
    power: int | None = None


ACTIVATIONS = {
    "relu": Activation(nn.ReLU, number=0, power=1),
    "gelu": Activation(nn.GELU, number=1),
    "relu2": Activation(SquaredReLU, number=2, power=2),
    "silu": Activation(nn.SiLU, number=3),
}
# Feed-forward parts with a gate, and the activation of the gate.
GATES = {"swiglu": "silu", "geglu": "gelu"}

AnyNorm: TypeAlias = nn.LayerNorm | nn.RMSNorm


@dataclass(frozen=True)
class Norm:
    """A norm of rows: how it is built, from width, eps and whether it has a bias, and its module.

    `centred` says whether native code takes the mean away; None: it has no native code.
    """

    module: type[nn.Module]
    build: Callable[[int, float, bool], AnyNorm]
    centred: bool | None = None


def _layer_norm(width: int, eps: float, bias: bool) -> nn.LayerNorm:
    """Build the norm of Ba et al. 2016, "Layer Normalization"."""
    return nn.LayerNorm(width, eps=eps, bias=bias)


def _rms_norm(width: int, eps: float, _: bool) -> nn.RMSNorm:
    """Build the norm of Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"."""
    return nn.RMSNorm(width, eps=eps)


NORMS = {
    "layer": Norm(nn.LayerNorm, _layer_norm, centred=True),
    "rms": Norm(nn.RMSNorm, _rms_norm, centred=False),
}


def activation_name(module: nn.Module) -> str:
    """Return an activation's name in the table. Raises KeyError where it has none."""
    for name, activation in ACTIVATIONS.items():
        if type(module) is activation.module:
            return name
    raise KeyError(type(module).__name__)


def norm_name(module: nn.Module) -> str:
    """Return a norm's name in the table. Raises KeyError where it has none."""
    for name, norm in NORMS.items():
        if type(module) is norm.module:
            return name
    raise KeyError(type(module).__name__)
