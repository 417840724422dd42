"""What a page finds inside of a model is what Weft finds: attention, lens, shares, reasons."""

from typing import Any

import numpy as np
import pytest

import random_models as tiny
from weft.engine.labels import label_pass, label_shares
from weft.engine.stream import (
    Pass,
    language_pass,
    lens,
    shares,
    translation_pass,
)
from weft.engine.weights import in_float64
from weft.inspection.reasons import Reasons

TEXT = tiny.TEXTS[0]
INSIDE = """([text, asked]) => {
    const plain = (value) => {
        if (value?.values && value.shape) return { shape: value.shape, values: [...value.values] };
        if (Array.isArray(value)) return value.map(plain);
        if (!value || typeof value !== "object") return value;
        return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
    };
    return plain(engine.insideOf(model, text, asked));
}"""


def inside(load: Any, task: Any, text: str = TEXT, **asked: Any) -> Any:
    limits = {"tokens": 60, "tgt_tokens": 30}
    given = [text, {"limits": limits, "constant": {"task": task.name}, **asked}]
    return load(task).evaluate(INSIDE, given)


def array(leaf: Any) -> Any:
    return np.array(leaf["values"]).reshape(leaf["shape"])


def same(leaf: Any, expected: Any, atol: float = 2e-4) -> None:
    np.testing.assert_allclose(array(leaf), expected, atol=atol)


def rows_of(found: Any) -> list[Any]:
    return [(row["part"], row["layer"], row.get("n")) for row in found["rows"]]


def check_first(vectors: Any, states: Any) -> None:
    """Compare what the first layer is said to read with what it reads."""
    total = np.array(vectors["tokens"]) + np.array(vectors["positions"] or 0)
    read = total if vectors["normed"] is None else np.array(vectors["normed"])
    np.testing.assert_allclose(read, states[0][0], atol=1e-4)


def check_stream(found: Any, passed: Pass, written: list[int]) -> None:
    """Compare lens, shares and looks with those of Python."""
    expected = lens(passed, written)
    assert rows_of(found["lens"]) == [(r.part, r.layer, r.n) for r in expected.rows]
    same(found["lens"]["written"], expected.written)
    same(found["lens"]["probabilities"], expected.probabilities)
    assert (array(found["lens"]["ids"]) == expected.ids).mean() > 0.99
    own = shares(passed, written)
    assert rows_of(found["shares"]) == [(r.part, r.layer, r.n) for r in own.rows]
    assert np.ptp(own.values) > 0.5
    same(found["shares"]["values"], own.values)
    same(found["shares"]["logit"], own.logit)
    assert found["shares"]["error"] < 1e-3
    for kind, by_head in own.carried.items():
        same(found["shares"]["written"][kind], by_head)
    for kind, layers in passed.record.looks.items():
        maps = np.stack([layer[0] for layer in getattr(passed.record, kind)])
        same(found["attention"][kind], maps)
        for name in ("query", "key", "value"):
            looks = [getattr(look, name)[0].swapaxes(0, 1) for look in layers]
            same(found["looks"][kind][name], np.stack(looks))
    if own.source is not None:
        same(found["shares"]["source"], own.source)
    logits = array(found["choices"]["logits"])
    best = np.sort(passed.logits, axis=-1)[:, ::-1][:, : logits.shape[1]]
    np.testing.assert_allclose(logits, best, atol=1e-4)
    rest = np.exp(array(found["choices"]["rest"])) + np.exp(logits).sum(-1)
    np.testing.assert_allclose(np.log(rest), passed.log_total, atol=1e-3)


@pytest.mark.parametrize("name", ["en-de-modern", "seq2seq-transformer", "en-de"])
def test_a_translation(load: Any, name: str) -> None:
    task = tiny.tiny_task(name)
    found = inside(load, task)
    written = found["target"]["ids"]
    hypothesis = task.predictor().search(found["source"]["ids"])
    assert written[: len(hypothesis.ids)] == hypothesis.ids[:30]
    weights = in_float64(task.weights)
    passed = translation_pass(weights, found["source"]["ids"], [2, *written[:-1]])
    check_stream(found, passed, written)
    check_first(found["source"]["vectors"], passed.record.encoder_states)
    check_first(found["target"]["vectors"], passed.record.decoder_states)
    nodes = found["beam"]["nodes"]
    best = [node["id"] for node in nodes if node["is_best"]]
    assert best == written[: len(best)]
    assert {node["fate"] for node in nodes} >= {"goes on", "dropped"}


@pytest.mark.parametrize("most", [30, 3])
def test_a_greedy_translation(load: Any, most: int) -> None:
    """Its maps are those of the search, as many rows of them as are shown."""
    task = tiny.tiny_task("en-de-modern")
    limits = {"tokens": 60, "tgt_tokens": most}
    found = inside(load, task, beamSize=1, limits=limits)
    written = found["target"]["ids"]
    weights = in_float64(task.weights)
    passed = translation_pass(weights, found["source"]["ids"], [2, *written[:-1]])
    logits = passed.logits.copy()
    logits[:, :3] = -np.inf  # what is never written
    assert written == logits.argmax(-1).tolist()
    check_stream(found, passed, written)


