"""The options of a model's layers that a class of transformers computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.config import LayerShape
from weft.ship.huggingface.home import Reasons, differing

# what the library calls an activation; that of a gate by the name of the gate
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "relu2": "relu2",
    "swiglu": "silu",
    "geglu": "gelu",
}
GATED = ("swiglu", "geglu")
UNGATED = ("relu", "gelu", "relu2")
ADDED = ("sinusoidal", "learned")

# options that few classes have
_RARE: Mapping[str, Sequence[Any]] = {
    "sandwich_norm": (False,),
    "query_key_norm": (False,),
    "embedding_norm": (False,),
}


@dataclass(frozen=True)
class Takes:
    """The values of options that a class takes, by the options' names: of one that is not named any
    value, or none where it is rare.

    `groups` says whether several heads may share keys and values, `any_width` whether heads may
    have another width than d_model / num_heads, which must be a whole number unless
    `any_quotient`.
    """

    options: Mapping[str, Sequence[Any]]
    groups: bool = False
    any_width: bool = False
    any_quotient: bool = False

    def reasons(self, shape: LayerShape) -> Reasons:
        """Yield each option whose value is none of those that the class takes."""
        yield from differing(shape, **{**_RARE, **self.options})
        if shape.key_value_heads != shape.num_heads and not self.groups:
            yield "it needs model.num_key_value_heads = model.num_heads"
        if shape.dim_of_head * shape.num_heads != shape.d_model and not self.any_width:
            yield "it needs model.head_dim = model.d_model / model.num_heads"
        elif shape.d_model % shape.num_heads and not self.any_quotient:
            yield "it needs a model.d_model that model.num_heads divides"
