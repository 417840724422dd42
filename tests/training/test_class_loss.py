"""The loss of whole texts: by hand, against torch's own functions, and by invariants of its
sums.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.training.loss import ClassLoss, twice

TEXTS, LABELS = 7, 5
ONE = torch.tensor([4, 0, 3, 3, 1, 2, 4])
WEIGHTS = torch.tensor([0.25, 0.5, 1.0, 2.0, 3.0])


def identity(states: Tensor) -> Tensor:
    return states


@pytest.fixture
def logits() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return (2 * torch.randn(TEXTS, LABELS, generator=generator)).requires_grad_()


@pytest.fixture
def several() -> Tensor:
    """Rows of zeros and ones: of no label, of some, of all."""
    rows = torch.randint(
        2, (TEXTS, LABELS), generator=torch.Generator().manual_seed(6)
    ).float()
    rows[0], rows[1] = 0.0, 1.0
    return rows


# One label a text


def test_without_smoothing_it_is_cross_entropy(logits: Tensor) -> None:
    sums = ClassLoss()(logits, identity, ONE)
    expected = F.cross_entropy(logits, ONE, reduction="sum")
    torch.testing.assert_close(sums.loss_sum, expected)
    torch.testing.assert_close(sums.nll_sum, expected)
    assert sums.num_tokens == TEXTS


def test_a_value_by_hand() -> None:
    """Probabilities 1/2, 1/4, 1/8, 1/8, the true label has 1/4; of a smoothing by 0.2 each label
    has 0.05.
    """
    states = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    sums = ClassLoss(label_smoothing=0.2)(states, identity, torch.tensor([1]))
    ln2 = math.log(2)
    assert float(sums.nll_sum) == pytest.approx(2 * ln2)
    assert float(sums.loss_sum) == pytest.approx(
        0.8 * 2 * ln2 + 0.05 * (1 + 2 + 3 + 3) * ln2
    )


def test_a_weighted_value_by_hand() -> None:
    """The weight of a label multiplies the loss of the texts that have it; nothing is divided by
    the weights.
    """
    states = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]).log()
    sums = ClassLoss(weights=torch.tensor([3.0, 0.5, 7.0]))(
        states, identity, torch.tensor([0, 1])
    )
    ln2 = math.log(2)
    assert float(sums.loss_sum) == pytest.approx(3.0 * ln2 + 0.5 * 2 * ln2)
    assert float(sums.nll_sum) == pytest.approx(3 * ln2)
    assert sums.num_tokens == 2


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_it_is_the_cross_entropy_to_a_smoothed_target_times_the_weight_of_the_texts_label(
    logits: Tensor, smoothing: float, weights: Tensor | None
) -> None:
    target = (1 - smoothing) * F.one_hot(ONE, LABELS) + smoothing / LABELS
    factors = torch.ones(LABELS) if weights is None else weights
    expected = -(factors[ONE, None] * target * logits.log_softmax(-1)).sum()
    sums = ClassLoss(smoothing, weights=weights)(logits, identity, ONE)
    torch.testing.assert_close(sums.loss_sum, expected)
    (ours,), (theirs,) = (
        torch.autograd.grad(loss, logits) for loss in (sums.loss_sum, expected)
    )
    torch.testing.assert_close(ours, theirs)


def test_a_smoothed_and_weighted_value_by_hand() -> None:
    """Probabilities 1/2, 1/4, 1/4; the true label is the first and has 0.8 of the target, each
    other one 0.1.
    """
    states = torch.tensor([[0.5, 0.25, 0.25]]).log()
    sums = ClassLoss(0.3, weights=torch.tensor([5.0, 70.0, 0.2]))(
        states, identity, torch.tensor([0])
    )
    ln2 = math.log(2)
    assert float(sums.loss_sum) == pytest.approx(5 * (0.8 + 2 * 0.1 + 2 * 0.1) * ln2)


@pytest.mark.parametrize("label", range(LABELS))
def test_the_best_answer_to_a_text_is_its_smoothed_label_whatever_the_weights(
    label: int,
) -> None:
    """The loss is least, its gradient 0, at the target itself: 0.92 of the label and 0.02 of each
    other one.
    """
    target = torch.full((LABELS,), 0.02)
    target[label] = 0.92
    at_best = target.log()[None].requires_grad_()
    extreme = torch.tensor([0.3, 0.3, 1.0, 40.0, 200.0])
    loss = ClassLoss(0.1, weights=extreme)(
        at_best, identity, torch.tensor([label])
    ).loss_sum
    (gradient,) = torch.autograd.grad(loss, at_best)
    torch.testing.assert_close(gradient, torch.zeros(1, LABELS), atol=1e-4, rtol=0)


def test_the_gradient_is_probabilities_less_the_target(logits: Tensor) -> None:
    (gradient,) = torch.autograd.grad(
        ClassLoss(0.1)(logits, identity, ONE).loss_sum, logits
    )
    target = 0.9 * F.one_hot(ONE, LABELS) + 0.1 / LABELS
    torch.testing.assert_close(gradient, logits.detach().softmax(-1) - target)


# Several labels a text


def test_several_labels_are_one_yes_or_no_each(logits: Tensor, several: Tensor) -> None:
    sums = ClassLoss(multi_label=True)(logits, identity, several)
    expected = F.binary_cross_entropy(logits.sigmoid(), several, reduction="sum")
    torch.testing.assert_close(sums.loss_sum, expected)
    torch.testing.assert_close(sums.nll_sum, expected.detach())
    assert sums.num_tokens == TEXTS


def test_a_value_of_several_labels_by_hand() -> None:
    """Probabilities 3/4, 1/2, 1/5 of labels that are there, not there, there; smoothed by 0.2
    towards one half.
    """
    states = torch.tensor([[0.75, 0.5, 0.2]]).logit()
    truth = torch.tensor([[1.0, 0.0, 1.0]])
    a, b, c = math.log(4 / 3), math.log(2), math.log(5)
    sums = ClassLoss(multi_label=True)(states, identity, truth)
    assert float(sums.loss_sum) == pytest.approx(a + b + c)
    smooth = ClassLoss(label_smoothing=0.2, multi_label=True)(states, identity, truth)
    otherwise = 0.1 * (math.log(4) + b + math.log(5 / 4))
    assert float(smooth.loss_sum) == pytest.approx(0.9 * (a + b + c) + otherwise)
    assert float(smooth.nll_sum) == pytest.approx(a + b + c)
    weighted = ClassLoss(multi_label=True, weights=torch.tensor([2.0, 0.5, 3.0]))(
        states, identity, truth
    )
    assert float(weighted.loss_sum) == pytest.approx(2 * a + 0.5 * b + 3 * c)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_several_labels_have_the_gradient_of_their_distance(
    logits: Tensor, several: Tensor, smoothing: float, weights: Tensor | None
) -> None:
    loss = ClassLoss(smoothing, multi_label=True, weights=weights)(
        logits, identity, several
    ).loss_sum
    (gradient,) = torch.autograd.grad(loss, logits)
    target = several * (1 - smoothing) + smoothing / 2
    factors = torch.ones(LABELS) if weights is None else weights
    torch.testing.assert_close(gradient, (logits.detach().sigmoid() - target) * factors)


def test_sure_and_wrong_is_finite() -> None:
    """A sigmoid of a large logit is 1 in float32, and the logarithm of what is left would be
    infinite.
    """
    states = torch.tensor([[200.0, -200.0]], requires_grad=True)
    sums = ClassLoss(multi_label=True)(states, identity, torch.tensor([[0.0, 1.0]]))
    assert float(sums.loss_sum.detach()) == pytest.approx(400.0)
    (gradient,) = torch.autograd.grad(sums.loss_sum, states)
    assert gradient.tolist() == [[1.0, -1.0]]


# Both


@pytest.fixture(params=["one label", "several"])
def truth(request: pytest.FixtureRequest, several: Tensor) -> Tensor:
    return ONE if request.param == "one label" else several


def loss_for(
    truth: Tensor, smoothing: float = 0.1, weights: Tensor | None = WEIGHTS
) -> ClassLoss:
    return ClassLoss(smoothing, truth.ndim == 2, weights)


def test_sums_of_texts_add_up(logits: Tensor, truth: Tensor) -> None:
    loss = loss_for(truth)
    whole = loss(logits, identity, truth)
    rows = [loss(logits[i : i + 1], identity, truth[i : i + 1]) for i in range(TEXTS)]
    torch.testing.assert_close(sum(r.loss_sum for r in rows), whole.loss_sum)
    torch.testing.assert_close(sum(r.nll_sum for r in rows), whole.nll_sum)
    assert sum(r.num_tokens for r in rows) == whole.num_tokens == TEXTS


def test_the_plain_loss_is_neither_smoothed_nor_weighted_and_has_no_gradient(
    logits: Tensor, truth: Tensor
) -> None:
    plain = loss_for(truth, 0.0, None)(logits, identity, truth)
    ours = loss_for(truth, 0.3)(logits, identity, truth)
    assert torch.equal(plain.nll_sum, ours.nll_sum)
    assert not ours.nll_sum.requires_grad
    assert ours.loss_sum.requires_grad
    assert float(ours.loss_sum.detach()) != pytest.approx(
        float(plain.loss_sum.detach())
    )


def test_permuted_labels_permute_nothing(logits: Tensor, truth: Tensor) -> None:
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = truth[:, order] if truth.ndim == 2 else order.argsort()[truth]
    before, after = loss_for(truth), loss_for(truth, weights=WEIGHTS[order])
    torch.testing.assert_close(
        after(logits[:, order], identity, moved).loss_sum,
        before(logits, identity, truth).loss_sum,
    )


def test_low_precision_logits_are_summed_in_float32(truth: Tensor) -> None:
    many = truth.repeat(1000, *[1] * (truth.ndim - 1))
    sums = loss_for(truth, 0.0, None)(
        torch.zeros(len(many), LABELS, dtype=torch.bfloat16), identity, many
    )
    assert sums.loss_sum.dtype == torch.float32
    each = LABELS * math.log(2) if truth.ndim == 2 else math.log(LABELS)
    assert float(sums.loss_sum) == pytest.approx(len(many) * each, rel=1e-5)


def test_the_output_function_makes_the_logits(logits: Tensor, truth: Tensor) -> None:
    weight = torch.randn(LABELS, LABELS, generator=torch.Generator().manual_seed(7))
    projected = loss_for(truth)(logits, lambda states: states @ weight, truth)
    direct = loss_for(truth)(logits @ weight, identity, truth)
    torch.testing.assert_close(projected.loss_sum, direct.loss_sum)


# R-Drop


def test_r_drop_of_one_label(logits: Tensor) -> None:
    other = logits.detach() * torch.linspace(0.5, 1.5, LABELS)
    sums = ClassLoss(0.1, r_drop=2.0)(torch.cat([logits, other]), identity, *twice(ONE))
    p, q = logits.log_softmax(-1), other.log_softmax(-1)
    apart = F.kl_div(p, q, log_target=True, reduction="sum") + F.kl_div(
        q, p, log_target=True, reduction="sum"
    )
    halves = [ClassLoss(0.1)(half, identity, ONE).loss_sum for half in (logits, other)]
    torch.testing.assert_close(sums.loss_sum, sum(halves) / 2 + 2.0 / 4 * apart)
    assert sums.num_tokens == TEXTS


def test_r_drop_of_several_labels(logits: Tensor, several: Tensor) -> None:
    """Each label is a yes or no of its own: its divergence is (p - q)(logit of p - logit of q)."""
    other = logits.detach() * torch.linspace(0.5, 1.5, LABELS)
    sums = ClassLoss(0.0, multi_label=True, r_drop=2.0)(
        torch.cat([logits, other]), identity, *twice(several)
    )
    apart = ((logits.sigmoid() - other.sigmoid()) * (logits - other)).sum()
    halves = [
        ClassLoss(0.0, multi_label=True)(half, identity, several).loss_sum
        for half in (logits, other)
    ]
    torch.testing.assert_close(sums.loss_sum, sum(halves) / 2 + 2.0 / 4 * apart)
