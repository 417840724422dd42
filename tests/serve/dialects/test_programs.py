"""Requests as other programs send them, and what these programs do with the replies.

The requests, and the checks that stand for a program's parser, were written after reading the
source that `PROGRAMS` names.
"""

import html
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

_OPUS_CAT = ("Helsinki-NLP/OPUS-CAT", "767d2cecca1557058da0fe6e04cd223ced8a88cb")


@dataclass(frozen=True)
class Source:
    """Where it can be read what a program sends and how it reads the reply."""

    repository: str
    commit: str
    path: str


PROGRAMS = {
    "Mastodon": Source(
        "mastodon/mastodon",
        "bcba029ae2be386a6d8bafd0e9c798d8f8f1eba9",
        "app/lib/translation_service/libre_translate.rb",
    ),
    "Weblate": Source(
        "WeblateOrg/weblate",
        "191178643327b18dd2a1d668c99792b33db8d2fa",
        "weblate/machinery/libretranslate.py",
    ),
    "Weblate over DeepL": Source(
        "WeblateOrg/weblate",
        "01c5add9a741963306778566dce8069d66ec68d9",
        "weblate/machinery/deepl.py",
    ),
    "OmegaT": Source(
        "omegat-org/omegat-libre-translate",
        "12bd2afb4d2077f6cf2d8aee174bb3d13fffcb35",
        "src/main/java/org/omegat/machinetranslators/libretranslate/LibreTranslate.java",
    ),
    "OmegaT's connections": Source(
        "omegat-org/omegat",
        "0939f7cd6cf5b2eaa516f4e23f9aef5c24766b33",
        "src/org/omegat/util/HttpConnectionUtils.java",
    ),
    "Subtitle Edit": Source(
        "SubtitleEdit/subtitleedit",
        "f25119bd4ca5a12bb1c363aadd1a9fb2e14a3468",
        "src/libse/AutoTranslate/LibreTranslate.cs",
    ),
    "Subtitle Edit over DeepL": Source(
        "SubtitleEdit/subtitleedit",
        "c9da2df7a2321d7d6b31b851edae3a7789b1c4d0",
        "src/libse/AutoTranslate/DeepLTranslate.cs",
    ),
    "Zotero": Source(
        "windingwind/zotero-pdf-translate",
        "ac91acaf18ac58cd7f7c49d3b39a02f506c56302",
        "src/modules/services/libretranslate.ts",
    ),
    "Discourse": Source(
        "discourse/discourse-translator",
        "919fdabb354ff7b9aa4e479621768a6613a47297",
        "app/services/discourse_translator/provider/libre_translate.rb",
    ),
    "Trados": Source(*_OPUS_CAT, "Trados2019Plugin/OpusCatMtServiceConnection.cs"),
    "Trados' tags": Source(*_OPUS_CAT, "Trados2019Plugin/TagRestorer.cs"),
    "memoQ": Source(*_OPUS_CAT, "memoQPlugin/OpusCatMTSession.cs"),
    "OmegaT over OPUS-CAT": Source(
        *_OPUS_CAT,
        "OmegaTPlugin/src/main/java/helsinki_nlp/opuscat/omegat_plugin/OpusCatTranslator.java",
    ),
    "Wordfast": Source(
        *_OPUS_CAT, "OpusCatMTEngineCore/OWIN/MachineTranslationController.cs"
    ),
}
FORM = "application/x-www-form-urlencoded"


def test_every_source_is_named_whole() -> None:
    for source in PROGRAMS.values():
        assert re.fullmatch(r"[\w-]+/[\w-]+", source.repository)
        assert re.fullmatch("[0-9a-f]{40}", source.commit)
        assert source.path


# LibreTranslate


def test_mastodon(ask: TestClient) -> None:
    languages = ask.get("/languages", headers={"Content-Type": "application/json"})
    targets = {one["code"]: set(one["targets"]) for one in languages.json()}
    assert targets["de"] == {"en"}
    texts = ["<p>der <strong>Hund</strong></p>", "guten Tag", "ja"]
    body = {
        "q": texts,
        "source": "auto",
        "target": "en",
        "format": "html",
        "api_key": None,
    }
    sent = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    reply = ask.post("/translate", content=sent, headers=headers)
    assert 200 <= reply.status_code < 300
    assert len(reply.content) < 2**20
    data = reply.json()
    assert len(data["translatedText"]) == len(texts)
    assert data["translatedText"][0] == "<p><strong>HUND</strong> DER</p>"
    for place in range(len(texts)):
        assert data["detectedLanguage"][place]["language"] == "de"


def test_weblate(ask: TestClient) -> None:
    codes = {one["code"] for one in ask.get("/languages").json()}
    assert {"en", "de"} <= codes  # it tests itself by this pair
    texts = ["test", "File [X5X] not found", "Hello, [X7X]!\n\n* [X18X] files"]
    body = {"api_key": "", "q": texts, "source": "en", "target": "de"}
    translated = ask.post("/translate", json=body).json()["translatedText"]
    assert translated[0] == "TEST"
    for text, other in zip(texts, translated, strict=True):
        placeholders = re.findall(r"\[X\d+X\]", text)
        found = re.findall(r"\[X\d+ *X\]", other)
        assert sorted(found) == sorted(placeholders)


