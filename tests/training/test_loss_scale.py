"""The scale of a float16 loss: when it changes, and that the progress holds it."""

import math

import pytest
import torch

from weft.training.checkpoint import Progress
from weft.training.loss_scale import GROW_AFTER, LARGEST_SCALE, LossScaler


def test_a_run_begins_with_the_largest_scale_in_float16_alone() -> None:
    assert LossScaler(True).new_progress() == Progress(loss_scale=LARGEST_SCALE)
    assert LossScaler(False).new_progress() == Progress(loss_scale=1.0)


@pytest.mark.parametrize(
    ("scale", "loss", "norm", "overflowed"),
    [
        (64.0, 2.0, math.inf, True),
        (64.0, 2.0, math.nan, True),
        (64.0, 2.0, 3.0, False),
        # no smaller scale makes a loss finite
        (64.0, math.inf, math.inf, False),
        (64.0, math.nan, math.nan, False),
        # and none is smaller than 1
        (1.0, 2.0, math.inf, False),
    ],
)
def test_what_a_smaller_scale_may_mend(
    scale: float, loss: float, norm: float, overflowed: bool
) -> None:
    progress = Progress(loss_scale=scale)
    assert LossScaler(True).has_overflowed(progress, loss, norm) is overflowed


def test_it_is_halved_and_doubled_again_after_many_updates() -> None:
    scaler = LossScaler(True)
    progress = scaler.new_progress()
    progress.step = 10
    scaler.halve(progress)
    scaler.halve(progress)
    assert (progress.loss_scale, progress.scale_set) == (LARGEST_SCALE / 4, 10)
    changed = {}
    for step in range(11, 10 + 3 * GROW_AFTER + 1):
        progress.step = step
        before = progress.loss_scale
        scaler.grow(progress)
        if progress.loss_scale != before:
            changed[step] = progress.loss_scale
    assert changed == {
        10 + GROW_AFTER: LARGEST_SCALE / 2,
        10 + 2 * GROW_AFTER: LARGEST_SCALE,
    }


def test_in_other_precisions_it_stays_1() -> None:
    scaler = LossScaler(False)
    progress = scaler.new_progress()
    progress.step = 5 * GROW_AFTER
    scaler.grow(progress)
    assert (progress.loss_scale, progress.scale_set) == (1.0, 0)
    assert not scaler.has_overflowed(progress, 2.0, math.inf)


def test_without_a_scale_small_gradients_of_float16_would_be_0() -> None:
    """What it is for: the gradient of a product in float16 on a CPU."""
    progress = LossScaler(True).new_progress()
    found = []
    for scale in (1.0, progress.loss_scale):
        x = torch.ones(4, requires_grad=True)
        product = (x.half() * torch.tensor(1e-4).half()).float().sum()
        (product * 1e-5 * scale).backward()
        assert x.grad is not None
        found.append(x.grad / scale)
    assert found[0].eq(0).all()
    torch.testing.assert_close(found[1], torch.full((4,), 1e-9), rtol=0.01, atol=0)
