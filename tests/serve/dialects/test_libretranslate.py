"""LibreTranslate's contract: shapes, texts and statuses as LibreTranslate 1.9.6 gives them."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from weft.documents.registry import endings
from weft.serve.limits import Limits

from .conftest import StandIn, model

BOTH = {"source": "en", "target": "de"}


def test_the_four_forms_of_a_request(
    ask: TestClient, subtests: pytest.Subtests
) -> None:
    fields = {"q": "good day", **BOTH}
    forms: dict[str, dict[str, Any]] = {
        "JSON": {"json": fields},
        "form": {"data": fields},
        "multipart": {"files": {name: (None, text) for name, text in fields.items()}},
        "query string": {"params": fields},
    }
    for name, form in forms.items():
        with subtests.test(name):
            reply = ask.post("/translate", **form)
            assert reply.status_code == 200
            assert reply.json() == {"translatedText": "DAY GOOD"}


def test_a_list_comes_back_as_a_list_and_a_text_as_a_text(ask: TestClient) -> None:
    for q, translated in (
        ("good day", "DAY GOOD"),
        (["good day"], ["DAY GOOD"]),
        (["a b", "", "  ", "c d"], ["B A", "", "  ", "D C"]),
        (["", ""], ["", ""]),
        ("   ", "   "),
    ):
        reply = ask.post("/translate", json={"q": q, **BOTH})
        assert reply.json() == {"translatedText": translated}, q


def test_a_field_that_a_form_repeats_is_a_list(ask: TestClient) -> None:
    reply = ask.post("/translate", data={"q": ["a b", "c d"], **BOTH})
    assert reply.json() == {"translatedText": ["B A", "D C"]}


def test_line_breaks_blank_lines_and_indents_stay(
    ask: TestClient, service: StandIn
) -> None:
    text = "  first line\r\n\r\n\tsecond line \nfirst line\r"
    reply = ask.post("/translate", json={"q": text, **BOTH})
    translated = "  LINE FIRST\r\n\r\n\tLINE SECOND \nLINE FIRST\r"
    assert reply.json() == {"translatedText": translated}
    ((texts, *_),) = service.asked
    assert texts == ["first line", "second line"]  # each once, all at once


def test_the_language_of_each_text_is_detected(ask: TestClient) -> None:
    for q, languages in (
        ("der Hund", {"confidence": 75.0, "language": "de"}),
        (
            ["der Hund", "good day"],
            [
                {"confidence": 75.0, "language": "de"},
                {"confidence": 75.0, "language": "en"},
            ],
        ),
    ):
        reply = ask.post("/translate", json={"q": q, "source": "auto", "target": "en"})
        assert reply.json()["detectedLanguage"] == languages
    assert reply.json()["translatedText"] == ["HUND DER", "good day"]


def test_a_language_that_nothing_tells_is_asked_for_in_the_shape_of_each_dialect(
    ask: TestClient, service: StandIn
) -> None:
    service.catalogue.replace(model("zh-de", "translation", "zh", "de"))
    service.know("de")
    words = "the models cannot tell the language of the text; give the source"
    for path, asked, key in (
        ("/translate", {"q": "a b", "source": "auto", "target": "de"}, "error"),
        ("/v2/translate", {"text": ["a b"], "target_lang": "DE"}, "message"),
        ("/immersive", {"text_list": ["a b"], "target_lang": "de"}, "error"),
    ):
        reply = ask.post(path, json=asked)
        assert (reply.status_code, reply.json()) == (400, {key: words}), path
    for path in ("/v1/translate", "/v1/complete"):
        reply = ask.post(path, json={"text": "a b", "target": "de"})
        assert reply.status_code == 400, path
        assert reply.json()["error"]["code"] == "undetected_language"
    assert service.asked == []
    asked = {"q": ["a b", "der Hund"], "source": "auto", "target": "de"}
    assert ask.post("/translate", json={**asked, "q": "der Hund"}).status_code == 200
    assert ask.post("/translate", json={**asked, "target": "zh"}).json() == {
        "translatedText": ["B A", "HUND DER"],
        "detectedLanguage": [{"confidence": 0.0, "language": "en"}] * 2,
    }


def test_a_short_text_has_the_language_of_those_beside_it(ask: TestClient) -> None:
    fields = {"q": ["Anna", "der Hund"], "source": "auto", "target": "en"}
    detected = ask.post("/translate", json=fields).json()["detectedLanguage"]
    assert [one["language"] for one in detected] == ["de", "de"]
    alone = ask.post("/translate", json={**fields, "q": ["Anna"]}).json()
    assert alone["detectedLanguage"] == [{"confidence": 25.0, "language": "en"}]


def test_alternatives_are_neither_the_translation_nor_doubled(ask: TestClient) -> None:
    for q, alternatives in (
        ("a b", ["B A!", "B A?"]),
        (["a b", " "], [["B A!", "B A?"], []]),
        ("a b\nc d", ["B A!\nD C!", "B A?\nD C?"]),
    ):
        fields = {"q": q, "alternatives": 3, **BOTH}
        assert (
            ask.post("/translate", json=fields).json()["alternatives"] == alternatives
        )
    reply = ask.post("/translate", json={"q": "a b", "alternatives": 0, **BOTH})
    assert "alternatives" not in reply.json()
    reply = ask.post("/translate", data={"q": "a b", "alternatives": "-3", **BOTH})
    assert reply.json() == {"translatedText": "B A"}


def test_a_larger_beam_is_used_for_alternatives_alone(
    ask: TestClient, service: StandIn
) -> None:
    for wanted, beam in ((0, None), (2, 4), (5, 6)):
        ask.post("/translate", json={"q": "a", "alternatives": wanted, **BOTH})
        assert service.asked[-1][3].beam_size == beam


def test_tags_of_html_stay_and_alternatives_are_none(ask: TestClient) -> None:
    html = '<p class="x" lang="en">good day</p>\n<ul><li>one two</li></ul> &amp; a b'
    fields = {"q": [html], "format": "html", "alternatives": 2, **BOTH}
    reply = ask.post("/translate", json=fields).json()
    assert reply["alternatives"] == [[]]
    assert reply["translatedText"] == [
        '<p class="x" lang="en">DAY GOOD</p>\n<ul><li>TWO ONE</li></ul> B A &amp;'
    ]


def test_codes_of_languages_are_understood(
    ask: TestClient, subtests: pytest.Subtests
) -> None:
    for source, target in (
        ("EN", "De"),
        ("en-GB", "de_AT"),
        ("eng", "deu"),
        ("en", "zh-CN"),
        ("en", "zh-Hans"),
        ("en", "zt"),
    ):
        with subtests.test(f"{source} to {target}"):
            fields = {"q": "a b", "source": source, "target": target}
            assert ask.post("/translate", json=fields).json() == {
                "translatedText": "B A"
            }


def test_a_text_in_the_target_language_stays_as_it_is(
    ask: TestClient, service: StandIn
) -> None:
    fields = {"q": " Guten  Tag\n", "source": "de", "target": "de"}
    assert ask.post("/translate", json=fields).json() == {
        "translatedText": " Guten  Tag\n"
    }
    assert service.asked == []


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": ""}, 400, "Invalid request: missing q parameter"),
        ({"q": []}, 400, "Invalid request: missing q parameter"),
        ({"q": None}, 400, "Invalid request: missing q parameter"),
        ({"source": ""}, 400, "Invalid request: missing source parameter"),
        ({"target": None}, 400, "Invalid request: missing target parameter"),
        ({"source": "zz"}, 400, "zz is not supported"),
        ({"target": "auto"}, 400, "auto is not supported"),
        (
            {"source": "zh"},
            400,
            "German (de) is not available as a target language from Chinese (zh)",
        ),
        ({"q": "x" * 51}, 400, "Invalid request: request (51) exceeds text limit (50)"),
        (
            {"q": ["x"] * 4},
            400,
            "Invalid request: request (4) exceeds text limit (3)",
        ),
        (
            {"alternatives": 3},
            400,
            "Invalid request: alternatives parameter must be <= 2",
        ),
        ({"format": "xml"}, 400, "Invalid request: format must be text or html"),
    ],
)
@pytest.mark.parametrize(
    "limits", [Limits(max_text=50, max_texts=3, max_alternatives=2)]
)
def test_errors_have_the_texts_that_clients_know(
    ask: TestClient, fields: dict[str, Any], status: int, error: str
) -> None:
    reply = ask.post("/translate", json={"q": "a", **BOTH, **fields} if fields else {})
    assert (reply.status_code, reply.json()) == (status, {"error": error})


def test_what_libretranslate_breaks_on_is_refused(
    ask: TestClient, subtests: pytest.Subtests
) -> None:
    odd: list[dict[str, Any]] = [
        *({"alternatives": value} for value in ("x", None, [1], {}, True, 1e30)),
        *({"q": value} for value in (5, True, {}, ["a", 5], [["a"]], [None])),
        *({"source": value} for value in (5, ["en"], {})),
        *({"format": value} for value in (5, ["html"], {})),
        *({"words": value} for value in (5, "perhaps", [])),
    ]
    for fields in odd:
        with subtests.test(str(fields)):
            reply = ask.post("/translate", json={"q": "a", **BOTH, **fields})
            assert reply.status_code == 400
            assert list(reply.json()) == ["error"]


def test_the_languages_name_their_targets(ask: TestClient) -> None:
    languages = [
        {"code": "en", "name": "English", "targets": ["de", "zh"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "zh", "name": "Chinese", "targets": []},
    ]
    form = "application/x-www-form-urlencoded"
    for headers, body in (
        ({}, b""),
        ({"content-type": form}, b""),
        ({"content-type": form}, b"api_key=k"),
        ({"content-type": "application/json"}, b"{"),
    ):
        reply = ask.request("GET", "/languages", headers=headers, content=body)
        assert reply.json() == languages


def test_detect_gives_the_best_first(ask: TestClient) -> None:
    best_first = [
        {"confidence": 75.0, "language": "de"},
        {"confidence": 0.0, "language": "en"},
        {"confidence": 0.0, "language": "zh"},
    ]
    for q in ("der Hund", ["der", "Hund"]):
        assert ask.post("/detect", json={"q": q}).json() == best_first
    reply = ask.post("/detect", json={"q": ""})
    assert reply.json() == {"error": "Invalid request: missing q parameter"}


def test_the_settings_of_pages(ask: TestClient) -> None:
    assert ask.get("/frontend/settings").json() == {
        "charLimit": 20000,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": True,
        "filesTranslation": True,
        "supportedFilesFormat": endings(),
        "language": {
            "source": {"code": "en", "name": "English"},
            "target": {"code": "de", "name": "German"},
        },
    }
