"""The weights of a model of `weft.model`, as they are now, handed to an engine.

Shapes: the legend in `weft.model.attention`.
"""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from weft.engine import weights
from weft.engine.bindings import Engine
from weft.engine.classifier import NativeClassifier
from weft.engine.packed import KINDS, library, refuse_missing
from weft.engine.writer import Writer
from weft.kernels import native, operations
from weft.kernels.modules import activation_name, norm_name
from weft.model.attention import NORM_EPS, MultiHeadAttention
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.layers import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    GatedFeedForward,
    Residual,
)
from weft.model.ngrams import NgramBag
from weft.model.positions import NoPositions, angles
from weft.model.transformer import Embedding, Seq2SeqTransformer


def build_engine(
    model: Seq2SeqTransformer, device: str, precision: str
) -> Engine | None:
    """Return the engine with this model's weights as they are now; None where this device or
    precision has none.

    Nor has a model whose weights are shared out among processes.
    """
    if device != "cpu" or precision not in KINDS or is_sharded(model):
        return None
    try:
        refuse_missing_code(model.decoder)
        return Engine(weights_of(model), precision)
    except native.UnavailableError:
        return None


def build_writer(
    model: CausalTransformer, device: str, precision: str
) -> Writer | None:
    """Return a language model of the engine, for texts that grow; None where `build_engine` gives
    none.
    """
    if device != "cpu" or precision not in KINDS or is_sharded(model):
        return None
    try:
        refuse_missing_code(model.decoder)
        return Writer(causal_weights_of(model), precision)
    except native.UnavailableError:
        return None


def build_classifier(
    model: TransformerClassifier, device: str
) -> NativeClassifier | None:
    """Return a classifier by these weights without PyTorch; None where `build_engine` gives none
    for float32.
    """
    if device != "cpu" or is_sharded(model):
        return None
    try:
        if model.encoder is not None:
            refuse_missing_code(model.encoder.layers)
        return NativeClassifier(classifier_weights_of(model))
    except native.UnavailableError:
        return None


def is_sharded(model: nn.Module) -> bool:
    """Return whether weights are shared out among processes."""
    return any(map(operations.is_spread, model.parameters()))


def why_no_engine(
    model: Seq2SeqTransformer | CausalTransformer, device: str, precision: str
) -> str:
    """Say why a model has no engine on this CPU; "" where it has one, or the device has none."""
    if device != "cpu" or precision not in KINDS:
        return ""
    try:
        refuse_missing_code(model.decoder)
        library()
    except native.UnavailableError as error:
        return str(error)
    return ""


def refuse_missing_code(layers: nn.ModuleList) -> None:
    """Raise UnavailableError where the engine has no code for a part of the layers.

    Such a part may have other weights than the engine knows, so this comes before they are read.
    """
    layer = cast(EncoderLayer | DecoderLayer | CausalLayer, layers[0])
    residual = cast(Residual, layer.residuals[0])
    activation = activation_name(layer.feed_forward.activation)
    refuse_missing(activation, norm_name(residual.norm))


def weights_of(model: Seq2SeqTransformer) -> weights.Weights:
    """Return the weights of an encoder-decoder, as the engine takes them."""
    return replace(
        _weights(model, model.tgt_embedding),
        src=_side(model.src_embedding),
        encoder=tuple(_layer(layer) for layer in model.encoder),
        encoder_norm=_final(model.encoder_norm),
    )


def _weights(
    model: Seq2SeqTransformer | CausalTransformer, tgt: Embedding
) -> weights.Weights:
    """Return the weights of a decoder."""
    return replace(
        _shape(model.decoder, tgt, model.max_len),
        tgt=_side(tgt),
        decoder=tuple(_layer(layer) for layer in model.decoder),
        decoder_norm=_final(model.decoder_norm),
        projection=_linear(model.projection),
    )


def _shape(
    layers: nn.ModuleList, embedding: Embedding, max_len: int
) -> weights.Weights:
    """Return what layers and embedding have without weights of their own."""
    first = cast(EncoderLayer | DecoderLayer | CausalLayer, layers[0])
    attention = first.self_attention
    residual = cast(Residual, first.residuals[0])
    rotary = None
    if attention.rotary:
        positions = torch.arange(max_len).float()
        cosines, sines = angles(positions, attention.head_dim)
        rotary = _array(cosines), _array(sines)
    return weights.Weights(
        num_heads=attention.num_heads,
        head_dim=attention.head_dim,
        norm_first=residual.norm_first,
        norm=norm_name(residual.norm),
        activation=activation_name(first.feed_forward.activation),
        eps=NORM_EPS,
        embedding_scale=embedding.scale,
        src=None,
        tgt=None,
        encoder=(),
        decoder=(),
        encoder_norm=None,
        decoder_norm=None,
        projection=None,
        rotary=rotary,
    )


