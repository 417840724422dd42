"""Weights that say nothing: a look that takes in everything alike.

Shapes: weights (..., Q, K) of queries over keys, which sum to 1 over the keys.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]

FLAT = 0.97
"""From this share of the most possible entropy on, weights are flat."""


def evenness(weights: Floats, visible: NDArray[np.integer] | None = None) -> Floats:
    """Return the entropy of each query's weights as a share of the most possible, (..., Q): 1 where
    all are alike, 0 where one has everything.

    `visible` (..., Q) is how many keys a query may see, all of them without it. Of one key alone
    the share is 0.
    """
    num_keys = weights.shape[-1]
    count = np.asarray(num_keys if visible is None else visible)
    above_0 = np.where(weights > 0, weights, 1)
    products = weights * np.log(above_0)
    entropy = -products.sum(-1)
    several = np.maximum(count, 2)
    share = entropy / np.log(several)
    shares: Floats = np.where(count > 1, share, 0)
    return shares


def is_flat(
    weights: Floats, visible: NDArray[np.integer] | None = None
) -> NDArray[np.bool_]:
    """Return for each query whether its weights are flat, (..., Q)."""
    shares = evenness(weights, visible)
    return shares > FLAT


def is_flat_map(
    weights: Floats, visible: NDArray[np.integer] | None = None
) -> NDArray[np.bool_]:
    """Return for each map whether it is flat in the mean of its queries, (...)."""
    mean = evenness(weights, visible).mean(-1)
    return mean > FLAT
