"""The activations and norms of `weft.kernels.activations` as modules of PyTorch.

The model builds its parts from them. A test holds their names to those of the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.kernels.activations import ACTIVATIONS, NORMS


class SquaredReLU(nn.Module):
    """max(x, 0) squared. Source: So et al. 2021, "Primer: Searching for Efficient Transformers",
    section 3.
    """

    def forward(self, x: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        return F.relu(x).square()


ACTIVATION_MODULES: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "relu2": SquaredReLU,
    "silu": nn.SiLU,
}

AnyNorm: TypeAlias = nn.LayerNorm | nn.RMSNorm


@dataclass(frozen=True)
class NormModule:
    """A norm of rows: its module, and how it is built, from width, eps and whether it has a
    bias.
    """

    module: type[nn.Module]
    build: Callable[[int, float, bool], AnyNorm]


def _layer_norm(width: int, eps: float, bias: bool) -> nn.LayerNorm:
    """Build the norm of Ba et al. 2016, "Layer Normalization"."""
    return nn.LayerNorm(width, eps=eps, bias=bias)


def _rms_norm(width: int, eps: float, _: bool) -> nn.RMSNorm:
    """Build the norm of Zhang and Sennrich 2019, "Root Mean Square Layer Normalization"."""
    return nn.RMSNorm(width, eps=eps)


NORM_MODULES = {
    "layer": NormModule(nn.LayerNorm, _layer_norm),
    "rms": NormModule(nn.RMSNorm, _rms_norm),
}


def names_without_native_code(model: nn.Module) -> list[str]:
    """List the activations and norms of a model that have no native code."""
    modules = {type(module) for module in model.modules()}
    missing = []
    for name, module in ACTIVATION_MODULES.items():
        if module in modules and ACTIVATIONS[name].number is None:
            missing.append(name)
    for name, norm in NORM_MODULES.items():
        if norm.module in modules and NORMS[name].centred is None:
            missing.append(name)
    return missing


def activation_name(module: nn.Module) -> str:
    """Return an activation's name in the table. Raises KeyError where it has none."""
    for name, known in ACTIVATION_MODULES.items():
        if type(module) is known:
            return name
    raise KeyError(type(module).__name__)


def norm_name(module: nn.Module) -> str:
    """Return a norm's name in the table. Raises KeyError where it has none."""
    for name, norm in NORM_MODULES.items():
        if type(module) is norm.module:
            return name
    raise KeyError(type(module).__name__)
