import math

import pytest
import torch
from torch import Tensor

from weft.model.attention import MultiHeadAttention, attention, attention_mask

B, T, S, H, D_K, D = 2, 5, 7, 3, 11, 13  # H x D_K is not D
Pair = tuple[Tensor, Tensor]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.fixture
def heads() -> MultiHeadAttention:
    torch.manual_seed(1)
    module = MultiHeadAttention(D, H, D_K, dropout=0.0, bias=True)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


@pytest.fixture
def inputs() -> Pair:
    torch.manual_seed(2)
    return torch.randn(B, T, D, requires_grad=True), torch.randn(
        B, S, D, requires_grad=True
    )


@pytest.fixture(params=[False, True], ids=["fast", "recorded"])
def recorded(request: pytest.FixtureRequest) -> bool:
    return request.param


def cross_attend(
    module: MultiHeadAttention,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    recorded: bool,
) -> Tensor:
    maps = [] if recorded else None
    out, _ = module(x, module.keys_values(memory), mask=mask, maps=maps)
    return out


def test_by_hand_one_head() -> None:
    query = torch.tensor([[[[1.0, 0.0]]]])
    key = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    value = torch.tensor([[[[1.0, 2.0], [3.0, 5.0]]]])
    context, weights = attention(query, key, value)
    first = math.exp(1 / math.sqrt(2)) / (math.exp(1 / math.sqrt(2)) + 1)
    torch.testing.assert_close(weights, torch.tensor([[[[first, 1 - first]]]]))
    torch.testing.assert_close(
        context, torch.tensor([[[[3 - 2 * first, 5 - 3 * first]]]])
    )


def test_by_hand_two_heads_of_arange_weights(recorded: bool) -> None:
    """Every projection is [[0, 1], [2, 3]]: x = (1, 0) becomes (0, 2), x = (0, 1) becomes (1,
    3).
    """
    module = MultiHeadAttention(2, 2, 1, dropout=0.0, bias=False)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.arange(4.0).view(2, 2))
    x = torch.eye(2)[None]
    # Head 1 has queries, keys and values 0, 1; head 2 has 2, 3; with d_k = 1 the scores are plain
    # products.
    first = [0.5, sigmoid(1)]  # scores (0, 0) and (0, 1)
    second = [2 + sigmoid(6 - 4), 2 + sigmoid(9 - 6)]  # scores (4, 6) and (6, 9)
    expected = [[b, 2 * a + 3 * b] for a, b in zip(first, second, strict=True)]
    torch.testing.assert_close(
        cross_attend(module, x, x, None, recorded), torch.tensor([expected])
    )


def test_key_padding_mask_true_is_padding(
    heads: MultiHeadAttention, inputs: Pair, recorded: bool
) -> None:
    padding = torch.zeros(B, S, dtype=torch.bool)
    padding[0, 4:] = True
    mask = attention_mask(padding)
    assert mask is not None
    assert mask.shape == (B, 1, 1, S)
    assert mask[0, 0, 0].tolist() == [True] * 4 + [False] * 3
    x, memory = inputs
    before = cross_attend(heads, x, memory, mask, recorded)
    changed = memory.detach().clone()
    changed[0, 4:] += 100
    torch.testing.assert_close(cross_attend(heads, x, changed, mask, recorded), before)
    changed[1, 4] += 1
    after = cross_attend(heads, x, changed, mask, recorded)
    assert torch.equal(after[0], cross_attend(heads, x, memory, mask, recorded)[0])
    assert (after[1] - before[1]).abs().amax(-1).min() > 1e-3


def test_attention_mask_true_may_attend(
    heads: MultiHeadAttention, inputs: Pair, recorded: bool
) -> None:
    x, memory = inputs
    only = torch.zeros(T, S, dtype=torch.bool)
    only[:, 2] = True
    seen = cross_attend(heads, x, memory, only, recorded)
    value = heads.keys_values(memory).value[:, :, 2].flatten(1)
    torch.testing.assert_close(seen, heads.output(value)[:, None].expand(B, T, D))


def test_causal_mask_with_more_keys_than_queries() -> None:
    mask = attention_mask(None, num_queries=2, num_keys=5)
    assert mask is not None
    assert mask.tolist() == [[True, True, True, True, False], [True] * 5]
    square = attention_mask(None, 3, 3)
    assert square is not None
    assert square.tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_the_triangle_that_the_docstring_shows() -> None:
    assert attention_mask.__doc__ is not None
    example = attention_mask.__doc__.partition(">>> ")[2]
    call, _, shown = example.partition("  # the triangle\n")
    triangle = attention_mask(num_queries=3, num_keys=3)
    assert call == "attention_mask(num_queries=3, num_keys=3).int()"
    assert triangle is not None
    wanted = [line.strip() for line in str(triangle.int()).split("\n")]
    assert [line.strip() for line in shown.split("\n")[:3]] == wanted


def test_nothing_to_hide_is_no_mask() -> None:
    assert attention_mask() is None
    assert attention_mask(None, 1, 5) is None


