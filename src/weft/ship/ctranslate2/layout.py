"""The arrays of a model as CTranslate2 names them, each made of Weft's.

Queries, keys and values of self-attention are one linear map; over a memory the queries are a map
of their own. A feed-forward part with a gate has the gate first. Positions are a table, which takes
computed ones as they are; rotary ones are no array.

Shapes: D d_model, H heads, J heads of keys and values, d head_dim.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.config import (
    CausalSection,
    ClassifierSection,
    LayerShape,
    Seq2SeqSection,
    WriterShape,
)
from weft.kernels.activations import GATES
from weft.predict.weights import sinusoids
from weft.ship.source import Source
from weft.ship.tensors import Arrays, Tensor, constant, same, stacked

MATRIX = "/weight"  # ends the names of matrices alone


@dataclass(frozen=True)
class Stack:
    """An encoder or a decoder: its name there, and the names that its parts have in Weft."""

    name: str
    embedding: str
    layers: str
    norm: str
    has_memory: bool = False

    @property
    def table(self) -> str:
        """Return what CTranslate2 calls the table of tokens: a source may have several there."""
        return "embeddings_0" if self.name == "encoder" else "embeddings"


_SRC = Stack("encoder", "src_embedding", "encoder", "encoder_norm")
_TGT = Stack("decoder", "tgt_embedding", "decoder", "decoder_norm", has_memory=True)
_TEXT = Stack("decoder", "embedding", "decoder", "decoder_norm")
_READ = Stack("encoder", "encoder.embedding", "encoder.layers", "encoder.norm")

# the norms before and after a sublayer, where what it adds has a norm of its own
_AROUND = {
    "self_attention": ("input_layer_norm", "post_attention_layer_norm"),
    "attention": (
        "external_pre_encoder_attention_layer_norm",
        "external_post_encoder_attention_layer_norm",
    ),
    "ffn": ("pre_feedforward_layer_norm", "post_feedforward_layer_norm"),
}


def tensors_of(source: Source, num_positions: int) -> list[Tensor]:
    """Return all arrays of a model but its settings and a classifier's projection.

    A table of computed positions has `num_positions` rows at least; so has a learned one, whose
    last row stands for those that were never learned.
    """
    shape = source.shape
    assert isinstance(shape, LayerShape)
    maker = _Maker(source.arrays, shape, num_positions)
    if isinstance(shape, Seq2SeqSection):
        return [
            *maker.stack(_SRC, shape.num_encoder_layers),
            *maker.stack(_TGT, shape.num_decoder_layers),
            *maker.projection(_TGT, shape),
        ]
    if isinstance(shape, CausalSection):
        return [
            *maker.stack(_TEXT, shape.num_decoder_layers),
            *maker.projection(_TEXT, shape),
        ]
    assert isinstance(shape, ClassifierSection)
    return list(maker.stack(_READ, shape.num_encoder_layers))


@dataclass(frozen=True)
class _Maker:
    """The parts of models of one shape; `arrays` are Weft's."""

    arrays: Arrays
    shape: LayerShape
    num_positions: int

    def stack(self, stack: Stack, count: int) -> Iterator[Tensor]:
        """Yield the arrays of an encoder or a decoder."""
        name = stack.name
        yield same(f"{name}/{stack.table}/weight", self._tokens(stack))
        yield from self._positions(stack)
        if self.shape.embedding_norm:
            yield from self._norm(
                f"{name}/layernorm_embedding", f"{stack.embedding}.norm"
            )
        for i in range(count):
            yield from self._layer(f"{name}/layer_{i}", f"{stack.layers}.{i}", stack)
        if self.shape.norm_first:
            yield from self._norm(f"{name}/layer_norm", stack.norm)

    def projection(self, stack: Stack, shape: WriterShape) -> Iterator[Tensor]:
        """Yield the projection to logits; a tied one is the table of tokens."""
        matrix = self._tokens(stack) if shape.tie_embeddings else "projection.weight"
        yield same(f"{stack.name}/projection/weight", matrix)
        if shape.has_projection_bias:
            yield same(f"{stack.name}/projection/bias", "projection.bias")

    def _tokens(self, stack: Stack) -> str:
        """Return Weft's name of a table of tokens: one that both sides share is the source's."""
        own = f"{stack.embedding}.tokens.weight"
        return own if own in self.arrays else f"{_SRC.embedding}.tokens.weight"

    def _positions(self, stack: Stack) -> Iterator[Tensor]:
        name = f"{stack.name}/position_encodings/encodings"
        shape = self.shape
        if shape.positions == "learned":
            yield self._lengthened(name, f"{stack.embedding}.positions.table")
        elif shape.positions == "sinusoidal":
            num_rows = max(shape.max_len, self.num_positions)
            yield constant(name, sinusoids(num_rows, shape.d_model))

    def _lengthened(self, name: str, of: str) -> Tensor:
        """Return a learned table with its last row again for each position that is missing."""
        size = len(self.arrays[of])
        missing = max(0, self.num_positions - size)
        return Tensor(
            name,
            (of,),
            lambda table: np.concatenate([table, np.repeat(table[-1:], missing, 0)]),
            lambda table: [table[:size]],
        )

    def _layer(self, name: str, of: str, stack: Stack) -> Iterator[Tensor]:
        yield from self._self_attention(name, of)
        parts = ["self_attention", "ffn"]
        if stack.has_memory:
            yield from self._cross_attention(name, of)
            parts.insert(1, "attention")
        yield from self._feed_forward(f"{name}/ffn", f"{of}.feed_forward")
        for number, part in enumerate(parts):
            residual = f"{of}.residuals.{number}"
            if self.shape.sandwich_norm:
                before, after = _AROUND[part]
                yield from self._norm(f"{name}/{before}", f"{residual}.norm")
                yield from self._norm(f"{name}/{after}", f"{residual}.after")
            else:
                yield from self._norm(f"{name}/{part}/layer_norm", f"{residual}.norm")

    def _self_attention(self, name: str, of: str) -> Iterator[Tensor]:
        part = f"{of}.self_attention"
        there = f"{name}/self_attention"
        maps = ("query", "key", "value")
        yield from self._linear(f"{there}/linear_0", *(f"{part}.{own}" for own in maps))
        yield from self._linear(f"{there}/linear_1", f"{part}.output")
        if self.shape.query_key_norm:
            yield same(f"{there}/q_norm/gamma", f"{part}.query_norm.weight")
            yield same(f"{there}/k_norm/gamma", f"{part}.key_norm.weight")

    def _cross_attention(self, name: str, of: str) -> Iterator[Tensor]:
        part = f"{of}.cross_attention"
        there = f"{name}/attention"
        yield from self._linear(f"{there}/linear_0", f"{part}.query")
        yield from self._linear(f"{there}/linear_1", f"{part}.key", f"{part}.value")
        yield from self._linear(f"{there}/linear_2", f"{part}.output")

    def _feed_forward(self, name: str, of: str) -> Iterator[Tensor]:
        if self.shape.activation in GATES:
            yield from self._linear(f"{name}/linear_0", f"{of}.gate")
            yield from self._linear(f"{name}/linear_0_noact", f"{of}.inner")
        else:
            yield from self._linear(f"{name}/linear_0", f"{of}.inner")
        yield from self._linear(f"{name}/linear_1", f"{of}.outer")

    def _linear(self, name: str, *of: str) -> Iterator[Tensor]:
        """Yield the arrays of a linear map that is several of Weft's, one below the other."""
        kinds = ["weight", "bias"] if self.shape.bias else ["weight"]
        for kind in kinds:
            own = [f"{part}.{kind}" for part in of]
            yield stacked(f"{name}/{kind}", own, [len(self.arrays[n]) for n in own])

    def _norm(self, name: str, of: str) -> Iterator[Tensor]:
        """Yield the arrays of a norm; a LayerNorm without bias has zeros there."""
        yield same(f"{name}/gamma", f"{of}.weight")
        if self.shape.norm != "layer":
            return
        if self.shape.bias:
            yield same(f"{name}/beta", f"{of}.bias")
        else:
            yield constant(f"{name}/beta", np.zeros(self.shape.d_model, np.float32))
