"""Immersive Translate's contract for a custom service."""

from starlette.testclient import TestClient


def test_a_list_of_texts_with_tags_and_placeholders(ask: TestClient) -> None:
    asked = {
        "source_lang": "auto",
        "target_lang": "en",
        "text_list": ["<b0>der</b0> Hund", "{0} der Hund", "good day"],
    }
    assert ask.post("/immersive", json=asked).json() == {
        "translations": [
            {"detected_source_lang": "de", "text": "HUND <b0>DER</b0>"},
            {"detected_source_lang": "de", "text": "HUND {0} DER"},
            {"detected_source_lang": "en", "text": "good day"},
        ]
    }


def test_refusals_are_strings(ask: TestClient) -> None:
    for asked in (
        {"target_lang": "en"},
        {"text_list": []},
        {"text_list": [5], "target_lang": "en"},
        {"text_list": ["a"]},
        {"text_list": ["a"], "target_lang": "fr"},
    ):
        reply = ask.post("/immersive", json=asked)
        assert reply.status_code == 400
        assert isinstance(reply.json()["error"], str)
