"""The dialects on a server's process with real models, whose translations mean nothing but are
what the model gives.
"""

import re
from html import unescape
from typing import Any

import httpx2
import numpy as np
import pytest

import weft
from tiny_server import Running
from weft.inspection.packing import unpacked
from weft.predict.settings import DecodingSettings

from .test_odd_requests import ODD_BODIES, ROUTES
from .test_programs import check_pair

TEXTS = ["The weather is fine today.", "Where is the station?", "I like it very much."]
BOTH = {"source": "en", "target": "de"}


def test_what_is_served_is_what_the_model_gives(server: Running) -> None:
    translator = weft.load(server.models["en-de"])
    direct = [one.text for one in translator.translate(TEXTS)]
    for path, body, read in (
        ("/translate", {"q": TEXTS, **BOTH}, lambda reply: reply["translatedText"]),
        (
            "/v2/translate",
            {"text": TEXTS, "target_lang": "DE", "source_lang": "EN"},
            lambda reply: [one["text"] for one in reply["translations"]],
        ),
        (
            "/v1/translate",
            {"texts": TEXTS, **BOTH},
            lambda reply: [one["text"] for one in reply["translations"]],
        ),
        (
            "/models/en-de",
            {"inputs": TEXTS},
            lambda reply: [one["translation_text"] for one in reply],
        ),
    ):
        assert read(server.asked(path, body)) == direct, path


def test_no_second_sentence_is_lost(server: Running) -> None:
    """A model of single sentences gets one at a time, in a text, a page and a file."""
    translator = weft.load(server.models["en-de"])
    assert translator.lengths.by_sentence
    each = [one.text for one in translator.translate(TEXTS)]
    together = " ".join(TEXTS)
    assert translator.translate(together)[0].segments == len(TEXTS)
    whole = " ".join(each)
    body = {"q": together, **BOTH}
    assert server.asked("/translate", body)["translatedText"] == whole
    body = {"texts": [together], **BOTH}
    (row,) = server.asked("/v1/translate", body)["translations"]
    assert row["text"] == whole
    for name, content, wanted in (
        ("a.txt", f"- {together}\n", f"- {whole}\n"),
        ("a.html", f"<p>{together}</p>", f"<p>{whole}</p>"),
    ):
        sent = {"file": (name, content.encode())}
        url = f"{server.url}/translate_file"
        reply = httpx2.post(url, data=BOTH, files=sent, timeout=60).json()
        found = httpx2.get(reply["translatedFileUrl"], timeout=60).content.decode()
        assert unescape(found) == wanted, name


def tokens_so_far(server: Running) -> dict[str, float]:
    page = httpx2.get(f"{server.url}/metrics", timeout=60).text
    found = re.findall(r"^weft:(\w+)_tokens_total (\S+)$", page, re.MULTILINE)
    return {name: float(count) for name, count in found}


def test_tokens_of_every_task_are_counted_as_read(server: Running) -> None:
    translator = weft.load(server.models["en-de"])
    rows = translator.plan(TEXTS, DecodingSettings()).rows
    of_texts = [len(row.ids) for row in rows]
    tokenizer = weft.load(server.models["languages"]).tokenizer
    of_labels = sum(map(len, tokenizer.encode_batch(TEXTS)))
    for path, body, count, writes in (
        ("/translate", {"q": TEXTS, **BOTH}, sum(of_texts), True),
        ("/v1/complete", {"text": TEXTS[0], **BOTH}, of_texts[0], True),
        ("/classify", {"input": TEXTS}, of_labels, False),
        ("/predict", {"inputs": [[text] for text in TEXTS]}, of_labels, False),
    ):
        before = tokens_so_far(server)
        reply = server.asked(path, body)
        after = tokens_so_far(server)
        assert after["prompt"] - before["prompt"] == count, path
        assert (after["generation"] > before["generation"]) == writes, path
        if path == "/classify":
            assert reply["usage"]["prompt_tokens"] == count


def test_words_have_their_places_and_probabilities(server: Running) -> None:
    text = f"{TEXTS[0]}\n\n  {TEXTS[1]}"
    asked = {"text": text, "words": True, "n_best": 3, **BOTH}
    (found,) = server.asked("/v1/translate", asked)["translations"]
    assert found["words"]
    covered = "".join(word["text"] for word in found["words"])
    assert covered == "".join(found["text"].split())
    for word in found["words"]:
        assert found["text"][word["start"] : word["end"]] == word["text"]
        assert 0 < word["probability"] <= 1
        for start, end in word["source"]:
            assert text[start:end].strip() == text[start:end] != ""
    others = [row["text"] for row in found["n_best"]]
    assert others[0] == found["text"]
    assert len(set(others)) == len(others)


def test_each_text_is_translated_from_its_own_language(server: Running) -> None:
    english, german = "where is the station", "wo ist der Bahnhof"
    asked = {"q": [english, german], "source": "auto", "target": "de"}
    found = server.asked("/translate", asked)["detectedLanguage"]
    assert found[0]["language"] == "en"
    guesses = server.asked("/detect", {"q": german})
    assert guesses[0]["language"] == "de"
    assert guesses[0]["confidence"] > 50


