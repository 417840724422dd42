"""Hugging Face's tasks: translation and text classification at one path."""

import pytest
from starlette.testclient import TestClient

from weft.serve.dialects.huggingface import huggingface
from weft.serve.limits import Limits

from .conftest import LABELS, MODELS, StandIn, model, small_app

SCORES = [{"label": label, "score": score} for label, score in LABELS.items()]


def test_a_translation_is_in_a_list(ask: TestClient) -> None:
    for inputs, texts in (("a b", ["B A"]), (["a b", "c d"], ["B A", "D C"])):
        reply = ask.post("/", json={"inputs": inputs})
        assert reply.json() == [{"translation_text": text} for text in texts]


def test_languages_are_parameters_in_many_spellings(
    ask: TestClient, service: StandIn
) -> None:
    for src, tgt in (("de", "en"), ("de_DE", "en_XX"), ("deu_Latn", "eng_Latn")):
        parameters = {"src_lang": src, "tgt_lang": tgt}
        reply = ask.post("/", json={"inputs": "a", "parameters": parameters})
        assert reply.status_code == 200
        assert service.asked[-1][1:3] == ("de", "en")


def test_a_path_names_a_model(ask: TestClient, service: StandIn) -> None:
    assert ask.post("/models/de-en", json={"inputs": "a"}).status_code == 200
    assert service.asked[-1][1:3] == ("de", "en")
    assert ask.post("/models/stars", json={"inputs": "a"}).json() == [SCORES]
    assert ask.post("/models/none", json={"inputs": "a"}).status_code == 404
    parameters = {"src_lang": "en", "tgt_lang": "de"}
    asked = {"inputs": "a", "parameters": parameters}
    assert ask.post("/models/de-en", json=asked).status_code == 400


def test_another_language_than_the_models_names_its_own(ask: TestClient) -> None:
    asked = {"inputs": "a", "parameters": {"src_lang": "en", "tgt_lang": "zh"}}
    reply = ask.post("/models/law", json=asked)
    assert reply.status_code == 400
    assert reply.json()["error"] == "the model law translates en to de"


def test_a_classifier_alone_classifies() -> None:
    service = StandIn([MODELS[-1]], Limits())
    with TestClient(small_app(service, [huggingface()])) as ask:
        for inputs, rows in (("a", [SCORES]), (["a", "b"], [SCORES, SCORES])):
            assert ask.post("/", json={"inputs": inputs}).json() == rows
        asked = {"inputs": "a", "parameters": {"top_k": 1}}
        assert ask.post("/", json=asked).json() == [SCORES[:1]]
        for function, status in (("softmax", 200), ("sigmoid", 400), ("none", 400)):
            parameters = {"function_to_apply": function}
            reply = ask.post("/", json={"inputs": "a", "parameters": parameters})
            assert reply.status_code == status


def test_a_language_model_has_another_route() -> None:
    service = StandIn([model("tales", "language-modelling")], Limits())
    with TestClient(small_app(service, [huggingface()])) as ask:
        reply = ask.post("/", json={"inputs": "a"})
    assert reply.status_code == 400
    assert "/v1/completions" in reply.json()["error"]


def test_odd_requests_are_refused(ask: TestClient, subtests: pytest.Subtests) -> None:
    for asked in (
        {},
        {"inputs": None},
        {"inputs": []},
        {"inputs": 5},
        {"inputs": [["a"]]},
        {"inputs": "a", "parameters": 5},
        {"inputs": "a", "parameters": {"src_lang": "en"}},
        {"inputs": "a", "parameters": {"src_lang": 5, "tgt_lang": []}},
    ):
        with subtests.test(str(asked)):
            reply = ask.post("/", json=asked)
            assert reply.status_code == 400
            assert list(reply.json()) == ["error"]
