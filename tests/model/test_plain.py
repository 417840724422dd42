"""The plain NumPy pass computes what the model and the engine compute, whatever the options; and
weights that are read by name are those of the model that was stored.
"""

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from small_shapes import (
    MODERN,
    SMALL,
    TRANSLATORS,
    shaken,
)
from weft.config import CausalSection, Seq2SeqSection, WriterShape
from weft.decoding.decoder import StepInput
from weft.engine import plain
from weft.engine.bindings import Engine
from weft.engine.from_model import build_engine, causal_weights_of, weights_of
from weft.engine.plain import Cache, PlainTransformer
from weft.engine.plain_models import PlainWriter
from weft.engine.record import Record
from weft.engine.weights import Linear, changed, in_float64, named_arrays
from weft.folder.arrays import read_arrays
from weft.folder.layout import SCALES
from weft.kernels.activations import ACTIVATIONS
from weft.kernels.modules import ACTIVATION_MODULES
from weft.model.attention import AttentionRecord
from weft.model.causal import CausalTransformer
from weft.model.positions import angles
from weft.model.transformer import Seq2SeqTransformer
from weft.predict.weights import causal_weights, seq2seq_weights

V_SRC, V_TGT, PAD = 23, 19, 0
SRC = np.array([[5, 7, 9, 11, 2], [8, 2, PAD, PAD, PAD], [3, 3, 3, 2, PAD]])
TGT = np.array([[1, 4, 6, 8], [1, 9, 9, 3], [1, 2, 3, 4]])


def seq2seq(options: dict[str, Any]) -> Seq2SeqTransformer:
    torch.manual_seed(3)
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    shape = Seq2SeqSection(**SMALL, **layers, **options)
    return shaken(Seq2SeqTransformer(shape, V_SRC, V_TGT, joint=False))


def causal(options: dict[str, Any]) -> CausalTransformer:
    torch.manual_seed(4)
    shape = CausalSection(**SMALL, num_decoder_layers=3, **options)
    return shaken(CausalTransformer(shape, V_TGT))


