"""Language models as GPT-2: LayerNorm first, a table of positions, biases everywhere but in the
output.

Its matrices are Weft's turned over, and those of queries, keys and values are one. Computed
positions go in as a table.

Shapes: D d_model.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.config import CausalSection
from weft.predict.weights import NORM_EPS
from weft.ship.huggingface.causal import CausalHome
from weft.ship.huggingface.home import layer_norm, linear, positions
from weft.ship.huggingface.takes import ACTIVATIONS, ADDED, UNGATED, Takes
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, stacked, transposed

_READ = ("query", "key", "value")


class GPT2(CausalHome):
    """LayerNorm first, and positions that are added."""

    architecture = "GPT2LMHeadModel"
    model_type = "gpt2"
    table = "transformer.wte.weight"
    takes = Takes(
        {
            "norm": ("layer",),
            "norm_first": (True,),
            "positions": ADDED,
            "activation": UNGATED,
        }
    )

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {
            "n_positions": shape.max_len,
            "n_embd": shape.d_model,
            "n_layer": shape.num_decoder_layers,
            "n_head": shape.num_heads,
            "n_inner": shape.d_ff,
            "activation_function": ACTIVATIONS[shape.activation],
            "layer_norm_epsilon": NORM_EPS,
            "resid_pdrop": shape.dropout,
            "embd_pdrop": shape.dropout,
            "attn_pdrop": shape.attention_dropout,
        }

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        yield positions("transformer.wpe.weight", "embedding", shape)
        for number in range(shape.num_decoder_layers):
            yield from _layer(f"transformer.h.{number}", f"decoder.{number}", shape)
        yield from layer_norm("transformer.ln_f", "decoder_norm", shape)


def _layer(name: str, of: str, shape: CausalSection) -> Iterator[Tensor]:
    attention = f"{of}.self_attention"
    d_model = shape.d_model
    yield from _read(f"{name}.attn.c_attn", attention, shape)
    yield from _turned(f"{name}.attn.c_proj", f"{attention}.output", d_model, shape)
    inner = f"{of}.feed_forward.inner"
    outer = f"{of}.feed_forward.outer"
    yield from _turned(f"{name}.mlp.c_fc", inner, shape.d_ff, shape)
    yield from _turned(f"{name}.mlp.c_proj", outer, d_model, shape)
    for number in range(2):
        there = f"{name}.ln_{number + 1}"
        yield from layer_norm(there, f"{of}.residuals.{number}.norm", shape)


def _read(name: str, of: str, shape: CausalSection) -> Iterator[Tensor]:
    """Yield the arrays of the map to queries, keys and values."""
    sizes = [shape.d_model] * len(_READ)
    weights = [f"{of}.{part}.weight" for part in _READ]
    yield transposed(stacked(f"{name}.weight", weights, sizes))
    if shape.bias:
        biases = [f"{of}.{part}.bias" for part in _READ]
        yield stacked(f"{name}.bias", biases, sizes)
    else:
        yield constant(f"{name}.bias", np.zeros(sum(sizes), np.float32))


def _turned(name: str, of: str, outputs: int, shape: CausalSection) -> Iterator[Tensor]:
    weight, bias = linear(name, of, shape.bias, outputs)
    yield transposed(weight)
    yield bias
