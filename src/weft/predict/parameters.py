"""The learned parameters of a model, by its config alone: their names and shapes.

The names are those that the modules of `weft.model` give them, and those of the weights in a
folder; a test holds both together. A parameter that two modules share is listed once.

Shapes: D d_model, F d_ff, H heads, J heads of keys and values, d head_dim, V vocabulary, C labels,
R d_hidden of a recurrent model.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.config import (
    CausalSection,
    ClassifierSection,
    LayerShape,
    RecurrentSection,
    Seq2SeqSection,
    WriterShape,
)
from weft.engine.weights import activation_named
from weft.predict.weights import SCALES


@dataclass(frozen=True)
class Parameter:
    """An array of a model; `is_linear`: the matrix of a linear map, which a folder may have in
    int8.
    """

    name: str
    shape: tuple[int, ...]
    is_linear: bool = False


Parameters = Iterator[Parameter]


def stored_shapes(
    parameters: Parameters, is_int8: bool = False
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the shape and type of each array that a folder has of a model, by its name.

    An int8 folder has a scale for each row of the matrix of a linear map.
    """
    shapes = {}
    for parameter in parameters:
        name, shape = parameter.name, parameter.shape
        if is_int8 and parameter.is_linear:
            shapes[name] = (shape, "I8")
            shapes[name + SCALES] = (shape[:1], "F32")
        else:
            shapes[name] = (shape, "F32")
    return shapes


def seq2seq_parameters(
    shape: Seq2SeqSection, src_vocab_size: int, tgt_vocab_size: int, joint: bool
) -> Parameters:
    """Yield those of an encoder-decoder."""
    is_tied = shape.tie_embeddings
    is_shared = joint and is_tied
    yield from _embedding("src_embedding", shape, src_vocab_size, is_linear=is_shared)
    if is_shared:
        yield from _beside_tokens("tgt_embedding", shape)
    else:
        yield from _embedding("tgt_embedding", shape, tgt_vocab_size, is_linear=is_tied)
    for i in range(shape.num_encoder_layers):
        yield from _layer(f"encoder.{i}", shape, has_memory=False)
    for i in range(shape.num_decoder_layers):
        yield from _layer(f"decoder.{i}", shape, has_memory=True)
    yield from _final_norm("encoder_norm", shape)
    yield from _final_norm("decoder_norm", shape)
    yield from _projection(shape, tgt_vocab_size, is_tied)


def causal_parameters(shape: CausalSection, vocab_size: int) -> Parameters:
    """Yield those of a language model."""
    is_tied = shape.tie_embeddings
    yield from _embedding("embedding", shape, vocab_size, is_linear=is_tied)
    if shape.ngrams > 1:
        yield Parameter("ngrams.hashed.weight", (shape.ngram_buckets, shape.d_model))
    if shape.match_lengths:
        num_rows = len(shape.match_lengths) * vocab_size
        yield Parameter("matches.followers.weight", (num_rows, shape.d_model))
    for i in range(shape.num_decoder_layers):
        yield from _layer(f"decoder.{i}", shape, has_memory=False)
    yield from _final_norm("decoder_norm", shape)
    yield from _projection(shape, vocab_size, is_tied)


def classifier_parameters(
    shape: ClassifierSection, vocab_size: int, num_labels: int
) -> Parameters:
    """Yield those of a classifier: an encoder, a bag of n-grams, or both, and a projection."""
    num_parts = 0
    if shape.num_encoder_layers:
        num_parts += 1
        yield from _embedding("encoder.embedding", shape, vocab_size, is_linear=False)
        for i in range(shape.num_encoder_layers):
            yield from _layer(f"encoder.layers.{i}", shape, has_memory=False)
        yield from _final_norm("encoder.norm", shape)
    if shape.ngrams > 1 or not shape.num_encoder_layers:
        num_parts += 1
        yield from _bag(shape, vocab_size)
    yield from _linear("projection", num_labels, num_parts * shape.d_model, bias=True)


def recurrent_parameters(
    shape: RecurrentSection, src_vocab_size: int, tgt_vocab_size: int, joint: bool
) -> Parameters:
    """Yield those of a recurrent encoder-decoder."""
    is_tied = shape.tie_embeddings
    tgt_table = (tgt_vocab_size, shape.d_model)
    # the target's is registered first, so that a shared table has its name
    yield Parameter("tgt_embedding.weight", tgt_table, is_tied)
    if not (joint and is_tied):
        yield Parameter("src_embedding.weight", (src_vocab_size, shape.d_model))
    for direction in ("", "_reverse"):
        yield from _recurrent_layers(shape, "encoder", direction)
    yield from _recurrent_layers(shape, "decoder", "")
    width = shape.d_hidden
    yield from _linear("memory", width, 2 * width, bias=True)
    for part in ("hidden", "cell") if shape.cell == "lstm" else ("hidden",):
        outputs = shape.num_decoder_layers * width
        yield from _linear(f"bridge.{part}", outputs, 2 * width, bias=True)
    if shape.attention == "additive":
        yield from _linear("attention.query", width, width, bias=False)
        yield from _linear("attention.key", width, width, bias=False)
        yield from _linear("attention.energy", 1, width, bias=False)
    yield from _linear("combine", shape.d_model, 2 * width, bias=True)
    if not is_tied:
        yield Parameter("projection.weight", tgt_table, is_linear=True)
    yield Parameter("projection.bias", (tgt_vocab_size,))