def causal_weights_of(model: CausalTransformer) -> weights.Weights:
    """Return the weights of a decoder-only model."""
    ngrams = matches = None
    if model.ngrams is not None:
        longest = max(model.ngrams.lengths)
        ngrams = weights.Ngrams(_array(model.ngrams.hashed.weight), longest)
    if model.matches is not None:
        vectors = _array(model.matches.followers.weight)
        matches = weights.Matches(vectors, tuple(model.matches.lengths))
    decoder = _weights(model, model.embedding)
    return replace(decoder, ngrams=ngrams, matches=matches)


def classifier_weights_of(model: TransformerClassifier) -> weights.ClassifierWeights:
    """Return the weights of a classifier."""
    encoder = bag = None
    pooling = "mean"
    if model.encoder is not None:
        part = model.encoder
        pooling = part.pooling
        encoder = replace(
            _shape(part.layers, part.embedding, model.max_len),
            src=_side(part.embedding),
            encoder=tuple(_layer(layer) for layer in part.layers),
            encoder_norm=_final(part.norm),
        )
    if model.bag is not None:
        bag = bag_of(model.bag)
    projection = _linear(model.projection)
    return weights.ClassifierWeights(encoder, pooling, bag, projection)


def bag_of(bag: NgramBag) -> weights.Bag:
    """Return the weights of a bag of n-grams."""
    hashed = None
    if bag.hashed is not None:
        longest = max(bag.lengths)
        hashed = weights.Ngrams(_array(bag.hashed.weight), longest)
    return weights.Bag(
        tokens=_array(bag.tokens.weight),
        hashed=hashed,
        token_weights=_array_or_none(bag.token_weights),
        hashed_weights=_array_or_none(bag.hashed_weights),
    )


def _side(embedding: Embedding) -> weights.Side:
    positions = embedding.positions
    return weights.Side(
        _array(embedding.tokens.weight),
        None if isinstance(positions, NoPositions) else _array(positions.table),
        None if embedding.norm is None else _norm(embedding.norm),
    )


def _layer(layer: nn.Module) -> weights.Layer:
    assert isinstance(layer, EncoderLayer | CausalLayer | DecoderLayer)
    residuals = [cast(Residual, residual) for residual in layer.residuals]
    norms = tuple(_norm(residual.norm) for residual in residuals)
    after = tuple(
        _norm(residual.after) for residual in residuals if residual.after is not None
    )
    cross = None
    if isinstance(layer, DecoderLayer):
        cross = _attention(layer.cross_attention)
    part = layer.feed_forward
    return weights.Layer(
        norms=norms,
        self_attention=_attention(layer.self_attention),
        cross_attention=cross,
        inner=_linear(part.inner),
        outer=_linear(part.outer),
        gate=_linear(part.gate) if isinstance(part, GatedFeedForward) else None,
        after=after,
    )


def _attention(attention: MultiHeadAttention) -> weights.Attention:
    return weights.Attention(
        query=_linear(attention.query),
        key=_for_all_heads(attention.key, attention),
        value=_for_all_heads(attention.value, attention),
        output=_linear(attention.output),
        query_gain=_gain(attention.query_norm),
        key_gain=_gain(attention.key_norm),
    )


def _gain(norm: nn.RMSNorm | None) -> weights.Floats | None:
    return None if norm is None else _array(norm.weight)


def _for_all_heads(linear: nn.Linear, attention: MultiHeadAttention) -> weights.Linear:
    """Repeat keys or values for each head that shares them: the engine has some for every head."""
    times = attention.num_heads // attention.key_value_heads
    return _linear(linear).repeated(attention.head_dim, times)


def _linear(linear: nn.Linear) -> weights.Linear:
    bias = None if linear.bias is None else _array(linear.bias)
    return weights.Linear(_array(linear.weight), bias)


def _norm(norm: nn.LayerNorm | nn.RMSNorm) -> weights.Norm:
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    return weights.Norm(_array(norm.weight), None if bias is None else _array(bias))


def _final(norm: nn.Module) -> weights.Norm | None:
    return _norm(norm) if isinstance(norm, nn.LayerNorm | nn.RMSNorm) else None


def _array_or_none(tensor: Tensor | None) -> weights.Floats | None:
    return None if tensor is None else _array(tensor)


def _array(tensor: Tensor) -> weights.Floats:
    """Return a parameter as it is now, in float32; it shares the parameter's memory if it can."""
    return cast(weights.Floats, tensor.detach().float().cpu().numpy())
