"""The arrays of a GGUF file, made of Weft's, by the names that llama.cpp gives them.

Shapes: D d_model, V vocabulary, d the width of a head.
"""

import math
from collections.abc import Iterator

import numpy as np

from weft.config import CausalSection
from weft.predict.weights import sinusoids
from weft.ship.gguf.arches import Arch
from weft.ship.tensors import (
    Array,
    Tensor,
    constant,
    one_way,
    permuted,
    same,
    scaled,
    side_by_side,
    stacked,
)

TABLE = "token_embd.weight"
POSITIONS = "position_embd.weight"
_TOKENS = "embedding.tokens.weight"
_HEADS = {"attn_q": "query", "attn_k": "key", "attn_v": "value"}


def tensors_of(arch: Arch, shape: CausalSection) -> list[Tensor]:
    """Return all arrays of a model in the form of an architecture."""
    found = [*_tables(arch, shape)]
    for number in range(shape.num_decoder_layers):
        found += _layer(arch, shape, f"blk.{number}", f"decoder.{number}")
    found += _norm("output_norm", "decoder_norm", shape)
    return found


def loss_by_scale(shape: CausalSection, table: Array) -> float:
    """Return how far a number of the table of tokens (V, D) may be from Weft's when it is mapped
    back: where the table takes in the scale of embeddings, and no other array has its numbers.
    """
    is_lost = shape.scale_embeddings and not shape.tie_embeddings
    root = math.sqrt(shape.d_model)
    if not is_lost or math.log2(root).is_integer():
        return 0.0
    return float(np.abs(table).max()) * 2.0**-23


def _tables(arch: Arch, shape: CausalSection) -> Iterator[Tensor]:
    """Yield the table of tokens, that of positions, and the projection to logits."""
    root = math.sqrt(shape.d_model)
    is_own = not shape.tie_embeddings
    table = same(TABLE, _TOKENS)
    if shape.scale_embeddings and is_own:
        table = scaled(table, root)
    elif shape.scale_embeddings:
        table = one_way(table, lambda array: array * np.float32(root))
    yield table
    if arch.has_table and shape.positions == "learned":
        yield same(POSITIONS, "embedding.positions.table")
    elif arch.has_table:
        yield constant(POSITIONS, sinusoids(shape.max_len, shape.d_model))
    if is_own:
        yield same("output.weight", "projection.weight")
    elif arch.needs_output or shape.scale_embeddings:
        yield same("output.weight", _TOKENS)


def _layer(arch: Arch, shape: CausalSection, name: str, of: str) -> Iterator[Tensor]:
    """Yield the arrays of a layer; `of` is what Weft calls it."""
    yield from _norm(f"{name}.attn_norm", f"{of}.residuals.0.norm", shape)
    yield from _attention(arch, shape, name, f"{of}.self_attention")
    yield from _norm(f"{name}.ffn_norm", f"{of}.residuals.1.norm", shape)
    if arch.sandwich_norm:
        yield same(
            f"{name}.post_attention_norm.weight", f"{of}.residuals.0.after.weight"
        )
        yield same(f"{name}.post_ffw_norm.weight", f"{of}.residuals.1.after.weight")
    yield from _feed_forward(arch, shape, name, f"{of}.feed_forward")


def _attention(
    arch: Arch, shape: CausalSection, name: str, of: str
) -> Iterator[Tensor]:
    yield from _linear(
        arch, shape, f"{name}.attn_output", f"{of}.output", shape.d_model
    )
    if arch.query_key_norm:
        yield same(f"{name}.attn_q_norm.weight", f"{of}.query_norm.weight")
        yield same(f"{name}.attn_k_norm.weight", f"{of}.key_norm.weight")
    heads = (shape.num_heads, shape.key_value_heads, shape.key_value_heads)
    sizes = [count * shape.dim_of_head for count in heads]
    if arch.one_map:
        parts = [f"{of}.{part}" for part in _HEADS.values()]
        yield from _stacked(arch, shape, f"{name}.attn_qkv", parts, sizes)
        return
    for (part, own), size in zip(_HEADS.items(), sizes, strict=True):
        for tensor in _linear(arch, shape, f"{name}.{part}", f"{of}.{own}", size):
            is_turned = arch.turns == "neighbours" and part != "attn_v"
            if is_turned:
                yield permuted(tensor, side_by_side(size, shape.dim_of_head), axis=0)
            else:
                yield tensor


def _feed_forward(
    arch: Arch, shape: CausalSection, name: str, of: str
) -> Iterator[Tensor]:
    parts = {"ffn_up": "inner", "ffn_gate": "gate", "ffn_down": "outer"}
    sizes = {"ffn_down": shape.d_model}
    if arch.activation != "swiglu":
        del parts["ffn_gate"]
    if arch.sandwich_norm:
        # glm4 has the gate above what it opens and closes, in one matrix
        own = [f"{of}.gate", f"{of}.inner"]
        yield from _stacked(arch, shape, f"{name}.ffn_up", own, [shape.d_ff] * 2)
        parts = {"ffn_down": "outer"}
    for part, inner in parts.items():
        size = sizes.get(part, shape.d_ff)
        yield from _linear(arch, shape, f"{name}.{part}", f"{of}.{inner}", size)


def _linear(
    arch: Arch, shape: CausalSection, name: str, of: str, outputs: int
) -> Iterator[Tensor]:
    """Yield the arrays of a linear map; its bias is zeros where the model has none."""
    yield from _stacked(arch, shape, name, [of], [outputs])


def _stacked(
    arch: Arch, shape: CausalSection, name: str, of: list[str], sizes: list[int]
) -> Iterator[Tensor]:
    """Yield the arrays of one linear map that is several of Weft's."""
    yield stacked(f"{name}.weight", [f"{own}.weight" for own in of], sizes)
    if shape.bias:
        yield stacked(f"{name}.bias", [f"{own}.bias" for own in of], sizes)
    elif arch.biases == "must":
        yield constant(f"{name}.bias", np.zeros(sum(sizes), np.float32))


def _norm(name: str, of: str, shape: CausalSection) -> Iterator[Tensor]:
    """Yield the arrays of a norm; a LayerNorm has a bias, of zeros where the model has none."""
    yield same(f"{name}.weight", f"{of}.weight")
    if shape.norm == "rms":
        return
    if shape.bias:
        yield same(f"{name}.bias", f"{of}.bias")
    else:
        yield constant(f"{name}.bias", np.zeros(shape.d_model, np.float32))
