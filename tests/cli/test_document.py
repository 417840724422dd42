"""weft translate of a document: the same file in the other language, whatever happens meanwhile."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import DEMO
from weft.cli.document_names import document_of
from weft.data.formats.filetype import type_of_name
from weft.data.formats.registry import FILE_TYPES
from weft.documents.document import Document, FileDocument, Note, Reading
from weft.documents.formats.web.html import open_html
from weft.documents.registry import FORMATS, Format, endings
from weft.errors import UsageError
from weft.predict.prediction import Prediction
from weft.predict.translator import Translator

Command = Callable[..., Any]
PAGE = (
    "<html><body>\n<h1>cat sees dog.</h1>\n<p>fish <b>wants</b> mouse. Bird likes horse.</p>\n"
    "<ul><li>cat sees dog.</li></ul>\n<pre>cat</pre></body></html>\n"
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


@pytest.fixture(scope="module")
def expected(tiny_folder: Path) -> dict[str, str]:
    texts = ["cat sees dog.", "fish wants mouse. Bird likes horse."]
    return {
        text: p.text
        for text, p in zip(texts, weft.load(tiny_folder).translate(texts), strict=True)
    }


def without_tags(html: str) -> str:
    return re.sub(r"</?b>", "", html)


@pytest.mark.parametrize("way", ["argument", "--input"])
def test_a_document_comes_back_translated_and_whole(
    command: Command,
    tiny_folder: Path,
    page: Path,
    expected: dict[str, str],
    way: str,
) -> None:
    output = page.with_name("seite.htm")
    given = [page] if way == "argument" else ["--input", page]
    ended = command("translate", tiny_folder, *given, "--output", output)
    assert (ended.code, ended.out) == (0, b"")
    wanted = without_tags(PAGE)
    for text, translation in expected.items():
        wanted = wanted.replace(text, translation)
    written = output.read_text()
    assert without_tags(written) == wanted
    assert written.count("<b>") == 1
    assert ended.messages[-1] == (
        f"weft: {output}: 3 segments translated (4 sentences, 1 repeat)"
    )
    assert sorted(p.name for p in page.parent.iterdir()) == ["page.html", "seite.htm"]


def test_the_name_is_the_languages_and_never_written_over(
    command: Command, tiny_folder: Path, page: Path
) -> None:
    tgt = weft.load(tiny_folder).tgt_lang
    src = weft.load(tiny_folder).src_lang
    usual = page.with_name(f"page.{tgt}.html")
    assert command("translate", tiny_folder, page).code == 0
    first = usual.read_bytes()
    ended = command("translate", tiny_folder, page)
    assert (ended.code, ended.out) == (2, b"")
    assert ended.messages == [
        f"weft: {usual}: exists already; name the file to write: --output FILE"
    ]
    usual.unlink()
    named = page.rename(page.with_name(f"page.{src}.html"))
    assert command("translate", tiny_folder, named).code == 0
    assert usual.read_bytes() == first


def test_lines_and_tables_stay_lines_and_tables(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    text = tmp_path / "a.txt"
    text.write_text("cat sees dog.\n\n- fish wants mouse.\n")
    lines = command("translate", tiny_folder, "--input", text)
    assert (lines.code, len(lines.lines)) == (0, 3)
    table = tmp_path / "a.csv"
    table.write_text("id,en\n1,cat sees dog.\n")
    out = tmp_path / "b.csv"
    given = ("--input", table, "--column", "en", "--output", out)
    assert command("translate", tiny_folder, *given).code == 0
    assert out.read_text().startswith("id,en,translation,note\n1,cat sees dog.,")
    # as a document, the cells of the column are replaced
    out = tmp_path / "c.csv"
    given = ("--document", table, "--column", "en", "--output", out)
    assert command("translate", tiny_folder, *given).code == 0
    assert out.read_text() == f"id,en\n1,{lines.lines[0]}\n"
    # and the mark of a list stays
    out = tmp_path / "b.txt"
    given = ("--document", text, "--output", out)
    assert command("translate", tiny_folder, *given).code == 0
    assert out.read_text().split("\n")[2].startswith("- ")
    assert out.read_text().split("\n")[0] == lines.lines[0]


def test_json_is_a_document_unless_a_column_is_asked_for(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"text": "cat sees dog."}\n')
    out = tmp_path / "b.json"
    assert command("translate", tiny_folder, path, "--output", out).code == 0
    (wanted,) = weft.load(tiny_folder).translate("cat sees dog.")
    assert json.loads(out.read_text()) == {"text": wanted.text}
    ended = command("translate", tiny_folder, "--input", path, "--column", "text")
    assert (ended.code, ended.lines) == (0, [wanted.text])


def test_each_segment_is_an_object_of_json(
    command: Command, tiny_folder: Path, page: Path, expected: dict[str, str]
) -> None:
    ended = command("translate", tiny_folder, page, "--json")
    rows = [json.loads(line) for line in ended.lines]
    assert [row["place"] for row in rows] == ["line 2", "line 3", "line 4"]
    assert [row["text"] for row in rows] == [expected[row["source"]] for row in rows]
    for row in rows:
        assert 0 < row["confidence"] <= 1
        for word in row["words"]:
            assert row["text"][word["start"] : word["end"]] == word["text"]
            for source in word["sources"]:
                assert row["source"][source["start"] : source["end"]] == source["text"]
    assert any(word["sources"] for row in rows for word in row["words"])


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["page.html", "--output", "page.html"], 2, "is the input itself"),
        (["page.html", "--output", "there.htm"], 2, "--output there.htm: exists already; give another name"),
        (["page.html", "--review", "there.htm"], 2, "must end in .html"),
        (["page.html", "--review", "there.html"], 2, "exists already and is no page of a review"),
        (["page.html", "--output", "x.txt"], 2, "in the format of the document; name it .html or .htm"),
        (["page.html", "--output", "no/x.html"], 5, "there is no folder"),
        (["page.html", "cat"], 2, "page.html is a document: give it alone"),
        (["page.html", "--input", "page.html"], 2, "give texts or --input, not both"),
        (["page.html", "--n-best", "2"], 2, "--n-best 2: a document has one translation"),
        (["page.html", "--document", "--column", "a"], 2, "page.html has no columns"),
        (["x.abc", "--document"], 2, "--document x.abc: no such file; did you mean file.abc?"),
        (["file.abc", "--document"], 2, "file.abc: documents have one of the endings"),
        (["cat", "dog", "--document"], 2, "--document takes one file; give its name"),
        (["bad.html"], 3, "bad.html: byte 4 is not UTF-8; save the file as UTF-8"),
        (["--input", "no.html"], 2, "--input no.html: no such file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(
    command: Command,
    tiny_folder: Path,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(page.parent)
    (page.parent / "bad.html").write_bytes(b"<p>\xe4</p>")
    (page.parent / "file.abc").write_bytes(b"cat")
    for name in ("there.htm", "there.html"):
        (page.parent / name).write_bytes(b"corrected by hand")
    before = sorted(page.parent.iterdir())
    ended = command("translate", tiny_folder, *given)
    assert (ended.code, ended.out) == (code, b"")
    assert len(ended.messages) == 1, ended.err
    assert said in ended.messages[0]
    assert sorted(page.parent.iterdir()) == before
    assert page.read_text() == PAGE


def test_a_document_without_text_is_written_as_it_is(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>12</p>\n")
    output = tmp_path / "out.html"
    ended = command("translate", tiny_folder, page, "--output", output)
    assert (ended.code, output.read_text()) == (0, "<p>12</p>\n")
    assert ended.messages == [
        f"weft: {output}: nothing in it is to be translated; it is written as it is"
    ]


def interrupting(after: int, asked: list[str]) -> Callable[..., Iterator[Prediction]]:
    """A translator's stream that answers a number of texts, then is interrupted as by Ctrl-C."""
    original = Translator.translate_stream

    def stream(
        model: Translator, texts: list[str], *rest: Any, **more: Any
    ) -> Iterator[Prediction]:
        asked.extend(texts)
        for number, found in enumerate(original(model, texts, *rest, **more)):
            if number == after:
                raise KeyboardInterrupt
            yield found

    return stream


