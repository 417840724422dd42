"""The modern block against Qwen3 of transformers, by copying weights alone; and its parts by
hand.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from weft.config import CausalSection, LayerShape, Seq2SeqSection
from weft.model.attention import AttentionRecord, MultiHeadAttention
from weft.model.causal import CausalTransformer
from weft.model.layers import (
    CausalLayer,
    FeedForward,
    GatedFeedForward,
    Residual,
    build_feed_forward,
    build_norm,
)
from weft.model.transformer import Seq2SeqTransformer

Shake = Callable[[nn.Module], Any]
V = 37
MODERN: dict[str, Any] = {"norm": "rms", "activation": "swiglu", "query_key_norm": True, "bias": False,
                          "positions": "rotary"}  # fmt: skip


def shape(**values: object) -> LayerShape:
    return LayerShape(
        **{"d_model": 26, "num_heads": 2, "d_ff": 17, "dropout": 0.0, **values}
    )  # type: ignore[arg-type]


# Qwen3
# --------------------------------------------------------------------------------------


def qwen_state(model: CausalTransformer) -> Iterator[tuple[str, Tensor]]:
    """All our weights under Qwen3's names."""
    yield "model.embed_tokens.weight", model.embedding.tokens.weight
    yield "lm_head.weight", model.projection.weight
    yield "model.norm.weight", model.decoder_norm.weight  # type: ignore[misc]
    for i, layer in enumerate(model.decoder):
        assert isinstance(layer, CausalLayer)
        assert isinstance(layer.feed_forward, GatedFeedForward)
        own, here = layer.self_attention, f"model.layers.{i}"
        parts = {
            "self_attn.q_proj": own.query, "self_attn.k_proj": own.key, "self_attn.v_proj": own.value,
            "self_attn.o_proj": own.output, "self_attn.q_norm": own.query_norm, "self_attn.k_norm": own.key_norm,
            "mlp.gate_proj": layer.feed_forward.gate, "mlp.up_proj": layer.feed_forward.inner,
            "mlp.down_proj": layer.feed_forward.outer, "input_layernorm": layer.residuals[0].norm,
            "post_attention_layernorm": layer.residuals[1].norm,
        }  # fmt: skip
        for name, part in parts.items():
            yield f"{here}.{name}.weight", part.weight  # type: ignore[misc,union-attr]


@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_logits_are_those_of_qwen3(key_value_heads: int, shake: Shake) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    section = CausalSection(
        d_model=24, d_ff=31, num_heads=4, num_key_value_heads=key_value_heads, head_dim=10, num_decoder_layers=2,
        max_len=50, dropout=0.0, scale_embeddings=False, tie_embeddings=False, **MODERN,
    )  # fmt: skip
    ours = shake(CausalTransformer(section, V)).eval()
    config = transformers.Qwen3Config(
        vocab_size=V, hidden_size=24, intermediate_size=31, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=key_value_heads, head_dim=10, max_position_embeddings=50, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0}, tie_word_embeddings=False,
    )  # fmt: skip
    theirs = transformers.Qwen3ForCausalLM(config).eval()
    theirs.load_state_dict(dict(qwen_state(ours)), strict=True)
    ids = torch.randint(V, (3, 19), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


# By hand
# --------------------------------------------------------------------------------------


def test_the_part_with_a_gate_is_chosen_by_the_activation() -> None:
    for activation in ("swiglu", "geglu"):
        part = build_feed_forward(shape(activation=activation))
        assert isinstance(part, GatedFeedForward)
    assert isinstance(build_feed_forward(shape(activation="relu2")), FeedForward)


def test_a_root_mean_square_norm_by_hand() -> None:
    norm = build_norm(shape(norm="rms"))
    x = torch.tensor([3.0, -4.0] * 13)
    torch.testing.assert_close(norm(x), x / math.sqrt(12.5 + 1e-5))
    assert not hasattr(norm, "bias")


def test_a_sandwich_norms_what_is_added_as_well(shake: Shake) -> None:
    residual = shake(Residual(shape(d_model=6, num_heads=1, sandwich_norm=True)))
    x = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = x + residual.after(100 * residual.norm(x).square())
        torch.testing.assert_close(residual(x, lambda y: 100 * y.square()), expected)


@pytest.mark.parametrize("norm_first", [True, False])
def test_shared_keys_and_values_are_those_of_all_heads_they_serve(
    norm_first: bool, shake: Shake
) -> None:
    """Against as many heads with the same weights; what is recorded has all heads."""
    values: dict[str, Any] = {"d_model": 24, "d_ff": 20, "num_heads": 6, "num_encoder_layers": 1,
                              "num_decoder_layers": 2, "max_len": 30, "dropout": 0.0, "norm_first": norm_first,
                              "query_key_norm": True, "positions": "rotary"}  # fmt: skip
    torch.manual_seed(4)
    few = shake(
        Seq2SeqTransformer(
            Seq2SeqSection(**values, num_key_value_heads=2), V, V, joint=True
        )
    ).eval()
    many = Seq2SeqTransformer(Seq2SeqSection(**values), V, V, joint=True).eval()
    state = few.state_dict()
    for name, tensor in state.items():
        if ".key." in name or ".value." in name:
            state[name] = (
                tensor.unflatten(0, (2, 4)).repeat_interleave(3, 0).flatten(0, 1)
            )
    many.load_state_dict(state)
    src = torch.randint(1, V, (3, 8), generator=torch.Generator().manual_seed(2))
    tgt = torch.randint(1, V, (3, 5), generator=torch.Generator().manual_seed(3))
    records = AttentionRecord(), AttentionRecord()
    with torch.inference_mode():
        found, expected = (
            model(src, tgt, record)
            for model, record in zip((few, many), records, strict=True)
        )
        torch.testing.assert_close(few(src, tgt), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(
        records[0].decoder + records[0].cross,
        records[1].decoder + records[1].cross,
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert few.decode(tgt, few.prefill(src))[1].layers[0].past.key.shape == (3, 2, 5, 4)
    assert few.prefill(src).layers[0].memory.key.shape == (3, 2, 8, 4)


def test_queries_and_keys_are_normed_before_they_are_turned(shake: Shake) -> None:
    """However large the input, a score is bounded: by the gains, here 1, and the square root of
    d_k.
    """
    attention = MultiHeadAttention(
        8, 2, 4, 0.0, False, rotary=True, query_key_norm=True
    ).eval()
    x = 1000 * torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        query, keys_values = attention.queries_keys_values(x)
    for heads in (query, keys_values.key):
        torch.testing.assert_close(
            heads.square().mean(-1), torch.ones(2, 2, 5), rtol=1e-4, atol=1e-4
        )


def test_shapes_that_cannot_be_are_refused() -> None:
    with pytest.raises(
        ValueError,
        match="num_key_value_heads = 4 does not divide num_heads = 6; change one",
    ):
        shape(d_model=24, num_heads=6, num_key_value_heads=4)
    with pytest.raises(
        ValueError,
        match="sandwich_norm adds to norm_first = true; set both, or neither",
    ):
        shape(sandwich_norm=True, norm_first=False)
