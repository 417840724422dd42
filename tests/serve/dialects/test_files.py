"""Whole files over LibreTranslate's routes."""

import re
import stat
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from office_samples import docx, members  # tools/
from weft.predict.memory_use import MemoryUse
from weft.predict.terms import TermUse
from weft.serve.dialects.downloads import Downloads
from weft.serve.service import Translated

from .conftest import StandIn

BOTH = {"source": "en", "target": "de"}


def translated(ask: TestClient, name: str, content: bytes, **more: str) -> bytes:
    """The bytes of a file's translation."""
    reply = ask.post(
        "/translate_file", data={**BOTH, **more}, files={"file": (name, content)}
    )
    assert reply.status_code == 200, reply.text
    url = urlsplit(reply.json()["translatedFileUrl"])
    assert url.scheme == "http"
    assert url.netloc == "testserver"
    download = ask.get(url.path)
    assert download.status_code == 200
    return download.content


def test_a_text_file_is_as_the_text_box_has_it(ask: TestClient) -> None:
    text = "\ufefffirst line\r\n\r\n  second line\n- third line"
    box = ask.post("/translate", json={"q": text, **BOTH}).json()["translatedText"]
    assert translated(ask, "a.txt", text.encode()).decode() == box
    assert box == "\ufeffLINE FIRST\r\n\r\n  LINE SECOND\n- LINE THIRD"


def test_a_model_is_named_beside_its_languages(
    ask: TestClient, service: StandIn
) -> None:
    model = service.catalogue.route("en", "de")[0]
    named = translated(ask, "a.txt", b"good day", model=model.id)
    assert named == b"DAY GOOD"
    for name, other, status in ((model.id, "fr", 400), ("none", "de", 404)):
        fields = {"source": "en", "target": other, "model": name}
        file = {"file": ("a.txt", b"good day")}
        reply = ask.post("/translate_file", data=fields, files=file)
        assert reply.status_code == status


def test_html_keeps_everything_but_its_text(ask: TestClient) -> None:
    page = '<!doctype html><meta charset="utf-8"><p id="x">good day</p><!-- no -->'
    done = page.replace("good day", "DAY GOOD")
    assert translated(ask, "page.HTML", page.encode()).decode() == done


def test_the_page_that_is_translated_says_so(ask: TestClient) -> None:
    page = b'<!doctype html><html lang="en"><p>good day</p></html>'
    done = b'<!doctype html><html lang="de"><p>DAY GOOD</p></html>'
    assert translated(ask, "page.html", page) == done
    assert b'lang="en"' in translated(ask, "page.txt", page)


def test_what_the_model_doubts_is_marked_where_the_format_can(ask: TestClient) -> None:
    catalogue = 'msgid "good day"\nmsgstr ""\n\nmsgid "the qwx"\nmsgstr ""\n'
    done = translated(ask, "a.po", catalogue.encode()).decode()
    sure, unsure = done.split("\n\n")
    assert sure == 'msgid "good day"\nmsgstr "DAY GOOD"'
    assert unsure.count("#, fuzzy\n") == 1
    assert "confidence 0.61" in unsure
    assert "Never seen in training: qwx." in unsure
    assert 'msgstr "QWX THE"' in unsure


def known_of(one: Translated) -> Translated:
    """A translation with what is known of it, by the first word of the text."""
    prediction = one.prediction
    word, _, _ = prediction.text.lower().rpartition(" ")[2].partition("!")
    use = MemoryUse(0, 9, "tea 7", "Tee 7", 1.0, "exact", "/secret/old.tmx:3", True)
    terms = [TermUse("tea", 0, 3, ("Tee",), "", "missing", "terms.tsv:1")]
    more: dict[str, dict[str, Any]] = {
        "exact": {"memory": [use]},
        "repaired": {"memory": [replace(use, kind="repaired")]},
        "near": {"memory": [replace(use, taken=False)]},
        "part": {"memory": [use], "segments": 2},
        "term": {"terms": [replace(terms[0], status="used"), *terms]},
        "lost": {"text": "NUR"},
    }
    return replace(one, prediction=replace(prediction, **more.get(word, {})))


