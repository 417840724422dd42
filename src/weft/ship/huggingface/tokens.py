"""The table of tokens in classes that take a token's vector as it is, where Weft multiplies it by
sqrt(D) (`model.scale_embeddings`): there the table itself is multiplied.

Shapes: D d_model, V vocabulary.
"""

import math
from collections.abc import Mapping

import numpy as np

from weft.config import LayerShape
from weft.ship.tensors import Array, Tensor, one_way, same, scaled

WHY_LOOSE = (
    "the table of tokens is multiplied by sqrt(d_model), as this class does not do it"
)


def input_table(name: str, of: str, shape: LayerShape, has_copy: bool) -> Tensor:
    """Return the table (V, D) whose rows are looked up; `has_copy`: another array has Weft's own
    numbers, so that they need not be found in this one.
    """
    table = same(name, of)
    if not shape.scale_embeddings:
        return table
    factor = math.sqrt(shape.d_model)
    if has_copy and not _is_exact(factor):
        return one_way(table, lambda array: array * np.float32(factor))
    return scaled(table, factor)


def loose_table(
    name: str, array: Array, shape: LayerShape, has_copy: bool
) -> tuple[Mapping[str, float], str]:
    """Return what is lost of Weft's numbers in such a table, as `Home.loose` says it.

    A product and a quotient are rounded, each by at most half a unit in the last place.
    """
    if not shape.scale_embeddings or has_copy or _is_exact(math.sqrt(shape.d_model)):
        return {}, ""
    largest = np.abs(array).max()
    return {name: float(np.spacing(largest))}, WHY_LOOSE


def _is_exact(factor: float) -> bool:
    """Return whether a product with this number is never rounded: a power of two."""
    return math.frexp(factor)[0] == 0.5
