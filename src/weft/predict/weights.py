"""The weights of a Transformer, found by the names that a folder stores them by.

Shapes: D d_model, d head_dim, L positions.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.config import (
    CausalSection,
    ClassifierSection,
    LayerShape,
    Seq2SeqSection,
)
from weft.engine.weights import (
    Attention,
    Bag,
    ClassifierWeights,
    Floats,
    Layer,
    Linear,
    Matches,
    Ngrams,
    Norm,
    Side,
    Weights,
    activation_named,
)

NORM_EPS = 1e-5
SCALES = ".scales"
WAVE_BASE = 10_000.0  # of the wave lengths of positions

Arrays: TypeAlias = Mapping[str, NDArray[Any]]


def seq2seq_weights(shape: Seq2SeqSection, arrays: Arrays) -> Weights:
    """Return the weights of an encoder-decoder."""
    stored = _Stored(shape, arrays)
    src = stored.side("src_embedding", "src_embedding")
    # a vocabulary that both sides share is stored once
    tgt = stored.side("tgt_embedding", "src_embedding")
    encoder = [stored.layer(f"encoder.{i}", 2) for i in range(shape.num_encoder_layers)]
    decoder = [stored.layer(f"decoder.{i}", 3) for i in range(shape.num_decoder_layers)]
    return replace(
        stored.shape_alone(),
        src=src,
        tgt=tgt,
        encoder=tuple(encoder),
        decoder=tuple(decoder),
        encoder_norm=stored.final_norm("encoder_norm"),
        decoder_norm=stored.final_norm("decoder_norm"),
        projection=stored.output("tgt_embedding", "src_embedding"),
    )


def causal_weights(shape: CausalSection, arrays: Arrays) -> Weights:
    """Return the weights of a language model."""
    stored = _Stored(shape, arrays)
    decoder = [stored.layer(f"decoder.{i}", 2) for i in range(shape.num_decoder_layers)]
    tgt = stored.side("embedding", "embedding")
    matches = None
    if shape.match_lengths:
        vectors = stored.present("matches.followers.weight")
        matches = Matches(vectors, shape.match_lengths)
    return replace(
        stored.shape_alone(),
        tgt=tgt,
        decoder=tuple(decoder),
        decoder_norm=stored.final_norm("decoder_norm"),
        projection=stored.output("embedding", "embedding"),
        ngrams=stored.ngrams("ngrams", shape.ngrams),
        matches=matches,
    )


def classifier_weights(shape: ClassifierSection, arrays: Arrays) -> ClassifierWeights:
    """Return the weights of a classifier."""
    stored = _Stored(shape, arrays)
    encoder = None
    num_layers = shape.num_encoder_layers
    if num_layers:
        layers = [stored.layer(f"encoder.layers.{i}", 2) for i in range(num_layers)]
        encoder = replace(
            stored.shape_alone(),
            src=stored.side("encoder.embedding", "encoder.embedding"),
            encoder=tuple(layers),
            encoder_norm=stored.final_norm("encoder.norm"),
        )
    bag = None
    if shape.ngrams > 1 or not num_layers:
        bag = Bag(
            tokens=stored.present("bag.tokens.weight"),
            hashed=stored.ngrams("bag", shape.ngrams),
            token_weights=stored.array("bag.token_weights"),
            hashed_weights=stored.array("bag.hashed_weights"),
        )
    projection = stored.linear("projection")
    return ClassifierWeights(encoder, shape.pooling, bag, projection)


class _Stored:
    """The parts of a model, found by the names that its modules have in `weft.model`."""

    def __init__(self, shape: LayerShape, arrays: Arrays) -> None:
        self.shape = shape
        self.arrays = arrays

    def shape_alone(self) -> Weights:
        """Return what the model has without weights of its own."""
        shape = self.shape
        is_rotary = shape.positions == "rotary"
        return Weights(
            num_heads=shape.num_heads,
            head_dim=shape.dim_of_head,
            norm_first=shape.norm_first,
            norm=shape.norm,
            activation=activation_named(shape.activation),
            eps=NORM_EPS,
            embedding_scale=math.sqrt(shape.d_model) if shape.scale_embeddings else 1.0,
            src=None,
            tgt=None,
            encoder=(),
            decoder=(),
            encoder_norm=None,
            decoder_norm=None,
            projection=None,
            rotary=angles(shape.max_len, shape.dim_of_head) if is_rotary else None,
        )

    def output(self, tied: str, instead: str) -> Linear:
        """Return the projection to logits. A matrix that is also the embedding `tied` is stored
        once, with that or with the embedding `instead` that shares it.
        """
        if "projection.weight" in self.arrays:
            return self.linear("projection")
        matrix = self.arrays.get(f"{tied}.tokens.weight")
        name = tied if matrix is not None else instead
        return self.map_of(f"{name}.tokens.weight", "projection.bias")

    def ngrams(self, name: str, longest: int) -> Ngrams | None:
        """Return the vectors of n-grams; None where tokens stand alone."""
        if longest == 1:
            return None
        return Ngrams(self.present(f"{name}.hashed.weight"), longest)

    def array(self, name: str) -> Floats | None:
        """Return an array in float32; None where the model has none of that name."""
        array = self.arrays.get(name)
        scales = self.arrays.get(name + SCALES)
        if array is None or scales is None:
            return array
        return array.astype(np.float32) * scales[:, None]

    def present(self, name: str) -> Floats:
        """Return an array that every model has."""
        array = self.array(name)
        assert array is not None, name
        return array

    def side(self, name: str, instead: str) -> Side:
        """Return the parts of an embedding; `instead` has its tokens if it shares them."""
        tokens = self.array(f"{name}.tokens.weight")
        if tokens is None:
            tokens = self.present(f"{instead}.tokens.weight")
        positions = self.array(f"{name}.positions.table")
        if self.shape.positions == "sinusoidal":
            positions = sinusoids(self.shape.max_len, self.shape.d_model)
        norm = self.norm(f"{name}.norm") if self.shape.embedding_norm else None
        return Side(tokens, positions, norm)

    def layer(self, name: str, num_sublayers: int) -> Layer:
        """Return a layer of so many sublayers; one of three attends to the source."""
        norms = [self.norm(f"{name}.residuals.{i}.norm") for i in range(num_sublayers)]
        after = []
        if self.shape.sandwich_norm:
            after = [
                self.norm(f"{name}.residuals.{i}.after") for i in range(num_sublayers)
            ]
        cross = None
        if num_sublayers == 3:
            cross = self.attention(f"{name}.cross_attention")
        gate = None
        if f"{name}.feed_forward.gate.weight" in self.arrays:
            gate = self.linear(f"{name}.feed_forward.gate")
        return Layer(
            norms=tuple(norms),
            self_attention=self.attention(f"{name}.self_attention"),
            cross_attention=cross,
            inner=self.linear(f"{name}.feed_forward.inner"),
            outer=self.linear(f"{name}.feed_forward.outer"),
            gate=gate,
            after=tuple(after),
        )

    def attention(self, name: str) -> Attention:
        """Return the maps of an attention; keys and values for every head."""
        return Attention(
            query=self.linear(f"{name}.query"),
            key=self.for_all_heads(f"{name}.key"),
            value=self.for_all_heads(f"{name}.value"),
            output=self.linear(f"{name}.output"),
            query_gain=self.array(f"{name}.query_norm.weight"),
            key_gain=self.array(f"{name}.key_norm.weight"),
        )

    def for_all_heads(self, name: str) -> Linear:
        """Repeat keys or values for each head that shares them."""
        times = self.shape.num_heads // self.shape.key_value_heads
        return self.linear(name).repeated(self.shape.dim_of_head, times)

    def linear(self, name: str) -> Linear:
        return self.map_of(f"{name}.weight", f"{name}.bias")

    def map_of(self, weight: str, bias: str) -> Linear:
        """Return a map by the names of its arrays; one in int8 stays as it is stored."""
        scales = self.arrays.get(weight + SCALES)
        return Linear(self.arrays[weight], self.array(bias), scales)

    def norm(self, name: str) -> Norm:
        gain = self.present(f"{name}.weight")
        return Norm(gain, self.array(f"{name}.bias"))

    def final_norm(self, name: str) -> Norm | None:
        """Return the norm after a stack, which those with norms first have."""
        return self.norm(name) if self.shape.norm_first else None


def sinusoids(num_positions: int, d_model: int) -> Floats:
    """Compute the paper's positions (L, D): sin(pos / 10000^(2i/D)) in dimension 2i, its cos in
    2i + 1 (Vaswani et al. 2017, section 3.5).
    """
    position = np.arange(num_positions, dtype=np.float64)
    dimension = np.arange(0, d_model, 2, dtype=np.float64)  # 2i
    frequency = WAVE_BASE ** (-dimension / d_model)
    angle = position[:, None] * frequency
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return pairs.reshape(num_positions, -1).astype(np.float32)


def angles(num_positions: int, head_dim: int) -> tuple[Floats, Floats]:
    """Compute cosine and sine of the angle pos / 10000^(2i/d) of each position's pair i, (L, d / 2)
    each.
    """
    position = np.arange(num_positions, dtype=np.float32)
    angle = position[:, None] * rotary_frequencies(head_dim)
    return np.cos(angle), np.sin(angle)


def rotary_frequencies(head_dim: int) -> Floats:
    """Compute by what each pair's angle grows from one position to the next, (d / 2)."""
    dimension = np.arange(0, head_dim, 2, dtype=np.float32)
    frequency: Floats = np.float32(WAVE_BASE) ** (-dimension / np.float32(head_dim))
    return frequency
