"""PO as training text: what is translated, with its line; the rest counted."""

from pathlib import Path

import pytest

from weft.data.corpus import read_pairs
from weft.data.formats.po import NOT_TRANSLATED, OBSOLETE, TO_BE_REVIEWED, unescape
from weft.data.kind import guess_task
from weft.errors import DataError

HEADER = """\
# German translation
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

"""
CATALOGUE = (
    HEADER
    + """\
#. seen by all
#: src/a.c:12
msgid "Open the file %s"
msgstr "Die Datei %s öffnen"

#, fuzzy, c-format
#| msgid "Old"
msgid "Save"
msgstr "Sichern"

msgid "Close"
msgstr ""

#, c-format
msgctxt "menu"
msgid ""
"Two "
"lines\\nand a \\"quote\\""
msgstr ""
"Zwei Zeilen\\n"
"und ein \\"Zitat\\""
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "Gone"
#~ msgstr "Weg"
"""
)


def write(tmp_path: Path, text: str, name: str = "a.po") -> str:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return str(path)


def test_what_is_translated_is_a_pair_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, CATALOGUE)
    text = read_pairs(path, "en")
    assert list(zip(text.lines, text.src, text.tgt, strict=True)) == [
        (11, "Open the file %s", "Die Datei %s öffnen"),
        (24, 'Two lines and a "quote"', 'Zwei Zeilen und ein "Zitat"'),
        (30, "%d file", "%d Datei"),
        (30, "%d files", "%d Dateien"),
    ]
    assert CATALOGUE.split("\n")[10] == 'msgid "Open the file %s"'
    assert (text.src_lang, text.tgt_lang) == ("en", "de")
    assert text.dropped == {TO_BE_REVIEWED: 1, NOT_TRANSLATED: 1, OBSOLETE: 1}
    assert text.where(0) == f"{path}:11"
    assert guess_task(path) == "translation"


def test_it_is_read_the_other_way_where_that_is_asked(tmp_path: Path) -> None:
    text = read_pairs(write(tmp_path, CATALOGUE), "de", "en")
    assert (text.src[0], text.tgt[0]) == ("Die Datei %s öffnen", "Open the file %s")
    said = HEADER.replace('"Language', '"X-Source-Language: en\\n"\n"Language')
    text = read_pairs(write(tmp_path, said + 'msgid "a"\nmsgstr "b"\n'))
    assert (text.src_lang, text.tgt_lang, text.src) == ("en", "de", ["a"])
    assert "to train de to en, add" in text.notes[0]


@pytest.mark.parametrize(
    ("forms", "pairs"),
    [
        (["一个文件"], [("files", "一个文件")]),
        (["файл", "файла", "файлов"], [("file", "файл"), ("files", "файлов")]),
        (["0", "1", "2", "3", "4", "5"], [("files", "5")]),
        (["ein", ""], []),
    ],
)
def test_plural_forms(
    tmp_path: Path, forms: list[str], pairs: list[tuple[str, str]]
) -> None:
    """The singular is the first form where there are few; of one that is empty none is read."""
    lines = [f'msgstr[{n}] "{form}"' for n, form in enumerate(forms)]
    rest = 'msgid "other"\nmsgstr "anders"\n'
    entry = "\n".join(['msgid "file"', 'msgid_plural "files"', *lines, rest])
    text = read_pairs(write(tmp_path, entry))
    assert list(zip(text.src, text.tgt, strict=True)) == [*pairs, ("other", "anders")]


def test_a_file_without_languages_says_so(tmp_path: Path) -> None:
    text = read_pairs(write(tmp_path, 'msgid "a"\nmsgstr "b"\n'))
    assert (text.src_lang, text.tgt_lang) == ("und", "und")
    assert "say them with data.src_lang and data.tgt_lang" in text.notes[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('msgid "a"\nnonsense\n', ":2: no line of a PO file: 'nonsense'"),
        ('msgid "a"\nmsgstr "b\n', ":2: no line of a PO file"),
        ('"a"\n', ":1: no line of a PO file"),
        ('msgid "a"\nmsgstr ""\n', "no pair with text on both sides"),
        ("", "is empty (0 bytes)"),
    ],
)
def test_what_is_no_po_is_refused_with_its_line(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_pairs(write(tmp_path, content))
    assert said in str(caught.value)


def test_escapes_are_those_of_c() -> None:
    assert unescape(r"a\tb\\n\"\x41\101\q") == 'a\tb\\n"AAq'
