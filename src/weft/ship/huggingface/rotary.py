"""Models with rotary positions as Qwen3, Llama, Arcee, Starcoder2, StableLM and GLM-4, which name
their parts alike.

- Qwen3: RMSNorm, a gated feed-forward, norms of queries and keys, no biases.
- Llama: the same without norms of queries and keys, with biases or without.
- Arcee: Llama without the gate.
- Starcoder2: LayerNorm, no gate, with biases or without.
- StableLM: LayerNorm, a gate, no biases.
- GLM-4: an RMSNorm before and after each sublayer, a gate, no biases. It turns numbers side by
  side, where Weft and the others turn number i and number i of the other half: so the rows of the
  maps to queries and keys stand in another order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from weft.config import CausalSection, LayerShape
from weft.predict.weights import NORM_EPS, WAVE_BASE
from weft.ship.huggingface.causal import CausalHome, window_of
from weft.ship.huggingface.home import layer_norm, mapped
from weft.ship.huggingface.takes import ACTIVATIONS, GATED, UNGATED, Takes
from weft.ship.source import Source
from weft.ship.tensors import Tensor, permuted, same, side_by_side, stacked

ROTARY: Mapping[str, Any] = {"rope_type": "default", "rope_theta": WAVE_BASE}
GATE = {"gate_proj": "gate", "up_proj": "inner", "down_proj": "outer"}
_NO_GATE = {"up_proj": "inner", "down_proj": "outer"}
_STARCODER2 = {"c_fc": "inner", "c_proj": "outer"}
# of the classes that may turn a part of each head
_ALL = {"partial_rotary_factor": 1.0}
_MAPS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "output"}
# the norms of GLM-4, by Weft's
_AROUND = {
    "input_layernorm": "0.norm",
    "post_self_attn_layernorm": "0.after",
    "post_attention_layernorm": "1.norm",
    "post_mlp_layernorm": "1.after",
}
_NORMS = ("input_layernorm", "post_attention_layernorm")


class Rotary(CausalHome):
    """The parts that these classes have alike; `feed_forward` are its maps, the names there to
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
    since = "4.53"
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


class StableLM(Rotary):
    """LayerNorm and a gate."""

    architecture = "StableLmForCausalLM"
    model_type = "stablelm"
    takes = Takes(
        {
            "norm": ("layer",),
            "norm_first": (True,),
            "positions": ("rotary",),
            "activation": GATED,
            "bias": (False,),
        },
        groups=True,
    )

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            **super().sizes(source, shape),
            **_ALL,
            "rope_parameters": {**ROTARY, **_ALL},
            "layer_norm_eps": NORM_EPS,
            "hidden_dropout": shape.dropout,
        }


class GLM4(Rotary):
    """RMSNorm around each sublayer, and a gate."""

    architecture = "Glm4ForCausalLM"
    model_type = "glm4"
    takes = Takes(
        {
            "norm": ("rms",),
            "norm_first": (True,),
            "sandwich_norm": (True,),
            "positions": ("rotary",),
            "activation": GATED,
            "bias": (False,),
        },
        groups=True,
        any_width=True,
        any_quotient=True,
    )

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            **super().sizes(source, shape),
            **_ALL,
            "rope_parameters": {**ROTARY, **_ALL},
            "attention_bias": False,
        }

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        for number in range(shape.num_decoder_layers):
            name = f"model.layers.{number}"
            yield from _glm4_layer(name, f"decoder.{number}", shape)
        yield from norm("model.norm", "decoder_norm", shape)


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


def _glm4_layer(name: str, of: str, shape: CausalSection) -> Iterator[Tensor]:
    queries = shape.num_heads * shape.dim_of_head
    keys = shape.key_value_heads * shape.dim_of_head
    turned = {"q_proj.weight": queries, "k_proj.weight": keys}
    for tensor in mapped(f"{name}.self_attn", f"{of}.self_attention", _MAPS, shape):
        size = turned.get(tensor.name.removeprefix(f"{name}.self_attn."))
        if size:
            order = side_by_side(size, shape.dim_of_head)
            yield permuted(tensor, order, axis=0)
        else:
            yield tensor
    gate = f"{of}.feed_forward.gate.weight"
    inner = f"{of}.feed_forward.inner.weight"
    sizes = [shape.d_ff, shape.d_ff]
    yield stacked(f"{name}.mlp.gate_up_proj.weight", [gate, inner], sizes)
    yield same(f"{name}.mlp.down_proj.weight", f"{of}.feed_forward.outer.weight")
    for there, own in _AROUND.items():
        yield same(f"{name}.{there}.weight", f"{of}.residuals.{own}.weight")
