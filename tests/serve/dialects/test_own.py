"""Weft's own routes: all that is known of a translation."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from document_samples import samples
from weft.documents.document import TextDocument, Translated, Written
from weft.documents.formats.text.plain import read_plain
from weft.documents.formats.web.html import decode, read_html
from weft.documents.numbers import Numbers
from weft.documents.writing import mend
from weft.predict.prediction import Alternative, Prediction
from weft.predict.words import SourceWord, WordReport
from weft.serve.dialects.answers import Answer, Wish
from weft.serve.dialects.own import _translation
from weft.serve.dialects.words import words_of

from .conftest import StandIn

BOTH = {"source": "en", "target": "de"}


def test_a_translation_with_everything(ask: TestClient) -> None:
    text = "  short qwx\n\none two"
    asked = {"texts": [text], "words": True, "n_best": 3, **BOTH}
    (found,) = ask.post("/v1/translate", json=asked).json()["translations"]
    assert found.pop("words") == [
        {
            "text": word,
            "start": start,
            "end": start + len(word),
            "probability": pytest.approx(probability),
            "source": [[source, source + len(word)]],
        }
        for word, start, probability, source in (
            ("QWX", 2, 1 / 2, 8),
            ("SHORT", 6, 1 / 3, 2),
            ("TWO", 13, 1 / 2, 17),
            ("ONE", 17, 1 / 3, 13),
        )
    ]
    assert found == {
        "text": "  QWX SHORT\n\nTWO ONE",
        "source": "en",
        "detected": None,
        "models": ["en-de"],
        "score": -1.0,
        "marks": ["short"],
        "unknown_words": ["qwx"],
        "n_best": [
            {"text": "  QWX SHORT\n\nTWO ONE", "score": -1.0},
            {"text": "  QWX SHORT!\n\nTWO ONE!", "score": -1.0},
        ],
    }


def test_words_are_found_between_tags_and_placeholders(ask: TestClient) -> None:
    text = "<b>a</b> b {0} b"
    asked = {"text": text, "words": True, **BOTH}
    (found,) = ask.post("/v1/translate", json=asked).json()["translations"]
    words = found["words"]
    assert len(words) == 3
    for word in words:
        assert found["text"][word["start"] : word["end"]] == word["text"]
        ((start, end),) = word["source"]
        assert text[start:end].upper() == word["text"]
    sources = [word["source"][0][0] for word in words]
    assert sources == [15, 9, 3]


HTML = (
    "<p>AT&amp;T &#8211; b <i>c&nbsp;d</i> 7&lt;9</p>\n<ul><li>caf&eacute; n\xadn <br>e"
)


def test_words_of_html_have_their_places_among_tags_and_entities(
    ask: TestClient,
) -> None:
    for path, asked, read in (
        ("/v1/translate", {"text": HTML}, lambda reply: reply["translations"][0]),
        ("/translate", {"q": HTML}, lambda reply: reply),
    ):
        body = {**asked, "format": "html", "words": True, **BOTH}
        found = read(ask.post(path, json=body).json())
        text = found.get("text") or found["translatedText"]
        assert "AT&amp;T" in text
        words = [word["text"] for word in found["words"]]
        assert words == ["7<9", "D", "C", "B", "–", "AT&T", "E", "NN", "CAFÉ"]
        for word in found["words"]:
            assert decode(text[word["start"] : word["end"]]) == word["text"]
            ((start, end),) = word["source"]
            assert decode(HTML[start:end]).upper() == word["text"]


def test_a_number_that_was_put_back_has_its_place() -> None:
    document = read_html("<p>a <b>1234</b> bb</p>")
    words = [
        WordReport("12", 0, 2, -1.0, []),
        WordReport("9876", 3, 7, -1.0, [SourceWord(1, "1234", 2, 6)]),
        WordReport("BB", 8, 10, -1.0, []),
    ]
    found = placed(document, "12 9876 BB", words)
    text = "<p>12 <b>1234</b> BB</p>"
    assert found.text == text
    rows = words_of(found)
    assert [row["text"] for row in rows] == ["12", "1234", "BB"]
    assert [text[row["start"] : row["end"]] for row in rows] == ["12", "1234", "BB"]
    assert rows[1]["source"] == [[8, 12]]


def test_a_source_word_is_found_where_others_have_no_word() -> None:
    words = [WordReport("A", 0, 1, -1.0, [SourceWord(1, "a", 7, 8)])]
    for text, place in (("banana a", [7, 8]), ("banana <i>a</i> c", [10, 11])):
        found = placed(read_plain(text), "A", words)
        assert words_of(found)[0]["source"] == [place]


def placed(document: TextDocument, translation: str, words: list[WordReport]) -> Answer:
    """The answer to a document of one segment, by a model that wrote these words."""
    (segment,) = document.segments
    prediction = Prediction(
        translation, -1.0, 1, [Alternative(translation, -1.0, False)], [], words=words
    )
    pairs = [
        (source.start, source.end, word.start, word.end)
        for word in words
        for source in word.sources
    ]
    places = [(word.start, word.end) for word in words]
    mended = mend(segment, Translated(translation, pairs, words=places))
    text = document.write([Written(mended.text())])
    return Answer(text, "en", None, document, (prediction,), (mended,), ("m",))


def test_quality_and_its_marks_are_told_where_they_are_known() -> None:
    source = SourceWord(0, "ab", 0, 2)
    word = WordReport("AB", 0, 2, -0.1, [source], 0.25)
    plain = placed(read_plain("ab"), "AB", [word])
    assert plain.quality() is None
    assert plain.marks() == []
    doubted = replace(
        plain.predictions[0],
        tokens=["AB"],
        quality=0.6,
        omitted=[source],
        doubled=["AB AB"],
    )
    found = replace(plain, predictions=(doubted,))
    assert found.quality() == 0.6
    assert found.marks() == ["omission", "doubled"]
    assert words_of(found)[0]["quality"] == 0.25
    assert replace(plain, predictions=(doubted, doubted)).quality() == 0.6
    other = replace(doubted, quality=None)
    assert replace(plain, predictions=(doubted, other)).quality() is None


def test_numbers_that_differ_are_a_mark() -> None:
    found = placed(read_plain("takes 512 MB"), "braucht 52 MB", [])
    assert found.marks() == ["numbers"]
    assert found.numbers() == Numbers(missing=("512",), added=("52",))
    found = placed(read_html("<p>takes 512 MB</p>"), "braucht 52 MB", [])
    assert found.text == "<p>braucht 512 MB</p>"
    assert found.marks() == ["numbers"]
    assert found.numbers() == Numbers(put_back=("512",))
    assert not placed(read_plain("two of 12"), "zwei von zwölf", []).marks()


def test_a_reply_has_the_numbers_that_differ() -> None:
    found = placed(read_plain("takes 512 MB"), "braucht MB", [])
    row = _translation(found, Wish(), is_detected=False)
    assert row["numbers"] == {"put_back": [], "missing": ["512"], "added": []}
    same = placed(read_plain("takes 512 MB"), "braucht 512 MB", [])
    assert "numbers" not in _translation(same, Wish(), is_detected=False)


def test_the_source_is_detected_unless_it_is_said(ask: TestClient) -> None:
    asked = {"texts": ["der Hund", "good day"], "target": "en"}
    rows = ask.post("/v1/translate", json=asked).json()["translations"]
    assert [row["detected"] for row in rows] == [
        {"language": "de", "confidence": 0.75},
        {"language": "en", "confidence": 0.75},
    ]
    assert [row["models"] for row in rows] == [["de-en"], []]
    assert "words" not in rows[0]


def test_a_model_is_named_and_knows_its_languages(ask: TestClient) -> None:
    for more, status in (
        ({}, 200),
        ({"target": "de"}, 200),
        ({"source": "EN"}, 200),
        ({"target": "en"}, 400),
        ({"source": "zh"}, 400),
    ):
        asked = {"text": "a", "model": "law", **more}
        reply = ask.post("/v1/translate", json=asked)
        assert reply.status_code == status
        if status == 400:
            assert reply.json()["error"]["code"] == "other_languages"
            said = reply.json()["error"]["message"]
            assert said == "the model law translates en to de"
    for name, status in (("stars", 404), ("gone", 404)):
        reply = ask.post("/v1/translate", json={"text": "a", "model": name})
        assert reply.status_code == status


def test_a_slip_of_the_pen_is_named(ask: TestClient) -> None:
    asked = {"text": "a", "langauge": "de"}
    said = ask.post("/v1/detect", json=asked).json()["error"]["message"]
    assert said == "there is no field langauge; the fields here are text"


def test_settings_reach_the_search(ask: TestClient, service: StandIn) -> None:
    asked = {"beam_size": 2, "length_penalty": 0.5, "no_repeat_ngrams": 3}
    reply = ask.post(
        "/v1/translate", json={"text": "a", "prefix": "P", **asked, **BOTH}
    )
    assert reply.status_code == 200
    settings = service.asked[-1][3]
    assert {name: getattr(settings, name) for name in asked} == asked
    assert settings.prefix == "P"
    draws = {"temperature": 0.5, "top_k": 3, "seed": 7}
    ask.post("/v1/translate", json={"text": "a", **draws, **BOTH})
    settings = service.asked[-1][3]
    assert {name: getattr(settings, name) for name in draws} == draws


def test_what_is_wrong_is_said(ask: TestClient, subtests: pytest.Subtests) -> None:
    for asked, param in (
        ({"text": "a", "source": "en"}, "target"),
        ({"text": "a", **BOTH, "beam_size": 9}, "beam_size"),
        ({"text": "a", **BOTH, "n_best": 7}, "n_best"),
        ({"text": "a", **BOTH, "temperature": -1}, "temperature"),
        ({"text": "a", **BOTH, "top_p": 0.5}, None),
        ({"text": "a", **BOTH, "nbest": 2}, "nbest"),
        ({"text": "a", **BOTH, "no field's name": 2}, None),
        ({"text": "a", "texts": ["b"], **BOTH}, "text"),
        ({"text": "a\nb", **BOTH, "prefix": "P"}, "prefix"),
        ({"texts": ["a", "b"], **BOTH, "prefix": "P"}, "prefix"),
        ({"text": "a", **BOTH, "format": "html", "prefix": "P"}, "prefix"),
        ({"text": "a", **BOTH, "format": "pdf"}, "format"),
        ({**BOTH}, "text"),
        ({"texts": [], **BOTH}, "texts"),
    ):
        with subtests.test(str(asked)):
            reply = ask.post("/v1/translate", json=asked)
            assert reply.status_code == 400
            assert reply.json()["error"]["param"] == param


def test_words_of_a_model_without_alignment_are_unsupported(
    ask: TestClient, service: StandIn
) -> None:
    service.catalogue.models["law"].predictor.can_align = False
    try:
        asked = {"text": "a", "model": "law", "words": True}
        reply = ask.post("/v1/translate", json=asked)
        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == "unsupported"
        assert (
            ask.post("/v1/translate", json={**asked, "words": False}).status_code == 200
        )
    finally:
        service.catalogue.models["law"].predictor.can_align = True


def test_what_is_translated_over_a_third_language(
    ask: TestClient, service: StandIn
) -> None:
    service.catalogue.pivot = "en"
    asked = {"text": "<b>a</b> b", "source": "de", "target": "zh", "words": True}
    (found,) = ask.post("/v1/translate", json=asked).json()["translations"]
    assert found["models"] == ["de-en", "en-zh"]
    assert [word["source"] for word in found["words"]] == [[], []]
    query = {"input": "a b", "srcLangCode": "de", "trgLangCode": "zh"}
    pair = ask.get("/MtRestService/TranslateJson", params=query).json()
    assert pair["SegmentedTranslation"] == ["B▁A"]
    listed = ask.get("/languages").json()
    assert {one["code"]: one["targets"] for one in listed}["de"] == ["en", "zh"]


def test_only_json_is_read(ask: TestClient) -> None:
    for form in ({"data": {"text": "a", **BOTH}}, {"content": b'{"text": "a"}'}):
        reply = ask.post("/v1/translate", **form)
        assert reply.status_code == 400
        assert "application/json" in reply.json()["error"]["message"]


def test_detect_gives_confidences_from_0_to_1(ask: TestClient) -> None:
    reply = ask.post("/v1/detect", json={"text": "der Hund"})
    assert reply.json()["languages"][0] == {"language": "de", "confidence": 0.75}


# a file in segments


def segments_of(ask: TestClient, name: str, content: bytes) -> dict[str, Any]:
    reply = ask.post("/v1/segments", files={"file": (name, content)})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_a_file_is_its_texts_and_what_is_between_them(ask: TestClient) -> None:
    page = "<p id=x>Good <b>day</b></p>\r\n<pre>no</pre><p> Ä day </p>"
    assert segments_of(ask, "a.HTML", page.encode()) == {
        "format": "html",
        "texts": ["Good <b>day</b>", "Ä day"],
        "between": ["<p id=x>", "</p>\r\n<pre>no</pre><p> ", " </p>"],
        "ascii": False,
    }
    assert segments_of(ask, "a.txt", "\ufeff- one\r\n\n two".encode()) == {
        "format": "text",
        "texts": ["one", "two"],
        "between": ["\ufeff- ", "\r\n\n ", ""],
        "ascii": False,
    }
    assert segments_of(ask, "a.htm", b"<p>day")["ascii"]
    assert segments_of(ask, "a.txt", b" \n")["texts"] == []


def test_texts_of_a_file_translated_by_themselves_make_the_translated_file(
    ask: TestClient,
) -> None:
    for sample in samples(60):
        ending = {"html": "html", "text": "txt"}[sample.format]
        content = f"{sample.text}Ä".encode()
        found = segments_of(ask, f"a.{ending}", content)
        asked = {"texts": found["texts"], "format": found["format"], **BOTH}
        rows = ask.post("/v1/translate", json=asked).json()["translations"]
        parts = [found["between"][0]]
        for row, following in zip(rows, found["between"][1:], strict=True):
            parts += (row["text"], following)
        sent = {"file": (f"a.{ending}", content)}
        url = ask.post("/translate_file", data=BOTH, files=sent).json()
        whole = ask.get(urlsplit(url["translatedFileUrl"]).path)
        assert "".join(parts) == whole.content.decode()


def test_what_cannot_be_divided_says_why(ask: TestClient) -> None:
    for name, content, said in (
        ("a.exe", b"x", "the file: documents have one of the endings .txt, .html, .htm"),
        ("a.txt", b"\xff", "the file: byte 1 is not UTF-8; save the file as UTF-8"),
        ("a.html", "<meta charset=latin1>ä".encode(), "says that its charset is latin1"),
    ):  # fmt: skip
        reply = ask.post("/v1/segments", files={"file": (name, content)})
        assert reply.status_code == 400
        assert said in reply.json()["error"]["message"]
    sent = {"file": ("a.txt", b"x")}
    for form in ({"data": {"source": "en"}, "files": sent}, {"json": {}}):
        assert ask.post("/v1/segments", **form).status_code == 400


def test_a_file_of_terms_comes_back_as_terms(ask: TestClient) -> None:
    table = "English;German;avoid\nbike;Fahrrad|Rad;\nIT;;\n"

    def sent(name: str, content: str | bytes, **fields: str) -> Any:
        return ask.post("/v1/terms", data=fields, files={"file": (name, content)})

    found = sent("t.csv", table, source="en", target="de").json()
    rules = {"inflection": False, "avoid": ""}
    assert found == {
        "terms": [
            {"source": "bike", "target": "Fahrrad|Rad", "case": False, **rules},
            {"source": "IT", "target": "", "case": True, **rules},
        ],
        "notes": [],
    }
    # what comes back may be sent with a text
    body = {"text": "a", "glossary": found["terms"], **BOTH}
    assert ask.post("/v1/translate", json=body).status_code == 200
    # without languages, the columns have to say which side they are
    (term,) = sent("t.csv", "target,source\nRad,bike\n").json()["terms"]
    assert (term["source"], term["target"]) == ("bike", "Rad")
    for name, content, status, said in (
        ("t.docx", "a", 400, "a glossary is a .tsv, .csv or .tbx file"),
        ("t.tsv", "source\ttarget\tcase\na\tb\tperhaps\n", 400, "t.tsv:2: case is"),
        (
            "a b.tsv",
            "über\tabove\nfür\tfor\n".encode("cp1252"),
            400,
            "-t UTF-8 'a b.tsv' > 'utf8.a b.tsv'",
        ),
        ("t.tsv", b"\x1f\x8b\x08", 400, "t.tsv: packed with gzip; unpack it"),
        ("t.tsv", "a\tb\n" * 1001, 413, "1,001 terms: at most 1,000"),
        ("t.tsv", "a" * 1_000_001, 413, "at most 1,000,000 bytes"),
    ):
        reply = sent(name, content)
        assert (reply.status_code, said in reply.text) == (status, True), reply.text
        assert "/tmp" not in reply.text
    assert sent("t.tsv", "a\tb\n", text="a").json()["error"]["code"] == "unknown_field"
