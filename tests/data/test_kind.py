"""What kind of text a file is taken for, by its name and its beginning."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.data.corpus import read_pairs
from weft.data.kind import KINDS, guess_task
from weft.errors import DataError

LABELS = ["NUM", "LOC", "DESC"]
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write lines to a file of this name and give its path."""

    def call(name: str, *lines: str, end: str = "\n") -> str:
        content = "".join(line + end for line in lines).encode()
        (tmp_path / name).write_bytes(
            gzip.compress(content) if name.endswith(".gz") else content
        )
        return str(tmp_path / name)

    return call


def labelled(count: int) -> list[str]:
    return [
        f"{LABELS[i % 3]}\tWhat is the answer to question {i} ?" for i in range(count)
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.ndjson.gz", "t.json", "T.CSV"])
def test_a_table_is_labelled_rows_by_its_name(name: str) -> None:
    assert guess_task(name) == "classification"


def test_csv_of_two_columns_one_of_them_a_language_holds_pairs(write: Write) -> None:
    pairs = [
        write("a.csv", "Gbolohun;English", "x;y"),
        write("b.csv", "German,x", "x,y"),
    ]
    assert [guess_task(path) for path in pairs] == ["translation"] * 2
    heads = (
        "id,Description",
        "English,label",
        "Text;Kind",
        "a,English,b",
    )
    for i, head in enumerate(heads):
        path = write(f"r{i}.csv", head, "x;y")
        assert guess_task(path, "Text") == "classification", head


SENTENCES = [f"The man saw {i} dogs.;Der Mann sah {i} Hunde." for i in range(12)]


def test_csv_of_two_codes_above_sentences_holds_pairs(write: Write) -> None:
    heads = ("kos;en", "kos;chr", "KOS;EN")
    for i, head in enumerate(heads):
        path = write(f"p{i}.csv", head, *SENTENCES[:2])
        assert guess_task(path) == "translation", head
    rows = [f"The man saw {i} dogs.;good" for i in range(12)]
    assert guess_task(write("l.csv", "msg;cat", *rows)) == "classification"
    path = write("m.csv", "msg;cat", *SENTENCES)
    assert guess_task(path, "msg", "cat") == "classification"


def test_csv_of_sentences_without_names_holds_pairs(write: Write) -> None:
    assert guess_task(write("p.csv", *SENTENCES)) == "translation"
    assert guess_task(write("few.csv", *SENTENCES[:5])) == "classification"
    path = write("text.csv", "text;reply", *SENTENCES)
    assert guess_task(path) == "classification"
    same = [f"The man saw {i} dogs.;It is good that way" for i in range(12)]
    assert guess_task(write("same.csv", *same)) == "classification"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("head", ["English;Deutsch", "English;Unsere Sprache"])
def test_the_header_tells_the_kind_in_another_encoding(
    tmp_path: Path, encoding: str, head: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(f"{head}\nThe ball;Die Größe\n".encode(encoding))
    assert guess_task(str(path)) == "translation"
    with pytest.raises(DataError, match="UTF-8"):
        read_pairs(str(path))


def test_rows_in_another_encoding_are_rows(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("Subject;Text;Label\nMünchen;Größe;a\n".encode("cp1252"))
    assert guess_task(str(path), "Text", "Label") == "classification"


def test_csv_whose_first_row_names_two_languages_holds_pairs(write: Write) -> None:
    assert (
        guess_task(write("a.csv", "ID;English;Deutsch;Note", "1;x;y;z"))
        == "translation"
    )
    assert guess_task(write("b.csv", "source,target", "x,y")) == "translation"
    assert (
        guess_task(write("c.csv", "ID;Text;Kind;Note", "1;x;y;z")) == "classification"
    )


def test_the_header_tells_a_table_from_pairs(write: Write) -> None:
    assert guess_task(write("a.tsv", "label\ttext", "x\ty")) == "classification"
    assert (
        guess_task(write("b.tsv", "\ufeffid\ttext \tkind", "1\tx\ty", end="\r\n"))
        == "classification"
    )
    assert guess_task(write("c.tsv", "quelle\tziel", "x\ty")) == "translation"
    assert (
        guess_task(write("d.tsv", "quelle\tziel", "x\ty"), "quelle", "ziel")
        == "classification"
    )
    assert guess_task(write("e.txt", "text\tlabel", "x\ty")) == "translation"


@pytest.mark.parametrize(
    "header", [[], ["coarse\tquestion"]], ids=["no header", "other names"]
)
def test_labels_tell_a_table_without_such_a_header(
    write: Write, header: list[str]
) -> None:
    rows = labelled(60)
    turned = ["\t".join(reversed(row.split("\t"))) for row in rows]
    assert guess_task(write("a.tsv", *header, *rows)) == "classification"
    assert guess_task(write("b.tsv.gz", *header, *turned)) == "classification"


def test_what_resembles_labels_only_a_little_is_pairs(write: Write) -> None:
    few = labelled(29)
    sentences = [f"A man is here.\tEin Mann ist {i} mal hier." for i in range(60)]
    words = [f"{a}\t{b}" for a in LABELS for b in LABELS * 10]
    one = [f"same\tEin Mann ist {i} mal hier." for i in range(60)]
    for rows in (few, sentences, words, one, [*labelled(60), "a\tb\tc"]):
        assert guess_task(write("p.tsv", *rows)) == "translation"


@pytest.mark.parametrize("name", ["t.xlsx", "T.XLS", "t.ods"])
def test_a_spreadsheet_is_of_no_task(write: Write, name: str) -> None:
    path = write(name, "PK")
    with pytest.raises(DataError) as caught:
        guess_task(path)
    said = f"{path}: is a spreadsheet; save it as CSV UTF-8 and give that file"
    how = f"; weft translate FOLDER {path} translates it"
    if name.endswith("XLS"):
        how = "; saved as .xlsx, weft translate translates it"
    said += how
    assert str(caught.value) == said


def test_pairs_and_documents(write: Write, tmp_path: Path) -> None:
    src, tgt = write("t.en", "text\tone"), write("t.de", "text")
    assert guess_task(f"{src},{tgt}") == "translation"
    assert (
        guess_task(write("m.tmx", "<tmx>"))
        == guess_task(write("p.txt", "a\tb"))
        == "translation"
    )
    assert (
        guess_task(write("book.txt", "Call me Ishmael."))
        == guess_task(tgt)
        == "language-modelling"
    )
    assert guess_task(write("empty.txt")) == "language-modelling"
    assert guess_task(str(tmp_path / "missing.txt")) == "translation"
    assert set(KINDS) == {"translation", "language-modelling", "classification"}
