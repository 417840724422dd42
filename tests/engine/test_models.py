"""Language models and classifiers of NumPy, of the engine and of PyTorch compute the same, whatever
the options; and weights that are read by name are those of the model that was stored.
"""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from small_shapes import CLASSIFIERS, LAYERS, SMALL, shaken
from weft.config import CausalSection, ClassifierSection
from weft.engine.classifier import NativeClassifier
from weft.engine.from_model import (
    build_classifier,
    build_writer,
    causal_weights_of,
    classifier_weights_of,
)
from weft.engine.plain_models import PlainClassifier, PlainWriter
from weft.engine.torch_steps import TorchClassifier, TorchWriter
from weft.folder.arrays import read_arrays
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.predict.weights import causal_weights, classifier_weights

V, C = 19, 3
WRITERS: list[dict[str, Any]] = [
    *LAYERS,
    {"tie_embeddings": False},
    {"projection_bias": False},
    {"ngrams": 2},
    {"ngrams": 4, "scale_embeddings": False},
    {"match_lengths": (1,)},
    {"match_lengths": (3, 1, 2), "tie_embeddings": False},
    {"ngrams": 3, "match_lengths": (1, 2), "norm_first": False},
]
each_writer = pytest.mark.parametrize("options", WRITERS, ids=str)
each_classifier = pytest.mark.parametrize("options", CLASSIFIERS, ids=str)

Ids = NDArray[np.int64]


def causal(options: dict[str, Any]) -> CausalTransformer:
    torch.manual_seed(4)
    shape = causal_shape(options)
    return shaken(CausalTransformer(shape, V))


def causal_shape(options: dict[str, Any]) -> CausalSection:
    return CausalSection(**SMALL, num_decoder_layers=2, ngram_buckets=57, **options)


def classifier(options: dict[str, Any]) -> TransformerClassifier:
    torch.manual_seed(5)
    return shaken(TransformerClassifier(classifier_shape(options), V, C))


def classifier_shape(options: dict[str, Any]) -> ClassifierSection:
    values = {"num_encoder_layers": 2, "ngram_buckets": 57, **options}
    return ClassifierSection(**SMALL, **values)


@cache
def texts() -> Ids:
    """Padded on the right, few different ids, one text shorter than any n-gram."""
    ids = np.random.default_rng(6).integers(1, 7, (6, 20))
    for row, length in enumerate((20, 1, 7, 12, 2, 20)):
        ids[row, length:] = 0
    return ids


def close(found: NDArray[Any], expected: NDArray[Any]) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


# Language models
# --------------------------------------------------------------------------------------


@each_writer
def test_language_models_compute_the_same(options: dict[str, Any]) -> None:
    """At once, in parts, and after some of the text was taken back."""
    model = causal(options)
    ids = np.random.default_rng(7).integers(1, 7, (3, 20))
    reference = TorchWriter(model)
    expected, _ = reference.decode(ids, reference.prefill(ids[:, :0]))
    forms: list[Any] = [reference, PlainWriter(causal_weights_of(model))]
    if (writer := build_writer(model, "cpu", "float32")) is not None:
        forms.append(writer)
    for form in forms:
        cache, first = form.prefill(ids[:, :4]), 4
        for size in (1, 6, 2):
            end = first + size
            logits, cache = form.decode(ids[:, first:end], cache)
            close(logits, expected[:, first:end])
            first = end
        _, longer = form.decode(ids[:, ::-1][:, :5], cache)
        logits, _ = form.decode(ids[:, first:], longer.until(first))
        close(logits, expected[:, first:])


# Classifiers
# --------------------------------------------------------------------------------------


def without_torch(model: TransformerClassifier) -> list[Any]:
    """The model in NumPy, and by the engine, if there is one here."""
    forms: list[Any] = [PlainClassifier(classifier_weights_of(model))]
    if (native := build_classifier(model, "cpu")) is not None:
        forms.append(native)
    return forms


