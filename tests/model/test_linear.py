"""Support vector machines on sparse features."""

import pytest
import torch

from weft.model import linear
from weft.model.linear import Sparse, support_vector_machines

DENSE = torch.tensor(
    [
        [1, 0, 0, 1],
        [0.6, 0.8, 0, 1],
        [0, 1, 0, 1],
        [0, 0.6, 0.8, 1],
        [0, 0, 1, 1],
        [0.8, 0, 0.6, 1],
    ]
)
LABELS = torch.tensor([0, 0, 1, 1, 2, 2])
HAS = LABELS[:, None] == torch.arange(3)
# LinearSVC(C, fit_intercept=False, tol=1e-10) of scikit-learn 1.9.1, rounded; a column a label
SCIKIT_LEARN = {
    0.1: [0.1885, -0.3023, -0.0569, -0.1446],
    1.0: [0.7624, -0.9385, -0.0417, -0.2648],
    10.0: [2.2931, -2.2479, 0.6133, -1.2984],
}


def sparse(dense: torch.Tensor) -> Sparse:
    row, feature = dense.nonzero().T
    counts = torch.bincount(row, minlength=len(dense))
    begins = counts.cumsum(0) - counts
    return Sparse(begins, feature, dense[row, feature], dense.shape[1])


def random_texts(
    num_texts: int, num_features: int
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(num_texts, num_features, generator=generator)
    dense = torch.where(drawn < 0.2, drawn * 5, 0.0)
    return dense, torch.rand(num_texts, 4, generator=generator) < 0.3


@pytest.mark.parametrize("cost", SCIKIT_LEARN)
def test_weights_are_those_of_scikit_learn(cost: float) -> None:
    features = sparse(DENSE)
    weights = support_vector_machines(features, HAS, cost, tolerance=1e-6)
    first, second, third, last = SCIKIT_LEARN[cost]
    wanted = [
        [first, second, third],
        [third, first, second],
        [second, third, first],
        [last, last, last],
    ]
    assert weights.tolist() == [pytest.approx(row, abs=2e-4) for row in wanted]


@pytest.mark.parametrize("cost", [0.1, 3.0])
def test_no_other_weights_are_better(cost: float) -> None:
    """The objective is convex: at its least, its derivative (of autograd) is 0."""
    dense, has = random_texts(200, 30)
    found = support_vector_machines(sparse(dense), has, cost, tolerance=1e-6)
    weights = found.double().requires_grad_()
    missing = (1 - (has * 2.0 - 1) * (dense.double() @ weights)).clamp(min=0)
    objective = weights.square().sum() / 2 + cost * missing.square().sum()
    objective.backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    assert float(weights.grad.abs().max()) < 1e-3 * cost


def test_labels_are_solved_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, has = random_texts(60, 20)
    features = sparse(dense)
    whole = support_vector_machines(features, has, 1.0, tolerance=1e-6)
    monkeypatch.setattr(linear, "AT_ONCE", 40)
    parts = support_vector_machines(features, has, 1.0, tolerance=1e-6)
    assert torch.allclose(whole, parts, atol=1e-4)


def test_a_start_nearby_leads_to_the_same_weights() -> None:
    dense, has = random_texts(60, 20)
    features = sparse(dense)
    other = support_vector_machines(features, has, 0.3)
    begun = support_vector_machines(features, has, 1.0, other, tolerance=1e-6)
    anew = support_vector_machines(features, has, 1.0, tolerance=1e-6)
    assert torch.allclose(begun, anew, atol=1e-4)


def test_a_label_that_all_or_none_have_is_no_fault() -> None:
    has = torch.tensor([[True, False]] * len(DENSE))
    features = sparse(DENSE)
    weights = support_vector_machines(features, has, 1.0)
    margins = features.times(weights)
    assert bool((margins[:, 0] > 0).all() and (margins[:, 1] < 0).all())


def test_products_are_those_of_dense_matrices() -> None:
    dense, has = random_texts(50, 20)
    rows = sparse(dense)
    weights = torch.rand(20, 3)
    assert torch.allclose(rows.times(weights), dense @ weights, atol=1e-5)
    turned = rows.turned.times(has.float())
    assert torch.allclose(turned, dense.T @ has.float(), atol=1e-5)
