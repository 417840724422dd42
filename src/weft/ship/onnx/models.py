"""The graphs of a model of any task: what goes in, what comes out, and its layers between.

The names of inputs and outputs are those that programs around onnxruntime look for; sizes that
have a name may be any, and that of what was read before may be 0.

Shapes: N texts; S source ids; L new ids, P those before them, T both; D d_model; J heads of keys
and values; d head_dim; V vocabulary; C labels.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from weft.config import CausalSection, ClassifierSection, LayerShape, Seq2SeqSection
from weft.data.pipeline import SPECIALS
from weft.folder.model_folder import (
    ClassificationConfig,
    LanguageConfig,
    TranslationConfig,
)
from weft.predict.settings import BANNED
from weft.ship.onnx.graph import Graph, Value
from weft.ship.onnx.layers import Angles, KeysValues, Layers, Sublayer
from weft.ship.onnx.ngrams import Reading, bag_mean, beside
from weft.ship.source import Source
from weft.ship.tensors import Arrays, constant
from weft.ship.tokenizers import ids as id_maps
from weft.ship.tokenizers.ids import IdMap
from weft.ship.written import NEVER

ENCODER = "encoder_model"
DECODER = "decoder_model"
MODEL = "model"

_BATCH = "batch_size"
_SOURCE = "encoder_sequence_length"
_NEW = "sequence_length"
_PAST = "past_sequence_length"
_ALL = "total_sequence_length"


def ids_of(source: Source) -> IdMap:
    """Say where Weft's ids stand: two vocabularies are one list, whose special ids both share."""
    src, tgt = source.tokenizers[0], source.tokenizers[-1]
    return id_maps.same(src) if src is tgt else id_maps.joined(src, tgt, own_eos=False)


def names_of(source: Source) -> tuple[str, ...]:
    """Return the names of the graphs of a model."""
    is_translator = isinstance(source.config, TranslationConfig)
    return (ENCODER, DECODER) if is_translator else (MODEL,)


def graphs_of(source: Source, bans: bool = False) -> Mapping[str, Graph]:
    """Return the graphs of a model by the names of their files.

    With `bans`, the logits of ids that are never written are so low that no search finds them.
    """
    config = source.config
    arrays = source.arrays
    if isinstance(config, TranslationConfig):
        shape = config.model
        assert isinstance(shape, Seq2SeqSection)
        return {
            ENCODER: _encoder(arrays, shape, ids_of(source)),
            DECODER: _decoder(arrays, shape, config.tgt_vocab_size, bans),
        }
    if isinstance(config, LanguageConfig):
        return {MODEL: _writer(arrays, config.model, config.vocab_size, bans)}
    assert isinstance(config, ClassificationConfig)
    return {MODEL: _classifier(arrays, config.model, len(config.labels))}


# Translators
# --------------------------------------------------------------------------------------


def _encoder(arrays: Arrays, shape: Seq2SeqSection, ids: IdMap) -> Graph:
    """Build the encoder: source ids to its states."""
    graph = Graph(arrays)
    given = graph.input("input_ids", "int64", _BATCH, _SOURCE)
    mask = graph.input("attention_mask", "int64", _BATCH, _SOURCE)
    own = _ids_of_source(given, ids) if ids.is_joined else given
    states = _encoded(
        Layers(graph, shape),
        "src_embedding",
        [f"encoder.{i}" for i in range(shape.num_encoder_layers)],
        "encoder_norm",
        own,
        mask,
    )
    graph.output("last_hidden_state", states, _BATCH, _SOURCE, shape.d_model)
    return graph


def _ids_of_source(given: Value, ids: IdMap) -> Value:
    """Return the source's own ids: behind the special ones they follow the target's in the list."""
    end = len(ids.tgt)
    is_source = given > end - 1
    return given.graph.op("Where", is_source, given - (end - len(SPECIALS)), given)


def _encoded(
    layers: Layers,
    embedding: str,
    names: Sequence[str],
    final_norm: str,
    ids: Value,
    mask: Value,
) -> Value:
    """Return the states of an encoder, (N, S, D); padding is never attended to."""
    graph = layers.graph
    length = ids.size(1)

    def places(table: Value) -> Value:
        return table.part(0, 0, length)

    tokens = graph.weight(f"{embedding}.tokens.weight")
    x = layers.embedded(embedding, tokens, ids, places)
    turned = layers.angles(places)
    is_text = (mask > 0).unsqueezed(1, 2)
    for name in names:
        x = _encoder_layer(layers, name, x, turned, is_text)
    return layers.final_norm(final_norm, x)


