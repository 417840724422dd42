"""The moving average by hand, exchanged with the weights and back, and restored."""

import pytest
import torch
from torch import nn

from weft.errors import FolderError
from weft.training.moving_average import MovingAverage


def model(*values: float) -> nn.Linear:
    layer = nn.Linear(len(values), 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([values]))
    return layer


def test_an_average_by_hand() -> None:
    """After step 1, 2/11 stays of it; then 3/12; then the decay, which is less than 4/13."""
    layer = model(1.0, -3.0)
    average = MovingAverage(layer, 0.3)
    expected = [1.0, -3.0]
    for step, stays in ((1, 2 / 11), (2, 3 / 12), (3, 0.3), (4, 0.3)):
        with torch.no_grad():
            layer.weight.add_(2.0)
        expected = [
            stays * e + (1 - stays) * w
            for e, w in zip(expected, layer.weight[0].tolist(), strict=True)
        ]
        average.update(step)
        torch.testing.assert_close(
            average.tensors()["weight"], torch.tensor([expected])
        )


def test_in_place_and_back() -> None:
    layer = model(0.1, 0.2, 0.3)
    average = MovingAverage(layer, 0.9)
    with torch.no_grad():
        layer.weight.mul_(1 / 3)
    before, mean = layer.weight.clone(), average.tensors()["weight"].clone()
    with average.in_place():
        assert layer.weight.equal(mean)
        assert not layer.weight.equal(before)
    assert layer.weight.equal(before)
    assert average.tensors()["weight"].equal(mean)


def test_restored_it_goes_on_the_same() -> None:
    layer = model(1.0, 2.0)
    average = MovingAverage(layer, 0.99)
    with torch.no_grad():
        layer.weight.add_(1.0)
    average.update(1)
    other = MovingAverage(layer, 0.99)
    other.restore(average.tensors())
    for one in (average, other):
        one.update(2)
    assert average.tensors()["weight"].equal(other.tensors()["weight"])


@pytest.mark.parametrize(
    "tensors", [{}, {"weight": torch.ones(1, 3)}, {"bias": torch.ones(1, 2)}]
)
def test_what_is_not_this_models_is_refused(tensors: dict[str, torch.Tensor]) -> None:
    with pytest.raises(
        FolderError,
        match="averaged weights of a checkpoint are missing, or not this run's",
    ):
        MovingAverage(model(1.0, 2.0), 0.9).restore(tensors)
