"""Graphs of ONNX, computed by onnxruntime: the same numbers as Weft's plain pass, whatever the
model is made of, with any batch, padding and past.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import random_models
from weft.engine.plain import PlainTransformer
from weft.engine.plain_models import PlainClassifier, PlainWriter
from weft.ship.onnx import models
from weft.ship.onnx.graph import Graph, read_arrays
from weft.ship.source import Source, open_source
from weft.ship.tensors import read_all

NEAR = {"rtol": 0, "atol": 3e-5}
TRANSLATORS = {
    "en-de": (),
    "en-de-modern": (),
    "toy-de-en": ("model.head_dim=4",),
    "en-zh": ("model.positions=learned", "model.bias=false"),
    "demo": ("model.tie_embeddings=false", "model.embedding_norm=true"),
    "seq2seq-transformer": ("model.activation=gelu", "model.scale_embeddings=false"),
    "en-de-fast": (
        "model.num_key_value_heads=1",
        "model.query_key_norm=true",
        "model.positions=rotary",
        "model.activation=relu2",
    ),
}
WRITERS = {
    "lm-modern": (),
    "causal-lm": ("model.projection_bias=false",),
    "tiny-shakespeare": (),
}
CLASSIFIERS = {
    "classify-fast": (),
    "classify-modern": ("model.ngrams=3", "model.ngram_buckets=97"),
    "imdb-classifier": ("model.pooling=first",),
}


def opened(name: str, settings: tuple[str, ...], place: Path) -> tuple[Source, Any]:
    """A random model, and a session for each of its graphs; the files are well-formed."""
    source = open_source(random_models.write_folder(name, place / name, *settings))
    sessions = {}
    for graph_name, graph in models.graphs_of(source).items():
        path = place / f"{name}-{graph_name}.onnx"
        graph.write(path, graph_name)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        sessions[graph_name] = onnxruntime.InferenceSession(path)
    return source, sessions


def read_in(session: Any, inputs: dict[str, Any], ids: Any, parts: list[int]) -> Any:
    """The logits after each id, read in parts of these lengths after an empty cache."""
    inputs = dict(inputs)
    for port in session.get_inputs():
        if port.name.startswith("past_"):
            sizes = [size if isinstance(size, int) else 0 for size in port.shape[1:]]
            kind = np.int64 if "int64" in port.type else np.float32
            inputs[port.name] = np.zeros((len(ids), *sizes), kind)
    past = [name for name in inputs if name.startswith("past_")]
    found = []
    for end, length in zip(np.cumsum(parts), parts, strict=True):
        inputs["input_ids"] = ids[:, end - length : end]
        if "attention_mask" in inputs:
            inputs["attention_mask"] = (ids[:, :end] > 0).astype(np.int64)
        logits, *cache = session.run(None, inputs)
        inputs |= dict(zip(past, cache, strict=True))
        found.append(logits)
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_computes_the_same(name: str, tmp_path: Path) -> None:
    source, sessions = opened(name, TRANSLATORS[name], tmp_path)
    src = np.array([[4, 9, 12, 7, 3], [30, 20, 3, 0, 0]])
    tgt_in = np.array([[2, 8, 5, 40], [2, 60, 61, 62]])
    plain = PlainTransformer(source.task.weights)
    states, _ = plain.decode(tgt_in, plain.prefill(src))
    mask = (src > 0).astype(np.int64)
    ids = models.ids_of(source).to("src", src)
    given = {"input_ids": ids, "attention_mask": mask}
    (memory,) = sessions["encoder_model"].run(None, given)
    is_text = src > 0
    np.testing.assert_allclose(memory[is_text], plain.encode(src)[is_text], **NEAR)
    inputs = {"encoder_attention_mask": mask, "encoder_hidden_states": memory}
    for parts in ([4], [1, 1, 1, 1], [2, 2]):
        logits = read_in(sessions["decoder_model"], inputs, tgt_in, parts)
        np.testing.assert_allclose(logits, plain.output(states), **NEAR)


@pytest.mark.parametrize("name", WRITERS)
def test_a_language_model_computes_the_same(name: str, tmp_path: Path) -> None:
    """The second text is shorter: padding stands before it."""
    source, sessions = opened(name, WRITERS[name], tmp_path)
    # n-grams of these come twice, so that there is something to match
    first = np.array([[3, 9, 8, 7, 9, 8, 7, 9, 8, 30]])
    second = np.array([[3, 50, 51, 50, 51, 52, 50]])
    ids = np.concatenate([first, np.pad(second, ((0, 0), (3, 0)))])
    plain = PlainWriter(source.task.weights)
    for parts in ([10], [1] * 10, [4, 5, 1]):
        logits = read_in(sessions["model"], {"attention_mask": None}, ids, parts)
        for row, text in enumerate((first, second)):
            wanted, _ = plain.decode(text, plain.prefill(text[:, :0]))
            found = logits[row, -text.shape[1] :]
            np.testing.assert_allclose(found, wanted[0], **NEAR)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_computes_the_same(name: str, tmp_path: Path) -> None:
    source, sessions = opened(name, CLASSIFIERS[name], tmp_path)
    # the last text is shorter than the longest n-gram, and begins with what pads the others
    ids = np.array([[4, 9, 12, 7, 30, 31], [30, 20, 9, 0, 0, 0], [5, 0, 0, 0, 0, 0]])
    mask = (ids > 0).astype(np.int64)
    given = {"input_ids": ids, "attention_mask": mask}
    (logits,) = sessions["model"].run(None, given)
    wanted = PlainClassifier(source.task.weights).logits(ids)
    np.testing.assert_allclose(logits, wanted, **NEAR)
    short = {key: array[2:, :1] for key, array in given.items()}
    (alone,) = sessions["model"].run(None, short)
    np.testing.assert_allclose(alone[0], wanted[2], **NEAR)


def test_a_file_has_the_models_numbers_and_the_same_bytes_each_time(
    tmp_path: Path,
) -> None:
    """What no array of Weft's is made of has a name that says its numbers."""
    source = open_source(random_models.write_folder("en-de-modern", tmp_path / "m"))
    path = tmp_path / "decoder.onnx"
    written = []
    for _ in range(2):
        graph = models.graphs_of(source)["decoder_model"]
        graph.write(path, "decoder_model")
        written.append(path.read_bytes())
    assert written[0] == written[1]
    arrays = dict(read_arrays(path))
    found = dict(read_all(graph.tensors.values(), arrays))
    assert all(name.startswith(("decoder", "tgt_", "src_")) for name in found)
    for name, array in found.items():
        np.testing.assert_array_equal(array, source.arrays[name])
    others = [t.name for t in graph.tensors.values() if not t.of]
    assert {name.split("_")[0] for name in others} == {
        *("ints", "int", "float", "cosines", "sines")
    }
    assert arrays["ints_0_0_6_4"].tolist() == [0, 0, 6, 4]


def test_ids_that_are_never_written_can_be_banned_in_the_graph(tmp_path: Path) -> None:
    source = open_source(random_models.write_folder("causal-lm", tmp_path / "m"))
    logits = []
    for bans in (False, True):
        path = tmp_path / "model.onnx"
        models.graphs_of(source, bans)["model"].write(path, "model")
        session = onnxruntime.InferenceSession(path)
        ids = np.array([[3, 9, 8]])
        logits.append(read_in(session, {"attention_mask": None}, ids, [3]))
    usual, banned = logits
    np.testing.assert_array_equal(usual[..., 3:], banned[..., 3:])
    assert (banned[..., :3] < -1e8).all()


def test_what_an_operation_itself_has_counts_as_an_array(tmp_path: Path) -> None:
    """So no number of a file can hide from the certificate."""
    graph = Graph({})
    value = onnx.numpy_helper.from_array(np.ones(2, np.float32), "hidden")
    graph.output("found", graph.op("Constant", value=value), 2)
    graph.write(tmp_path / "a.onnx", "a")
    assert [name for name, _ in read_arrays(tmp_path / "a.onnx")] == ["hidden"]
