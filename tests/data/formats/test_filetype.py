"""What kind of file it is: certain by content, else by name; plain text is taken for nothing
else.
"""

import gzip
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.corpus import read_pairs
from weft.data.documents import read_documents
from weft.data.formats.filetype import (
    accepted_type,
    type_of,
    type_of_content,
    type_of_name,
)
from weft.data.formats.registry import FILE_TYPES, FileType
from weft.data.kind import guess_task
from weft.errors import DataError

PO = '# German translation.\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "Open"\nmsgstr "Öffnen"\n'
XLIFF = '<?xml version="1.0"?>\n<xliff version="1.2"><file/></xliff>'
SRT = "1\n00:00:01,000 --> 00:00:02,500\nHello.\n\n2\n00:00:03,000 --> 00:00:04,000\nBye.\n"
CONTENT = {
    "po": [PO, PO.replace("\n", "\r\n"), 'msgctxt "menu"\nmsgid "a"\nmsgstr "b"\n'],
    "xliff": [
        XLIFF,
        '<xliff xmlns="x"/>',
        '<?xml version="1.0"?><!-- x -->\n<x:xliff xmlns:x="y"/>',
    ],
    "tmx": [
        "<tmx/>",
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"/>',
    ],
    "html": [
        "<!DOCTYPE html>\n<p>x",
        "<!doctype HTML PUBLIC>",
        "\n <HTML>",
        '<?xml version="1.0"?><html/>',
    ],
    "xml": ['<?xml version="1.0"?><feed/>'],
    "srt": [SRT, SRT.replace("\n", "\r\n"), "\ufeff" + SRT],
    "vtt": ["WEBVTT\n\n00:01.000 --> 00:04.000\nHello.\n", "WEBVTT - title\n"],
    "json": ['{\n  "a": 1\n}', '[\n  {"a": 1}\n]'],
    "jsonl": ['{"text": "x", "label": "y"}\n{"text": "z", "label": "y"}\n'],
    "rtf": ["{\\rtf1\\ansi Hello}"],
    "pdf": ["%PDF-1.7\n"],
}
LINES = [
    "Hello.",
    "1\nHello.\n",
    "<b>Hello</b> there",
    "<3 you all",
    '"{0}" is missing',
    "{0} files",
    '{"a" said nobody',
    "[laughs] Yes.",
    "# a title\n\nmessage",
    "msgid is a keyword of PO",
    "%PDF is a format",
    "WEBVTTX",
    "",
]


def name_of(kind: FileType | None) -> str:
    return kind.name if kind else ""


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, text) for name, some in CONTENT.items() for text in some],
)
def test_the_content_tells_whatever_the_name(
    tmp_path: Path, name: str, content: str
) -> None:
    for path, data in (
        (tmp_path / "x", content.encode()),
        (tmp_path / "x.txt", gzip.compress(content.encode())),
    ):
        path.write_bytes(data)
        assert name_of(type_of(path)) == name


@pytest.mark.parametrize("content", LINES)
def test_text_is_taken_for_nothing_else(content: str) -> None:
    assert type_of_content(content.encode()) is None


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30).map(str.encode)
)
def test_words_are_plain_text(content: bytes) -> None:
    found = name_of(type_of_content(content))
    assert found in ("", "xml", "html", "vtt", "rtf", "pdf")
    assert not found or content.lstrip()[:1] in (b"<", b"W", b"{", b"%")


def test_wide_xml_is_known() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert name_of(type_of_content(CONTENT["tmx"][1].encode(encoding))) == "tmx"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a.PO", "po"),
        ("a.xlf", "xliff"),
        ("a.sdlxliff", "xliff"),
        ("a.ftl", "ftl"),
        ("a.html.gz", "html"),
        ("a.md", "markdown"),
        ("a.xlsx", "sheet"),
        ("a.docx", "office"),
        ("train.de", ""),
        ("train.txt", ""),
        ("po", ""),
    ],
)
def test_else_the_name_tells(tmp_path: Path, file: str, name: str) -> None:
    assert name_of(type_of_name(Path(file))) == name
    (tmp_path / file).write_bytes(b"some text\n")
    assert name_of(type_of(tmp_path / file)) == name


