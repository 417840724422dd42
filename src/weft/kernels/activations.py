"""The table of activations and norms: what they are in PyTorch, and in native code.

The model builds its parts from it, the kernels of training and the decoding engine find in it what
they have code for. What has no native code PyTorch computes, and a run and `weft translate` say so.
CONTRIBUTING.md has the steps that add an activation or a norm.
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


# To add one: a line here, and its name in `LayerShape.activation` of config.py. That runs
# everywhere, by PyTorch. Native code is a struct in vectors.h, whose number there then stands here.
ACTIVATIONS = {
    "relu": Activation(nn.ReLU, number=0, power=1),
    "gelu": Activation(nn.GELU, number=1),
    "relu2": Activation(SquaredReLU, number=2, power=2),
    # for the gate of "swiglu" alone: a recipe does not name it
    "silu": Activation(nn.SiLU, number=3),
}
# Feed-forward parts with a gate, and the activation of the gate; a recipe names them as the others.
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


# To add one: a line here, and its name in `LayerShape.norm` of config.py. That runs everywhere, by
# PyTorch; native code takes the mean away or does not, and divides by the root mean square.
NORMS = {
    "layer": Norm(nn.LayerNorm, _layer_norm, centred=True),
    "rms": Norm(nn.RMSNorm, _rms_norm, centred=False),
}


def names_without_native_code(model: nn.Module) -> list[str]:
    """List the activations and norms of a model that PyTorch computes on every machine."""
    modules = {type(module) for module in model.modules()}
    missing = [
        name
        for name, activation in ACTIVATIONS.items()
        if activation.module in modules and activation.number is None
    ]
    for name, norm in NORMS.items():
        if norm.module in modules and norm.centred is None:
            missing.append(name)
    return missing


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
