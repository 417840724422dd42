"""The same numbers as torch.nn's own layers, once our weights are copied into them."""

import pytest
import torch
from torch import Tensor, nn

from weft.config import Seq2SeqSection
from weft.model.attention import MultiHeadAttention, attention_mask
from weft.model.layers import DecoderLayer, EncoderLayer, Residual
from weft.model.transformer import Seq2SeqTransformer

B, S, T, D, H, F = 3, 7, 5, 26, 2, 17
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
PADDING = torch.arange(S)[None] >= torch.tensor([[7], [3], [5]])
# torch's own polarity in its modules: True = hidden
FUTURE = torch.ones(T, T, dtype=torch.bool).triu(1)

each_norm = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])
each_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
each_activation = pytest.mark.parametrize("activation", ["relu", "gelu"])


def shape(**values: object) -> Seq2SeqSection:
    return Seq2SeqSection(
        **{"d_model": D, "num_heads": H, "d_ff": F, "dropout": 0.0, **values}
    )  # type: ignore[arg-type]


def copy_linear(
    ours: nn.Linear | nn.LayerNorm, theirs: nn.Linear | nn.LayerNorm
) -> None:
    theirs.load_state_dict(ours.state_dict())


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Theirs stacks the projections of queries, keys and values into one matrix."""
    inputs = (ours.query, ours.key, ours.value)
    state = {
        "in_proj_weight": torch.cat([m.weight for m in inputs]),
        "out_proj.weight": ours.output.weight,
    }
    if ours.query.bias is not None:
        state["in_proj_bias"] = torch.cat([m.bias for m in inputs])
        state["out_proj.bias"] = ours.output.bias
    theirs.load_state_dict(state)


def copy_norms(ours: nn.ModuleList, *theirs: nn.LayerNorm) -> None:
    for residual, norm in zip(ours, theirs, strict=True):
        assert isinstance(residual, Residual)
        copy_linear(residual.norm, norm)


def copy_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_linear(ours.feed_forward.inner, theirs.linear1)
    copy_linear(ours.feed_forward.outer, theirs.linear2)
    copy_norms(ours.residuals, theirs.norm1, theirs.norm2)


def copy_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_linear(ours.feed_forward.inner, theirs.linear1)
    copy_linear(ours.feed_forward.outer, theirs.linear2)
    copy_norms(ours.residuals, theirs.norm1, theirs.norm2, theirs.norm3)


@pytest.fixture
def src() -> Tensor:
    return torch.randn(
        B, S, D, generator=torch.Generator().manual_seed(1), requires_grad=True
    )


@pytest.fixture
def tgt() -> Tensor:
    return torch.randn(
        B, T, D, generator=torch.Generator().manual_seed(2), requires_grad=True
    )


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """Outputs and the gradients of the inputs."""
    torch.testing.assert_close(ours, theirs, **CLOSE)
    direction = torch.randn(ours.shape, generator=torch.Generator().manual_seed(3))
    of_ours = torch.autograd.grad((ours * direction).sum(), leaves)
    of_theirs = torch.autograd.grad((theirs * direction).sum(), leaves)
    for a, b in zip(of_ours, of_theirs, strict=True):
        assert a.abs().max() > 1e-3
        torch.testing.assert_close(a, b, **CLOSE)


@each_bias
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal"])
def test_attention(src: Tensor, tgt: Tensor, shake, bias: bool, masked: str) -> None:
    torch.manual_seed(4)
    ours = shake(MultiHeadAttention(D, H, D // H, 0.0, bias))
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True)
    copy_attention(ours, theirs)
    memory = tgt if masked == "causal" else src
    mask = {
        "nothing": None,
        "padding": attention_mask(PADDING),
        "causal": attention_mask(None, T, T),
    }[masked]
    maps: list[Tensor] = []
    found, _ = ours(tgt, ours.keys_values(memory), mask=mask, maps=maps)
    expected, weights = theirs(
        tgt,
        memory,
        memory,
        key_padding_mask=PADDING if masked == "padding" else None,
        attn_mask=FUTURE if masked == "causal" else None,
        average_attn_weights=False,
    )
    torch.testing.assert_close(maps[0], weights, **CLOSE)
    assert_same(found, expected, [tgt] if memory is tgt else [tgt, src])


@each_norm
@each_bias
@each_activation
def test_encoder_layer(
    src: Tensor, shake, norm_first: bool, bias: bool, activation: str
) -> None:
    torch.manual_seed(5)
    ours = shake(
        EncoderLayer(shape(norm_first=norm_first, bias=bias, activation=activation))
    )
    theirs = nn.TransformerEncoderLayer(
        D, H, F, 0.0, activation, batch_first=True, norm_first=norm_first, bias=bias
    )
    copy_encoder_layer(ours, theirs)
    found, expected = (
        ours(src, attention_mask(PADDING)),
        theirs(src, src_key_padding_mask=PADDING),
    )
    assert_same(found[~PADDING], expected[~PADDING], [src])


@each_norm
@each_bias
@each_activation
def test_decoder_layer(
    src: Tensor, tgt: Tensor, shake, norm_first: bool, bias: bool, activation: str
) -> None:
    torch.manual_seed(6)
    ours = shake(
        DecoderLayer(shape(norm_first=norm_first, bias=bias, activation=activation))
    )
    theirs = nn.TransformerDecoderLayer(
        D, H, F, 0.0, activation, batch_first=True, norm_first=norm_first, bias=bias
    )
    copy_decoder_layer(ours, theirs)
    found, _ = ours(
        tgt, ours.start(src), attention_mask(None, T, T), attention_mask(PADDING)
    )
    expected = theirs(tgt, src, tgt_mask=FUTURE, memory_key_padding_mask=PADDING)
    assert_same(found, expected, [tgt, src])


@each_bias
@each_activation
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
def test_whole_transformer(shake, bias: bool, activation: str) -> None:
    """Pre-norm with the final norms that nn.Transformer always has; embeddings and projection are
    ours.
    """
    torch.manual_seed(7)
    section = shape(
        bias=bias, activation=activation, num_encoder_layers=2, num_decoder_layers=3
    )
    ours = shake(Seq2SeqTransformer(section, 23, 29, joint=False))
    theirs = nn.Transformer(
        D, H, 2, 3, F, 0.0, activation, batch_first=True, norm_first=True, bias=bias
    )
    for mine, layer in zip(ours.encoder, theirs.encoder.layers, strict=True):
        copy_encoder_layer(mine, layer)
    for mine, layer in zip(ours.decoder, theirs.decoder.layers, strict=True):
        copy_decoder_layer(mine, layer)
    copy_linear(ours.encoder_norm, theirs.encoder.norm)
    copy_linear(ours.decoder_norm, theirs.decoder.norm)
    ours.double(), theirs.double()  # many layers of float32 add up to more than 1e-5
    src = torch.randint(1, 23, (B, S)).masked_fill(PADDING, 0)
    tgt = torch.randint(1, 29, (B, T))
    states = theirs(
        ours.src_embedding(src),
        ours.tgt_embedding(tgt),
        tgt_mask=FUTURE,
        src_key_padding_mask=PADDING,
        memory_key_padding_mask=PADDING,
    )
    weights = [ours.src_embedding.tokens.weight, ours.tgt_embedding.tokens.weight]
    assert_same(ours(src, tgt), ours.output(states), weights)