def _encoder_layer(
    layers: Layers, name: str, x: Value, turned: Angles | None, mask: Value
) -> Value:
    """Compute self-attention over the source, then feed-forward (section 3.1)."""
    own = f"{name}.self_attention"

    def self_attention(y: Value) -> Value:
        query = layers.queries(own, y, turned)
        attended = layers.keys_values(own, y, turned)
        return layers.attend(own, query, attended, mask)

    x = layers.residual(name, 0, x, self_attention)
    return layers.residual(name, 1, x, layers.feed_forward(name))


def _decoder(
    arrays: Arrays, shape: Seq2SeqSection, vocab_size: int, bans: bool
) -> Graph:
    """Build the decoder: new target ids (N, L) after those in the cache to the logits after each.

    An empty cache has no keys and values of the source yet, which are computed then.
    """
    graph = Graph(arrays)
    ids = graph.input("input_ids", "int64", _BATCH, _NEW)
    memory_mask = graph.input("encoder_attention_mask", "int64", _BATCH, _SOURCE)
    sizes = (_BATCH, _SOURCE, shape.d_model)
    memory = graph.input("encoder_hidden_states", "float32", *sizes)
    cache = [
        {kind: _past(graph, shape, f"{i}.{kind}") for kind in ("decoder", "encoder")}
        for i in range(shape.num_decoder_layers)
    ]
    layers = Layers(graph, shape)
    first = cache[0]["decoder"].key.size(2)
    end = first + ids.size(1)

    def places(table: Value) -> Value:
        return table.part(0, first, end)

    is_shared = not graph.has("tgt_embedding.tokens.weight")
    table = "src_embedding" if is_shared else "tgt_embedding"
    tokens = graph.weight(f"{table}.tokens.weight")
    x = layers.embedded("tgt_embedding", tokens, ids, places)
    turned = layers.angles(places)
    mask = _causal(first, end)
    is_text = (memory_mask > 0).unsqueezed(1, 2)
    rest = memory.part(1, cache[0]["encoder"].key.size(2))
    longer = []
    for i, past in enumerate(cache):
        name = f"decoder.{i}"
        own_memory = layers.keys_values(f"{name}.cross_attention", rest)
        seen = past["encoder"].extended(own_memory)
        x, own = _decoder_layer(
            layers, name, x, past["decoder"], turned, mask, (seen, is_text)
        )
        longer.append((own, seen))
    x = layers.final_norm("decoder_norm", x)
    _logits(layers, x, tokens, vocab_size, bans)
    for i, (own, seen) in enumerate(longer):
        _present(graph, shape, f"{i}.decoder", own, _ALL)
        _present(graph, shape, f"{i}.encoder", seen, _SOURCE)
    return graph


def _decoder_layer(
    layers: Layers,
    name: str,
    x: Value,
    past: KeysValues,
    turned: Angles | None,
    mask: Value,
    memory: tuple[KeysValues, Value] | None = None,
) -> tuple[Value, KeysValues]:
    """Compute causal self-attention, attention over the memory where there is one, then
    feed-forward; return the states and the longer past. The memory comes with its mask.
    """
    own = f"{name}.self_attention"

    def self_attention(y: Value) -> Value:
        nonlocal past
        query = layers.queries(own, y, turned)
        past = past.extended(layers.keys_values(own, y, turned))
        return layers.attend(own, query, past, mask)

    def cross_attention(y: Value) -> Value:
        assert memory is not None
        attended, is_text = memory
        part = f"{name}.cross_attention"
        return layers.attend(part, layers.queries(part, y), attended, is_text)

    sublayers: list[Sublayer] = [self_attention]
    if memory is not None:
        sublayers.append(cross_attention)
    sublayers.append(layers.feed_forward(name))
    for number, sublayer in enumerate(sublayers):
        x = layers.residual(name, number, x, sublayer)
    return x, past


# Language models and classifiers
# --------------------------------------------------------------------------------------


