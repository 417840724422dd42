"""Models as BERT, MegatronBERT and BertGeneration: LayerNorm, biases, a table of positions.

- BERT: classifiers with norms last, and one of the embeddings.
- MegatronBERT: classifiers with norms first.
- BertGeneration: language models with BERT's layers, whose output may have biases.

The classifiers take the first state, and between it and the labels they have a map and tanh, which
Weft has not. Near 0 tanh is the identity: the map divides by a power of two, so that no state is
far from 0, and the projection to labels is multiplied by it. No bit is lost by either.

Shapes: D d_model, C labels.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weft.config import CausalSection, ClassifierSection, LayerShape
from weft.predict.weights import NORM_EPS
from weft.ship.huggingface.causal import CausalHome
from weft.ship.huggingface.classifier import ClassifierHome
from weft.ship.huggingface.home import layer_norm, linear, positions
from weft.ship.huggingface.takes import ACTIVATIONS, ADDED, UNGATED, Takes
from weft.ship.source import Source
from weft.ship.tensors import Tensor, constant, same, scaled

# |tanh(x) - x| is at most |x|^3 / 3: for a state of 16 by this number below 2^-28 of its size
_SMALL = 2.0**-13
_LAYERS = {"norm": ("layer",), "positions": ADDED, "activation": UNGATED}
_LAST = {**_LAYERS, "norm_first": (False,), "embedding_norm": (True,)}
_READ = ("query", "key", "value")


class MegatronBERT(ClassifierHome):
    """Norms first; each stands in the sublayer that it is for."""

    architecture = "MegatronBertForSequenceClassification"
    model_type = "megatron-bert"
    table = "bert.embeddings.word_embeddings.weight"
    poolings = ("first",)
    takes = Takes({**_LAYERS, "norm_first": (True,)})
    attention_norm = "attention.ln"
    feed_forward_norm = "ln"

    def sizes(self, shape: ClassifierSection) -> Mapping[str, Any]:
        return {
            **_sizes(shape, shape.num_encoder_layers),
            "type_vocab_size": 1,
            "classifier_dropout": shape.head_dropout,
        }

    def stack(self, source: Source, shape: ClassifierSection) -> Iterator[Tensor]:
        yield from self.embeddings(shape)
        for number in range(shape.num_encoder_layers):
            name = f"bert.encoder.layer.{number}"
            norms = (
                f"{name}.{self.attention_norm}",
                f"{name}.{self.feed_forward_norm}",
            )
            yield from _layer(name, f"encoder.layers.{number}", norms, shape)
        if shape.norm_first:
            yield from layer_norm("bert.encoder.ln", "encoder.norm", shape)
        yield from _first_state(shape.d_model)
        yield scaled(same("classifier.weight", "projection.weight"), 1 / _SMALL)
        yield same("classifier.bias", "projection.bias")

    def embeddings(self, shape: ClassifierSection) -> Iterator[Tensor]:
        """Yield what is added to the vectors of tokens: positions, and a kind of text that is
        nothing.
        """
        yield positions(
            "bert.embeddings.position_embeddings.weight", "encoder.embedding", shape
        )
        nothing = np.zeros((1, shape.d_model), np.float32)
        yield constant("bert.embeddings.token_type_embeddings.weight", nothing)


class BERT(MegatronBERT):
    """Norms last, and one of the embeddings."""

    architecture = "BertForSequenceClassification"
    model_type = "bert"
    takes = Takes(_LAST)
    attention_norm = "attention.output.LayerNorm"
    feed_forward_norm = "output.LayerNorm"

    def embeddings(self, shape: ClassifierSection) -> Iterator[Tensor]:
        yield from super().embeddings(shape)
        norm = "bert.embeddings.LayerNorm"
        yield from layer_norm(norm, "encoder.embedding.norm", shape)


class BertGeneration(CausalHome):
    """BERT's layers, each position of which sees those before it."""

    architecture = "BertGenerationDecoder"
    model_type = "bert-generation"
    table = "bert.embeddings.word_embeddings.weight"
    head = "lm_head.decoder.weight"
    has_output_biases = True
    takes = Takes(_LAST)

    def sizes(self, source: Source, shape: CausalSection) -> Mapping[str, Any]:
        return {**_sizes(shape, shape.num_decoder_layers), "is_decoder": True}

    def tensors(self, source: Source) -> list[Tensor]:
        zeros = np.zeros(self.ids(source).size, np.float32)
        found = super().tensors(source)
        # the class has two names for them, which are one where its tables are
        for name in ("lm_head.bias", "lm_head.decoder.bias"):
            if "projection.bias" in source.arrays:
                found.append(same(name, "projection.bias"))
            else:
                found.append(constant(name, zeros))
        return found

    def stack(self, shape: CausalSection) -> Iterator[Tensor]:
        yield positions(
            "bert.embeddings.position_embeddings.weight", "embedding", shape
        )
        norm = "bert.embeddings.LayerNorm"
        yield from layer_norm(norm, "embedding.norm", shape)
        for number in range(shape.num_decoder_layers):
            name = f"bert.encoder.layer.{number}"
            norms = (f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm")
            yield from _layer(name, f"decoder.{number}", norms, shape)


def _sizes(shape: LayerShape, num_layers: int) -> Mapping[str, Any]:
    """Return what all three classes have of the layers in their config."""
    return {
        "hidden_size": shape.d_model,
        "num_hidden_layers": num_layers,
        "num_attention_heads": shape.num_heads,
        "intermediate_size": shape.d_ff,
        "hidden_act": ACTIVATIONS[shape.activation],
        "max_position_embeddings": shape.max_len,
        "layer_norm_eps": NORM_EPS,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.attention_dropout,
    }


def _layer(
    name: str, of: str, norms: tuple[str, str], shape: LayerShape
) -> Iterator[Tensor]:
    """Yield the arrays of a layer; `norms` are the names of that of attention and the other."""
    attention = f"{of}.self_attention"
    d_model = shape.d_model
    maps = {
        **{f"attention.self.{part}": f"{attention}.{part}" for part in _READ},
        "attention.output.dense": f"{attention}.output",
        "output.dense": f"{of}.feed_forward.outer",
    }
    for there, own in maps.items():
        yield from linear(f"{name}.{there}", own, shape.bias, d_model)
    inner = f"{of}.feed_forward.inner"
    yield from linear(f"{name}.intermediate.dense", inner, shape.bias, shape.d_ff)
    for number, norm in enumerate(norms):
        yield from layer_norm(norm, f"{of}.residuals.{number}.norm", shape)


def _first_state(d_model: int) -> Iterator[Tensor]:
    """Yield the arrays of the map before tanh."""
    small = np.float32(_SMALL) * np.eye(d_model, dtype=np.float32)
    yield constant("bert.pooler.dense.weight", small)
    yield constant("bert.pooler.dense.bias", small[0] * 0)