@pytest.mark.parametrize(
    "settings",
    [
        ("tiny-shakespeare",),
        ("tiny-shakespeare", "model.embedding_norm=true"),
        ("lm-modern",),
        ("causal-lm", "model.embedding_norm=true"),
    ],
    ids=str,
)
def test_a_language_model(load: Any, settings: tuple[str, ...]) -> None:
    task = tiny.tiny_task(*settings)
    found = inside(load, task, " ".join(tiny.TEXTS[:2]) * 2)
    ids = found["tokens"]["ids"]
    passed = language_pass(in_float64(task.weights), ids)
    check_stream(found, passed, [*ids[1:], int(passed.logits[-1].argmax())])
    check_first(found["tokens"]["vectors"], passed.record.decoder_states)


def said_on_the_way(passed: Any, is_multi: bool) -> Any:
    """The probabilities of labels after each part, then with the bag, length by length."""
    states = []
    logits = []
    if passed.weights.encoder is not None:
        parts = passed.record.encoder_parts
        states = [passed.record.encoder_states[0], *(part.after for part in parts)]
        logits = [passed.logits_of([state], 0) for state in states]
    for count in range(1, len(passed.bag) + 1):
        logits.append(passed.logits_of(states[-1:], count))
    powers = np.exp(np.stack(logits))
    return powers / (1 + powers if is_multi else powers.sum(-1, keepdims=True))


@pytest.mark.parametrize(
    "settings",
    [
        ("classify-modern",),
        pytest.param(
            ("classify-modern", "model.pooling=first", "model.ngrams=2"),
            marks=pytest.mark.long,
        ),
        ("classify-fast", "data.label_separator=;"),
        ("imdb-classifier", "model.embedding_norm=true"),
    ],
    ids=str,
)
def test_a_classifier(load: Any, settings: tuple[str, ...]) -> None:
    task = tiny.tiny_task(*settings)
    found = inside(load, task)
    ids = found["tokens"]["ids"]
    weights = in_float64(task.weights)
    is_multi = task.config.multi_label
    classifier = task.predictor()
    reasons = Reasons(weights, classifier.model, is_multi, ids)
    order = np.argsort(-reasons.log_probs, kind="stable").tolist()
    assert [each["label"] for each in found["labels"]] == [
        tiny.LABELS[i] for i in order
    ]
    passed = label_pass(weights, ids, is_multi)
    same(found["lens"]["probabilities"], said_on_the_way(passed, is_multi)[:, order])
    own = label_shares(passed, order)
    assert rows_of(found["shares"]) == [(r.part, r.layer, r.n) for r in own.rows]
    same(found["shares"]["values"], own.values)
    same(found["shares"]["logit"], own.logit)
    if own.places is not None:
        same(found["shares"]["places"], own.places)
        same(found["shares"]["written"]["encoder"], own.carried)
    by_length = dict(own.ngrams)
    if 1 in by_length:
        same(found["shares"]["tokens"], by_length.pop(1))
        ngrams = np.concatenate(list(by_length.values()), axis=1)
        same(found["shares"]["ngrams"]["values"], ngrams)
    left_out = reasons.left_out(int(classifier.first_token))
    gradient = reasons.gradient()
    for label, each in zip(order, found["contributions"], strict=False):
        np.testing.assert_allclose(each["left_out"], left_out[:, label], atol=2e-3)
        # by quotients of differences, which straddle the bends of a ReLU
        np.testing.assert_allclose(each["gradient"], gradient[:, label], atol=5e-2)


@pytest.mark.long
def test_a_head_a_part_and_a_token_can_be_switched_off(load: Any) -> None:
    task = tiny.tiny_task("en-de")
    whole = inside(load, task)
    part = inside(load, task, off={"parts": ["decoder.0.cross"]})
    names = [(row["part"], row["layer"]) for row in part["shares"]["rows"]]
    values = array(part["shares"]["values"])
    assert not values[names.index(("cross", 0))].any()
    assert part["shares"]["error"] < 1e-3
    assert part["attention"]["cross"]["shape"][0] == 2
    assert part["choices"]["logits"] != whole["choices"]["logits"]
    head = inside(load, task, off={"heads": ["cross.0.2"]})
    carried = array(head["shares"]["written"]["cross"])
    assert not carried[0, 2].any()
    assert carried[0, 1].any()
    token = inside(load, task, off={"source": [1]})
    for kind in ("cross", "encoder"):
        maps = array(token["attention"][kind])
        assert not maps[..., 1].any()
        np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    assert inside(load, task) == whole, "nothing stays switched off"