def test_both_masks_together() -> None:
    padding = torch.tensor([[False, False, False], [True, False, False]])
    mask = attention_mask(padding, 2, 3)
    assert mask is not None
    assert mask.shape == (2, 1, 2, 3)
    assert mask[0, 0].tolist() == [[True, True, False], [True, True, True]]
    assert mask[1, 0].tolist() == [[False, True, False], [False, True, True]]


def test_segments_see_themselves_alone() -> None:
    """Three texts of 2, 1 and 2 positions, padding behind; the second row is one text."""
    segments = torch.tensor([[1, 1, 2, 3, 3, 0], [1] * 6])
    mask = attention_mask(None, 6, 6, segments)
    assert mask is not None
    assert mask.shape == (2, 1, 6, 6)
    rows = ["100000", "110000", "001000", "000100", "000110", "000001"]
    assert mask[0, 0].tolist() == [[c == "1" for c in row] for row in rows]
    assert torch.equal(mask[1, 0], torch.ones(6, 6, dtype=torch.bool).tril())


def test_segments_of_one_position_and_without_a_past() -> None:
    one = attention_mask(None, 1, 1, torch.tensor([[1], [0]]))
    assert one is not None
    assert one.tolist() == [[[[True]]], [[[True]]]]
    both_ways = attention_mask(segments=torch.tensor([[1, 1, 2]]))
    assert both_ways is not None
    assert both_ways[0, 0].tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]


def test_a_query_that_sees_nothing(
    heads: MultiHeadAttention, inputs: Pair, recorded: bool
) -> None:
    padding = torch.zeros(B, S, dtype=torch.bool)
    padding[0] = True
    x, memory = inputs
    seen = cross_attend(heads, x, memory, attention_mask(padding), recorded)
    torch.testing.assert_close(seen[0], heads.output.bias.expand(T, D))
    seen.square().sum().backward()
    for gradient in [x.grad, memory.grad, *(p.grad for p in heads.parameters())]:
        assert gradient is not None
        assert gradient.isfinite().all()
    assert memory.grad is not None
    assert (memory.grad[0] == 0).all()
    assert (memory.grad[1] != 0).any()


def test_one_query_of_several_sees_nothing(
    heads: MultiHeadAttention, inputs: Pair, recorded: bool
) -> None:
    x, memory = inputs
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[3] = False
    seen = cross_attend(heads, x, memory, mask, recorded)
    torch.testing.assert_close(seen[:, 3], heads.output.bias.expand(B, D))
    torch.testing.assert_close(
        seen[:, :3], cross_attend(heads, x, memory, None, recorded)[:, :3]
    )


@pytest.mark.parametrize("masked", ["nothing", "padding", "causal", "both"])
def test_recorded_equals_fast(
    heads: MultiHeadAttention, inputs: Pair, masked: str
) -> None:
    padding = torch.zeros(B, S, dtype=torch.bool)
    padding[0, 5:] = True
    mask = {
        "nothing": None,
        "padding": attention_mask(padding),
        "causal": attention_mask(None, T, S),
        "both": attention_mask(padding, T, S),
    }[masked]
    x, memory = inputs
    leaves = [x, memory, *heads.parameters()]
    torch.manual_seed(3)
    direction = torch.randn(B, T, D)
    fast, slow = (
        cross_attend(heads, x, memory, mask, False),
        cross_attend(heads, x, memory, mask, True),
    )
    torch.testing.assert_close(slow, fast, rtol=1e-5, atol=1e-5)
    of_fast = torch.autograd.grad((fast * direction).sum(), leaves)
    of_slow = torch.autograd.grad((slow * direction).sum(), leaves)
    for a, b in zip(of_slow, of_fast, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_maps_hold_weights_outside_the_graph(
    heads: MultiHeadAttention, inputs: Pair
) -> None:
    x, memory = inputs
    maps: list[Tensor] = []
    before = set(vars(heads))
    heads(x, heads.keys_values(memory), maps=maps)
    (weights,) = maps
    assert weights.shape == (B, H, T, S)
    assert not weights.requires_grad
    assert set(vars(heads)) == before
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))


def test_dropped_weights_are_made_up_for() -> None:
    """With an identity for values, the context is the dropped weights: each nothing, or twice
    itself.
    """
    torch.manual_seed(5)
    query, key = torch.randn(B, H, T, S), torch.randn(B, H, S, S)
    context, weights = attention(
        query, key, torch.eye(S).expand(B, H, S, S), None, dropout=0.5
    )
    dropped = context == 0
    assert 0.3 < dropped.float().mean() < 0.7
    torch.testing.assert_close(context[~dropped], 2 * weights[~dropped])
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))


def test_dropout_acts_in_training_alone(inputs: Pair, recorded: bool) -> None:
    torch.manual_seed(6)
    module = MultiHeadAttention(D, H, D_K, dropout=0.5, bias=True)
    x, memory = inputs
    assert not torch.equal(
        cross_attend(module, x, memory, None, recorded),
        cross_attend(module, x, memory, None, recorded),
    )
    module.eval()
    assert torch.equal(
        cross_attend(module, x, memory, None, recorded),
        cross_attend(module, x, memory, None, recorded),
    )
