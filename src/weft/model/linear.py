"""Linear classifiers on sparse features: a support vector machine for each label.

Shapes: N texts, F features, C labels. Sources: Keerthi and DeCoste 2005, "A Modified Finite Newton
Method for Fast Solution of Large Scale Linear SVMs"; the objective and where it ends are those of
Fan et al. 2008, "LIBLINEAR: A Library for Large Linear Classification".
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

TOLERANCE = (
    1e-2  # of the gradient without weights, scaled by the rarer of a label's two sides
)
INNER = 0.3  # of the residual, at which a direction is good enough
MOST_NEWTON, MOST_INNER, MOST_HALVINGS = 50, 50, 20
AT_ONCE = 2**24  # weights that are solved for at a time


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of N texts by the few of F features that each has: from `begins[i]` on those of text i,
    each with its value.
    """

    begins: Int[Tensor, " N"]
    features: Int[Tensor, " M"]
    values: Float[Tensor, " M"]
    num_features: int

    def times(self, weights: Float[Tensor, "F C"]) -> Float[Tensor, "N C"]:
        """Multiply the texts' features by weights."""
        return F.embedding_bag(
            self.features,
            weights,
            self.begins,
            mode="sum",
            per_sample_weights=self.values,
        )

    @cached_property
    def turned(self) -> "Sparse":
        """Return the transpose: for each feature the texts that have it."""
        num_texts = len(self.begins)
        ends = torch.cat([self.begins[1:], torch.tensor([len(self.features)])])
        text = torch.repeat_interleave(torch.arange(num_texts), ends - self.begins)
        order = torch.argsort(self.features, stable=True)
        counts = torch.bincount(self.features, minlength=self.num_features)
        begins = counts.cumsum(0) - counts
        return Sparse(begins, text[order], self.values[order], num_texts)


def support_vector_machines(
    features: Sparse,
    has: Bool[Tensor, "N C"],
    cost: float,
    start: Float[Tensor, "F C"] | None = None,
    tolerance: float = TOLERANCE,
) -> Float[Tensor, "F C"]:
    """Return the weights of a support vector machine for each label, which says whether a text has
    it.

    They are the least of |w|^2 / 2 + cost x the sum of max(0, 1 - y w x)^2 over the texts, y being
    1 for those that have the label and -1 for the others. `start` is near to them; they are found
    where the gradient has fallen to the `tolerance`, of what it is without weights.
    """
    num_labels = has.shape[1]
    at_once = max(AT_ONCE // features.num_features, 1)
    solved = []
    for first in range(0, num_labels, at_once):
        labels = slice(first, first + at_once)
        sign = has[:, labels].float() * 2 - 1
        begin = None if start is None else start[:, labels]
        solved.append(_solved(features, sign, cost, begin, tolerance))
    return torch.cat(solved, 1)


def _solved(
    features: Sparse,
    sign: Float[Tensor, "N C"],
    cost: float,
    start: Float[Tensor, "F C"] | None,
    tolerance: float,
) -> Float[Tensor, "F C"]:
    """Find the least by Newton's method, in which each column ends for itself."""
    num_texts, num_labels = sign.shape
    shape = features.num_features, num_labels
    weights = torch.zeros(shape) if start is None else start.clone()
    margins = features.times(weights)
    positive = (sign > 0).sum(0)
    rarer = torch.minimum(positive, num_texts - positive).clamp(min=1)
    at_zero = 2 * cost * features.turned.times(sign).norm(dim=0)
    enough = tolerance * rarer / num_texts * at_zero
    for _ in range(MOST_NEWTON):
        missing = (1 - sign * margins).clamp(min=0)
        gradient = weights - 2 * cost * features.turned.times(sign * missing)
        is_open = gradient.norm(dim=0) > enough
        if not bool(is_open.any()):
            break
        within = (missing > 0).float()
        step = _direction(features, gradient * is_open, within, cost)
        moved = features.times(step)
        length = _length(sign, margins, moved, weights, step, gradient, cost)
        weights += length * step
        margins += length * moved
    return weights


def _direction(
    features: Sparse,
    gradient: Float[Tensor, "F C"],
    within: Float[Tensor, "N C"],
    cost: float,
) -> Float[Tensor, "F C"]:
    """Compute Newton's step by conjugate gradients, in which a column that is done stays as it
    is.

    The second derivative is 1 + 2 cost x the products of features over the texts `within` the
    margin.
    """
    step = torch.zeros_like(gradient)
    residual = -gradient
    search = residual.clone()
    size = residual.square().sum(0)
    enough = INNER**2 * size
    for _ in range(MOST_INNER):
        curved = within * features.times(search)
        bent = search + 2 * cost * features.turned.times(curved)
        curvature = (search * bent).sum(0)
        length = size / curvature.clamp(min=torch.finfo(size.dtype).tiny)
        step += length * search
        residual -= length * bent
        smaller = residual.square().sum(0)
        is_open = smaller > enough
        if not bool(is_open.any()):
            break
        ratio = smaller / size.clamp(min=torch.finfo(size.dtype).tiny)
        search = (residual + ratio * search) * is_open
        residual = residual * is_open
        size = smaller * is_open
    return step


def _length(
    sign: Float[Tensor, "N C"],
    margins: Float[Tensor, "N C"],
    moved: Float[Tensor, "N C"],
    weights: Float[Tensor, "F C"],
    step: Float[Tensor, "F C"],
    gradient: Float[Tensor, "F C"],
    cost: float,
) -> Float[Tensor, " C"]:
    """Cut each column's step by halves until the objective falls by it; that needs no product with
    the features.
    """
    rate = (gradient * step).sum(0)
    across = (weights * step).sum(0)
    square = step.square().sum(0)

    def rise(length: Float[Tensor, " C"]) -> Float[Tensor, " C"]:
        after = (1 - sign * (margins + length * moved)).clamp(min=0)
        shrinks = length * across + length.square() * square / 2
        return shrinks + cost * (after.square() - before).sum(0)

    before = (1 - sign * margins).clamp(min=0).square()
    scale = cost * before.sum(0) + weights.square().sum(0)
    length = torch.ones_like(rate)
    for _ in range(MOST_HALVINGS):
        # what float32 can tell of the objective
        is_too_long = rise(length) > 1e-4 * length * rate + 1e-6 * scale
        if not bool(is_too_long.any()):
            break
        length = torch.where(is_too_long, length / 2, length)
    return length