@each_classifier
def test_classifiers_compute_the_same(options: dict[str, Any]) -> None:
    model = classifier(options)
    expected = TorchClassifier(model).logits(texts())
    for form in without_torch(model):
        found = form.logits(texts())
        close(found, expected)
        assert np.array_equal(found.argmax(1), expected.argmax(1))
    assert np.ptp(expected, axis=0).min() > 0.01


def test_a_text_without_tokens_has_logits_too() -> None:
    nothing = np.zeros((2, 3), np.int64)
    for options in ({}, {"ngrams": 2}, {"num_encoder_layers": 0, "ngrams": 2}):
        model = classifier(options)
        bias = model.projection.bias.detach().numpy()
        for form in without_torch(model):
            close(form.logits(nothing), np.stack([bias, bias]))


@each_classifier
def test_a_text_is_classified_alike_in_any_company(options: dict[str, Any]) -> None:
    """Bit for bit, also by several threads."""
    form = without_torch(classifier(options))[-1]
    if not isinstance(form, NativeClassifier):
        pytest.skip("no engine here")
    ids = np.random.default_rng(8).integers(1, V, (24, 20))
    lengths = np.random.default_rng(9).integers(1, 21, 24)
    ids[np.arange(20) >= lengths[:, None]] = 0
    alone = [
        form.logits(ids[row : row + 1, :length])[0]
        for row, length in enumerate(lengths)
    ]
    draw = random.Random(10)

    def together(seed: int) -> None:
        rows = draw.sample(range(24), 1 + seed)
        found = form.logits(ids[rows, : lengths[rows].max()])
        assert np.array_equal(found, np.stack([alone[row] for row in rows]))

    with ThreadPoolExecutor(3) as pool:
        for _ in pool.map(together, range(24)):
            pass


def test_none_without_a_cpu() -> None:
    assert build_classifier(classifier({}), "cuda") is None


# Weights by name
# --------------------------------------------------------------------------------------


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of nested dataclasses and tuples, by its path."""
    if is_dataclass(value):
        for field in fields(value):
            yield from parts(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for number, part in enumerate(value):
            yield from parts(part, f"{path}.{number}")
    else:
        yield path, value


def assert_equal(found: Any, expected: Any) -> None:
    ours, theirs = dict(parts(found)), dict(parts(expected))
    assert ours.keys() == theirs.keys()
    for path, value in theirs.items():
        if not isinstance(value, np.ndarray):
            assert ours[path] == value, path
            continue
        # PyTorch and NumPy round sines and powers of their own
        is_computed = "positions" in path or "rotary" in path
        tolerance = 2e-6 if is_computed else 0
        np.testing.assert_allclose(ours[path], value, atol=tolerance, err_msg=path)


def stored(model: nn.Module, folder: Path) -> dict[str, Any]:
    tensors = {name: p.detach().clone() for name, p in model.named_parameters()}
    save_file(tensors, folder / "weights.safetensors")
    return read_arrays(folder / "weights.safetensors")


@each_writer
def test_weights_of_a_language_model(options: dict[str, Any], tmp_path: Path) -> None:
    model = causal(options)
    found = causal_weights(causal_shape(options), stored(model, tmp_path))
    assert_equal(found, causal_weights_of(model))


@each_classifier
def test_weights_of_a_classifier(options: dict[str, Any], tmp_path: Path) -> None:
    model = classifier(options)
    found = classifier_weights(classifier_shape(options), stored(model, tmp_path))
    assert_equal(found, classifier_weights_of(model))


@pytest.mark.parametrize(
    ("section", "tested"), [(CausalSection, WRITERS), (ClassifierSection, CLASSIFIERS)]
)
def test_every_option_is_among_those_tested(section: Any, tested: Any) -> None:
    """But those that only training knows, and the sizes."""
    names = {name for options in tested for name in options} | SMALL.keys()
    names |= {"num_encoder_layers", "num_decoder_layers", "ngram_buckets"}
    of_training = {
        *("attention_dropout", "activation_dropout", "init_range"),
        *("ngram_dropout", "head_dropout"),
    }
    assert section.model_fields.keys() - of_training - names == set()
