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
    count = np.asarray(weights.shape[-1] if visible is None else visible)
    logs = np.log(np.where(weights > 0, weights, 1))
    entropy = -(weights * logs).sum(-1)
    most = np.log(np.maximum(count, 2))
    shares: Floats = np.where(count > 1, entropy / most, 0)
    return shares


def is_flat(
    weights: Floats, visible: NDArray[np.integer] | None = None
) -> NDArray[np.bool_]:
    """Return for each query whether its weights are flat, (..., Q)."""
    return evenness(weights, visible) > FLAT


def is_flat_map(
    weights: Floats, visible: NDArray[np.integer] | None = None
) -> NDArray[np.bool_]:
    """Return for each map whether it is flat in the mean of its queries, (...)."""
    return evenness(weights, visible).mean(-1) > FLAT
