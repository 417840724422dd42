"""A server's glossaries, and those of requests: translations are bound as by the model alone."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import weft
from weft.data.glossary import read_glossary
from weft.errors import DataError, UsageError
from weft.predict.settings import DecodingSettings
from weft.predict.translator import Translator
from weft.serve.app import build_app
from weft.serve.catalogue import Catalogue, Named, ServedModel, open_model
from weft.serve.dialects.deepl import deepl
from weft.serve.dialects.libretranslate import libretranslate
from weft.serve.dialects.own import own
from weft.serve.glossaries import NONE, USUAL, Binding, Glossaries, open_glossaries
from weft.serve.jobs import Caller
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.refusals import InvalidRequest
from weft.serve.service import Service

deepl_client = pytest.importorskip("deepl")
PAIR = ("en", "zh")
TEXTS = [
    "My brother bought a new bicycle yesterday.",
    "Anna drinks tea in the library.",
    "The teacher reads a book in the garden.",
    "The teacher bought a bicycle.",
]


@pytest.fixture(scope="module")
def demo() -> ServedModel:
    return open_model(Named("demo", weft.DEMO))


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("source\ttarget\nbicycle\t单车\nteacher\t教员\n", "utf-8")
    return path


@pytest.fixture
def service(demo: ServedModel, terms: Path, tmp_path: Path) -> Iterator[Service]:
    other = tmp_path / "other.csv"
    other.write_text("bicycle,脚踏车\n", "utf-8")
    pool = Pool(2)
    catalogue = Catalogue([demo])
    said: list[str] = []
    words = [str(terms), f"second={other}"]
    found = open_glossaries(words, catalogue.pairs(), said.append)
    assert said == [
        f"glossary en-zh: 2 terms of {terms}",
        f"glossary en-zh: 1 term of {other}",
    ]
    yield Service(catalogue, pool, Limits(), found)
    pool.stop()


@pytest.fixture
def ask(service: Service) -> Iterator[TestClient]:
    app = build_app(service, [own(), deepl(), libretranslate()])
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def someone() -> Caller:
    return Caller("one", time.monotonic() + 60)


def test_rows_with_terms_beside_others_become_what_the_model_gives_alone(
    service: Service, demo: ServedModel, terms: Path
) -> None:
    """Bit for bit, whoever else is in the running batch."""
    model: Translator = demo.predictor
    bound = model.with_glossary(read_glossary(terms, *PAIR))
    many = [
        (texts, binding) for binding in (USUAL, NONE) for texts in (TEXTS, TEXTS[:1])
    ]
    settings = DecodingSettings(alignments=True)

    async def all_of_them() -> list[Any]:
        asked = [
            service.translate(
                texts, *PAIR, someone(), settings=settings, binding=binding
            )
            for texts, binding in many
        ]
        return await asyncio.gather(*asked)

    answers = asyncio.run(all_of_them())
    for (texts, binding), found in zip(many, answers, strict=True):
        alone = (model if binding == NONE else bound).translate(texts, settings)
        assert [one.prediction for one in found] == alone
    assert "单车" in answers[0][0].prediction.text
    assert "单车" not in answers[2][0].prediction.text


def translated(ask: TestClient, **fields: Any) -> list[dict[str, Any]]:
    body = {"texts": TEXTS[:2], "source": "en", "target": "zh", **fields}
    reply = ask.post("/v1/translate", json=body)
    assert reply.status_code == 200, reply.text
    rows: list[dict[str, Any]] = reply.json()["translations"]
    return rows


def test_a_request_has_the_usual_terms_or_names_others(ask: TestClient) -> None:
    usual, none = translated(ask)
    assert "单车" in usual["text"]
    (use,) = usual["terms"]
    assert (use["source"], use["wanted"], use["used"]) == ("bicycle", ["单车"], "单车")
    assert use["status"] in ("used", "elsewhere")
    assert none["terms"] == []
    assert "脚踏车" in translated(ask, glossary="second")[0]["text"]
    free, _ = translated(ask, glossary="")
    assert "单车" not in free["text"]
    assert "terms" not in free
    drawn, _ = translated(ask, temperature=1.0, seed=3)
    assert "terms" not in drawn  # the usual terms are for beams
    info = ask.get("/info").json()
    assert info["glossaries"] == [
        {"name": "terms", "pairs": [["en", "zh"]]},
        {"name": "second", "pairs": [["en", "zh"]]},
    ]
    body = {"q": TEXTS[0], "source": "en", "target": "zh", "glossary": 5}
    assert "单车" in ask.post("/translate", json=body).json()["translatedText"]


def test_terms_may_come_with_a_request(ask: TestClient) -> None:
    for rows in (
        [["bicycle", "两轮车"]],
        [["target", "source"], ["两轮车", "bicycle"]],
        [{"source": "bicycle", "target": "两轮车", "inflection": True}],
        "bicycle\t两轮车",
        "source\ttarget\r\nbicycle\t两轮车\r\n",
    ):
        found, _ = translated(ask, glossary=rows)
        assert "两轮车" in found["text"]
        assert found["terms"][0]["used"] == "两轮车"


def test_a_completion_has_the_terms_too(ask: TestClient) -> None:
    body = {"text": TEXTS[0], "prefix": "我哥哥", "source": "en", "target": "zh"}
    found = ask.post("/v1/complete", json={**body, "alternatives": 2}).json()
    assert "单车" in found["text"]
    assert found["terms"][0]["used"] == "单车"
    assert all("单车" in one["translation"] for one in found["alternatives"])
    free = ask.post("/v1/complete", json={**body, "glossary": ""}).json()
    assert "单车" not in free["text"]


def test_a_file_has_the_terms_too(ask: TestClient) -> None:
    for fields, word in (({}, "单车"), ({"glossary": "bicycle\t两轮车"}, "两轮车")):
        reply = ask.post(
            "/translate_file",
            data={"source": "en", "target": "zh", **fields},
            files={
                "file": ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{TEXTS[0]}\n")
            },
        )
        address = reply.json()["translatedFileUrl"]
        assert word in ask.get(address).content.decode()


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [
        ("third", 404, "there is no glossary third from en to zh"),
        (5, 400, "glossary must be a name, or a list of terms"),
        ([5], 400, "glossary must be a name, or a list of terms"),
        ([{"from": "a"}], 400, "a term of the glossary has source, target"),
        ([["a", 5]], 400, "glossary must be a name, or a list of terms"),
        ([["", "a"]], 400, "glossary:1: the term has no source"),
        ([["source", "target"]], 400, "glossary: there is no term in it"),
        ([["a" * 300, "b"]], 400, "a term has at most 200 characters"),
        ([["a", "b"]] * 1001, 413, "1,001 terms: at most 1,000"),
    ],
    ids=str,
)
def test_what_is_no_glossary_is_refused(
    ask: TestClient, value: Any, status: int, reason: str
) -> None:
    body = {"text": "a", "source": "en", "target": "zh", "glossary": value}
    for path in ("/v1/translate", "/v1/complete"):
        reply = ask.post(path, json=body)
        assert reply.status_code == status
        assert reason in reply.json()["error"]["message"]


def test_samples_have_no_terms_of_a_request(ask: TestClient) -> None:
    body = {"text": "a", "source": "en", "target": "zh", "glossary": "second"}
    reply = ask.post("/v1/translate", json={**body, "temperature": 1})
    assert reply.status_code == 400
    assert "a glossary is for a beam" in reply.json()["error"]["message"]


def test_deepls_glossaries(ask: TestClient) -> None:
    listed = ask.get("/v2/glossaries").json()["glossaries"]
    assert [one["glossary_id"] for one in listed] == ["terms:en-zh", "second:en-zh"]
    assert listed[0] == ask.get("/v2/glossaries/terms:en-zh").json()
    assert (listed[0]["ready"], listed[0]["entry_count"]) == (True, 2)
    read = deepl_client.GlossaryInfo.from_json(listed[0])
    assert (read.source_lang, read.target_lang) == ("EN", "ZH")
    table = ask.get("/v2/glossaries/terms:en-zh/entries")
    assert table.text == "bicycle\t单车\nteacher\t教员"
    assert table.headers["content-type"].startswith("text/tab-separated-values")
    pairs = ask.get("/v2/glossary-language-pairs").json()["supported_languages"]
    assert pairs == [{"source_lang": "en", "target_lang": "zh"}]
    body = {"text": TEXTS[:1], "target_lang": "ZH", "source_lang": "EN"}
    found = ask.post("/v2/translate", json={**body, "glossary_id": "second:en-zh"})
    assert "脚踏车" in found.json()["translations"][0]["text"]
    for fields, status, reason in (
        ({"glossary_id": "none"}, 404, "no such glossary"),
        ({"glossary_id": "terms:en-zh", "source_lang": None}, 400, "needs source_lang"),
    ):
        reply = ask.post("/v2/translate", json={**body, **fields})
        assert reply.status_code == status
        assert reason in reply.json()["message"]
    for reply in (
        ask.post("/v2/glossaries", json={"name": "n"}),
        ask.delete("/v2/glossaries/terms:en-zh"),
    ):
        assert reply.status_code == 403
        assert "weft serve --glossary FILE" in reply.json()["message"]
    assert ask.get("/v2/glossaries/none").status_code == 404


# files of the command line


def opened(*words: str | Path) -> Glossaries:
    pairs = [("en", "de"), ("en", "zh"), ("de-DE", "en")]
    return open_glossaries(list(map(str, words)), pairs, lambda line: None)


def pairs_of(found: Glossaries, name: str) -> list[str]:
    return ["-".join(pair) for pair in found.served[name].by_pair]


def test_a_file_is_for_the_languages_that_it_names(tmp_path: Path) -> None:
    plain = tmp_path / "plain.tsv"
    plain.write_text("source\ttarget\ndog\tHund\n")
    named = tmp_path / "named.csv"
    named.write_text("en,de,zh\ndog,Hund,狗\n", "utf-8")
    base = tmp_path / "base.tbx"
    base.write_text(
        "<martif type='TBX'><text><body><termEntry>"
        "<langSet xml:lang='en'><tig><term>dog</term></tig></langSet>"
        "<langSet xml:lang='de'><tig><term>Hund</term></tig></langSet>"
        "</termEntry></body></text></martif>"
    )
    found = opened(plain, named, base, f"own:de-en={plain}")
    assert pairs_of(found, "plain") == ["en-de", "en-zh", "de-DE-en"]
    assert pairs_of(found, "named") == ["en-de", "en-zh", "de-DE-en"]
    assert pairs_of(found, "base") == ["en-de", "de-DE-en"]
    assert pairs_of(found, "own") == ["de-DE-en"]
    by_pair = found.served["named"].by_pair
    assert by_pair["en", "zh"].entries[0].targets == ("狗",)
    assert by_pair["de-DE", "en"].entries[0].sources == ("Hund",)
    usual = found.find(USUAL, ("en", "de"))
    assert usual is found.served["plain"].by_pair["en", "de"]
    assert found.find(NONE, ("en", "de")) is None
    rows = (("source", "target", "case"), ("a", "b", "perhaps"))
    with pytest.raises(InvalidRequest, match="perhaps"):
        found.find(Binding(rows=rows), ("en", "de"))


def test_files_that_are_no_glossaries_end_the_start(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\n")
    for words, error, reason in (
        ([tmp_path / "none.tsv"], UsageError, "no such file"),
        ([path, path], UsageError, "another glossary is named terms"),
        ([f"a:b={path}"], UsageError, "names no two languages"),
        ([f"a:fr-en={path}"], UsageError, "none of the languages here"),
        ([tmp_path], UsageError, "no such file"),
    ):
        with pytest.raises(error, match=reason):
            opened(*words)
    empty = tmp_path / "empty.tsv"
    empty.write_text("")
    with pytest.raises(DataError, match="no term in it"):
        opened(empty)
