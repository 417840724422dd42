"""Classifiers as UltraBERT: rotary positions, RMSNorm and a gate, and the mean of all states or the
first one; nothing stands between it and the projection to labels.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from weft.config import ClassifierSection
from weft.ship.huggingface.classifier import ClassifierHome
from weft.ship.huggingface.home import linear
from weft.ship.huggingface.rotary import GATE, ROTARY, Llama, block, norm, rotary_sizes
from weft.ship.source import Source
from weft.ship.tensors import Tensor

_POOLINGS = {"mean": "mean", "first": "cls"}
_FULL = "full_attention"


class UltraBERT(ClassifierHome):
    """The layers of Llama, in which every position sees all others."""

    architecture = "UltrabertForSequenceClassification"
    model_type = "ultrabert"
    since = "5.20"
    table = "model.embed_tokens.weight"
    poolings = tuple(_POOLINGS)
    takes = Llama.takes

    def sizes(self, shape: ClassifierSection) -> Mapping[str, Any]:
        num_layers = shape.num_encoder_layers
        return {
            **rotary_sizes(shape),
            "num_hidden_layers": num_layers,
            "max_position_embeddings": shape.max_len,
            "attention_bias": shape.bias,
            "mlp_bias": shape.bias,
            "layer_types": [_FULL] * num_layers,
            "rope_parameters": {_FULL: ROTARY},
            "classifier_pooling": _POOLINGS[shape.pooling],
            "classifier_dropout": shape.head_dropout,
        }

    def stack(self, source: Source, shape: ClassifierSection) -> Iterator[Tensor]:
        for number in range(shape.num_encoder_layers):
            own = f"encoder.layers.{number}"
            yield from block(f"model.layers.{number}", own, shape, GATE)
        yield from norm("model.norm", "encoder.norm", shape)
        yield from linear("classifier", "projection", True, 0)
