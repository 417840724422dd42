"""The loss against F.cross_entropy, against the Kullback-Leibler divergence, and by invariants of
its sums.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.training.loss import (
    CHUNK_ROWS,
    CrossEntropy,
    divergence,
    smoothed_cross_entropy,
    smoothed_target,
    twice,
)

PAD, VOCAB = 0, 11
TGT_OUT = torch.tensor([[5, 7, 3], [4, 3, PAD], [3, PAD, PAD]])
REAL = 6


def identity(states: Tensor) -> Tensor:
    return states


@pytest.fixture
def logits() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    values = 3 * torch.randn(
        *TGT_OUT.shape, VOCAB, generator=generator, dtype=torch.float32
    )
    return values.requires_grad_()


def test_without_smoothing_it_is_cross_entropy(logits: Tensor) -> None:
    sums = CrossEntropy(pad_id=PAD)(logits, identity, TGT_OUT)
    expected = F.cross_entropy(
        logits.flatten(0, 1), TGT_OUT.flatten(), ignore_index=PAD, reduction="sum"
    )
    torch.testing.assert_close(sums.loss_sum, expected)
    torch.testing.assert_close(sums.nll_sum, expected)
    assert sums.num_tokens == REAL


def test_a_value_by_hand() -> None:
    """Four entries with probabilities 1/2, 1/4, 1/8, 1/8; the true one has 1/4; padding is entry
    0.
    """
    states = torch.tensor([[[0.5, 0.25, 0.125, 0.125]]]).log()
    sums = CrossEntropy(label_smoothing=0.2)(states, identity, torch.tensor([[1]]))
    ln2 = math.log(2)
    assert float(sums.nll_sum) == pytest.approx(2 * ln2)
    assert float(sums.loss_sum.detach()) == pytest.approx(
        0.8 * 2 * ln2 + 0.1 * 3 * ln2 + 0.1 * 3 * ln2
    )


@pytest.mark.parametrize("smoothing", [0.1, 0.4])
def test_smoothing_is_the_divergence_to_the_smoothed_target_plus_its_entropy(
    logits: Tensor, smoothing: float
) -> None:
    target = smoothed_target(TGT_OUT.flatten(), VOCAB, smoothing, PAD)
    (grad,) = torch.autograd.grad(
        CrossEntropy(smoothing, PAD)(logits, identity, TGT_OUT).loss_sum, logits
    )
    divergence = F.kl_div(logits.log_softmax(-1).flatten(0, 1), target, reduction="sum")
    (expected_grad,) = torch.autograd.grad(divergence, logits)
    torch.testing.assert_close(grad, expected_grad)
    loss = CrossEntropy(smoothing, PAD)(logits, identity, TGT_OUT).loss_sum
    others = smoothing / (VOCAB - 2)
    entropy = -(1 - smoothing) * math.log(1 - smoothing) - (
        VOCAB - 2
    ) * others * math.log(others)
    assert float((loss - divergence).detach()) == pytest.approx(
        REAL * entropy, rel=1e-5
    )


def test_the_smoothed_target_is_a_distribution_without_padding() -> None:
    target = smoothed_target(torch.tensor([4, PAD, 1]), 6, 0.2, PAD)
    expected = [
        [0, 0.05, 0.05, 0.05, 0.8, 0.05],
        [0] * 6,
        [0, 0.8, 0.05, 0.05, 0.05, 0.05],
    ]
    torch.testing.assert_close(target, torch.tensor(expected))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padded_positions_count_nothing(logits: Tensor, smoothing: float) -> None:
    loss = CrossEntropy(smoothing, PAD)
    sums = loss(logits, identity, TGT_OUT)
    (grad,) = torch.autograd.grad(sums.loss_sum, logits)
    assert grad[TGT_OUT == PAD].count_nonzero() == 0
    assert grad[TGT_OUT != PAD].count_nonzero() > 0
    changed = logits.detach().clone()
    changed[TGT_OUT == PAD] = 100 * torch.randn(VOCAB)
    again = loss(changed, identity, TGT_OUT)
    assert torch.equal(again.loss_sum, sums.loss_sum)
    assert torch.equal(again.nll_sum, sums.nll_sum)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sums_of_rows_add_up(logits: Tensor, smoothing: float) -> None:
    loss = CrossEntropy(smoothing, PAD)
    whole = loss(logits, identity, TGT_OUT)
    rows = [
        loss(logits[i : i + 1], identity, TGT_OUT[i : i + 1])
        for i in range(len(TGT_OUT))
    ]
    torch.testing.assert_close(sum(r.loss_sum for r in rows), whole.loss_sum)
    assert sum(r.num_tokens for r in rows) == whole.num_tokens
    twice = loss(logits.repeat(2, 1, 1), identity, TGT_OUT.repeat(2, 1))
    torch.testing.assert_close(twice.loss_sum, 2 * whole.loss_sum)


def test_a_batch_of_padding_alone_is_zero_and_has_no_nan(logits: Tensor) -> None:
    sums = CrossEntropy(0.1, PAD)(logits, identity, torch.zeros_like(TGT_OUT))
    (grad,) = torch.autograd.grad(sums.loss_sum, logits)
    assert (float(sums.loss_sum.detach()), float(sums.nll_sum), sums.num_tokens) == (
        0.0,
        0.0,
        0,
    )
    assert grad.count_nonzero() == 0
    assert grad.isfinite().all()


def test_perplexity_comes_from_the_unsmoothed_loss(logits: Tensor) -> None:
    plain = CrossEntropy(0.0, PAD)(logits, identity, TGT_OUT)
    smooth = CrossEntropy(0.3, PAD)(logits, identity, TGT_OUT)
    assert torch.equal(plain.nll_sum, smooth.nll_sum)
    assert not smooth.nll_sum.requires_grad
    assert float(smooth.loss_sum.detach()) != pytest.approx(
        float(plain.loss_sum.detach())
    )


def test_low_precision_logits_are_summed_in_float32() -> None:
    states = torch.zeros(1, 5000, 8, dtype=torch.bfloat16)
    sums = CrossEntropy()(states, identity, torch.ones(1, 5000, dtype=torch.long))
    assert sums.loss_sum.dtype == torch.float32
    assert float(sums.loss_sum.detach()) == pytest.approx(5000 * math.log(8), rel=1e-5)


def test_the_output_function_makes_the_logits(logits: Tensor) -> None:
    weight = torch.randn(VOCAB, VOCAB)
    projected = CrossEntropy(0.1, PAD)(logits, lambda states: states @ weight, TGT_OUT)
    direct = CrossEntropy(0.1, PAD)(logits @ weight, identity, TGT_OUT)
    torch.testing.assert_close(projected.loss_sum, direct.loss_sum)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("rows", [CHUNK_ROWS - 1, CHUNK_ROWS, 2 * CHUNK_ROWS + 1])
def test_however_many_chunks_it_is_the_plain_form(rows: int, smoothing: float) -> None:
    generator = torch.Generator().manual_seed(rows)
    logits = (3 * torch.randn(1, rows, VOCAB, generator=generator)).requires_grad_()
    tgt_out = torch.randint(VOCAB, (1, rows), generator=generator)  # padding among it
    sums = CrossEntropy(smoothing, PAD)(logits, identity, tgt_out)
    plain, nll = smoothed_cross_entropy(logits[0], tgt_out[0], smoothing, PAD)
    torch.testing.assert_close(sums.loss_sum, plain)
    torch.testing.assert_close(sums.nll_sum, nll.detach())
    (grad,) = torch.autograd.grad(3 * sums.loss_sum, logits)
    (expected,) = torch.autograd.grad(3 * plain, logits)
    torch.testing.assert_close(grad, expected)


# R-Drop


def test_the_divergence_by_hand() -> None:
    """(1/2, 1/2) and (1/4, 3/4): (1/2 - 1/4) log 2 + (1/2 - 3/4) log 2/3 = log(3) / 4."""
    p, q = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
    assert float(divergence(p, q)) == pytest.approx(math.log(3) / 4)
    assert float(divergence(q + 5, p - 3)) == pytest.approx(math.log(3) / 4)
    assert float(divergence(p, p)) == 0.0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_is_the_mean_of_both_copies_and_how_far_they_differ(
    smoothing: float,
) -> None:
    """Against torch's own divergence, forward and gradients, over more rows than are taken at a
    time.
    """
    torch.manual_seed(4)
    tgt_out = torch.randint(0, VOCAB, (70, 9))  # with padding here and there
    assert tgt_out.numel() > 2 * CHUNK_ROWS
    logits = (2 * torch.randn(140, 9, VOCAB)).requires_grad_()
    sums = CrossEntropy(smoothing, PAD, r_drop=3.0)(logits, identity, *twice(tgt_out))
    real = tgt_out != PAD
    first, second = (half.log_softmax(-1)[real] for half in logits.chunk(2))
    apart = F.kl_div(first, second, log_target=True, reduction="sum")
    apart = apart + F.kl_div(second, first, log_target=True, reduction="sum")
    both = smoothed_cross_entropy(
        logits.flatten(0, 1), torch.cat([tgt_out, tgt_out]).flatten(), smoothing, PAD
    )
    expected = both[0] / 2 + 3.0 / 4 * apart
    torch.testing.assert_close(sums.loss_sum, expected)
    torch.testing.assert_close(sums.nll_sum, both[1] / 2)
    assert sums.num_tokens == int(real.sum())
    grads = [torch.autograd.grad(loss, logits)[0] for loss in (sums.loss_sum, expected)]
    torch.testing.assert_close(*grads)


def test_of_two_equal_copies_r_drop_is_the_plain_loss(logits: Tensor) -> None:
    plain = CrossEntropy(0.1, PAD)(logits, identity, TGT_OUT)
    sums = CrossEntropy(0.1, PAD, r_drop=5.0)(
        torch.cat([logits, logits]), identity, *twice(TGT_OUT)
    )
    torch.testing.assert_close(sums.loss_sum, plain.loss_sum)
    torch.testing.assert_close(sums.nll_sum, plain.nll_sum)
    assert sums.num_tokens == plain.num_tokens
