"""Text that was misread is told from text that merely has accents, and markup from what only looks like it."""

from pathlib import Path

import pytest

from weft.data.check.documents import look_over_documents
from weft.data.check.finding import Rows
from weft.data.check.writing import is_misread, markup
from weft.data.documents import Ends, read_documents


@pytest.mark.parametrize(
    "text", ["café", "naïve", "Größe", "“quoted”", "it’s", "Ελλάδα", "Привет", "日本", "😀 yes"]
)
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_utf_8_read_as_something_else(text: str, encoding: str) -> None:
    raw = text.encode()
    wrong = "".join(bytes([b]).decode(encoding, "ignore") or bytes([b]).decode("latin-1") for b in raw)
    assert wrong != text
    assert is_misread(wrong)
    assert not is_misread(text)


@pytest.mark.parametrize(
    "text", ["Ça va à Noël, où êtes-vous ?", "»Ärger« in Österreich – ja", "São Tomé", "ÄÖÜäöüß", "5 €"]
)
def test_honest_accents(text: str) -> None:
    assert not is_misread(text)


@pytest.mark.parametrize(
    "text", ["a<br>b", "a <b>c</b>", "Q&amp;A", "&#39;s", "say #39;s", "x &nbsp; y", '<a href="u">']
)
def test_markup_is_found(text: str) -> None:
    rows = Rows(1, "rows", str, str)
    assert list(markup(rows, ([text],)))


@pytest.mark.parametrize(
    "text", ["a < b and c > d", "R&D; more", "<unk> and <pad>", "if x<y then z>w", "AT&T", "me; you"]
)
def test_what_is_no_markup(text: str) -> None:
    rows = Rows(1, "rows", str, str)
    assert list(markup(rows, ([text],))) == []


@pytest.mark.parametrize("end", ["file", "line"])
def test_a_misread_line_of_a_long_document_is_one_of_many_and_named(end: Ends, tmp_path: Path) -> None:
    lines = ["\n"] * 2 + [f"Line {n} of a long book.\n" for n in range(300)]
    lines[200] = "Dans le cafÃ© d'Ã  cÃ´tÃ©.\n"
    (tmp_path / "book.txt").write_text("".join(lines), "utf-8")
    found = {f.code: f for f in look_over_documents(read_documents(tmp_path / "book.txt", end))}
    assert found["misread-encoding"].severity == "note"
    assert found["misread-encoding"].examples == ((f"{tmp_path / 'book.txt'}:201", lines[200].strip()),)
