"""Completions of texts with tags and placeholders, bound by a glossary: by the demo model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import weft
from weft.serve.app import build_app
from weft.serve.catalogue import Catalogue, Named, open_model
from weft.serve.dialects.own import own
from weft.serve.glossaries import open_glossaries
from weft.serve.limits import Limits
from weft.serve.pool import Pool
from weft.serve.service import Service

TEXT = "- My brother {0} bought a <b>new</b> bicycle yesterday."
MARKUP = ("{0}", "<b>", "</b>")


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    terms: Path = tmp_path_factory.mktemp("terms") / "terms.tsv"
    terms.write_text("bicycle\t单车\n", "utf-8")
    catalogue = Catalogue([open_model(Named("demo", weft.DEMO))])
    glossaries = open_glossaries([str(terms)], catalogue.pairs(), lambda line: None)
    pool = Pool(2)
    service = Service(catalogue, pool, Limits(), glossaries)
    with TestClient(build_app(service, [own()]), base_url="http://localhost") as client:
        yield client
    pool.stop()


def asked(ask: TestClient, path: str, **fields: Any) -> Any:
    body = {"text": TEXT, "source": "en", "target": "zh", **fields}
    reply = ask.post(f"/v1/{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.fixture(scope="module")
def whole(ask: TestClient) -> str:
    (found,) = asked(ask, "translate")["translations"]
    text: str = found["text"]
    assert "单车" in text
    return text


def test_a_completion_is_the_translation_wherever_it_is_begun(
    ask: TestClient, whole: str
) -> None:
    for place in (0, 1, whole.index("{0}"), whole.index("</b>"), len(whole)):
        found = asked(ask, "complete", prefix=whole[:place])
        text = found["text"]
        assert text.startswith(whole[:place])
        assert all(text.count(raw) == 1 for raw in MARKUP)
        assert "单车" in text
        assert [use["used"] for use in found["terms"]] == ["单车"]
        for word in found["words"]:
            assert text[word["start"] : word["end"]] == word["text"]
            for start, end in word["source"]:
                assert TEXT[start:end].isalpha() or TEXT[start:end] == "."


def test_other_words_have_the_tags_and_terms_too(ask: TestClient, whole: str) -> None:
    prefix = whole[: whole.index("<b>")]
    found = asked(ask, "complete", prefix=prefix, alternatives=4)
    assert len(found["alternatives"]) >= 2
    for other in found["alternatives"]:
        text = other["translation"]
        assert text.startswith(prefix)
        assert all(text.count(raw) == 1 for raw in MARKUP)
        assert "单车" in text


def test_other_translations_have_the_tags_and_terms_too(ask: TestClient) -> None:
    (found,) = asked(ask, "translate", n_best=4)["translations"]
    assert len(found["n_best"]) == 4
    for other in found["n_best"]:
        assert all(other["text"].count(raw) == 1 for raw in MARKUP)
        assert "单车" in other["text"]
