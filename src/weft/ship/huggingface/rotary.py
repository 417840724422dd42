"""Models with rotary positions as Qwen3, Llama, Arcee and Starcoder2, which name their parts alike.

- Qwen3: RMSNorm, a gated feed-forward, norms of queries and keys, no biases.
- Llama: the same without norms of queries and keys, with biases or without.
- Arcee: Llama without the gate.
- Starcoder2: LayerNorm, no gate, with biases or without.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.config import CausalSection, LayerShape
from weft.predict.weights import NORM_EPS, WAVE_BASE
from weft.ship.huggingface.causal import CausalHome, window_of
from weft.ship.huggingface.home import layer_norm, mapped
from weft.ship.huggingface.takes import ACTIVATIONS, GATED, UNGATED, Takes
from weft.ship.source import Source
from weft.ship.tensors import Tensor, same

ROTARY: Mapping[str, Any] = {"rope_type": "default", "rope_theta": WAVE_BASE}
GATE = {"gate_proj": "gate", "up_proj": "inner", "down_proj": "outer"}
_NO_GATE = {"up_proj": "inner", "down_proj": "outer"}
_STARCODER2 = {"c_fc": "inner", "c_proj": "outer"}
_MAPS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "output"}
_NORMS = ("input_layernorm", "post_attention_layernorm")


class Rotary(CausalHome):
    """The parts that the four classes have alike; `feed_forward` are its maps, the names there to
    Weft's.
    """

    table = "model.embed_tokens.weight"
    feed_forward: ClassVar[Mapping[str, str]] = GATE

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            **rotary_sizes(shape),
            "num_hidden_layers": shape.num_decoder_layers,
            # the window, as no more was trained: nothing else depends on it
            "max_position_embeddings": window_of(source),
            # version 4 reads the one, version 5 the other
            "rope_theta": WAVE_BASE,
            "rope_parameters": ROTARY,
        }

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        for number in range(shape.num_decoder_layers):
            name = f"model.layers.{number}"
            yield from block(name, f"decoder.{number}", shape, self.feed_forward)
        yield from norm("model.norm", "decoder_norm", shape)


class Qwen3(Rotary):
    """RMSNorm, a gate, norms of queries and keys."""

    architecture = "Qwen3ForCausalLM"
    model_type = "qwen3"
    takes = Takes(
        {
            "norm": ("rms",),
            "norm_first": (True,),
            "query_key_norm": (True,),
            "positions": ("rotary",),
            "activation": GATED,
            "bias": (False,),
        },
        groups=True,
        any_width=True,
        any_quotient=True,
    )


class Llama(Rotary):
    """RMSNorm and a gate."""

    architecture = "LlamaForCausalLM"
    model_type = "llama"
    takes = Takes(
        {
            "norm": ("rms",),
            "norm_first": (True,),
            "positions": ("rotary",),
            "activation": GATED,
        },
        groups=True,
        any_width=True,
    )

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        biases = {"attention_bias": shape.bias, "mlp_bias": shape.bias}
        return {**super().sizes(source, shape), **biases}


class Arcee(Llama):
    """RMSNorm without a gate."""

    architecture = "ArceeForCausalLM"
    model_type = "arcee"
    feed_forward = _NO_GATE
    takes = Takes(
        {**Llama.takes.options, "activation": UNGATED},
        groups=True,
        any_width=True,
    )


class Starcoder2(Rotary):
    """LayerNorm without a gate."""

    architecture = "Starcoder2ForCausalLM"
    model_type = "starcoder2"
    feed_forward = _STARCODER2
    takes = Takes(
        {
            "norm": ("layer",),
            "norm_first": (True,),
            "positions": ("rotary",),
            "activation": UNGATED,
        },
        groups=True,
        any_width=True,
        any_quotient=True,
    )

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            **super().sizes(source, shape),
            "norm_epsilon": NORM_EPS,
            "use_bias": shape.bias,
            "sliding_window": None,
            "residual_dropout": shape.dropout,
            "embedding_dropout": shape.dropout,
        }


def rotary_sizes(shape: LayerShape) -> Mapping[str, Any]:
    """Return what all classes of this family have of the layers in their config."""
    return {
        "hidden_size": shape.d_model,
        "intermediate_size": shape.d_ff,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.dim_of_head,
        "hidden_act": ACTIVATIONS[shape.activation],
        "rms_norm_eps": NORM_EPS,
        "attention_dropout": shape.attention_dropout,
    }


def block(
    name: str, of: str, shape: LayerShape, feed_forward: Mapping[str, str]
) -> Iterator[Tensor]:
    """Yield the arrays of a layer."""
    own = f"{of}.self_attention"
    yield from mapped(f"{name}.self_attn", own, _MAPS, shape)
    if shape.query_key_norm:
        yield same(f"{name}.self_attn.q_norm.weight", f"{own}.query_norm.weight")
        yield same(f"{name}.self_attn.k_norm.weight", f"{own}.key_norm.weight")
    yield from mapped(f"{name}.mlp", f"{of}.feed_forward", feed_forward, shape)
    for number, there in enumerate(_NORMS):
        yield from norm(f"{name}.{there}", f"{of}.residuals.{number}.norm", shape)


def norm(name: str, of: str, shape: LayerShape) -> Iterator[Tensor]:
    """Yield the arrays of a norm: RMSNorm has no biases."""
    if shape.norm == "rms":
        yield same(f"{name}.weight", f"{of}.weight")
    else:
        yield from layer_norm(name, of, shape)