def test_what_came_of_a_file_stands_beside_its_address(
    ask: TestClient, service: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def translate(*given: Any, **more: Any) -> list[Translated]:
        return list(map(known_of, await StandIn.translate(service, *given, **more)))

    monkeypatch.setattr(service, "translate", translate)
    texts = ["exact a", "repaired a", "near a", "part a", "term a", "lost 512", "exact a", "good day"]  # fmt: skip
    catalogue = "\n".join(f'msgid "{text}"\nmsgstr ""\n' for text in texts if text)
    names = {"a.txt": "\n".join(texts), "a.po": catalogue}
    for name, content in names.items():
        file = {"file": (name, content.encode())}
        found = ask.post("/translate_file", data=BOTH, files=file).json()
        assert found.keys() == {"translatedFileUrl", "report"}
        report = found["report"]
        first = report.pop("first")
        how = "missing" if name == "a.txt" else "put_back"
        numbers = {"put_back": 0, "missing": 0, "added": 0, how: 1}
        assert report == {
            "texts": 8,
            "memory": {"whole": 2, "part": 1, "repaired": 1, "near": 1},
            "terms": {"used": 1, "missing": 1},
            "numbers": numbers,
            "doubtful": 3,
        }
        assert [place["text"] for place in first] == ["repaired a", "term a", "lost 512"]  # fmt: skip
        repaired, term, lost = first
        assert repaired["memory"][0]["where"] == "old.tmx:3"
        assert [use["status"] for use in term["terms"]] == ["missing"]
        assert (lost["marks"], lost["numbers"][how]) == (["numbers"], ["512"])
        assert "secret" not in str(found)


def test_of_many_places_the_first_are_told_and_only_how_they_begin(
    ask: TestClient,
) -> None:
    texts = [f"short {n} {'word ' * 40}" for n in range(9)]
    file = {"file": ("a.txt", "\n\n".join(texts).encode())}
    report = ask.post("/translate_file", data=BOTH, files=file).json()["report"]
    assert (report["texts"], report["doubtful"], len(report["first"])) == (9, 9, 5)
    assert report.keys() == {"texts", "numbers", "doubtful", "first"}
    assert all(len(place["text"]) <= 81 for place in report["first"])
    same = {"source": "en", "target": "en"}
    found = ask.post("/translate_file", data=same, files=file)
    assert found.json()["report"] is None


def test_the_language_of_a_file_is_detected(ask: TestClient) -> None:
    more = {"source": "auto", "target": "en"}
    assert translated(ask, "a.txt", b"der Hund", **more) == b"HUND DER"
    assert translated(ask, "a.txt", b"good day", **more) == b"good day"


def test_a_download_has_the_files_name_and_is_no_page(ask: TestClient) -> None:
    reply = ask.post(
        "/translate_file", data=BOTH, files={"file": ("../Brief ä.txt", b"good day")}
    )
    url = urlsplit(reply.json()["translatedFileUrl"])
    secret = url.path.removeprefix("/download_file/").split(".")[0]
    assert re.fullmatch(r"[\w-]{32}", secret)
    download = ask.get(url.path)
    shown = download.headers["content-disposition"]
    assert shown == "attachment; filename*=UTF-8''Brief%20%C3%A4_de.txt"
    assert download.headers["content-type"] == "application/octet-stream"
    assert download.headers["x-content-type-options"] == "nosniff"


def test_what_cannot_be_translated_is_said(
    ask: TestClient, subtests: pytest.Subtests
) -> None:
    for name, content, fields, part in (
        ("a.pdf", b"%PDF", BOTH, ".txt, .html"),
        ("a", b"x", BOTH, ".txt, .html"),
        ("a.txt", b"\xff\xfe", BOTH, "UTF-8"),
        ("a.txt", b"x", {"target": "de"}, "missing source"),
        ("a.txt", b"x", {"source": "en"}, "missing target"),
        ("a.txt", b"x", {"source": "fr", "target": "de"}, "fr is not supported"),
        ("a.txt", b"x", {"source": "zh", "target": "de"}, "not available"),
    ):
        with subtests.test(name + str(fields)):
            sent = {"file": (name, content)}
            reply = ask.post("/translate_file", data=fields, files=sent)
            assert reply.status_code == 400
            assert part in reply.json()["error"]
    reply = ask.post("/translate_file", data=BOTH)
    assert reply.json() == {"error": "Invalid request: missing file parameter"}


def test_a_download_that_is_gone_is_a_clients_mistake(ask: TestClient) -> None:
    for name in ("gone.txt", "..%2f..%2fetc%2fpasswd", "%00", "a" * 300):
        reply = ask.get(f"/download_file/{name}")
        assert reply.status_code in (400, 404)
        assert "error" in reply.json() or "detail" in reply.json()


def test_more_lines_than_a_request_may_have(ask: TestClient, service: StandIn) -> None:
    lines = [f"line {number}" for number in range(2500)]
    done = translated(ask, "a.txt", "\n".join(lines).encode()).decode()
    assert done == "\n".join(f"{number} LINE" for number in range(2500))
    assert [len(texts) for texts, *_ in service.asked] == [1000, 1000, 500]


def test_downloads_end_and_make_room_for_others() -> None:
    now = [0.0]
    downloads = Downloads(seconds=60, max_bytes=10, clock=lambda: now[0])
    first = downloads.add("a.txt", b"12345")
    second = downloads.add("b.txt", b"67890")
    assert downloads.find(first) == ("a.txt", b"12345")
    third = downloads.add("c.txt", b"x")
    assert downloads.find(first) is None
    assert downloads.find(second) == ("b.txt", b"67890")
    now[0] = 61.0
    assert downloads.find(second) is None
    assert downloads.find(third) is None


def test_the_folder_is_private_and_goes() -> None:
    downloads = Downloads()
    downloads.add("a.txt", b"12345")
    folder = downloads.folder
    assert folder is not None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert "a.txt" not in file.name
    del downloads
    assert not folder.exists()


def test_a_word_document_is_read_apart(ask: TestClient) -> None:
    content = docx("<w:p><w:r><w:t>good day</w:t></w:r></w:p>")
    done = members(translated(ask, "a.docx", content))
    assert "<w:t>DAY GOOD</w:t>" in done["word/document.xml"]
    same = members(translated(ask, "a.docx", content, source="de", target="de"))
    assert "<w:t>good day</w:t>" in same["word/document.xml"]


def test_a_document_made_to_harm_is_refused_in_a_line(ask: TestClient) -> None:
    bomb = docx(f"<w:p>{' ' * (4 << 20)}</w:p>")
    for name, content, part in (
        ("a.docx", bomb, "times as large unpacked"),
        ("a.docx", b"no zip", "is not a whole archive"),
        ("a.xlf", b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "declarations"),
    ):
        sent = {"file": (name, content)}
        reply = ask.post("/translate_file", data=BOTH, files=sent)
        assert reply.status_code == 400
        assert part in reply.json()["error"]
        assert "\n" not in reply.json()["error"]
