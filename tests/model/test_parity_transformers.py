"""The same logits as Marian (post-norm) and Pegasus (pre-norm) of transformers, by copying weights
alone.

Their positions have all sines first, then all cosines; ours alternate. So every axis of d_model is
put into their order: in the embeddings, where a matrix reads hidden states and where it writes
them, and in the norms. Heads, feed-forward and vocabulary axes stay as they are.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from weft.config import Seq2SeqSection
from weft.model.attention import MultiHeadAttention
from weft.model.layers import DecoderLayer, EncoderLayer
from weft.model.transformer import Seq2SeqTransformer

transformers = pytest.importorskip(
    "transformers", reason="parity with Marian and Pegasus needs transformers"
)

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB, TGT_VOCAB, MAX_LEN, D = 23, 29, 19, 26
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
Named = Iterator[tuple[str, Tensor]]


def their_order(d_model: int) -> Tensor:
    """Entry j is which of our dimensions stands at theirs j: the even ones (sines), then the odd
    ones.
    """
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def marian_state(model: Seq2SeqTransformer) -> dict[str, Tensor]:
    """All our weights under Marian's and Pegasus' names (they differ by the final norms alone)."""
    order = their_order(model.projection.in_features)
    vocab_size = model.projection.out_features
    bias = model.projection.bias
    state = {
        "model.encoder.embed_tokens.weight": model.src_embedding.tokens.weight[
            :, order
        ],
        "model.decoder.embed_tokens.weight": model.tgt_embedding.tokens.weight[
            :, order
        ],
        "lm_head.weight": model.projection.weight[:, order],
        "final_logits_bias": torch.zeros(1, vocab_size) if bias is None else bias[None],
    }
    for i, layer in enumerate(model.encoder):
        state |= {
            f"model.encoder.layers.{i}.{name}": tensor
            for name, tensor in encoder_layer(layer, order)
        }
    for i, layer in enumerate(model.decoder):
        state |= {
            f"model.decoder.layers.{i}.{name}": tensor
            for name, tensor in decoder_layer(layer, order)
        }
    for side, final in (
        ("encoder", model.encoder_norm),
        ("decoder", model.decoder_norm),
    ):
        if isinstance(final, nn.LayerNorm):
            state |= dict(norm(f"model.{side}.layer_norm", final, order))
    return state


def encoder_layer(layer: nn.Module, order: Tensor) -> Named:
    assert isinstance(layer, EncoderLayer)
    first, last = (residual.norm for residual in layer.residuals)
    yield from attention("self_attn", layer.self_attention, order)
    yield from norm("self_attn_layer_norm", first, order)
    yield from reads("fc1", layer.feed_forward.inner, order)
    yield from writes("fc2", layer.feed_forward.outer, order)
    yield from norm("final_layer_norm", last, order)


def decoder_layer(layer: nn.Module, order: Tensor) -> Named:
    assert isinstance(layer, DecoderLayer)
    first, second, last = (residual.norm for residual in layer.residuals)
    yield from attention("self_attn", layer.self_attention, order)
    yield from norm("self_attn_layer_norm", first, order)
    yield from attention("encoder_attn", layer.cross_attention, order)
    yield from norm("encoder_attn_layer_norm", second, order)
    yield from reads("fc1", layer.feed_forward.inner, order)
    yield from writes("fc2", layer.feed_forward.outer, order)
    yield from norm("final_layer_norm", last, order)


def attention(name: str, module: MultiHeadAttention, order: Tensor) -> Named:
    yield from reads(f"{name}.q_proj", module.query, order)
    yield from reads(f"{name}.k_proj", module.key, order)
    yield from reads(f"{name}.v_proj", module.value, order)
    yield from writes(f"{name}.out_proj", module.output, order)


def reads(name: str, linear: nn.Linear, order: Tensor) -> Named:
    """A matrix whose input is a hidden state; its bias, where we have none, is zero."""
    yield f"{name}.weight", linear.weight[:, order]
    yield (
        f"{name}.bias",
        torch.zeros(linear.out_features) if linear.bias is None else linear.bias,
    )


def writes(name: str, linear: nn.Linear, order: Tensor) -> Named:
    """A matrix whose output is added to the hidden states."""
    yield f"{name}.weight", linear.weight[order]
    yield (
        f"{name}.bias",
        torch.zeros(len(order)) if linear.bias is None else linear.bias[order],
    )


def norm(name: str, layer: nn.LayerNorm, order: Tensor) -> Named:
    yield f"{name}.weight", layer.weight[order]
    yield (
        f"{name}.bias",
        torch.zeros(len(order)) if layer.bias is None else layer.bias[order],
    )


def ours(joint: bool, shake, **values: object) -> Seq2SeqTransformer:
    torch.manual_seed(11)
    section = Seq2SeqSection(
        d_model=D,
        num_heads=2,
        d_ff=17,
        num_encoder_layers=2,
        num_decoder_layers=3,
        max_len=MAX_LEN,
        **values,
    )  # type: ignore[arg-type]
    model = Seq2SeqTransformer(
        section, TGT_VOCAB if joint else SRC_VOCAB, TGT_VOCAB, joint, PAD
    )
    return shake(model).eval()


def theirs(model: Seq2SeqTransformer, section: dict[str, object]) -> nn.Module:
    """Marian or Pegasus of the same shape with our weights; every weight but the fixed positions is
    ours.
    """
    config = {
        "vocab_size": model.src_embedding.tokens.num_embeddings,
        "max_position_embeddings": MAX_LEN,
        "d_model": D,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 17,
        "decoder_ffn_dim": 17,
        "activation_function": section["activation"],
        "scale_embedding": section["scale_embeddings"],
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
    }
    if section["norm_first"]:
        other = transformers.PegasusForConditionalGeneration(
            transformers.PegasusConfig(**config)
        )
    else:
        joint = model.src_embedding.tokens is model.tgt_embedding.tokens
        sides = {
            "share_encoder_decoder_embeddings": joint,
            "decoder_vocab_size": TGT_VOCAB,
        }
        other = transformers.MarianMTModel(transformers.MarianConfig(**config, **sides))
    missing, unexpected = other.load_state_dict(marian_state(model), strict=False)
    positions = {
        f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")
    }
    assert not unexpected
    # the latter is the encoder's embedding itself
    assert set(missing) <= positions | {"model.shared.weight"}
    return other.eval()


@pytest.fixture
def src() -> Tensor:
    ids = torch.randint(
        3, SRC_VOCAB, (3, 7), generator=torch.Generator().manual_seed(12)
    )
    return ids.masked_fill(torch.arange(7)[None] >= torch.tensor([[7], [3], [5]]), PAD)


@pytest.fixture
def tgt_in() -> Tensor:
    return torch.randint(
        3, TGT_VOCAB, (3, 5), generator=torch.Generator().manual_seed(13)
    )


MARIAN = [
    {
        "norm_first": False,
        "bias": bias,
        "activation": activation,
        "scale_embeddings": scaled,
    }
    for bias, activation, scaled in [
        (True, "relu", True),
        (False, "gelu", False),
        (True, "gelu", False),
    ]
]
PEGASUS = [{**section, "norm_first": True} for section in MARIAN]
CASES = [
    *(
        pytest.param(False, section, id=f"marian-separate-{i}")
        for i, section in enumerate(MARIAN)
    ),
    *(
        pytest.param(True, section, id=f"marian-shared-{i}")
        for i, section in enumerate(MARIAN)
    ),
    *(
        pytest.param(True, section, id=f"pegasus-shared-{i}")
        for i, section in enumerate(PEGASUS)
    ),
]


@torch.inference_mode()
@pytest.mark.parametrize(("joint", "section"), CASES)
def test_logits(
    src: Tensor, tgt_in: Tensor, shake, joint: bool, section: dict[str, object]
) -> None:
    model = ours(joint, shake, **section)
    other = theirs(model, section)
    expected = other(
        input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt_in
    ).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(model(src, tgt_in), expected, **CLOSE)


def greedy(model: Seq2SeqTransformer, src: Tensor, num_steps: int) -> Tensor:
    """The most probable token at each step; after the end, padding."""
    cache, ids = model.prefill(src), torch.full((len(src), 1), BOS)
    ended = torch.zeros(len(src), dtype=torch.bool)
    for _ in range(num_steps):
        states, cache = model.decode(ids[:, -1:], cache)
        best = model.output(states)[:, -1].argmax(-1).masked_fill(ended, PAD)
        ids, ended = torch.cat([ids, best[:, None]], dim=1), ended | (best == EOS)
    return ids


def enliven(model: Seq2SeqTransformer) -> None:
    """Random tied models repeat one token for ever; this one heeds its own output, and ends some
    rows early.
    """
    last = model.decoder[-1].residuals[-1].norm
    with torch.no_grad():
        for name, parameter in model.decoder.named_parameters():
            if "attention.output" in name or "outer" in name:
                parameter.mul_(0.3)
        (
            last if isinstance(model.decoder_norm, nn.Identity) else model.decoder_norm
        ).weight[::2] *= -1
        model.projection.bias[EOS] += 3.0


@torch.inference_mode()
@pytest.mark.parametrize(
    ("joint", "section"), [case for case in CASES if str(case.id).endswith("-0")]
)
def test_greedy_search(
    src: Tensor, shake, joint: bool, section: dict[str, object]
) -> None:
    model = ours(joint, shake, **section)
    enliven(model)
    expected = theirs(model, section).generate(
        input_ids=src,
        attention_mask=(src != PAD).long(),
        num_beams=1,
        do_sample=False,
        max_new_tokens=11,
    )
    found = greedy(model, src, 11)
    assert len(found.unique()) >= 5
    assert torch.equal(found[:, : expected.shape[1]], expected)
    assert (found[:, expected.shape[1] :] == PAD).all()


def test_their_positions_are_ours_in_their_order(shake) -> None:
    section = MARIAN[0]
    model = ours(True, shake, **section)
    table = theirs(model, section).model.encoder.embed_positions.weight
    torch.testing.assert_close(
        model.src_embedding.positions(MAX_LEN)[:, their_order(D)], table, **CLOSE
    )


def test_order_is_a_permutation() -> None:
    assert their_order(6).tolist() == [0, 2, 4, 1, 3, 5]
