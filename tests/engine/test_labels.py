"""A classifier's shares add up to its logits, by part, place and n-gram; its lens ends with what it
said.
"""

from typing import Any

import numpy as np
import pytest
import torch

from small_shapes import CLASSIFIERS, SMALL, shaken
from weft.config import ClassifierSection
from weft.engine.from_model import classifier_weights_of
from weft.engine.labels import label_lens, label_pass, label_shares
from weft.engine.plain_models import PlainClassifier
from weft.engine.stream import Row
from weft.engine.weights import ClassifierWeights
from weft.model.classifier import TransformerClassifier

V, C = 19, 3
IDS = [5, 7, 1, 11, 7, 4]
LABELS = [2, 0, 1]


def classifier(**options: Any) -> ClassifierWeights:
    torch.manual_seed(5)
    shape = ClassifierSection(**SMALL, ngram_buckets=57, **options)
    return classifier_weights_of(shaken(TransformerClassifier(shape, V, C)))


def said(weights: ClassifierWeights, ids: list[int]) -> np.ndarray:
    return PlainClassifier(weights).logits(np.array([ids]))[0].astype(np.float64)


@pytest.mark.parametrize("options", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("multi_label", [False, True])
def test_the_shares_are_the_logits(options: dict[str, Any], multi_label: bool) -> None:
    weights = classifier(**options)
    passed = label_pass(weights, IDS, multi_label)
    found = label_shares(passed, LABELS)
    logits = said(weights, IDS)
    above = logits if multi_label else logits - logits.mean()
    assert found.above == ("zero" if multi_label else "mean")
    np.testing.assert_allclose(found.values.sum(1), above[LABELS], atol=1e-4)
    assert found.error < 1e-4
    by_row = dict(zip(found.rows, found.values.T, strict=True))
    assert len(by_row) == len(found.rows)
    in_bag = options.get("ngrams", 1) if weights.bag is not None else 0
    assert [n for n, _ in found.ngrams] == [*range(1, in_bag + 1)]
    for n, shares in found.ngrams:
        assert shares.shape == (3, len(IDS) - n + 1)
        np.testing.assert_allclose(shares.sum(1), by_row[Row("bag", n=n)], atol=1e-9)
    if weights.encoder is None:
        assert found.places is None
        return
    assert found.places is not None
    encoded = sum(v for row, v in by_row.items() if row.part not in ("bag", "biases"))
    np.testing.assert_allclose(found.places.sum(1), encoded, atol=1e-6)
    if weights.pooling == "first":
        assert not found.places[:, 1:].any()
    assert found.carried is not None
    for layer in range(2):
        by_head = found.carried[layer]
        assert by_head.shape == (4, len(IDS), len(IDS))
        own = by_row[Row("self", layer)][0]
        np.testing.assert_allclose(by_head.sum(), own, atol=1e-4)


def test_an_ngrams_share_is_what_the_logit_loses_with_its_vector() -> None:
    weights = classifier(num_encoder_layers=0, ngrams=2)
    found = label_shares(label_pass(weights, IDS, True), LABELS)
    assert weights.bag is not None
    assert weights.bag.hashed is not None
    _, shares = found.ngrams[0]
    without = weights.bag.tokens.copy()
    without[11] = 0  # stands once
    saved = weights.bag.tokens[11].copy()
    weights.bag.tokens[11] = 0
    lost = said(weights, IDS)
    weights.bag.tokens[11] = saved
    fall = said(weights, IDS) - lost
    np.testing.assert_allclose(shares[:, 3], fall[LABELS], atol=1e-5)


@pytest.mark.parametrize("options", CLASSIFIERS, ids=str)
def test_the_lens_ends_with_what_the_model_said(options: dict[str, Any]) -> None:
    weights = classifier(**options)
    logits = said(weights, IDS)
    softmax = np.exp(logits) / np.exp(logits).sum()
    for multi_label in (False, True):
        found = label_lens(label_pass(weights, IDS, multi_label), LABELS)
        expected = 1 / (1 + np.exp(-logits)) if multi_label else softmax
        np.testing.assert_allclose(found.probabilities[-1], expected[LABELS], atol=1e-5)
        assert len(found.rows) == len(found.probabilities)
        assert found.rows[0].part == ("bag" if weights.encoder is None else "embedding")
        if weights.encoder is not None and weights.bag is None:
            assert found.rows[-1] == Row("feed-forward", 1)


def test_a_text_of_unknown_words_and_one_of_a_token() -> None:
    for options in CLASSIFIERS:
        weights = classifier(**options)
        for ids in ([1], [1, 1, 1], [5]):
            passed = label_pass(weights, ids, False)
            found = label_shares(passed, LABELS)
            logits = said(weights, ids)
            np.testing.assert_allclose(
                found.values.sum(1), (logits - logits.mean())[LABELS], atol=1e-4
            )
            assert np.isfinite(label_lens(passed, LABELS).probabilities).all()


def test_ngrams_without_weight_have_no_share() -> None:
    """As of a text of unknown words, where no n-gram weighs anything."""
    weights = classifier(
        num_encoder_layers=0, ngrams=2, ngram_weights="log-count-ratio"
    )
    assert weights.bag is not None
    assert weights.bag.token_weights is not None
    assert weights.bag.hashed_weights is not None
    weights.bag.token_weights[:] = 0
    weights.bag.hashed_weights[:] = 0
    found = label_shares(label_pass(weights, IDS, False), LABELS)
    assert not any(shares.any() for _, shares in found.ngrams)
    assert np.isfinite(found.values).all()
