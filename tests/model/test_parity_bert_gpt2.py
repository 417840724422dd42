"""The same states as BERT and the same logits as GPT-2 of transformers, by copying weights alone:
none is permuted or folded.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from weft.config import CausalSection, ClassifierSection
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.layers import CausalLayer, EncoderLayer

transformers = pytest.importorskip(
    "transformers", reason="parity with BERT and GPT-2 needs transformers"
)

PAD, VOCAB, D, D_FF, HEADS, MAX_LEN = 0, 23, 24, 34, 4, 11
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
Shake = Callable[[nn.Module], Any]


@pytest.fixture
def ids() -> Tensor:
    drawn = torch.randint(
        4, VOCAB, (3, MAX_LEN), generator=torch.Generator().manual_seed(14)
    )
    lengths = torch.tensor([[MAX_LEN], [3], [7]])
    return drawn.masked_fill(torch.arange(MAX_LEN)[None] >= lengths, PAD)


def copied(names: dict[str, nn.Module]) -> dict[str, Tensor]:
    """The weight and the bias, if any, of our modules under other names."""
    return {
        f"{name}.{own}": parameter
        for name, module in names.items()
        for own, parameter in module.named_parameters()
    }


def bert_layer(layer: nn.Module) -> dict[str, nn.Module]:
    assert isinstance(layer, EncoderLayer)
    first, last = (residual.norm for residual in layer.residuals)
    return {
        "attention.self.query": layer.self_attention.query,
        "attention.self.key": layer.self_attention.key,
        "attention.self.value": layer.self_attention.value,
        "attention.output.dense": layer.self_attention.output,
        "attention.output.LayerNorm": first,
        "intermediate.dense": layer.feed_forward.inner,
        "output.dense": layer.feed_forward.outer,
        "output.LayerNorm": last,
    }


def bert(model: TransformerClassifier, num_layers: int) -> nn.Module:
    """BERT of the same shape with our weights. Its embedding of sentences is zero."""
    encoder = model.encoder
    assert encoder is not None
    embedding = encoder.embedding
    assert embedding.norm is not None
    state = copied(
        {
            "embeddings.word_embeddings": embedding.tokens,
            "embeddings.LayerNorm": embedding.norm,
        }
    )
    state["embeddings.position_embeddings.weight"] = embedding.positions.table
    state["embeddings.token_type_embeddings.weight"] = torch.zeros(2, D)
    for number, layer in enumerate(encoder.layers):
        names = bert_layer(layer)
        state |= {f"encoder.layer.{number}.{k}": v for k, v in copied(names).items()}
    config = transformers.BertConfig(
        vocab_size=VOCAB,
        hidden_size=D,
        intermediate_size=D_FF,
        num_hidden_layers=num_layers,
        num_attention_heads=HEADS,
        max_position_embeddings=MAX_LEN,
        hidden_act="gelu",
        layer_norm_eps=1e-5,
        pad_token_id=PAD,
    )
    other = transformers.BertModel(config, add_pooling_layer=False)
    other.load_state_dict(state)  # all of its weights, and no other
    return other.eval()


@torch.inference_mode()
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_classifier_is_bert(ids: Tensor, shake: Shake, pooling: Any) -> None:
    torch.manual_seed(15)
    shape = ClassifierSection(
        d_model=D,
        d_ff=D_FF,
        num_heads=HEADS,
        num_encoder_layers=2,
        max_len=MAX_LEN,
        norm_first=False,
        embedding_norm=True,
        positions="learned",
        activation="gelu",
        scale_embeddings=False,
        pooling=pooling,
    )
    model = shake(TransformerClassifier(shape, VOCAB, 3)).eval()
    mask = (ids != PAD).long()
    states = bert(model, 2)(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = states[:, 0]
    if pooling == "mean":
        expected = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    assert expected.std() > 0.1
    torch.testing.assert_close(model.states(ids), expected, **CLOSE)
    # without the norm of the embeddings it is not
    assert model.encoder is not None
    model.encoder.embedding.norm = None
    assert (model.states(ids) - expected).abs().max() > 0.1


def gpt2_layer(layer: nn.Module) -> dict[str, Tensor]:
    """The weights of a layer; GPT-2 has a matrix for what goes in, then for what comes out."""
    assert isinstance(layer, CausalLayer)
    heads = layer.self_attention
    first, last = (residual.norm for residual in layer.residuals)
    state = copied({"ln_1": first, "ln_2": last})
    for name, linears in {
        "attn.c_attn": [heads.query, heads.key, heads.value],
        "attn.c_proj": [heads.output],
        "mlp.c_fc": [layer.feed_forward.inner],
        "mlp.c_proj": [layer.feed_forward.outer],
    }.items():
        state[f"{name}.weight"] = torch.cat([part.weight for part in linears]).T
        state[f"{name}.bias"] = torch.cat([part.bias for part in linears])
    return state


def gpt2(model: CausalTransformer, num_layers: int) -> nn.Module:
    """GPT-2 of the same shape with our weights."""
    embedding = model.embedding
    state = copied({"wte": embedding.tokens, "ln_f": model.decoder_norm})
    state["wpe.weight"] = embedding.positions.table
    for number, layer in enumerate(model.decoder):
        state |= {f"h.{number}.{name}": v for name, v in gpt2_layer(layer).items()}
    whole = {f"transformer.{name}": tensor for name, tensor in state.items()}
    whole["lm_head.weight"] = embedding.tokens.weight
    config = transformers.GPT2Config(
        vocab_size=VOCAB,
        n_embd=D,
        n_inner=D_FF,
        n_layer=num_layers,
        n_head=HEADS,
        n_positions=MAX_LEN,
        activation_function="gelu",
    )
    other = transformers.GPT2LMHeadModel(config)
    other.load_state_dict(whole)  # all of its weights, and no other
    return other.eval()


@torch.inference_mode()
def test_a_language_model_is_gpt2(ids: Tensor, shake: Shake) -> None:
    torch.manual_seed(16)
    shape = CausalSection(
        d_model=D,
        d_ff=D_FF,
        num_heads=HEADS,
        num_decoder_layers=2,
        max_len=MAX_LEN,
        bias=True,
        projection_bias=False,
        positions="learned",
        activation="gelu",
        scale_embeddings=False,
    )
    model = shake(CausalTransformer(shape, VOCAB)).eval()
    expected = gpt2(model, 2)(input_ids=ids[:1]).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(model(ids[:1]), expected, **CLOSE)
