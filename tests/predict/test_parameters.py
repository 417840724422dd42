"""The parameters that a config names are those of the model that it describes."""

from collections.abc import Iterable
from typing import Any

import pytest
from torch import nn

from weft.config import (
    CausalSection,
    ClassifierSection,
    RecurrentSection,
    Seq2SeqSection,
)
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.recurrent import Seq2SeqRecurrent
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.parameters import (
    Parameter,
    causal_parameters,
    classifier_parameters,
    recurrent_parameters,
    seq2seq_parameters,
    stored_shapes,
)

SMALL = {"d_model": 12, "d_ff": 20, "num_heads": 2, "max_len": 9}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm_first": False, "bias": False, "embedding_norm": True},
    {"norm": "rms", "sandwich_norm": True, "query_key_norm": True},
    {"activation": "swiglu", "positions": "learned", "num_key_value_heads": 1},
    {"embedding_norm": True, "positions": "learned"},
    {"positions": "rotary", "head_dim": 10},
]
OF_WRITERS = [
    *OPTIONS,
    {"projection_bias": False},
    {"bias": False, "projection_bias": True},
]
TIED = [True, False]


def assert_same(parameters: Iterable[Parameter], model: nn.Module) -> None:
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    matrices = {id(module.weight) for module in linear}
    expected = {
        name: (tuple(parameter.shape), id(parameter) in matrices)
        for name, parameter in model.named_parameters()
    }
    found = list(parameters)
    assert len({parameter.name for parameter in found}) == len(found)
    assert {p.name: (p.shape, p.is_linear) for p in found} == expected


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("options", OF_WRITERS, ids=str)
def test_of_an_encoder_decoder(
    options: dict[str, Any], joint: bool, tied: bool
) -> None:
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    shape = Seq2SeqSection(**SMALL, **layers, tie_embeddings=tied, **options)
    sizes = (31, 31 if joint else 29, joint)
    assert_same(seq2seq_parameters(shape, *sizes), Seq2SeqTransformer(shape, *sizes))


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("ngrams", [1, 3])
@pytest.mark.parametrize("options", OF_WRITERS, ids=str)
def test_of_a_language_model(options: dict[str, Any], ngrams: int, tied: bool) -> None:
    more = {"ngrams": ngrams, "ngram_buckets": 40}
    matches = (1, 4) if ngrams > 1 else ()
    shape = CausalSection(
        **SMALL, **more, match_lengths=matches, tie_embeddings=tied, **options
    )
    assert_same(causal_parameters(shape, 31), CausalTransformer(shape, 31))


@pytest.mark.parametrize("weights", ["equal", "log-count-ratio"])
@pytest.mark.parametrize(("layers", "ngrams"), [(2, 1), (0, 1), (0, 3), (1, 2)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_of_a_classifier(
    options: dict[str, Any], layers: int, ngrams: int, weights: str
) -> None:
    more = {"ngrams": ngrams, "ngram_buckets": 40, "ngram_weights": weights}
    shape = ClassifierSection(**SMALL, **more, num_encoder_layers=layers, **options)
    model = TransformerClassifier(shape, 31, 5)
    assert_same(classifier_parameters(shape, 31, 5), model)


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("attention", ["dot", "additive"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_of_a_recurrent_model(
    cell: Any, attention: Any, joint: bool, tied: bool
) -> None:
    shape = RecurrentSection(
        kind="recurrent",
        cell=cell,
        attention=attention,
        d_model=10,
        d_hidden=7,
        num_encoder_layers=2,
        num_decoder_layers=3,
        tie_embeddings=tied,
    )
    sizes = (31, 31 if joint else 29, joint)
    assert_same(recurrent_parameters(shape, *sizes), Seq2SeqRecurrent(shape, *sizes))


def test_an_int8_folder_has_a_scale_for_each_row_of_a_linear_map() -> None:
    parameters = [Parameter("a.weight", (5, 3), True), Parameter("b", (4,))]
    assert stored_shapes(iter(parameters)) == {
        "a.weight": ((5, 3), "F32"),
        "b": ((4,), "F32"),
    }
    assert stored_shapes(iter(parameters), is_int8=True) == {
        "a.weight": ((5, 3), "I8"),
        "a.weight.scales": ((5,), "F32"),
        "b": ((4,), "F32"),
    }
