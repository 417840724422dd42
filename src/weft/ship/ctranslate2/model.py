"""The files of a model: `model.bin`, the names of its ids, and its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.config import LayerShape
from weft.ship.ctranslate2.quantized import half_steps, in_int8
from weft.ship.ctranslate2.spec import Specification, Tokens
from weft.ship.source import Source
from weft.ship.tensors import Tensor, make_all

WHY_LOOSE = "within half a step, of which a row has 255"


@dataclass(frozen=True)
class ModelWritten:
    """The arrays of a `model.bin`; in int8 the matrices, whose numbers are steps, each with half of
    one.
    """

    tensors: Sequence[Tensor]
    loose: Mapping[str, float]


def write_model(
    source: Source,
    tensors: Sequence[Tensor],
    tokens: Tokens,
    place: Path,
    precision: str,
) -> ModelWritten:
    """Write the model into a folder."""
    shape = source.shape
    assert isinstance(shape, LayerShape)
    arrays = make_all(tensors, source.arrays)
    specification = Specification(shape, tokens)
    specification.fill(arrays)
    settings = specification.settings(arrays)
    specification.save(place, precision)
    if precision == "float32":
        return ModelWritten([*tensors, *settings], {})
    loose = half_steps(tensors, source.arrays)
    return ModelWritten([*in_int8(tensors), *settings], loose)
