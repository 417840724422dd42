"""Text that was misread is told from text that merely has accents, and markup from what only looks
like it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weft.data.check.documents import look_over_documents
from weft.data.check.finding import Finding, Rows
from weft.data.check.rows import look_over_labelled
from weft.data.check.writing import control_characters, is_misread, markup, misread
from weft.data.documents import Ends, from_documents, read_documents
from weft.data.labelled import from_rows


@pytest.mark.parametrize(
    "text",
    [
        "café",
        "naïve",
        "Größe",
        "“quoted”",
        "it’s",
        "Ελλάδα",
        "Привет",
        "日本",
        "😀 yes",
        "10 µm",
        "TNFα",
        "Nº",
        "Oʻahu",
        "voilà tout",
        "50 ≠ 5†",
        "USB接続",
    ],
)
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_utf_8_read_as_something_else(text: str, encoding: str) -> None:
    raw = text.encode()
    wrong = "".join(
        bytes([b]).decode(encoding, "ignore") or bytes([b]).decode("latin-1")
        for b in raw
    )
    assert wrong != text
    assert is_misread(wrong)
    assert not is_misread(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ça va à Noël, où êtes-vous ?",
        "»Ärger« in Österreich – ja",
        "São Tomé",
        "ÄÖÜäöüß",
        "5 €",
        "ajá………",
        "à——ó",
        "un cas « confirmé\u00a0»",
        "« ANNÉE DU CAFÉ\u00a0»",
        "4 ×\u00a0109/L",
        "il dit «\u00a0été\u00a0», puis «\u00a0là\u00a0»",
        "un «été» créé»",
        "so ein „Spaß“",
        "die »MENÜ«-Taste",
    ],
)
def test_honest_accents(text: str) -> None:
    assert not is_misread(text)


@pytest.mark.parametrize(
    "text",
    [
        "a<br>b",
        "a <b>c</b>",
        "Q&amp;A",
        "&#39;s",
        "say #39;s",
        "x &nbsp; y",
        '<a href="u">',
    ],
)
def test_markup_is_found(text: str) -> None:
    rows = Rows(1, "rows", str, lambda i: (text,))
    assert list(markup(rows, ([text],)))


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "R&D; more",
        "<unk> and <pad>",
        "if x<y then z>w",
        "AT&T",
        "me; you",
    ],
)
def test_what_is_no_markup(text: str) -> None:
    rows = Rows(1, "rows", str, lambda i: (text,))
    assert list(markup(rows, ([text],))) == []


@pytest.mark.parametrize("end", ["file", "line"])
def test_a_misread_line_of_a_long_document_is_one_of_many_and_named(
    end: Ends, tmp_path: Path
) -> None:
    lines = ["\n"] * 2 + [f"Line {n} of a long book.\n" for n in range(300)]
    lines[200] = "Dans le cafÃ© d'Ã  cÃ´tÃ©.\n"
    (tmp_path / "book.txt").write_text("".join(lines), "utf-8")
    found = {
        f.code: f
        for f in look_over_documents(read_documents(tmp_path / "book.txt", end))
    }
    assert found["misread-encoding"].severity == "note"
    assert found["misread-encoding"].examples == (
        (f"{tmp_path / 'book.txt'}:201", lines[200].strip(), "Ã©", ((11, 13),)),
    )


@pytest.mark.parametrize(
    ("check", "offence", "about"),
    [
        (control_characters, "\x07", "[U+0007]"),
        (control_characters, "\ufffd", "�"),
        (control_characters, "\r", "[U+000D]"),
        (markup, "<br/>", "<br/>"),
        (markup, "&nbsp;", "&nbsp;"),
        (misread, "Ã©", "Ã©"),
    ],
)
@pytest.mark.parametrize("before", [0, 100, 1000])
def test_an_example_shows_the_offence_wherever_it_stands(
    check: Callable[..., Iterator[Finding]], offence: str, about: str, before: int
) -> None:
    text = f"{'word ' * before}bad{offence}word{' more' * 300}"
    rows = Rows(1, "rows", lambda i: "t.tsv:1", lambda i: ("another side", text))
    (finding,) = check(rows, (["another side"], [text]))
    (example,) = finding.examples
    assert example.about == about
    assert f"bad{about}word" in example.text
    assert example.text.startswith("another side  |  ")
    assert len(example.text) < 180
    ((start, end),) = example.marked
    assert example.text[start:end] == about
    assert f"bad»{about}«word" in example.with_marks("»", "«")


@pytest.mark.parametrize("end", ["file", "line"])
def test_documents_show_their_control_characters(end: Ends, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(
        f"{'word ' * 100}\x08 {'word ' * 100}\nfine\n", "utf-8"
    )
    found = {
        f.code: f
        for f in look_over_documents(read_documents(tmp_path / "book.txt", end))
    }
    (example,) = found["control-characters"].examples
    assert (example.where, example.about) == (f"{tmp_path / 'book.txt'}:1", "[U+0008]")
    assert "word »[U+0008]« word" in example.with_marks("»", "«")


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Peru.\u200b Orílẹ̀-èdè", True),
        ("2020\u200b 是的", True),
        ("ខ្ញុំ\u200bទៅ\u200b Google\u200b now", False),
        ("ไป\u200bบ้าน", False),
        ("ខ្ញុំ\u200bទៅ\ufeff", True),
        ("a zero-width\u200djoiner", False),
    ],
)
def test_a_space_without_width_is_found_unless_the_script_divides_words_by_it(
    text: str, is_found: bool
) -> None:
    rows = Rows(1, "rows", lambda i: "t.tsv:1", lambda i: (text,))
    assert bool(list(control_characters(rows, ([text],)))) == is_found
    document = from_documents([f"a line\n{text}"], "book")
    findings = [
        finding
        for finding in look_over_documents(document)
        if finding.code == "control-characters"
    ]
    assert [finding.lines() for finding in findings] == [{"book": [2]}] * is_found


def test_a_classifier_is_not_said_to_write() -> None:
    rows = [("a<br>b", ["x"]), ("c", ["y"])]
    (finding,) = [
        f for f in look_over_labelled(from_rows(rows, "made")) if f.code == "markup"
    ]
    assert "write" not in finding.remedy
