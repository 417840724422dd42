import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from weft.config import LayerShape
from weft.model.attention import AttentionRecord, attention_mask
from weft.model.cache import KeysValues
from weft.model.layers import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    Residual,
    build_attention,
)

B, S, T, D = 2, 7, 5, 26
Shake = Callable[[nn.Module], nn.Module]


def shape(**values: object) -> LayerShape:
    return LayerShape(
        **{"d_model": D, "num_heads": 2, "d_ff": 17, "dropout": 0.0, **values}
    )  # type: ignore[arg-type]


def normed(x: list[float]) -> list[float]:
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    return [(v - mean) / deviation for v in x]


@pytest.mark.parametrize("norm_first", [True, False])
def test_residual_by_hand(norm_first: bool) -> None:
    x = [1.0, 2.0, 5.0, -3.0]
    residual = Residual(shape(d_model=4, norm_first=norm_first))
    found = residual(torch.tensor([[x]]), lambda y: y * y)
    if norm_first:
        expected = [v + n * n for v, n in zip(x, normed(x), strict=True)]
    else:
        expected = normed([v + v * v for v in x])
    torch.testing.assert_close(found, torch.tensor([[expected]]))


def test_build_attention_follows_the_recipe() -> None:
    module = build_attention(
        shape(num_heads=3, head_dim=5, attention_dropout=0.25, bias=False)
    )
    assert (module.num_heads, module.head_dim, module.dropout) == (3, 5, 0.25)
    assert (
        module.query.weight.shape
        == module.key.weight.shape
        == module.value.weight.shape
        == (15, D)
    )
    assert module.output.weight.shape == (D, 15)
    assert all(name.endswith("weight") for name, _ in module.named_parameters())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layer", [EncoderLayer, CausalLayer, DecoderLayer])
def test_bias_is_everywhere_or_nowhere(layer: type[nn.Module], bias: bool) -> None:
    module = layer(shape(bias=bias))
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.LayerNorm):
            assert (part.bias is not None) == bias


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer_is_its_sublayers_in_order(
    norm_first: bool, shake: Shake
) -> None:
    torch.manual_seed(1)
    layer = shake(EncoderLayer(shape(norm_first=norm_first)))
    x = torch.randn(B, S, D)
    mask = attention_mask(torch.arange(S)[None] >= torch.tensor([[7], [4]]))

    def attend(y: Tensor) -> Tensor:
        memory = layer.self_attention.keys_values(y)
        return layer.self_attention(y, memory, mask=mask)[0]

    first, second = layer.residuals
    if norm_first:
        y = x + attend(first.norm(x))
        y = y + layer.feed_forward(second.norm(y))
    else:
        y = first.norm(x + attend(x))
        y = second.norm(y + layer.feed_forward(y))
    torch.testing.assert_close(layer(x, mask), y)


def test_decoder_layer_grows_its_cache(shake: Shake) -> None:
    torch.manual_seed(2)
    layer = shake(DecoderLayer(shape()))
    memory, x = torch.randn(B, S, D), torch.randn(B, T, D)
    start = layer.start(memory)
    assert start.past.key.shape == start.past.value.shape == (B, 2, 0, 13)
    expected = layer.cross_attention.keys_values(memory)
    assert torch.equal(start.memory.key, expected.key)
    _, two = layer(x[:, :2], start, attention_mask(None, 2, 2))
    _, five = layer(x[:, 2:], two, attention_mask(None, 3, 5))
    assert (start.past.length, two.past.length, five.past.length) == (0, 2, 5)
    own = layer.self_attention.keys_values(layer.residuals[0].norm(x))
    torch.testing.assert_close(five.past.key, own.key)
    torch.testing.assert_close(five.past.value, own.value)
    assert five.memory is start.memory


@pytest.mark.parametrize("norm_first", [True, False])
def test_causal_layer_is_an_encoder_layer_that_looks_back(
    norm_first: bool, shake: Shake
) -> None:
    torch.manual_seed(5)
    layer, encoder = (
        shake(CausalLayer(shape(norm_first=norm_first))),
        EncoderLayer(shape(norm_first=norm_first)),
    )
    encoder.load_state_dict(layer.state_dict())
    x, nothing = (
        torch.randn(B, T, D),
        KeysValues(torch.empty(B, 2, 0, 13), torch.empty(B, 2, 0, 13)),
    )
    expected = encoder(x, attention_mask(None, T, T))
    whole, seen = layer(x, nothing, attention_mask(None, T, T))
    torch.testing.assert_close(whole, expected)
    first, two = layer(x[:, :2], nothing, attention_mask(None, 2, 2))
    rest, five = layer(x[:, 2:], two, attention_mask(None, 3, 5))
    torch.testing.assert_close(torch.cat([first, rest], dim=1), expected)
    assert (nothing.length, two.length, five.length) == (0, 2, T)
    torch.testing.assert_close(five.key, seen.key)
    torch.testing.assert_close(five.value, seen.value)


def test_records_are_filled_by_kind(shake: Shake) -> None:
    record = AttentionRecord()
    encoder, decoder = shake(EncoderLayer(shape())), shake(DecoderLayer(shape()))
    memory = encoder(torch.randn(B, S, D), None, record)
    assert [len(record.encoder), len(record.decoder), len(record.cross)] == [1, 0, 0]
    decoder(
        torch.randn(B, T, D),
        decoder.start(memory),
        attention_mask(None, T, T),
        None,
        record,
    )
    assert [len(record.encoder), len(record.decoder), len(record.cross)] == [1, 1, 1]
    assert record.encoder[0].shape == (B, 2, S, S)
    assert record.decoder[0].shape == (B, 2, T, T)
    assert record.cross[0].shape == (B, 2, T, S)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training_alone(kind: str) -> None:
    torch.manual_seed(3)
    layer = EncoderLayer(shape(**{kind: 0.5}))
    x = torch.randn(B, S, D)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_residual_dropout_falls_on_the_sublayer_alone() -> None:
    torch.manual_seed(4)
    residual = Residual(shape(dropout=0.5))
    x, ones = torch.zeros(B, S, D), torch.ones(B, S, D)
    found = residual(x, lambda _: ones)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(residual(ones, lambda _: x), ones)
