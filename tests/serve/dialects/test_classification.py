"""Classification as vLLM has it, and as Text Embeddings Inference does."""

import pytest
from starlette.testclient import TestClient

from weft.serve.dialects.classification import classify
from weft.serve.limits import Limits

from .conftest import LABELS, MODELS, StandIn, small_app

SCORES = [{"label": label, "score": score} for label, score in LABELS.items()]


def test_vllm_gives_probabilities_in_the_order_of_the_labels(ask: TestClient) -> None:
    for asked in ("a b", ["a b"], ["a", "b"]):
        reply = ask.post("/classify", json={"model": "stars", "input": asked}).json()
        count = 2 if len(asked) == 2 else 1
        assert (reply["object"], reply["model"]) == ("list", "stars")
        assert reply["usage"]["prompt_tokens"] == 2
        assert [row["index"] for row in reply["data"]] == list(range(count))
        for row in reply["data"]:
            assert row["label"] == "good"
            assert row["probs"] == list(LABELS.values())
            assert row["num_classes"] == 3
            assert row["scores"] == SCORES


def test_the_model_may_be_left_out_but_not_wrong(ask: TestClient) -> None:
    assert ask.post("/classify", json={"input": "a"}).status_code == 200
    for asked, status, param in (
        ({"input": "a", "model": "en-de"}, 404, "model"),
        ({"input": "a", "model": "gone"}, 404, "model"),
        ({"model": "stars"}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": [1, 2]}, 400, "input"),
        ({"input": {}}, 400, "input"),
    ):
        reply = ask.post("/classify", json=asked)
        assert reply.status_code == status
        assert reply.json()["error"]["param"] == param


def test_predict_takes_a_text_or_lists_of_one(ask: TestClient) -> None:
    for inputs, rows in (
        ("a", SCORES),
        ([["a"]], [SCORES]),
        ([["a"], ["b"]], [SCORES, SCORES]),
    ):
        assert ask.post("/predict", json={"inputs": inputs}).json() == rows


def test_predict_reads_no_pairs(ask: TestClient, subtests: pytest.Subtests) -> None:
    for asked in (
        {"inputs": ["a", "b"]},
        {"inputs": [["a", "b"]]},
        {"inputs": [["a"], ["b", "c"]]},
        {"inputs": []},
        {"inputs": [[]]},
        {"inputs": None},
        {"inputs": 5},
        {"inputs": [["a"], 5]},
        {"inputs": "a", "raw_scores": True},
    ):
        with subtests.test(str(asked)):
            reply = ask.post("/predict", json=asked)
            assert reply.status_code == 400
            assert reply.json()["error_type"] == "Validation"
            assert isinstance(reply.json()["error"], str)


def test_where_no_model_classifies_it_is_said_what_the_models_do() -> None:
    service = StandIn(MODELS[:4], Limits())
    ask = TestClient(small_app(service, [classify()]))
    reply = ask.post("/classify", json={"input": "a"})
    assert reply.status_code == 404
    said = reply.json()["error"]["message"]
    assert (
        said
        == "no model here is for classification; those that are here are for translation"
    )
