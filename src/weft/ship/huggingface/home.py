"""A class of the transformers library as a home: the models that it computes, and how it holds
them.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.config import LayerShape
from weft.predict.weights import sinusoids
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, same
from weft.ship.tokenizers.ids import IdMap

Reasons = Iterator[str]


class Home(ABC):
    """A class of transformers.

    `architecture` is the class, `model_type` the name of its config, `auto_class` what opens it.
    `task` is that of the models that may fit. transformers computes them from the version `since`
    on.
    """

    task: ClassVar[str]
    architecture: ClassVar[str]
    model_type: ClassVar[str]
    auto_class: ClassVar[str]
    # By trial: 4.51.3, 4.53, 4.54, 4.57.6 and 5.20 gave the logits of 5.23, older ones others for
    # some classes. A class that is younger has the first version whose package holds it.
    since: ClassVar[str] = "4.51.3"

    @abstractmethod
    def reasons(self, source: Source) -> Reasons:
        """Yield why a model does not fit, each reason with what would; nothing where it fits."""

    @abstractmethod
    def ids(self, source: Source) -> IdMap:
        """Say where Weft's ids stand."""

    @abstractmethod
    def config(self, source: Source) -> Mapping[str, Any]:
        """Return the content of config.json but what all classes have alike."""

    @abstractmethod
    def tensors(self, source: Source) -> list[Tensor]:
        """Return all arrays of model.safetensors."""

    def loose(self, source: Source) -> tuple[Mapping[str, float], str]:
        """Return the arrays that cannot be mapped back bit for bit, each with what is lost, and
        why.
        """
        return {}, ""

    def notes(self, source: Source) -> Iterator[str]:
        """Yield what a person should know who uses a model as this class."""
        yield from ()


def differing(shape: LayerShape, **taken: Sequence[Any]) -> Reasons:
    """Yield a reason for each key of the recipe whose value is none of those that a class takes."""
    for key, values in taken.items():
        own = getattr(shape, key)
        if own not in values:
            listed = " or ".join(json.dumps(value) for value in values)
            yield f"it needs model.{key} = {listed}, not {json.dumps(own)}"


def mapped(
    name: str, of: str, maps: Mapping[str, str], shape: LayerShape
) -> Iterator[Tensor]:
    """Yield the arrays of linear maps, the names there to Weft's, in a class that has biases where
    the model has.
    """
    for there, own in maps.items():
        yield same(f"{name}.{there}.weight", f"{of}.{own}.weight")
        if shape.bias:
            yield same(f"{name}.{there}.bias", f"{of}.{own}.bias")


def linear(name: str, of: str, bias: bool, outputs: int) -> Iterator[Tensor]:
    """Yield the arrays of a linear map; its bias is zeros where the model has none."""
    yield same(f"{name}.weight", f"{of}.weight")
    if bias:
        yield same(f"{name}.bias", f"{of}.bias")
    else:
        yield constant(f"{name}.bias", np.zeros(outputs, np.float32))


def layer_norm(name: str, of: str, shape: LayerShape) -> Iterator[Tensor]:
    """Yield the arrays of a LayerNorm; its bias is zeros where the model has none."""
    yield from linear(name, of, shape.bias, shape.d_model)


def positions(name: str, of: str, shape: LayerShape) -> Tensor:
    """Return a table of positions: the learned one, or what Weft computes."""
    if shape.positions == "learned":
        return same(name, f"{of}.positions.table")
    return constant(name, sinusoids(shape.max_len, shape.d_model))