def close(found: np.ndarray, expected: Tensor | np.ndarray) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.asarray(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
@torch.inference_mode()
def test_it_computes_what_the_model_computes(options: dict[str, Any]) -> None:
    model = seq2seq(options)
    here = PlainTransformer(weights_of(model))
    expected, found = AttentionRecord(), Record()
    src, tgt = torch.from_numpy(SRC), torch.from_numpy(TGT)
    close(here.encode(SRC), model.encode(src))
    states = model.states(src, tgt, expected)
    own, _ = here.decode(TGT, here.prefill(SRC, found), record=found)
    close(own, states)
    close(here.output(own), model.output(states))
    for name in ("encoder", "decoder", "cross"):
        maps, others = getattr(found, name), getattr(expected, name)
        assert len(maps) == len(others) > 0
        for a, b in zip(maps, others, strict=True):
            close(a, b)
    assert len(found.encoder_states) == 3
    assert len(found.decoder_states) == 4


@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
@torch.inference_mode()
def test_a_language_model_too(options: dict[str, Any]) -> None:
    model = causal(options)
    here = PlainTransformer(causal_weights_of(model))
    states, _ = here.decode(TGT, here.start(len(TGT)))
    close(states, model.states(torch.from_numpy(TGT)))
    close(here.output(states), model(torch.from_numpy(TGT)))


@torch.inference_mode()
def test_vectors_beside_the_tokens_are_those_of_ngrams() -> None:
    options = {"ngrams": 3, "ngram_buckets": 57, "match_lengths": (1, 2)}
    model = causal(options)
    ids = torch.from_numpy(TGT)
    assert model.ngrams is not None
    assert model.matches is not None
    beside = model.ngrams(ids, 4) + model.matches(ids, 4)
    here = PlainTransformer(causal_weights_of(model))
    states, _ = here.decode(TGT, here.start(len(TGT)), beside.numpy())
    close(states, model.states(ids))


@pytest.mark.parametrize("options", [{}, MODERN], ids=["plain", "modern"])
def test_with_a_cache_it_computes_what_it_computes_at_once(
    options: dict[str, Any],
) -> None:
    """In steps of one position and of several, over rows in another order, some twice."""
    here = PlainTransformer(weights_of(seq2seq(options)))
    whole, longest = here.decode(TGT, here.prefill(SRC))
    first, cache = here.decode(TGT[:, :1], here.prefill(SRC))
    close(first, whole[:, :1])
    rows = np.array([2, 0, 2])
    second, cache = here.decode(TGT[rows, 1:3], cache.select(rows))
    close(second, whole[rows, 1:3])
    third, _ = here.decode(TGT[rows, 3:], cache)
    close(third, whole[rows, 3:])
    again, _ = here.decode(TGT[:, 2:], longest.until(2))
    close(again, whole[:, 2:])
    assert (cache.length, longest.length) == (3, 4)


def test_padding_changes_nothing() -> None:
    here = PlainTransformer(weights_of(seq2seq({})))
    alone, _ = here.decode(TGT[1:2], here.prefill(SRC[1:2, :2]))
    among, _ = here.decode(TGT, here.prefill(SRC))
    close(among[1:2], alone)


def log_probs(here: PlainTransformer, ids: np.ndarray, cache: Cache) -> np.ndarray:
    states, _ = here.decode(ids, cache)
    logits = here.output(states)
    return np.log(plain.softmax(logits))


@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
def test_the_engine_computes_what_it_computes(options: dict[str, Any]) -> None:
    model = seq2seq(options)
    engine = build_engine(model, "cpu", "float32")
    if engine is None:
        pytest.skip("no engine here")
    assert isinstance(engine, Engine)
    here = PlainTransformer(weights_of(model))
    expected = log_probs(here, TGT[:1], here.prefill(SRC[:1]))
    session = engine.session(1, 1)
    session.read([0], [SRC[0].tolist()])
    for place, token in enumerate(TGT[0]):
        inputs = StepInput(
            *(np.array([number]) for number in (0, 0, place)),
            np.array([token], np.int32),
            np.zeros((1, place + 1), np.int32),
        )
        _, _, found = session.step(inputs, 1, all_log_probs=True)
        assert found is not None
        close(found[0], expected[0, place])


def test_its_formula_of_each_activation_computes_what_the_module_computes() -> None:
    assert plain.ACTIVATIONS.keys() == ACTIVATIONS.keys()
    numbers = np.concatenate([np.linspace(-9, 9, 4001), [-100.0, 0.0, 100.0]])
    x = numbers.astype(np.float32)
    for name, formula in plain.ACTIVATIONS.items():
        expected = ACTIVATION_MODULES[name]()(torch.from_numpy(x))
        np.testing.assert_allclose(
            formula(x), expected.numpy(), atol=2e-6, err_msg=name
        )


@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
@torch.inference_mode()
def test_with_weights_in_float64_all_is_computed_in_float64(
    options: dict[str, Any],
) -> None:
    """To what PyTorch computes in float64, where float32 is a million times as far away."""
    model = seq2seq(options)
    weights = weights_of(model)
    exact_weights = in_float64(weights)
    if exact_weights.rotary is not None:
        # a table in float32 is what the model has, and PyTorch computes another in float64
        places = torch.arange(SMALL["max_len"], dtype=torch.float64)
        cosines, sines = angles(places, weights.head_dim)
        exact_weights = replace(exact_weights, rotary=(cosines.numpy(), sines.numpy()))
    here = PlainTransformer(exact_weights)
    states, _ = here.decode(TGT, here.prefill(SRC))
    found = here.output(states)
    exact = model.double()(torch.from_numpy(SRC), torch.from_numpy(TGT)).numpy()
    rounding = PlainTransformer(weights)
    rounded = rounding.output(rounding.decode(TGT, rounding.prefill(SRC))[0])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact, atol=1e-12)
    assert np.abs(rounded - exact).max() > 1e-7


def test_vectors_beside_the_tokens_are_in_float64_too() -> None:
    options = {"ngrams": 3, "ngram_buckets": 57, "match_lengths": (1, 2)}
    model = causal(options)
    weights = causal_weights_of(model)
    logits, _ = PlainWriter(in_float64(weights)).decode(
        TGT, PlainWriter(in_float64(weights)).prefill(TGT[:, :0])
    )
    with torch.inference_mode():
        exact = model.double()(torch.from_numpy(TGT)).numpy()
    np.testing.assert_allclose(logits, exact, atol=1e-12)


def test_every_option_of_a_layer_is_among_those_tested() -> None:
    """But those that only training knows, and the sizes."""
    tested = {name for options in TRANSLATORS for name in options} | SMALL.keys()
    of_training = {"attention_dropout", "activation_dropout", "init_range"}
    assert WriterShape.model_fields.keys() == tested | of_training


