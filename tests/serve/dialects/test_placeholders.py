"""Placeholders that a model reads, in every route that takes texts or files."""

from collections.abc import Iterator, Sequence

import pytest
from starlette.testclient import TestClient

from weft.serve.catalogue import Catalogue
from weft.serve.dialects.answers import forms_for
from weft.serve.limits import Limits

from .conftest import StandIn, all_dialects, model, small_app
from .test_files import translated

FORMS = ("{a",)
TEXT = "good {name} day"
READ = "DAY {name} GOOD"
BOTH = {"source": "en", "target": "de"}
DEEPL = {"text": [TEXT], "source_lang": "EN", "target_lang": "DE"}


def served(forms: Sequence[str]) -> StandIn:
    models = [model("en-de", "translation", "en", "de", forms)]
    return StandIn(models, Limits())


@pytest.fixture
def reading() -> StandIn:
    return served(FORMS)


@pytest.fixture
def ask(reading: StandIn) -> Iterator[TestClient]:
    with TestClient(small_app(reading, all_dialects())) as client:
        yield client


def answers(ask: TestClient) -> Iterator[str]:
    """Every route's translation of the text."""
    for kind in ("text", "html"):
        for source in ("en", "auto"):
            body = {"q": TEXT, "format": kind, "source": source, "target": "de"}
            yield ask.post("/translate", json=body).json()["translatedText"]
        own = {"text": TEXT, "format": kind, **BOTH}
        (found,) = ask.post("/v1/translate", json=own).json()["translations"]
        yield found["text"]
    (deepl,) = ask.post("/v2/translate", json=DEEPL).json()["translations"]
    yield deepl["text"]
    for name in ("a.txt", "a.html", "a.md"):
        for source in ("en", "auto"):
            written = translated(ask, name, TEXT.encode(), source=source)
            yield written.decode().strip()
    catalogue = f'msgid "{TEXT}"\nmsgstr ""\n'.encode()
    yield translated(ask, "a.po", catalogue).decode().split('"')[-2]


def test_every_route_lets_a_model_read_what_it_knows(
    ask: TestClient, reading: StandIn
) -> None:
    assert set(answers(ask)) == {READ}
    assert {text for texts, *_ in reading.asked for text in texts} == {TEXT}


def test_another_model_reads_none() -> None:
    other = served([])
    with TestClient(small_app(other, all_dialects())) as ask:
        assert set(answers(ask)) == {READ}  # placed between its two words
    assert {text for texts, *_ in other.asked for text in texts} == {"good day"}


def test_words_have_their_places_beside_what_was_read(
    ask: TestClient,
) -> None:
    body = {"text": f"<b>good</b> {TEXT}", "format": "html", "words": True, **BOTH}
    (found,) = ask.post("/v1/translate", json=body).json()["translations"]
    assert found["text"] == f"{READ} <b>GOOD</b>"
    for word in found["words"]:
        assert found["text"][word["start"] : word["end"]] == word["text"]
    assert [word["text"] for word in found["words"]] == [*READ.split(), "GOOD"]


def test_two_models_have_to_know_a_form_both() -> None:
    models = [
        model("a", "translation", "en", "fr", ["{a", "%0"]),
        model("b", "translation", "fr", "de", ["``a", "{a"]),
    ]
    catalogue = Catalogue(models, "fr")
    assert forms_for(catalogue, ("en", "de"), None) == ("{a",)
    assert forms_for(catalogue, ("en", "fr"), None) == ("%0", "{a")
    assert forms_for(catalogue, ("fr", "de"), "b") == ("``a", "{a")