def _embedding(
    name: str, shape: LayerShape, vocab_size: int, is_linear: bool
) -> Parameters:
    table = (vocab_size, shape.d_model)
    yield Parameter(f"{name}.tokens.weight", table, is_linear)
    yield from _beside_tokens(name, shape)


def _beside_tokens(name: str, shape: LayerShape) -> Parameters:
    """Yield those of an embedding but for its tokens."""
    if shape.positions == "learned":
        yield Parameter(f"{name}.positions.table", (shape.max_len, shape.d_model))
    if shape.embedding_norm:
        yield from _norm(f"{name}.norm", shape)


def _layer(name: str, shape: LayerShape, has_memory: bool) -> Parameters:
    """Yield those of a layer; one with a memory attends to it, too."""
    yield from _attention(f"{name}.self_attention", shape)
    if has_memory:
        yield from _attention(f"{name}.cross_attention", shape)
    part = f"{name}.feed_forward"
    yield from _linear(f"{part}.inner", shape.d_ff, shape.d_model, shape.bias)
    if activation_named(shape.activation) != shape.activation:
        yield from _linear(f"{part}.gate", shape.d_ff, shape.d_model, shape.bias)
    yield from _linear(f"{part}.outer", shape.d_model, shape.d_ff, shape.bias)
    for i in range(3 if has_memory else 2):
        yield from _norm(f"{name}.residuals.{i}.norm", shape)
        if shape.sandwich_norm:
            yield from _norm(f"{name}.residuals.{i}.after", shape)


def _attention(name: str, shape: LayerShape) -> Parameters:
    all_heads = shape.num_heads * shape.dim_of_head
    key_value_heads = shape.key_value_heads * shape.dim_of_head
    yield from _linear(f"{name}.query", all_heads, shape.d_model, shape.bias)
    yield from _linear(f"{name}.key", key_value_heads, shape.d_model, shape.bias)
    yield from _linear(f"{name}.value", key_value_heads, shape.d_model, shape.bias)
    yield from _linear(f"{name}.output", shape.d_model, all_heads, shape.bias)
    if shape.query_key_norm:
        yield Parameter(f"{name}.query_norm.weight", (shape.dim_of_head,))
        yield Parameter(f"{name}.key_norm.weight", (shape.dim_of_head,))


def _final_norm(name: str, shape: LayerShape) -> Parameters:
    if shape.norm_first:
        yield from _norm(name, shape)


def _norm(name: str, shape: LayerShape) -> Parameters:
    yield Parameter(f"{name}.weight", (shape.d_model,))
    if shape.norm == "layer" and shape.bias:
        yield Parameter(f"{name}.bias", (shape.d_model,))


def _projection(shape: WriterShape, vocab_size: int, is_tied: bool) -> Parameters:
    """Yield those of the projection to logits; a tied matrix is the embedding's."""
    if not is_tied:
        yield Parameter("projection.weight", (vocab_size, shape.d_model), True)
    if shape.has_projection_bias:
        yield Parameter("projection.bias", (vocab_size,))


def _bag(shape: ClassifierSection, vocab_size: int) -> Parameters:
    has_hashed = shape.ngrams > 1
    is_weighted = shape.ngram_weights != "equal"
    yield Parameter("bag.tokens.weight", (vocab_size, shape.d_model))
    if is_weighted:
        yield Parameter("bag.token_weights", (vocab_size,))
    if has_hashed:
        yield Parameter("bag.hashed.weight", (shape.ngram_buckets, shape.d_model))
    if has_hashed and is_weighted:
        yield Parameter("bag.hashed_weights", (shape.ngram_buckets,))


def _recurrent_layers(shape: RecurrentSection, name: str, direction: str) -> Parameters:
    """Yield those of recurrent layers that read in one direction, named as PyTorch names them."""
    is_encoder = name == "encoder"
    num_layers = shape.num_encoder_layers if is_encoder else shape.num_decoder_layers
    rows = (4 if shape.cell == "lstm" else 3) * shape.d_hidden
    inputs = shape.d_model
    for i in range(num_layers):
        end = f"_l{i}{direction}"
        yield Parameter(f"{name}.weight_ih{end}", (rows, inputs))
        yield Parameter(f"{name}.weight_hh{end}", (rows, shape.d_hidden))
        yield Parameter(f"{name}.bias_ih{end}", (rows,))
        yield Parameter(f"{name}.bias_hh{end}", (rows,))
        # the next layer reads both directions
        inputs = (2 if is_encoder else 1) * shape.d_hidden


def _linear(name: str, outputs: int, inputs: int, bias: bool) -> Parameters:
    yield Parameter(f"{name}.weight", (outputs, inputs), is_linear=True)
    if bias:
        yield Parameter(f"{name}.bias", (outputs,))