def _writer(arrays: Arrays, shape: CausalSection, vocab_size: int, bans: bool) -> Graph:
    """Build a language model: new ids (N, L) after those in the cache to the logits after each.

    The mask (N, T) is 0 at padding, which stands on the left. Where n-grams and matches reach back
    to what was read, its ids are in the cache, too.
    """
    graph = Graph(arrays)
    ids = graph.input("input_ids", "int64", _BATCH, _NEW)
    mask = graph.input("attention_mask", "int64", _BATCH, _ALL)
    cache = [_past(graph, shape, str(i)) for i in range(shape.num_decoder_layers)]
    layers = Layers(graph, shape)
    first = cache[0].key.size(2)
    counted = graph.op("CumSum", mask, 1) - 1
    # padding stands nowhere; what it becomes is never attended to
    placed = graph.op("Max", counted, graph.number(0)).part(1, first)

    def places(table: Value) -> Value:
        return table.rows(placed)

    reading = None
    vectors = []
    if shape.ngrams > 1 or shape.match_lengths:
        past_ids = graph.input("past_ids", "int64", _BATCH, _PAST)
        read = graph.join([past_ids, ids], 1)
        # 0 at padding
        reading = Reading(read * mask, ids.size(1))
        vectors = list(beside(reading, shape, vocab_size))
    tokens = graph.weight("embedding.tokens.weight")
    x = layers.embedded("embedding", tokens, ids, places, vectors)
    turned = layers.angles(places)
    visible = (mask > 0).unsqueezed(1, 2) & _causal(first, first + ids.size(1))
    longer = []
    for i, past in enumerate(cache):
        x, own = _decoder_layer(layers, f"decoder.{i}", x, past, turned, visible)
        longer.append(own)
    x = layers.final_norm("decoder_norm", x)
    _logits(layers, x, tokens, vocab_size, bans)
    for i, own in enumerate(longer):
        _present(graph, shape, str(i), own, _ALL)
    if reading is not None:
        graph.output("present_ids", reading.ids, _BATCH, _ALL)
    return graph


def _classifier(arrays: Arrays, shape: ClassifierSection, num_labels: int) -> Graph:
    """Build a classifier: the ids of texts to the logits of their labels."""
    graph = Graph(arrays)
    ids = graph.input("input_ids", "int64", _BATCH, _NEW)
    mask = graph.input("attention_mask", "int64", _BATCH, _NEW)
    layers = Layers(graph, shape)
    vectors = []
    if shape.num_encoder_layers:
        names = [f"encoder.layers.{i}" for i in range(shape.num_encoder_layers)]
        states = _encoded(layers, "encoder.embedding", names, "encoder.norm", ids, mask)
        vectors.append(_pooled(states, mask, shape))
    if graph.has("bag.tokens.weight"):
        vectors.append(bag_mean(ids * mask, shape))
    logits = layers.linear("projection", graph.join(vectors, 1))
    graph.output("logits", logits, _BATCH, num_labels)
    return graph


def _pooled(states: Value, mask: Value, shape: ClassifierSection) -> Value:
    """Return the first state of each text, or the mean of all but padding, (N, D)."""
    graph = states.graph
    if shape.pooling == "first":
        return states.part(1, 0, 1).reshaped(0, shape.d_model)
    is_text = mask.to("float32").unsqueezed(2)
    total = (states * is_text).sum(1)
    count = graph.op("Max", is_text.sum(1), graph.number(1.0))
    return total / count


# What goes in and comes out
# --------------------------------------------------------------------------------------


def _past(graph: Graph, shape: LayerShape, name: str) -> KeysValues:
    """Add the inputs that have the keys and values of a layer so far, (N, J, P, d) each."""
    length = f"past_{_SOURCE}" if name.endswith("encoder") else _PAST
    sizes = (_BATCH, shape.key_value_heads, length, shape.dim_of_head)
    key, value = (
        graph.input(f"past_key_values.{name}.{part}", "float32", *sizes)
        for part in ("key", "value")
    )
    return KeysValues(key, value)


def _present(
    graph: Graph, shape: LayerShape, name: str, cached: KeysValues, length: str
) -> None:
    """Add the outputs that have the keys and values of a layer from now on."""
    sizes = (_BATCH, shape.key_value_heads, length, shape.dim_of_head)
    graph.output(f"present.{name}.key", cached.key, *sizes)
    graph.output(f"present.{name}.value", cached.value, *sizes)


def _logits(
    layers: Layers, x: Value, tokens: Value, vocab_size: int, bans: bool
) -> None:
    """Add the output that has the logits of the token after each position, (N, L, V)."""
    graph = layers.graph
    if graph.has("projection.weight"):
        matrix = graph.matrix("projection.weight")
    else:
        matrix = tokens.transposed(1, 0)
    logits = layers.biased("projection.bias", x @ matrix)
    if bans:
        never = np.zeros(vocab_size, np.float32)
        never[list(BANNED)] = NEVER
        logits = logits + graph.array(constant("banned", never))
    graph.output("logits", logits, _BATCH, _NEW, vocab_size)


def _causal(first: Value, end: Value) -> Value:
    """Return the mask (L, T) by which each of the places from the first on sees itself and those
    before it.
    """
    graph = first.graph
    every = graph.range(graph.ints(0), end)
    places = every.part(0, first)
    return graph.op("LessOrEqual", every, places.unsqueezed(1))
