"""DeepL's contract, as its client and Weblate use it."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from weft.serve.limits import Limits


def test_texts_come_as_json_or_as_a_form(
    ask: TestClient, subtests: pytest.Subtests
) -> None:
    fields = {"text": ["good day", "a b"], "target_lang": "DE", "source_lang": "EN"}
    for name in ("json", "data", "params"):
        with subtests.test(name):
            form: dict[str, Any] = {name: fields}
            reply = ask.post("/v2/translate", **form)
            assert reply.json() == {
                "translations": [
                    {
                        "detected_source_language": "EN",
                        "text": "DAY GOOD",
                        "billed_characters": 8,
                    },
                    {
                        "detected_source_language": "EN",
                        "text": "B A",
                        "billed_characters": 3,
                    },
                ]
            }


def test_the_source_is_detected_and_variants_are_understood(ask: TestClient) -> None:
    fields = {"text": ["der Hund"], "target_lang": "en-gb"}
    (found,) = ask.post("/v2/translate", json=fields).json()["translations"]
    assert found["detected_source_language"] == "DE"
    assert found["text"] == "HUND DER"


def test_tags_are_placed_and_ignored_ones_are_kept(ask: TestClient) -> None:
    fields = {"target_lang": "DE", "source_lang": "EN", "tag_handling": "xml"}
    for tags, text, translated in (
        (["x"], '<x id="12"></x> good day', 'DAY <x id="12"></x> GOOD'),
        (["x"], "good <x>not this</x> day", "DAY <x>not this</x> GOOD"),
        ("y,x", "<g>good</g> day", "DAY <g>GOOD</g>"),
    ):
        sent = {"text": [text], "ignore_tags": tags, **fields}
        (found,) = ask.post("/v2/translate", json=sent).json()["translations"]
        assert found["text"] == translated
    for tag in ("xml", "html"):
        plain = {**fields, "text": "a &amp; b", "tag_handling": tag}
        (found,) = ask.post("/v2/translate", json=plain).json()["translations"]
        assert found["text"] == "B &amp; A"


def test_sources_and_targets_are_listed(ask: TestClient) -> None:
    sources = [
        {"language": "EN", "name": "English"},
        {"language": "DE", "name": "German"},
    ]
    targets = ["DE", "EN-GB", "EN-US", "ZH", "ZH-HANS"]
    assert ask.get("/v2/languages").json() == sources
    form = {"content-type": "application/x-www-form-urlencoded"}
    for reply in (
        ask.get("/v2/languages?type=target"),
        ask.post("/v2/languages", data={"type": "target"}),
        ask.request("GET", "/v2/languages", content=b"type=target", headers=form),
    ):
        assert [one["language"] for one in reply.json()] == targets
        assert not any(one["supports_formality"] for one in reply.json())
    assert ask.get("/v2/languages?type=both").status_code == 400


def test_usage_counts_and_is_never_used_up(ask: TestClient) -> None:
    assert ask.get("/v2/usage").json()["character_count"] == 0
    fields = {"text": ["good day", "a b"], "target_lang": "DE"}
    ask.post("/v2/translate", json=fields)
    usage = ask.get("/v2/usage").json()
    assert usage["character_count"] == 11
    assert usage["character_count"] < usage["character_limit"]


def test_there_are_no_glossaries(ask: TestClient) -> None:
    assert ask.get("/v2/glossaries").json() == {"glossaries": []}
    assert ask.get("/v2/glossary-language-pairs").json() == {"supported_languages": []}
    reply = ask.post("/v2/glossaries", json={"name": "n"})
    assert reply.status_code == 403
    assert list(reply.json()) == ["message"]


@pytest.mark.parametrize("limits", [Limits(max_text=5)])
def test_errors_have_a_message(ask: TestClient) -> None:
    whole = {"text": ["a b"], "target_lang": "DE"}
    for fields, status, message in (
        ({"text": None}, 400, "Parameter 'text' not specified."),
        ({"text": []}, 400, "Parameter 'text' not specified."),
        ({"target_lang": None}, 400, "Parameter 'target_lang' not specified."),
        ({"target_lang": "FR"}, 400, "Value for 'target_lang' not supported."),
        ({"source_lang": "ZH"}, 400, "Value for 'source_lang' not supported."),
        ({"tag_handling": "pdf"}, 400, "tag_handling must be xml or html"),
        ({"text": 5}, 400, "text must be a string or a list of strings"),
        ({"text": ["abcdef"]}, 413, "characters of a text: 6; at most 5 are taken"),
    ):
        reply = ask.post("/v2/translate", json={**whole, **fields})
        assert (reply.status_code, reply.json()) == (status, {"message": message})
