"""Shapes of small models, one for each option that a recipe may name, and weights to test them."""

from typing import Any, get_args

import torch
from torch import nn

from weft.config import LayerShape

SMALL = {"d_model": 24, "d_ff": 40, "num_heads": 4, "max_len": 32, "dropout": 0.0}
ACTIVATIONS_OF_RECIPES = get_args(LayerShape.model_fields["activation"].annotation)
NORMS_OF_RECIPES = get_args(LayerShape.model_fields["norm"].annotation)
MODERN: dict[str, Any] = {
    "norm": "rms",
    "positions": "rotary",
    "head_dim": 8,
    "num_key_value_heads": 1,
    "query_key_norm": True,
    "sandwich_norm": True,
    "embedding_norm": True,
    "activation": "swiglu",
    "bias": False,
}
LAYERS: list[dict[str, Any]] = [
    {},
    {"norm_first": False},
    {"sandwich_norm": True},
    *({"norm": name} for name in NORMS_OF_RECIPES),
    {"norm": "rms", "norm_first": False},
    {"bias": False},
    {"positions": "learned"},
    {"positions": "rotary", "head_dim": 6},
    {"scale_embeddings": False},
    {"num_key_value_heads": 2},
    {"query_key_norm": True},
    {"embedding_norm": True},
    {"head_dim": 5},
    *({"activation": name} for name in ACTIVATIONS_OF_RECIPES),
    MODERN,
]
WRITERS: list[dict[str, Any]] = [
    {"scale_embeddings": False, "tie_embeddings": False},
    {"projection_bias": False},
    {"bias": False, "projection_bias": True},
]
TRANSLATORS = [*LAYERS, *WRITERS]
CLASSIFIERS: list[dict[str, Any]] = [
    *LAYERS,
    {"pooling": "first"},
    {"pooling": "first", "norm_first": False, "embedding_norm": True, "ngrams": 2},
    {"ngrams": 2},
    {"ngrams": 3, "ngram_weights": "log-count-ratio"},
    {"num_encoder_layers": 0},
    {"num_encoder_layers": 0, "ngrams": 3},
    {"num_encoder_layers": 0, "ngrams": 3, "ngram_weights": "log-count-ratio"},
    {"num_encoder_layers": 0, "ngrams": 1, "ngram_weights": "log-count-ratio"},
]


def shaken(model: nn.Module) -> Any:
    """Random weights far from their start values, gains, biases and tables too."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
            if name.endswith("_weights"):  # of a bag's rows
                parameter.abs_().add_(0.1)
    return model.eval()
