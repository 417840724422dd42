"""Whole documents, of each format one with all that it may have: structure and words survive."""

import shutil
from pathlib import Path

import pytest

from document_samples import RULES, upper  # tools/
from made_documents import SOURCES, make
from plain_readers import read_pairs
from structure_differ import diff_document
from weft.documents.document import Reading
from weft.documents.driver import translate_document, unchanged
from weft.documents.registry import format_of

BY_HAND = sorted(path for path in SOURCES.iterdir() if ".fod" not in path.suffix)


def translated(path: Path, rule: str) -> bytes:
    """The document in German by a rule."""
    columns = ("text",) if path.suffix == ".csv" else ()
    reading = Reading(path.name, "en", "de", columns)
    document = format_of(path.name).open(path.read_bytes(), reading)
    assert len(document.segments) > 1
    rewritten = format_of(path.name).open(
        path.read_bytes(), Reading(path.name, columns=columns)
    )
    assert unchanged(rewritten) == path.read_bytes()
    return translate_document(document, lambda texts: list(map(RULES[rule], texts)))


def check(path: Path) -> None:
    """Compare a document with its translations as others' readers see both."""
    before = path.read_bytes()
    for rule in ("reverse", "chinese", "shuffled"):
        assert diff_document(before, translated(path, rule), path.suffix) == [], rule
    after = translated(path, "upper")
    assert diff_document(before, after, path.suffix) == []
    pairs = list(read_pairs(before, after, path.suffix))
    wrong = [pair for pair in pairs if upper(pair[0]).text != pair[1]]
    assert pairs
    assert wrong == []


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_a_document_by_hand(path: Path) -> None:
    check(path)


def test_what_is_lost_is_seen() -> None:
    content = (SOURCES / "notes.md").read_bytes()
    assert diff_document(content, content.replace(b"`--fast`", b"--fast"), ".md") != []
    page = b"<p>a <b>word</b></p>"
    assert diff_document(page, b"<p>ein Wort</p>", ".html") != []
    text = (SOURCES / "letter.txt").read_bytes()
    assert diff_document(text, text.replace(b"\n- ", b"\n"), ".txt") != []
    strings = (SOURCES / "Park.strings").read_bytes()
    assert diff_document(strings, strings.replace(b"%@", b""), ".strings") != []


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("soffice"), reason="LibreOffice is not installed")
def test_documents_by_libreoffice(tmp_path: Path) -> None:
    found = [path for path in make(tmp_path) if not (SOURCES / path.name).exists()]
    assert len(found) == 8
    for path in found:
        check(path)
