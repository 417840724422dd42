"""The pass in JavaScript gives the numbers of the plain pass, for every kind of model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import random_models as tiny
import weft
from weft.engine.plain import PlainTransformer
from weft.engine.plain_models import PlainClassifier, PlainWriter
from weft.engine.weights import in_float64
from weft.errors import UsageError
from weft.inspection.browser import browser_model
from weft.inspection.look import inspect_text
from weft.tasks.classification import Classification
from weft.tasks.opening import load_task
from weft.tasks.translation import Translation

ODD = {
    "learned positions, grouped heads": (
        "en-de",
        "model.positions=learned",
        "model.num_key_value_heads=2",
    ),
    "post-norm, normed queries": (
        "en-de",
        "model.norm_first=false",
        "model.query_key_norm=true",
        "model.embedding_norm=true",
    ),
    "gelu, an odd width of heads": (
        "en-de",
        "model.activation=gelu",
        "model.projection_bias=false",
        "model.head_dim=5",
    ),
    "the first state": ("classify-modern", "model.pooling=first"),
    "a norm of tokens and n-grams": ("tiny-shakespeare", "model.embedding_norm=true"),
    "layers and a bag": (
        "classify-modern",
        "model.ngrams=3",
        "model.ngram_buckets=90",
        "model.ngram_weights=log-count-ratio",
    ),
}
MODELS = {name: (name,) for name in tiny.with_layers()} | ODD


@pytest.mark.parametrize("settings", MODELS.values(), ids=list(MODELS))
def test_logits_are_those_of_the_plain_pass(
    load: Any, settings: tuple[str, ...]
) -> None:
    task = tiny.tiny_task(*settings)
    page = load(task)
    ids = [task.tokenizers[0].encode(text) for text in tiny.TEXTS[:5]]
    rows = [[2, *row[:40]] for row in ids]
    expected = [logits_of(task, row) for row in rows]
    found = page.evaluate(SCRIPT, rows)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.ptp(theirs) > 0.1
        np.testing.assert_allclose(np.ravel(ours), np.ravel(theirs), atol=1e-4)


def logits_of(task: Any, row: list[int]) -> Any:
    """The logits at each place of a row, of a translation at each place of the same row."""
    batch = np.array([row])
    weights = in_float64(task.weights)
    if isinstance(task, Classification):
        return PlainClassifier(weights).logits(batch)[0]
    if not isinstance(task, Translation):
        writer = PlainWriter(weights)
        logits, _ = writer.decode(batch, writer.prefill(batch[:, :0]))
        return logits[0]
    model = PlainTransformer(weights)
    target = batch % len(weights.tgt.tokens)
    states, _ = model.decode(target, model.prefill(batch))
    return model.output(states[0])


# a translator reads its target in three goes, so that the past is used
SCRIPT = """(rows) => rows.map((row) => {
    if (model.classify) return [...model.logits(row)];
    if (!model.search) {
        const past = model.model.start();
        const states = model.model.decode(row, row.map(() => past));
        return [...model.model.output(states, row.length)];
    }
    const past = model.model.start(model.model.encode(row));
    const size = model.model.tgt.tokens.length;
    const found = [];
    for (const part of [row.slice(0, 1), row.slice(1, 4), row.slice(4)]) {
        if (!part.length) continue;
        const states = model.model.decode(part.map((id) => id % size), part.map(() => past));
        found.push(...model.model.output(states, part.length));
    }
    return found;
})"""


def test_a_fork_of_a_past_goes_on_by_itself(load: Any) -> None:
    task = tiny.tiny_task("lm-modern")
    page = load(task)
    alone, apart = page.evaluate(
        """() => {
            const { model: transformer } = model;
            const { past } = model.read([2, 9, 12]);
            const other = engine.Transformer.fork(past);
            transformer.decode([30], [other]);
            const apart = [...transformer.decode([17], [past])];
            const fresh = model.read([2, 9, 12]).past;
            return [[...transformer.decode([17], [fresh])], apart];
        }"""
    )
    assert alone == apart


def test_a_recurrent_model_is_refused() -> None:
    task = tiny.tiny_task("en-de")
    shape = {"kind": "recurrent", "d_model": 16}
    recurrent = type(task.config).model_validate(
        task.config.model_dump() | {"model": shape}
    )
    with pytest.raises(UsageError, match="recurrent"):
        browser_model(replace(task, config=recurrent, weights=None))


def test_a_number_beyond_16_bits_is_refused() -> None:
    task = tiny.tiny_task("en-de")
    weights = task.weights
    weights.src.tokens[5, 1] = 70_000
    with pytest.raises(UsageError, match="does not fit into 16 bits"):
        browser_model(task)


@pytest.mark.parametrize("name", ["en-de", "lm-modern", "classify-modern"])
def test_the_weights_are_counted_as_the_page_counts_them(name: str) -> None:
    task = tiny.tiny_task(name)
    data = inspect_text(task, tiny.TEXTS[0]).to_json()
    assert browser_model(task).count == data["model"]["parameters"]


def test_an_int8_folder_has_no_more_weights_than_its_model() -> None:
    """Its output's matrix is there twice, in two types, and its scales are no weights."""
    task: Any = load_task(weft.DEMO)
    data = inspect_text(task, "Tom ate.").to_json()
    assert task.weights.projection.stored.dtype == np.int8
    assert browser_model(task).count == data["model"]["parameters"]


def test_shared_heads_are_written_once() -> None:
    """An eighth of the heads have keys and values, and a joint matrix is there once."""
    sizes = {
        heads: browser_model(
            tiny.tiny_task("lm-modern", f"model.num_key_value_heads={heads}")
        ).count
        for heads in (1, 8)
    }
    task = tiny.tiny_task("lm-modern", "model.num_key_value_heads=1")
    width = task.config.model.d_model
    head_dim = task.config.model.dim_of_head
    layers = task.config.model.num_decoder_layers
    assert sizes[8] - sizes[1] == layers * 2 * 7 * head_dim * width
