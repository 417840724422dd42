"""The shares of every packaged recipe with layers add up to its logits: made tiny, with random
weights, and a little trained on real sentences.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import weft
from shrunk import sizes_shrunk
from weft.config import CausalSection, ClassifierSection, LayerShape, Seq2SeqSection
from weft.data import builtin
from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.engine.from_model import (
    causal_weights_of,
    classifier_weights_of,
    weights_of,
)
from weft.engine.labels import label_lens, label_pass, label_shares
from weft.engine.plain import softmax
from weft.engine.stream import (
    Pass,
    Row,
    language_pass,
    lens,
    shares,
    translation_pass,
)
from weft.engine.weights import ClassifierWeights, Weights
from weft.model.causal import CausalTransformer
from weft.model.classifier import TransformerClassifier
from weft.model.transformer import Seq2SeqTransformer
from weft.recipes.file import load_recipe, recipe_names, with_values
from weft.tasks.opening import load_task

V, C = 61, 4
NAMES = [
    name for name in recipe_names() if isinstance(load_recipe(name).model, LayerShape)
]


def tiny(name: str) -> Any:
    recipe = load_recipe(name)
    return with_values(recipe, sizes_shrunk(recipe)).model


def shaken(model: Any) -> Any:
    """Random weights far from their start values, gains and biases too."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def sentences(count: int) -> Iterator[list[int]]:
    """Random ids, of 1 to 20 tokens; some repeat, so that n-grams match."""
    random = np.random.default_rng(7)
    for _ in range(count):
        length = int(random.integers(1, 21))
        yield random.integers(4, 12 if length % 2 else V, length).tolist()


def refuse_other_sums(passed: Pass, written: list[int]) -> None:
    """Compare the sum of shares with the logit, and the lens's last row with the model's output."""
    found = shares(passed, written)
    places = np.arange(len(written))
    exact = passed.logits.astype(np.float64)
    above = exact[places, written] - exact.mean(1)
    np.testing.assert_allclose(found.values.sum(0), above, atol=1e-3)
    assert found.error < 1e-3
    for kind, part in (("decoder", "self"), ("cross", "cross")):
        for layer, by_head in enumerate(found.carried.get(kind, ())):
            own = found.values[found.rows.index(Row(part, layer))]
            np.testing.assert_allclose(by_head.sum((0, 2)), own, atol=1e-3)
    probabilities = softmax(exact)
    expected = probabilities[places, written]
    last = lens(passed, written).written[-1]
    np.testing.assert_allclose(last, expected, rtol=1e-4, atol=1e-7)


def refuse_other_labels(weights: ClassifierWeights, ids: list[int]) -> None:
    """The same of a classifier's labels."""
    labels = list(range(len(weights.projection.stored)))
    passed = label_pass(weights, ids, False)
    found = label_shares(passed, labels)
    above = passed.logits - passed.logits.mean()
    np.testing.assert_allclose(found.values.sum(1), above, atol=1e-3)
    last = label_lens(passed, labels).probabilities[-1]
    np.testing.assert_allclose(last, softmax(passed.logits), atol=1e-6)


def next_of(passed: Pass, ids: list[int]) -> list[int]:
    """The tokens that a language model's rows foretell, at last the most probable one."""
    return [*ids[1:], int(passed.logits[-1].argmax())]


def check_random(name: str, count: int) -> None:
    torch.manual_seed(5)
    shape = tiny(name)
    if isinstance(shape, Seq2SeqSection):
        joint = shape.tie_embeddings
        model: nn.Module = Seq2SeqTransformer(shape, V, V, joint)
        translator: Weights = weights_of(shaken(model))
        for src, tgt in zip(sentences(count), sentences(2 * count), strict=False):
            written = [*reversed(tgt), EOS_ID]
            passed = translation_pass(
                translator, [*src, EOS_ID], [BOS_ID, *written[:-1]]
            )
            refuse_other_sums(passed, written)
    elif isinstance(shape, CausalSection):
        writer = causal_weights_of(shaken(CausalTransformer(shape, V)))
        for text in sentences(count):
            passed = language_pass(writer, [BOS_ID, *text])
            refuse_other_sums(passed, next_of(passed, [BOS_ID, *text]))
    else:
        assert isinstance(shape, ClassifierSection)
        weights = classifier_weights_of(shaken(TransformerClassifier(shape, V, C)))
        for text in sentences(count):
            refuse_other_labels(weights, [BOS_ID, *text])


@pytest.mark.parametrize("name", NAMES)
def test_shares_of_a_recipe_are_its_logits(name: str) -> None:
    check_random(name, 3)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_of_a_hundred_sentences_too(name: str) -> None:
    check_random(name, 100)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_of_a_hundred_sentences_by_a_model_that_has_learned(
    name: str, tmp_path: Path
) -> None:
    """A few steps on real sentences, which it then translates, reads or classifies."""
    pairs = builtin.pairs("everyday", "en", "de").train[:100]
    recipe = load_recipe(name)
    settings = sizes_shrunk(recipe) | {
        "training.max_steps": 20,
        "data.builtin": "none",
    }
    if recipe.task == "translation":
        settings |= {"data.src_lang": "en", "data.tgt_lang": "de"}
    rows = {
        "translation": [f"{a}\t{b}\n" for a, b in pairs],
        "language-modelling": [f"{a}\n\n" for a, _ in pairs],
        "classification": [
            "text,label\n",
            *(f'"{a}",English\n"{b}",German\n' for a, b in pairs),
        ],
    }[recipe.task]
    suffix = {"translation": "tsv", "language-modelling": "txt"}.get(recipe.task, "csv")
    path = tmp_path / f"text.{suffix}"
    path.write_text("".join(rows), "utf-8")
    weft.train(
        recipe=name,
        train=str(path),
        out=tmp_path / "model",
        settings=[f"{key}={value}" for key, value in settings.items()],
        allow_bad_data=True,
        quiet=True,
    )
    task: Any = load_task(tmp_path / "model")
    for text, _ in pairs:
        ids = task.tokenizers[0].encode(text)
        if recipe.task == "translation":
            src = [*ids, EOS_ID]
            found = task.predictor().search(src, 1)
            written = [*found.ids, EOS_ID]
            tgt_in = [BOS_ID, *written[:-1]]
            refuse_other_sums(translation_pass(task.weights, src, tgt_in), written)
        elif recipe.task == "language-modelling":
            row = [task.predictor().start_id, *ids]
            passed = language_pass(task.weights, row)
            refuse_other_sums(passed, next_of(passed, row))
        else:
            refuse_other_labels(task.weights, ids)
