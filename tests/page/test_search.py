"""Searches and samples in JavaScript write what Weft writes with the same weights."""

import base64
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import random_models as tiny
from weft.data import builtin
from weft.inspection.browser import browser_model, rounded_task
from weft.tasks.opening import load_task

TRANSLATE = """([texts, settings]) => texts.map((text) => {
    const { text: translation, cut, unfinished, found } = model.translate(text, settings);
    return { translation, cut, unfinished, ids: found.map((one) => one.ids), scores: found.map((one) => one.score) };
})"""
SETTINGS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4},
    "long ones": {"beam_size": 3, "length_penalty": 2.0},
    "short ones": {"beam_size": 3, "length_penalty": -1.0},
}
NAMES = {"beam_size": "beamSize", "length_penalty": "lengthPenalty"}


@pytest.mark.parametrize("name", ["en-de-modern", "seq2seq-transformer", "demo"])
@pytest.mark.parametrize("options", SETTINGS.values(), ids=list(SETTINGS))
def test_translations_are_those_of_weft(
    load: Any, name: str, options: dict[str, Any]
) -> None:
    task = tiny.tiny_task(name)
    page = load(task)
    texts = [*tiny.TEXTS[:5], "", "  A b.  C d!\nE f? " * 3, "x " * 80]
    expected = task.predictor().translate(texts, **options)
    settings = {NAMES[key]: value for key, value in options.items()}
    found = page.evaluate(TRANSLATE, [texts, settings])
    assert [each["translation"] for each in found] == [one.text for one in expected]
    assert [each["cut"] for each in found] == [one.source_cut for one in expected]
    assert any(each["unfinished"] for each in found)
    for each, one in zip(found, expected, strict=True):
        assert each["unfinished"] == (one.output_limit is not None)
        if one.score is not None:
            mean = sum(each["scores"]) / len(each["scores"])
            assert mean == pytest.approx(one.score, abs=1e-3)


GENERATE = """([prompts, settings]) => prompts.map((prompt) =>
    [...model.pieces(prompt, settings)].map(({ text }) => text).join(""))"""
DRAWN = {
    "greedy": {"temperature": 0.0},
    "all": {"temperature": 1.0, "seed": 5},
    "filtered": {
        "temperature": 1.3,
        "top_k": 40,
        "top_p": 0.8,
        "min_p": 0.01,
        "repetition_penalty": 1.4,
        "seed": 6,
    },
}


@pytest.mark.parametrize(
    "settings",
    [
        ("causal-lm",),
        ("lm-modern",),
        ("lm-modern", "tokenizer.leading_space=false"),
        ("tiny-shakespeare",),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", DRAWN.values(), ids=list(DRAWN))
def test_generated_texts_are_those_of_weft(
    load: Any, settings: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Also where the text outgrows the window."""
    task = tiny.tiny_task(*settings)
    page = load(task)
    prompts = ["", "Ein kleiner Hund", "我想要", "a b c d e f " * 12]
    model = task.predictor()
    expected = [
        model.generate(prompt, max_new_tokens=70, **options).text for prompt in prompts
    ]
    assert any(expected)
    names = {"top_k": "topK", "top_p": "topP", "min_p": "minP"}
    names["repetition_penalty"] = "repetitionPenalty"
    asked = {names.get(key, key): value for key, value in options.items()}
    found = page.evaluate(GENERATE, [prompts, {"seed": 1, **asked, "limit": 70}])
    assert found == expected


@pytest.mark.parametrize(
    "settings",
    [
        ("classify-fast",),
        ("classify-modern", "data.too_long=windows"),
        ("classify-modern", "data.label_separator=;", "model.pooling=first"),
    ],
    ids=str,
)
def test_labels_are_those_of_weft(load: Any, settings: tuple[str, ...]) -> None:
    task = tiny.tiny_task(*settings)
    page = load(task)
    texts = [*tiny.TEXTS[:5], "", " ".join(tiny.TEXTS)]
    expected = task.predictor().classify(texts)
    found = page.evaluate("(texts) => texts.map((text) => model.classify(text))", texts)
    for each, one in zip(found, expected, strict=True):
        assert each["cut"] == one.truncated
        probabilities = list(one.probabilities.values())
        assert each["probabilities"] == pytest.approx(probabilities, abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("options", [{"beam_size": 1}, {}], ids=str)
def test_200_sentences_of_the_demo_are_translated_alike(
    load: Any, options: dict[str, Any]
) -> None:
    with resources.as_file(resources.files("weft") / "demo") as folder:
        task = rounded_task(load_task(Path(folder)))
    page = load(task)
    pairs = builtin.pairs("everyday", "en", "zh").test[:200]
    texts = [source for source, _ in pairs]
    assert len(texts) == 200
    expected = [one.text for one in task.predictor().translate(texts, **options)]
    settings = {NAMES[key]: value for key, value in options.items()}
    found = page.evaluate(TRANSLATE, [texts, settings])
    assert [each["translation"] for each in found] == expected


# what a worker tells of each text, one after the other
TOLD = """([card, data, texts]) => new Promise((done) => {
    const told = [];
    const load = { kind: "load", card, buffer: engine.bytesOf(data).buffer };
    const requests = [load, ...texts.map((text) => ({ kind: "translate", text }))];
    const scope = { postMessage(answer) {
        told[answer.id - 1].push(answer);
        if (answer.done) ask();
    } };
    const ask = () => {
        if (!requests.length) return done(told);
        told.push([]);
        scope.onmessage({ data: { id: told.length, ...requests.shift() } });
    };
    engine.serveModel(scope);
    ask();
})"""


def test_a_line_that_is_known_is_not_translated_again(scripts: Any) -> None:
    """Of as many lines as are remembered, neither."""
    made = browser_model(tiny.tiny_task("en-de"))
    data = base64.b64encode(made.data).decode()
    lines = [*(" " * count for count in range(999)), tiny.TEXTS[0]]
    whole = "\n".join(lines)
    texts = [whole, whole, f"{whole}\n{tiny.TEXTS[0]} A"]
    _, first, again, longer = scripts.evaluate(TOLD, [made.card, data, texts])
    assert len(first) > 1
    assert [answer["text"] for answer in again] == [first[-1]["text"]]
    assert len(longer) > 1
    assert longer[-1]["text"].startswith(f"{first[-1]['text']}\n")
