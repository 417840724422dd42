"""Suggestions: what people send is what `weft train` reads."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from weft.data.formats.registry import FILE_TYPES
from weft.predict.text import one_line
from weft.serve.dialects.libretranslate import libretranslate
from weft.serve.dialects.suggestions import Suggestions

from .conftest import StandIn, small_app

ODD = [
    ("plain", "einfach"),
    ("two\nlines", "zwei\r\n Zeilen"),
    ("a\tb", "a\t\tb"),
    ('"quoted"', '"in Anführungszeichen"'),
    ('say "a, b"', 'sag "a, b", und'),
    ('"open', 'zu"'),
    ('""', '"""'),
    ("en", "de"),
    ("NUL \x00 in it", "\ufeffBOM"),
    ("a\u2028b", "c\x85d"),
    ("  spaces  ", "\u00a0hard\u00a0"),
]


def pairs_in(path: Path) -> tuple[list[tuple[str, str]], tuple[str, str]]:
    """The pairs and the direction that training reads from a file."""
    read = FILE_TYPES["tsv"].read_pairs
    assert read is not None
    opened = read(path, (None, None), (None, None))
    return [(src, tgt) for _, src, tgt in opened.rows], opened.languages


def as_read(text: str) -> str:
    return one_line(text).replace("\t", " ").replace("\x00", " ")


def test_what_is_suggested_is_read_for_training(
    ask: TestClient, suggestions: Suggestions
) -> None:
    for q, s in ODD:
        fields = {"q": q, "s": s, "source": "EN", "target": "de"}
        assert ask.post("/suggest", data=fields).json() == {"success": True}
    path = suggestions.file_of(("en", "de"))
    assert path.name == "corrections.en-de.tsv"
    pairs, languages = pairs_in(path)
    assert pairs == [(as_read(q), as_read(s)) for q, s in ODD]
    assert languages == ("en", "de")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=8))
def test_any_texts_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    suggestions = Suggestions(tmp_path_factory.mktemp("any") / "corrections")
    for src, tgt in pairs:
        suggestions.append(("de", "pt-BR"), (src, tgt))
    path = suggestions.file_of(("de", "pt-BR"))
    found, languages = pairs_in(path)
    expected = [(as_read(src), as_read(tgt)) for src, tgt in pairs]
    # a row of two blank cells is a blank line, which holds no pair
    assert found == [pair for pair in expected if "".join(pair).strip()]
    assert languages == ("de", "pt-BR")


def test_each_direction_has_a_file(ask: TestClient, suggestions: Suggestions) -> None:
    for source, target in (("en", "de"), ("de", "en"), ("en", "de")):
        fields = {"q": source, "s": target, "source": source, "target": target}
        ask.post("/suggest", json=fields)
    assert pairs_in(suggestions.file_of(("en", "de")))[0] == [("en", "de")] * 2
    assert pairs_in(suggestions.file_of(("de", "en")))[0] == [("de", "en")]


def test_a_suggestion_needs_two_texts_and_languages_of_the_models(
    ask: TestClient, suggestions: Suggestions
) -> None:
    whole = {"q": "a", "s": "b", "source": "en", "target": "de"}
    for field in whole:
        reply = ask.post("/suggest", json={**whole, field: " "})
        assert reply.status_code == 400, field
    assert ask.post("/suggest", json={**whole, "target": "fr"}).status_code == 400
    assert not list(suggestions.path.parent.iterdir())


def test_a_full_file_takes_no_more(ask: TestClient, suggestions: Suggestions) -> None:
    suggestions.max_bytes = 30
    fields = {"q": "one", "s": "eins", "source": "en", "target": "de"}
    statuses = [ask.post("/suggest", json=fields).status_code for _ in range(4)]
    assert statuses == [200, 200, 403, 403]
    assert len(pairs_in(suggestions.file_of(("en", "de")))[0]) == 2


def test_suggestions_are_off_unless_there_is_a_file(service: StandIn) -> None:
    with TestClient(small_app(service, [libretranslate()])) as ask:
        reply = ask.post("/suggest", json={})
        assert ask.get("/frontend/settings").json()["suggestions"] is False
    assert reply.status_code == 403
    assert reply.json() == {"error": "Suggestions are disabled on this server."}


def test_a_file_that_cannot_be_written_is_no_fault_of_the_server(
    ask: TestClient, suggestions: Suggestions
) -> None:
    suggestions.path = suggestions.path.parent / "gone" / "corrections.tsv"
    fields = {"q": "one", "s": "eins", "source": "en", "target": "de"}
    assert ask.post("/suggest", json=fields).status_code == 403