def test_every_ending_of_the_registry_tells_its_type() -> None:
    for kind in FILE_TYPES.values():
        for ending in kind.endings:
            for name in (f"a.{ending}", f"a.en-de.{ending.upper()}.gz"):
                assert type_of_name(Path(name)) is kind, name
            assert type_of_name(Path(f".{ending}")) is None


NO_DOCUMENTS = [name for name in CONTENT if FILE_TYPES[name].documents != "yes"]
PAIRS = [name for name in NO_DOCUMENTS if FILE_TYPES[name].read_pairs]


@pytest.mark.parametrize("name", [name for name in NO_DOCUMENTS if name not in PAIRS])
def test_what_is_certainly_no_text_is_refused_with_its_remedy(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "train.txt"
    path.write_text(CONTENT[name][0])
    for read in (lambda: read_pairs([str(path)]), lambda: read_documents(path, "line")):
        with pytest.raises(DataError) as caught:
            read()
        message = str(caught.value)
        assert message.startswith(f"{path}: is {FILE_TYPES[name].words}, not ")
        assert "; " in message
        assert "\n" not in message


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_no_documents(tmp_path: Path, name: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text(CONTENT[name][-1])
    words = re.escape(FILE_TYPES[name].words)
    with pytest.raises(
        DataError, match=f"{words}, not plain text for a language model"
    ):
        read_documents(path, "file")


def test_what_is_accepted_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n")
    assert name_of(accepted_type(path, ("markdown",), "text")) == "markdown"
    with pytest.raises(DataError, match="is Markdown, not text; do this"):
        accepted_type(path, (), "text", {"markdown": "do this"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,text\n1,a;b\n", "a comma-separated table"),
        ("id;text\n1;a,b\n", "a table of cells between semicolons"),
        ("sep=;\nid;text\n", "a table of cells between semicolons"),
        ("id\ttext\n1\ta\n", "a table of cells between TABs"),
        ("text\na\n", "a comma-separated table"),
        (b"id;text\n1;\xe4\n", "a comma-separated table"),
    ],
)
def test_the_separator_of_a_table_is_said(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        accepted_type(path, (), "text")
    assert str(caught.value).startswith(f"{path}: is {words}, not text; ")


@pytest.mark.parametrize(
    ("file", "content", "task"),
    [
        ("a.po", PO, "translation"),
        ("a", XLIFF, "translation"),
        ("a", CONTENT["tmx"][1], "translation"),
        ("a", CONTENT["jsonl"][0], "classification"),
        ("a.csv", "text,label\na,b\n", "classification"),
        ("a.tsv", "label\ttext\na\tb\n", "classification"),
        ("a.tsv", '"id"\t"text"\n"1"\t"a"\n', "classification"),
        ("a.tsv", "a\tb\n", "translation"),
        ("a.txt", "a\tb\n", "translation"),
        ("a.txt", "a line\n", "language-modelling"),
        ("a.html", "<html>", "language-modelling"),
    ],
)
def test_the_task_is_guessed(
    tmp_path: Path, file: str, content: str, task: str
) -> None:
    (tmp_path / file).write_text(content)
    assert guess_task(str(tmp_path / file)) == task


@pytest.fixture
def corpora() -> Path:
    folder = Path(
        os.environ.get("WEFT_DATA")
        or Path(__file__).resolve().parents[3].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not at {folder}; set WEFT_DATA")
    return folder


def test_real_files(corpora: Path) -> None:
    suffixes = {
        ".po": "po",
        ".xliff": "xliff",
        ".ftl": "ftl",
        ".tmx": "tmx",
        ".csv": "csv",
        ".tsv": "tsv",
    }
    seen = set()
    for path in corpora.rglob("*"):
        if (
            not path.is_file()
            or path.suffix == ".md"
            or path.suffix in (".gz", ".jsonl")
        ):
            continue
        found = name_of(type_of(path))
        assert found == suffixes.get(path.suffix, ""), path
        seen.add(found)
    assert {"po", "xliff", "ftl", "tmx", ""} <= seen
