"""The types of numbers that a GGUF file is written in, by llama.cpp's names.

The package gguf makes them of float32, by the rules of llama.cpp itself. What is small stays in
float32, as in llama.cpp's own files: norms, biases, and positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import UsageError
from weft.ship.gguf.layers import POSITIONS
from weft.ship.target import load
from weft.ship.tensors import Array, Tensor


@dataclass(frozen=True)
class Precision:
    """A type of numbers: its `name` in gguf's `GGMLQuantizationType`, the number that a file of
    such has as `general.file_type`, what NumPy has them as, and how many numbers of a row share a
    scale.
    """

    name: str
    file_type: int
    dtype: type[np.generic]
    block: int = 1


PRECISIONS = {
    "float32": Precision("F32", 0, np.float32),
    "f16": Precision("F16", 1, np.float16),
    "bf16": Precision("BF16", 32, np.uint16),
    "q8_0": Precision("Q8_0", 7, np.uint8, block=32),
}


def precision_of(name: str, array: Array, asked: Precision) -> Precision:
    """Return the type in which an array is written where one is asked for.

    A matrix whose rows no blocks fill is in float16.
    """
    if array.ndim < 2 or name == POSITIONS:
        return PRECISIONS["float32"]
    if array.shape[-1] % asked.block:
        return PRECISIONS["f16"]
    return asked


def quantized(tensor: Tensor, precision: Precision) -> Tensor:
    """Return an array in another type, as a file has it: in the type's `dtype`."""
    if precision.name == "F32":
        return tensor

    def make(*arrays: Array) -> Array:
        return _quantize(tensor.name, tensor.make(*arrays), precision)

    def back(array: Array) -> Sequence[Array | None]:
        return tensor.back(dequantize(array, precision))

    return Tensor(tensor.name, tensor.of, make, back)


def largest_loss(array: Array, precision: Precision) -> float:
    """Return how far a number of an array may be from what is written for it: half a step."""
    if precision.name == "F32":
        return 0.0
    if precision.block > 1:
        blocks = np.abs(array).reshape(-1, precision.block)
        step = blocks.max() / 127
        # a scale is kept in float16, whose own half step the 127 steps up to the largest multiply
        return float(step / 2 + step * 127 * 2.0**-11)
    bits = {"F16": 11, "BF16": 8}[precision.name]
    # below the smallest normal number of float16 the steps no longer shrink
    return float(max(np.abs(array).max() * 2.0**-bits, 2.0**-25))


def read_as(content: Array, type_name: str) -> Array:
    """Return the content of an array in a file in the `dtype` of its type."""
    dtypes = {precision.name: precision.dtype for precision in PRECISIONS.values()}
    return content.view(dtypes[type_name])


def dequantize(array: Array, precision: Precision) -> Array:
    """Return the numbers that a file has, in float32."""
    gguf: Any = load("gguf")
    content = array.view(np.uint8)
    found: Array = gguf.quants.dequantize(content, type_of(precision))
    return found


def type_of(precision: Precision) -> Any:
    """Return the package's own name of a type."""
    return getattr(load("gguf").GGMLQuantizationType, precision.name)


def _quantize(name: str, array: Array, precision: Precision) -> Array:
    gguf: Any = load("gguf")
    content = np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        quantized = gguf.quants.quantize(content, type_of(precision))
    found: Array = quantized.view(precision.dtype)
    if not np.isfinite(dequantize(found, precision)).all():
        raise UsageError(
            f"--precision {precision.name.lower()}: {name} has numbers that float16 does not hold; bf16 does"
        )
    return found