def test_it_is_short() -> None:
    """A page of code a block."""
    for _, function in inspect.getmembers(PlainTransformer, inspect.isfunction):
        assert len(inspect.getsourcelines(function)[0]) <= 50


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
        assert ours[path].dtype == np.float32
        # PyTorch and NumPy round sines and powers of their own
        is_computed = "positions" in path or "rotary" in path
        tolerance = 2e-6 if is_computed else 0
        np.testing.assert_allclose(ours[path], value, atol=tolerance, err_msg=path)


def test_arrays_have_the_names_of_their_places() -> None:
    weights = weights_of(seq2seq({"num_key_value_heads": 2}))
    found = dict(named_arrays(weights))
    expected = dict(parts(weights))
    arrays = {path for path, value in expected.items() if isinstance(value, np.ndarray)}
    assert {f".{name}" for name in found} == arrays
    assert (
        found["decoder.1.cross_attention.key.bias"]
        is expected[".decoder.1.cross_attention.key.bias"]
    )


def test_weights_are_changed_where_they_stand_and_shared_ones_once() -> None:
    weights = weights_of(seq2seq({}))
    assert weights.tgt is not None
    assert weights.projection is not None
    tied = replace(weights, projection=Linear(weights.tgt.tokens, None))
    seen: list[int] = []

    def double(array: np.ndarray) -> np.ndarray:
        seen.append(id(array))
        return array * 2

    twice = changed(tied, double)
    assert len(seen) == len(set(seen)) == len(list(named_arrays(tied))) - 1
    assert twice.projection.stored is twice.tgt.tokens
    for name, array in named_arrays(twice):
        assert np.array_equal(array, dict(named_arrays(tied))[name] * 2), name
    halved = changed(twice, lambda array: array / 2)
    assert_equal(halved, tied)


def stored(model: nn.Module, folder: Path) -> dict[str, Any]:
    tensors = {name: p.detach().clone() for name, p in model.named_parameters()}
    save_file(tensors, folder / "weights.safetensors")
    return read_arrays(folder / "weights.safetensors")


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
def test_of_an_encoder_decoder(
    options: dict[str, Any], joint: bool, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    shape = Seq2SeqSection(**SMALL, **layers, **options)
    model = shaken(Seq2SeqTransformer(shape, V_TGT if joint else V_SRC, V_TGT, joint))
    found = seq2seq_weights(shape, stored(model, tmp_path))
    assert_equal(found, weights_of(model))


@pytest.mark.parametrize("options", TRANSLATORS, ids=str)
def test_of_a_language_model(options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(4)
    shape = CausalSection(**SMALL, num_decoder_layers=2, **options)
    model = shaken(CausalTransformer(shape, V_TGT))
    found = causal_weights(shape, stored(model, tmp_path))
    assert_equal(found, causal_weights_of(model))


def test_arrays_of_every_type_are_mapped(tmp_path: Path) -> None:
    numbers = torch.randn(5, 3)
    tensors = {
        "a": numbers,
        "b": numbers.bfloat16(),
        "c": torch.arange(-3, 3, dtype=torch.int8),
        "d": torch.arange(4, dtype=torch.int32),
        "e": torch.arange(4, dtype=torch.int64),
        "f": torch.zeros(0, 3),
    }
    path = tmp_path / "x.safetensors"
    save_file(tensors, path, {"made": "here"})
    found = read_arrays(path)
    assert found.keys() == tensors.keys()
    assert isinstance(found["a"].base, np.ndarray)
    for name, tensor in tensors.items():
        wanted = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        assert np.array_equal(found[name], wanted.numpy())
        assert found[name].dtype == wanted.numpy().dtype


def test_a_quantized_matrix_is_multiplied_by_its_scales(tmp_path: Path) -> None:
    shape = CausalSection(**SMALL, num_decoder_layers=1)
    model = shaken(CausalTransformer(shape, V_TGT))
    arrays = stored(model, tmp_path)
    name = "decoder.0.feed_forward.inner.weight"
    steps = np.round(arrays[name] * 10).astype(np.int8)
    scales = np.linspace(0.1, 0.2, len(steps), dtype=np.float32)
    of_folder = {name: steps, name + SCALES: scales}
    found = causal_weights(shape, {**arrays, **of_folder})
    expected = steps.astype(np.float32) * scales[:, None]
    assert np.array_equal(found.decoder[0].inner.weight, expected)
    exact = in_float64(found).decoder[0].inner
    assert exact.stored.dtype == np.int8
    assert np.array_equal(exact.weight, steps * scales.astype(np.float64)[:, None])