def test_weblate_over_deepl(ask: TestClient) -> None:
    key = {"Authorization": "DeepL-Auth-Key k"}
    pairs = set()
    for kind in ("source", "target"):
        reply = ask.get("/v2/languages", params={"type": kind}, headers=key)
        pairs |= {(kind, one["language"].upper()) for one in reply.json()}
    assert {("source", "EN"), ("target", "DE")} <= pairs
    glossaries = ask.get("/v2/glossary-language-pairs", headers=key).json()
    assert glossaries["supported_languages"] == []
    texts = ['Files &amp; <x id="8"></x>', '<x id="0"></x> of <x id="14"></x>']
    body = {
        "text": texts,
        "source_lang": "EN",
        "target_lang": "DE",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    payload = ask.post("/v2/translate", json=body, headers=key).json()
    for text, row in zip(texts, payload["translations"], strict=True):
        tags = re.findall(r'<x id="\d+"></x>', text)
        assert sorted(re.findall(r'<x id="\d+"></x>', row["text"])) == sorted(tags)
        assert html.unescape(row["text"]).count("&") == text.count("&amp;")


def omegat_text(reply: Response, default: str) -> str:
    """What OmegaT reads: by the charset that is said, else by a default of the caller."""
    assert reply.status_code == 200
    kind = reply.headers["content-type"]
    charset = kind.partition("charset=")[2] or default
    return reply.content.decode(charset)


def test_omegat(ask: TestClient) -> None:
    query = urlencode({"q": "ein schöner Tag", "source": "de", "target": "en"})
    reply = ask.get(f"/translate?{query}")
    root = json.loads(omegat_text(reply, "UTF-8"))
    assert root["translatedText"] == "TAG SCHÖNER EIN"


def test_subtitle_edit(ask: TestClient) -> None:
    body = '{"q": "Good day<br />my friend. ", "source": "en", "target": "de"}'
    headers = {"Content-Type": "application/json", "accept": "application/json"}
    reply = ask.post("/translate", content=body.encode(), headers=headers)
    text = reply.json()["translatedText"]
    # it makes line breaks of these, and mends what other servers leave of them
    read = text.replace("<br />", "\n").replace(". />", ".\n").replace(" /> ", " ")
    assert "\n" in read
    assert not re.search(r"[<>]", read)
    assert len(read.split("\n")) == 2


def test_subtitle_edit_over_deepl(ask: TestClient) -> None:
    fields = {
        "text": "good day",
        "target_lang": "en-gb",
        "source_lang": "de",
        "formality": "default",
    }
    key = {"Authorization": "DeepL-Auth-Key k"}
    reply = ask.post("/v2/translate", data=fields, headers=key).json()
    texts = [
        item["text"]
        for value in reply.values()
        if isinstance(value, list)
        for item in value
    ]
    assert texts == ["DAY GOOD"]


def test_zotero(ask: TestClient) -> None:
    body = {"q": "good day", "source": "en", "target": "de", "format": "text"}
    response = ask.post("/translate", json=body)
    assert response.status_code == 200
    assert "error" not in response.json()
    assert response.json()["translatedText"] == "DAY GOOD"
    failed = ask.post("/translate", json={**body, "target": "fr"})
    assert isinstance(failed.json()["error"], str)


def test_discourse(ask: TestClient) -> None:
    headers = {"Content-Type": FORM}
    detected = ask.post("/detect", content=b"q=der+Hund&api_key=", headers=headers)
    language = detected.json()[0]["language"]
    assert language == "de"
    known = [one["code"] for one in ask.get("/languages").json()]
    assert language in known
    fields = {
        "q": "<p>der Hund</p>",
        "source": language,
        "target": "en",
        "format": "html",
        "api_key": "",
    }
    body = urlencode(fields).encode()
    reply = ask.post("/translate", content=body, headers=headers)
    assert reply.status_code == 200
    assert reply.json()["translatedText"] == "<p>HUND DER</p>"


# OPUS-CAT

TAG = re.compile(r"(<[^>]+>)")
VARIANT = re.compile(r"[^\w,.]|_")  # what pieces and text may differ in


def with_tags(tagged: str, pair: dict[str, Any]) -> str:
    """Put tags into a translation as the plug-ins for Trados and memoQ do.

    A tag between two source pieces goes before the first target piece that the second of them is
    aligned with; without one, beside that of the nearest piece.
    """
    sources = list(pair["SegmentedSourceSentence"])
    forth = {int(s): t for s, t in pair["SegmentedAlignmentSourceToTarget"].items()}
    at: dict[int, list[str]] = {}
    number = 0
    for element in TAG.split(tagged):
        if TAG.fullmatch(element):
            at.setdefault(number, []).append(element)
            continue
        rest = VARIANT.sub("", element)
        while rest and sources:
            piece = VARIANT.sub("", sources.pop(0))
            assert rest.startswith(piece), (rest, piece)
            rest = rest[len(piece) :]
            number += 1
    places: dict[int, list[str]] = {}
    for place, tags in at.items():
        nearest = min(forth, key=lambda other: abs(other - place))
        shift = (place > nearest) - (place < nearest)
        places.setdefault(forth[nearest][0] + shift, []).extend(tags)
    written = ""
    for number, piece in enumerate(pair["SegmentedTranslation"]):
        shown = piece.replace("▁", " ")
        written += "".join(places.get(number, []))
        written += shown if number else shown.lstrip(" ")
    last = len(pair["SegmentedTranslation"])
    return written + "".join(places.get(last, []))


def check_pair(source: str, pair: dict[str, Any]) -> None:
    """What both plug-ins rely on when they read a translation."""
    num_src = len(pair["SegmentedSourceSentence"])
    num_tgt = len(pair["SegmentedTranslation"])
    forth = pair["SegmentedAlignmentSourceToTarget"]
    back = pair["SegmentedAlignmentTargetToSource"]
    assert forth
    assert back
    for alignment, keys, values in (
        (forth, num_src, num_tgt),
        (back, num_tgt, num_src),
    ):
        for key, places in alignment.items():
            assert 0 <= int(key) < keys
            assert places
            assert all(0 <= place < values for place in places)
    for both in pair["AlignmentString"].split(" "):
        s, t = both.split("-")
        assert int(t) in forth[s]
    letters = VARIANT.sub("", "".join(pair["SegmentedSourceSentence"]))
    assert letters == VARIANT.sub("", source)
    joined = "".join(pair["SegmentedTranslation"]).replace("▁", " ")
    assert joined.strip() == pair["translation"].strip()


def test_trados(ask: TestClient) -> None:
    base = "/MtRestService"
    headers = {"Content-Type": "application/json"}
    asked = {"tokenCode": "0", "srcLangCode": "en", "trgLangCode": "de"}
    pairs = ask.get(f"{base}/ListSupportedLanguagePairs?tokenCode=0", headers=headers)
    assert "en-de" in pairs.json()
    tags = ask.get(f"{base}/GetLanguagePairModelTags", params=asked, headers=headers)
    assert all(isinstance(tag, str) for tag in tags.json())
    asked["modelTag"] = ""
    status = ask.get(f"{base}/CheckModelStatus", params=asked, headers=headers)
    assert isinstance(status.json(), str)
    path = f"{base}/PreOrderBatch?{urlencode(asked)}"
    assert 200 <= ask.post(path, json=["the black cat"]).status_code < 300
    for tagged, expected in (
        ("the black <1>cat</1>", "<1>CAT</1> BLACK THE"),
        ("<1/>the black cat", "CAT BLACK <1/>THE"),
        ("the black, cat.", "CAT. BLACK, THE"),
    ):
        source = TAG.sub("", tagged)
        fields = {**asked, "input": source}
        reply = ask.get(f"{base}/TranslateJson", params=fields, headers=headers)
        pair = reply.json()
        check_pair(source, pair)
        assert pair["Translation"] == pair["translation"]
        written = re.sub(r" *(</?1/?>) *", r"\1", with_tags(tagged, pair))
        assert written == re.sub(r" *(</?1/?>) *", r"\1", expected)


def test_memoq(ask: TestClient) -> None:
    base = "/MtRestService/"
    assert "en-de" in ask.get(f"{base}ListSupportedLanguagePairs?tokenCode=0").json()
    for source in ("the black cat", "50 % & <more>", "a+b"):
        query = (
            f"tokenCode=0&input={quote_plus(source)}&srcLangCode=eng&trgLangCode=ger"
        )
        reply = ask.get(f'{base}TranslateJson?{query}&modelTag=""')
        assert reply.status_code == 200
        check_pair(source, reply.json())


def test_omegat_over_opus_cat(ask: TestClient) -> None:
    reply = ask.get("/MTRestService/ListSupportedLanguagePairs")
    assert "de-en" in omegat_text(reply, "ISO-8859-1")
    fields = {
        "input": "schöner Tag",
        "modelTag": "",
        "srcLangCode": "DE",
        "tokenCode": "0",
        "trgLangCode": "EN-GB",
    }
    reply = ask.get(f"/MTRestService/TranslateJson?{urlencode(fields)}")
    root = json.loads(omegat_text(reply, "ISO-8859-1"))
    assert root["translation"] == "TAG SCHÖNER"


def test_wordfast(ask: TestClient, subtests: pytest.Subtests) -> None:
    languages = "srcLangCode=en&trgLangCode=de"
    for name, method, query in (
        (
            "Pro",
            "POST",
            f"TranslatePost?tokenCode=0&input=good%20day&{languages}&modelTag=",
        ),
        ("Classic", "GET", f"TranslateJson?tokenCode=&input=good+day&{languages}"),
    ):
        with subtests.test(name):
            reply = ask.request(method, f"/MTRestService/{query}")
            assert reply.json()["translation"] == "DAY GOOD"