def test_an_interrupted_translation_goes_on_and_ends_the_same(
    command: Command,
    tiny_folder: Path,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = page.with_name("whole.html")
    all_said = command("translate", tiny_folder, page, "--output", whole)
    output = page.with_name("out.html")
    asked: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_stream", interrupting(1, asked))
        ended = command("translate", tiny_folder, page, "--output", output)
    kept = "interrupted; 1 of 2 texts are kept, and the same command continues it"
    assert (ended.code, ended.messages) == (75, [f"weft: {output}: {kept}"])
    assert not output.exists()
    other = command(
        "translate", tiny_folder, page, "--output", output, "--beam-size", 1
    )
    assert (other.code, len(other.messages)) == (2, 1)
    assert "was started with another beam_size" in other.messages[0]
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_stream", interrupting(99, asked))
        ended = command("translate", tiny_folder, page, "--output", output)
    assert ended.code == 0
    assert len(asked) == 2 + 1  # the other one was kept
    assert f"{output}: continues after 1 of 2 texts" in ended.messages[0]
    assert output.read_bytes() == whole.read_bytes()
    said = [line.replace("whole.html", "out.html") for line in all_said.messages]
    assert ended.messages[1:] == said
    assert not list(page.parent.glob("*.partial*"))


def test_what_was_kept_and_is_damaged_is_refused(
    command: Command, tiny_folder: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = page.with_name("out.html")
    asked: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_stream", interrupting(1, asked))
        command("translate", tiny_folder, page, "--output", output)
    page.with_name("out.html.partial").write_text('{"text": "x"}\n')
    ended = command("translate", tiny_folder, page, "--output", output)
    assert (ended.code, len(ended.messages)) == (2, 2)
    assert "out.html.partial: is damaged; remove it" in ended.messages[-1]


def test_what_is_not_translated_is_listed_and_the_rest_counted(
    command: Command, tiny_folder: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Reading] = []

    def open_noted(content: bytes, reading: Reading) -> Document[bytes]:
        seen.append(reading)
        found = open_html(content, reading)
        notes = tuple(Note(f"slide {n}", "a chart") for n in range(25))
        text = type(found.text)(found.text.segments, found.text.skeleton, notes)
        return FileDocument(text)

    noted = Format("noted", (".noted",), open_noted, has_columns=True)
    monkeypatch.setitem(FORMATS, "noted", noted)
    path = page.rename(page.with_suffix(".noted"))
    given = ("--document", "--column", "a", "--column", "b")
    ended = command("translate", tiny_folder, path, *given)
    told = [line for line in ended.messages if "slide" in line]
    assert told == [f"weft: slide {n}: a chart" for n in range(20)]
    assert "weft: 5 more such places" in ended.messages
    model = weft.load(tiny_folder)
    assert seen == [Reading(str(path), model.src_lang, model.tgt_lang, ("a", "b"))]


def test_a_model_that_cannot_align_says_so_once(
    command: Command, tiny_folder: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "can_align", False)
    ended = command("translate", tiny_folder, page)
    assert ended.code == 0
    assert ended.err.count("does not say which words belong together") == 1
    page.write_text("<p>cat sees dog.</p>")
    ended = command(
        "translate", tiny_folder, page, "--output", page.with_name("x.html")
    )
    assert "belong together" not in ended.err


def test_doubts_stand_with_their_place(
    command: Command, tiny_folder: Path, page: Path
) -> None:
    page.write_text("<p>cat sees dog.</p>\n<p>wolf wolf wolf</p>\n")
    output = page.with_name("out.html")
    ended = command("translate", tiny_folder, page, "--output", output)
    assert ended.code == 0
    assert "1 word was never seen in training: wolf" in ended.err
    assert "in 1 of 2 texts (line 2)" in ended.err


def test_the_help_lists_the_formats(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Format("odd", (".odd",), open_html, needs=("no_such_package",))
    monkeypatch.setitem(FORMATS, "odd", lacking)
    shown = " ".join(command("translate", "--help").out.decode().split())
    assert "Documents have one of these endings: " in shown
    assert all(ending in shown for ending in endings())
    assert "with the extra documents .odd" in shown
    plain, asked = shown.split("with --document also ")
    assert ".json," in plain
    assert ".csv" not in plain
    assert asked.startswith(".txt, .jsonl, .csv, .tsv;")
    assert "odd" not in command("classify", "--help").out.decode()


# of these endings are also texts of other kinds
BY_CONTENT = (".txt", ".ts", ".xml")


def test_every_format_is_named_as_what_it_is_elsewhere() -> None:
    """A file of the format that is given as lines or as training text is told of this verb."""
    for row in FORMATS.values():
        for ending in row.endings:
            if ending in BY_CONTENT:
                continue
            kind = type_of_name(Path(f"a{ending}"))
            assert kind is not None, ending
            is_row = kind.table in ("csv", "tsv") or kind.name == "jsonl"
            assert is_row or ending[1:] in kind.translated, ending
    assert type_of_name(Path("a.docx")) is FILE_TYPES["office"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.docx", "PK\x03\x04", "; weft translate FOLDER {} translates it"),
        ("a.doc", "PK\x03\x04", "; saved as .docx, weft translate translates it"),
        ("a.xlsm", "PK\x03\x04", "; saved as .xlsx, weft translate translates it"),
        ("a.sdlxliff", "<xliff>", "to train a translator"),
        ("a", 'msgid "a"\nmsgstr "b"\n', "; named FILE.po, weft translate FOLDER FILE.po translates it"),
    ],
)  # fmt: skip
def test_another_verb_names_this_one(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    from weft.data.formats.filetype import accepted_type
    from weft.errors import DataError

    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        accepted_type(path, (), "lines")
    assert str(caught.value).endswith(said.format(path))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("page.htm", "page.htm: no such file (as a text, give it by standard input); did you mean page.html?"),
        ("no/brief.docx", "no/brief.docx: no such file (as a text, give it by standard input); the folder no does"),
        ("*.PDF", "*.PDF: no such file"),
        ("brief.doc", "brief.doc: is an office document; saved as .docx, weft translate translates it; else save"),
        ("brief.pdf", "brief.pdf: is a PDF; take its text out first"),
        ("lines.txt", "lines.txt: is a file; --input lines.txt reads it"),
    ],
)  # fmt: skip
def test_a_word_that_names_a_file_is_no_text(
    command: Command,
    tiny_folder: Path,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    word: str,
    said: str,
) -> None:
    monkeypatch.chdir(page.parent)
    for name in ("brief.doc", "brief.pdf", "lines.txt"):
        Path(name).write_bytes(b"cat")
    ended = command("translate", tiny_folder, "cat sees dog.", word)
    code = 3 if "brief.doc:" in said or "brief.pdf" in said else 2
    assert (ended.code, ended.out, len(ended.messages)) == (code, b"", 1)
    assert ended.messages[0].startswith(f"weft: {said}")
    if code == 3:
        assert command("translate", tiny_folder, "--input", word).code == code


def test_a_text_with_a_dot_is_a_text(command: Command, tiny_folder: Path) -> None:
    texts = ["node.js", "e.g.", "ASP.NET", "See brief.docx", "https://a.org/b.pdf", "M.D.", ".docx"]  # fmt: skip
    ended = command("translate", tiny_folder, *texts)
    assert (ended.code, len(ended.lines)) == (0, len(texts))
    assert "file" not in ended.err
    # and a name, by standard input
    ended = command("translate", tiny_folder, stdin=b"brief.docx\n")
    assert (ended.code, len(ended.lines)) == (0, 1)


def test_a_text_that_is_no_name_is_no_document() -> None:
    for text in ("a\0.html", "x" * 5000 + ".html", "page.html"):
        assert document_of([text], None, (), False) is None
    with pytest.raises(UsageError):
        document_of(["a", "b"], None, (), True)


def test_sentences_are_translated_one_by_one_and_stand_as_they_stood(
    command: Command, tiny_folder: Path, page: Path
) -> None:
    """The words of a sentence come from its own, wherever it stands."""
    model = weft.load(tiny_folder)
    sentences = ["cat sees dog.", "Dr. fish wants mouse!", "Bird likes horse."]
    page.write_text(f"<pre>x</pre><p>{' '.join(sentences)}</p>")
    ended = command("translate", tiny_folder, page, "--json")
    (row,) = map(json.loads, ended.lines)
    each = [one.text for one in model.translate(sentences)]
    assert row["text"] == " ".join(each)
    (plain,) = model.translate(row["source"], alignments=True)
    assert plain.segments == 3
    assert [word.to_json() for word in plain.words or ()] == row["words"]
    src_ends = ends_of(sentences)
    tgt_ends = ends_of(each)
    assert any(word["sources"] for word in row["words"])
    for word in row["words"]:
        number = bisect_right(tgt_ends, word["start"])
        for source in word["sources"]:
            assert bisect_right(src_ends, source["start"]) == number


def ends_of(sentences: list[str]) -> list[int]:
    """Where each sentence ends among those that spaces join."""
    return list(accumulate(len(one) + 1 for one in sentences))


def test_a_page_of_a_document_without_tags_knows_its_words(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nThe teacher reads a book.\n")
    review = tmp_path / "r.html"
    assert command("translate", DEMO, path, "--review", review).code == 0
    page = review.read_text("utf-8")
    assert "of the 0 words" not in page
    assert re.search(r"of the \d+ words that the model chose itself", page)


def test_what_was_put_back_is_shown_and_said(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>cat sees {0} and 512 dogs.</p>")
    ended = command("translate", tiny_folder, path, "--review", tmp_path / "r.html")
    said = "numbers: a number was put back: 512"
    assert f"weft: line 1: {said}" in ended.messages
    page = (tmp_path / "r.html").read_text()
    assert said in page
    assert page.count("512") == 3
    assert page.count("{0}") == 2
    other = tmp_path / "b.html"
    ended = command("translate", tiny_folder, path, "--json", "--output", other)
    (value,) = map(json.loads, ended.lines)
    assert "A number was put back: 512." in value["doubts"]
    assert "512" in value["text"]
    assert "{0}" in value["text"]
    words = value["words"]
    shown = [value["text"][word["start"] : word["end"]] for word in words]
    assert shown == [word["text"] for word in words]
