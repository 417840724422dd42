"""Matrices in int8 as CTranslate2 quantizes them, computed anew.

Each row has a scale, by which its largest number becomes 127 or -127; a number is the nearest of
255 steps then. Tables of tokens are quantized, too; biases, norms and positions are not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.ship.ctranslate2.layout import MATRIX
from weft.ship.opened import Floats
from weft.ship.tensors import Array, Arrays, Tensor, one_way

SCALE = "_scale"  # behind the name of a matrix
_MOST = np.float32(127)
# no scale is infinite, however small the numbers of a row are
_LEAST = _MOST / np.finfo(np.float32).max


def in_int8(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the arrays of the same model in int8: each matrix as the numbers that its steps stand
    for, and its scales.
    """
    found = []
    for tensor in tensors:
        if not tensor.name.endswith(MATRIX):
            found.append(tensor)
            continue
        scales = one_way(tensor, scales_of)
        found += [_rounded(tensor), replace(scales, name=f"{tensor.name}{SCALE}")]
    return found


def half_steps(tensors: Iterable[Tensor], arrays: Arrays) -> dict[str, float]:
    """Return by how much a number of each matrix may differ from Weft's: half a step of the row
    with the largest steps.
    """
    found = {}
    for tensor in tensors:
        if tensor.name.endswith(MATRIX):
            scales = scales_of(tensor.made(arrays))
            found[tensor.name] = 0.5001 / float(scales.min())
    return found


def numbers_of(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays as they stand in a file, those in int8 as the numbers that they stand for."""
    found = dict(arrays)
    for name, array in arrays.items():
        if array.dtype == np.int8 and name + SCALE in arrays:
            found[name] = _from_steps(array, arrays[name + SCALE])
    return found


def scales_of(matrix: Floats) -> Floats:
    """Compute the scale of each row: 127 by its largest number; 1 for a row of zeros."""
    largest = np.abs(matrix).max(1)
    largest[largest == 0] = _MOST
    scales: Floats = _MOST / np.maximum(largest, _LEAST)
    return scales


def steps_of(matrix: Floats) -> NDArray[np.int8]:
    """Compute the steps of each number."""
    scales = scales_of(matrix)
    nearest = np.rint(matrix * scales[:, None])
    return nearest.astype(np.int8)


def _rounded(tensor: Tensor) -> Tensor:
    """Return a matrix whose numbers are those of its steps."""
    return replace(
        tensor,
        make=lambda *arrays: _from_steps(
            steps_of(tensor.make(*arrays)), scales_of(tensor.make(*arrays))
        ),
    )


def _from_steps(steps: Array, scales: Floats) -> Floats:
    numbers: Floats = steps.astype(np.float32) / scales[:, None]
    return numbers
