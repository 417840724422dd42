"""The table of activations and norms: which there are, and what native code has of them.

Every engine goes by it: `modules.py` has their modules in PyTorch, `weft.engine.plain` their
formulas in NumPy, `vectors.h` the native code of those that have a number here. What has no native
code is computed by PyTorch in training and by NumPy in use; a run and `weft translate` say so.
CONTRIBUTING.md has the steps that add an activation or a norm.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Activation:
    """An activation: its number in vectors.h, for the engine, and in training for a gate, if GATES
    has one with it; None: it has no native code.

    Without a gate PyTorch computes it in training, whatever its number, unless `power` is set: it
    is a power of max(x, 0). The gradient is then known from the output, and the kernels compute
    both linear layers of a feed-forward part and all between them as one.
    """

    number: int | None = None
    power: int | None = None


# To add one: a line here, its module in modules.py, its formula in engine/plain.py, and its name in
# `LayerShape.activation` of config.py. Native code is a struct in vectors.h, whose number there
# then stands here.
ACTIVATIONS = {
    "relu": Activation(number=0, power=1),
    "gelu": Activation(number=1),
    "relu2": Activation(number=2, power=2),
    # for the gate of "swiglu" alone: a recipe does not name it
    "silu": Activation(number=3),
}
# Feed-forward parts with a gate, and the activation of the gate; a recipe names them as the others.
GATES = {"swiglu": "silu", "geglu": "gelu"}


@dataclass(frozen=True)
class Norm:
    """A norm of rows: whether native code takes the mean away; None: it has no native code."""

    centred: bool | None = None


# To add one: a line here, its module in modules.py, its formula in engine/plain.py, and its name in
# `LayerShape.norm` of config.py. Native code takes the mean away or does not, and divides by the
# root mean square.
NORMS = {
    "layer": Norm(centred=True),
    "rms": Norm(centred=False),
}