def test_a_translation_is_gone_on_with_as_the_model_does(server: Running) -> None:
    translator = weft.load(server.models["en-de"])
    prefix = translator.translate(TEXTS[:1])[0].text[:5]
    asked = {"text": TEXTS[0], "prefix": prefix, "alternatives": 3, **BOTH}
    found = server.asked("/v1/complete", asked)
    direct = translator.complete(TEXTS[0], prefix, alternatives=3)
    assert found["text"] == direct.text
    assert found["text"].startswith(prefix)
    assert [word["translation"] for word in found["alternatives"]] == [
        word.translation for word in direct.alternatives
    ]
    assert found["models"] == ["en-de"]
    for word in found["words"]:
        assert found["text"][word["start"] : word["end"]] == word["text"]


@pytest.mark.parametrize("name", ["en-de", "plays", "languages"])
def test_the_inside_of_every_model_is_given_as_data(server: Running, name: str) -> None:
    data = server.asked("/v1/inspect", {"model": name, "text": TEXTS[0]})
    assert (data["format"], data["version"]) == ("weft-inspection", 2)
    asked = {"model": name, "text": TEXTS[0], "packed": True}
    packed = server.asked("/v1/inspect", asked)
    assert packed.keys() == data.keys()
    for kind, maps in data["attention"].items():
        assert packed["attention"][kind]["shape"] == list(np.shape(maps))
        found = unpacked(packed["attention"][kind])
        np.testing.assert_allclose(found, maps, atol=0.005)


def test_parts_of_a_look_inside_are_as_in_the_whole(server: Running) -> None:
    asked = {"model": "languages", "text": TEXTS[0]}
    whole = server.asked("/v1/inspect", asked)
    for parts in (["left_out"], ["gradient"], ["gradient", "left_out"]):
        found = server.asked("/v1/inspect", {**asked, "parts": parts})
        assert found["tokens"]["pieces"] == whole["tokens"]["pieces"]
        labels = [row["label"] for row in found["labels"]]
        assert labels == [row["label"] for row in whole["labels"]]
        rows = zip(found["contributions"], whole["contributions"], strict=True)
        for mine, theirs in rows:
            assert mine.keys() == {"label", *parts}
            assert mine == {name: theirs[name] for name in mine}
        assert not {"attention", "model", "lens"} & found.keys()


@pytest.mark.parametrize(
    "body",
    [
        {"text": "a"},
        {"model": "languages", "text": "a", "parts": ["attention"]},
        {"model": "languages", "text": "a", "parts": [1]},
        {"model": "en-de", "text": "a", "parts": ["left_out"]},
        {"model": "none", "text": "a"},
        {"model": "en-de", "text": ""},
        {"model": "en-de", "text": "a", "more": 1},
    ],
)
def test_a_wrong_look_inside_is_refused(server: Running, body: Any) -> None:
    reply = httpx2.post(f"{server.url}/v1/inspect", json=body, timeout=60)
    assert reply.status_code in (400, 404)
    error = reply.json()["error"]
    assert error["message"]
    assert "parts" not in body or error["param"] == "parts"


def test_tags_and_placeholders_of_html_survive(server: Running) -> None:
    piece = '<p>The <b>weather</b> is {0} &amp; <a href="/x">fine</a>.</p><hr>'
    reply = server.asked("/translate", {"q": piece, "format": "html", **BOTH})
    translated = reply["translatedText"]
    tags = re.compile(r"<[^>]+>|\{0\}")
    assert sorted(tags.findall(translated)) == sorted(tags.findall(piece))
    assert translated.startswith("<p>")
    assert translated.endswith("</p><hr>")
    assert not re.search("&(?!amp;)", translated)


def test_an_alignment_serves_the_plug_ins(server: Running) -> None:
    for text in TEXTS:
        query = {"input": text, "srcLangCode": "eng", "trgLangCode": "de-AT"}
        url = f"{server.url}/MTRestService/TranslateJson"
        check_pair(text, httpx2.get(url, params=query, timeout=60).json())


def test_labels_are_those_of_the_classifier(server: Running) -> None:
    classifier = weft.load(server.models["languages"])
    (direct,) = classifier.classify(TEXTS[0])
    row = server.asked("/classify", {"input": TEXTS[0]})["data"][0]
    assert row["label"] == direct.label
    assert row["probs"] == list(direct.probabilities.values())
    assert server.asked("/predict", {"inputs": TEXTS[0]}) == row["scores"]
    assert server.asked("/models/languages", {"inputs": TEXTS[0]}) == [row["scores"]]


def test_what_a_search_cannot_do_is_a_clients_mistake(server: Running) -> None:
    for asked in ({"n_best": 3, "beam_size": 2}, {"prefix": "x " * 500}):
        body = {"text": TEXTS[0], **asked, **BOTH}
        reply = httpx2.post(f"{server.url}/v1/translate", json=body, timeout=60)
        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == "invalid_request"


def test_odd_requests_over_http(server: Running, subtests: pytest.Subtests) -> None:
    with httpx2.Client(base_url=server.url, timeout=60) as ask:
        for path in ROUTES:
            with subtests.test(path):
                for kind, body in ODD_BODIES:
                    headers = {"content-type": kind} if kind else {}
                    reply = ask.post(path, content=body, headers=headers)
                    assert reply.status_code < 500, (kind, body[:20], reply.text)
