"""OPUS-CAT's contract, as its plug-ins use it. How they read the replies is in test_programs.py."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from weft.serve.dialects.opuscat import opuscat

from .conftest import MODELS, StandIn

ASKED = {"input": "the black cat", "srcLangCode": "en", "trgLangCode": "de"}


def test_a_translation_comes_with_its_pieces_and_their_alignment(
    ask: TestClient,
) -> None:
    for room in ("MtRestService", "MTRestService", "mtrestservice"):
        reply = ask.get(f"/{room}/TranslateJson", params=ASKED)
        assert reply.headers["content-type"] == "application/json; charset=utf-8"
        assert reply.json() == {
            "translation": "CAT BLACK THE",
            "Translation": "CAT BLACK THE",
            "SegmentedSourceSentence": ["the", "▁black", "▁cat"],
            "SegmentedTranslation": ["CAT", "▁BLACK", "▁THE"],
            "SegmentedAlignmentSourceToTarget": {"0": [2], "1": [1], "2": [0]},
            "SegmentedAlignmentTargetToSource": {"0": [2], "1": [1], "2": [0]},
            "AlignmentString": "0-2 1-1 2-0",
            "Segmentation": 1,
        }


def test_pieces_joined_are_the_texts(ask: TestClient) -> None:
    for text in ("  a  b ", "a <b>c</b> {0} d", "one\n\ntwo three\n", "", " ", "x"):
        asked = {**ASKED, "input": text}
        reply = ask.get("/MtRestService/TranslateJson", params=asked).json()
        source = "".join(reply["SegmentedSourceSentence"]).replace("▁", " ")
        target = "".join(reply["SegmentedTranslation"]).replace("▁", " ")
        assert (source, target) == (text, reply["translation"])


def test_a_model_without_alignment_gives_one_piece(
    ask: TestClient, service: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = SimpleNamespace(**{**vars(MODELS[0].predictor), "can_align": False})
    object.__setattr__(MODELS[0], "predictor", alone)
    try:
        reply = ask.get("/MtRestService/TranslateJson", params=ASKED).json()
    finally:
        alone.can_align = True
    assert service.asked[-1][3].alignments is False
    assert reply["SegmentedTranslation"] == ["CAT▁BLACK▁THE"]
    assert reply["SegmentedAlignmentSourceToTarget"] == {"0": [0]}


def test_other_ways_to_translate(ask: TestClient) -> None:
    query = urlencode(ASKED)
    base = "/MTRestService"
    assert ask.post(f"{base}/TranslatePost?{query}").json()["translation"] == (
        "CAT BLACK THE"
    )
    assert ask.get(f"{base}/Translate?{query}").json() == "CAT BLACK THE"
    assert ask.get(f"{base}/TranslateStream?{query}").text == "CAT BLACK THE"


def test_codes_of_three_letters_and_none_at_all(
    ask: TestClient, service: StandIn
) -> None:
    for src, tgt in (("eng", "ger"), ("eng-GB", "deu"), ("EN", "DE"), ("", "")):
        asked = {**ASKED, "srcLangCode": src, "trgLangCode": tgt}
        assert ask.get("/MtRestService/TranslateJson", params=asked).status_code == 200
        assert service.asked[-1][1:3] == ("en", "de")


def test_the_usual_spelling_is_described(service: StandIn) -> None:
    app: Any = FastAPI()
    app.include_router(opuscat().routes(service))
    described = app.openapi()["paths"]
    assert all(path.startswith("/MtRestService/") for path in described)
    names = {path.rpartition("/")[2] for path in described}
    assert {"TranslateJson", "TranslatePost", "CheckModelStatus"} <= names
    asked = described["/MtRestService/TranslateJson"]["get"]["parameters"]
    assert {one["name"] for one in asked} == {*ASKED, "modelTag"}


def test_a_tag_chooses_a_model(ask: TestClient) -> None:
    base = "/MtRestService"
    pair = {"srcLangCode": "en", "trgLangCode": "de"}
    assert ask.get(f"{base}/ListSupportedLanguagePairs").json() == [
        "en-de",
        "de-en",
        "en-zh",
    ]
    tags = ask.get(f"{base}/GetLanguagePairModelTags", params=pair).json()
    assert tags == ["en-de", "law"]
    for tag, model in (
        ("", "en-de"),
        ('""', "en-de"),
        ("law", "law"),
        ("old", "en-de"),
    ):
        asked = {**pair, "modelTag": tag}
        status = ask.get(f"{base}/CheckModelStatus", params=asked).json()
        assert status == f"Model {model} for en-de will be used."
    none = {"srcLangCode": "de", "trgLangCode": "zh"}
    status = ask.get(f"{base}/CheckModelStatus", params=none).json()
    assert status == "No model available for these languages."


def test_the_address_says_that_it_is_right(ask: TestClient) -> None:
    for path in ("/MtRestService/", "/MtRestService", "/mtrestservice/"):
        reply = ask.get(path)
        assert reply.status_code == 200
        assert reply.json()["pairs"] == ["en-de", "de-en", "en-zh"]


def test_texts_are_ordered_beforehand(ask: TestClient) -> None:
    path = "/MtRestService/PreOrderBatch?tokenCode=0&srcLangCode=en&trgLangCode=de"
    assert ask.post(path, json=["a", "b"]).status_code == 200
    for body in ([], {}, "a", [5], None):
        assert ask.post(path, json=body).status_code == 400


def test_refusals_have_a_message(ask: TestClient) -> None:
    base = "/MtRestService"
    for pair in ({"trgLangCode": "fr"}, {"srcLangCode": "zh", "trgLangCode": "en"}):
        reply = ask.get(f"{base}/TranslateJson", params={**ASKED, **pair})
        assert reply.status_code == 400
        assert list(reply.json()) == ["Message"]
    assert ask.post(f"{base}/Customize", json={}).status_code == 403
