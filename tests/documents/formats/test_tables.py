"""CSV and TSV: the cells of some columns are translated, quotes and delimiters stay."""

import csv
from contextlib import suppress
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_differ import diff_table  # tools/
from document_samples import RULES, upper
from weft.documents.document import Reading, Translated
from weft.documents.driver import translate_document, unchanged
from weft.documents.formats.text.tables import open_csv, open_tsv
from weft.errors import UsageError

CSV = 'id,name,"text, long",n\r\n1,red car,"one ""two"" and {0} x,\nthree",5\r\n\r\n2,,"<b>four</b>",6\r\n'


def loud(text: str, *columns: str, ending: str = ".csv") -> str:
    read = {".csv": open_csv, ".tsv": open_tsv}[ending]
    document = read(text.encode(), Reading(f"a{ending}", columns=columns))
    return translate_document(document, lambda found: list(map(upper, found))).decode()


def test_cells_of_named_columns_are_translated() -> None:
    assert loud(CSV, "name") == CSV.replace("red car", "RED CAR")
    new = loud(CSV, "text, long", "2")
    assert new == CSV.replace("red car", "RED CAR").replace(
        'one ""two"" and {0} x,\nthree', 'ONE ""TWO"" AND {0} X,\nTHREE'
    ).replace("four", "FOUR")
    document = open_csv(CSV.encode(), Reading("a.csv", columns=("text, long",)))
    assert [segment.text for segment in document.segments] == ['one "two" and x,', "three", "four"]  # fmt: skip
    assert document.place(0) == "line 2, column text, long"
    assert document.place(2) == "line 5, column text, long"


def test_columns_by_number_alone_have_no_header() -> None:
    assert loud("one a;two b\n", "2") == "one a;TWO B\n"
    assert loud("2;two b\nx;y z\n", "2") == "2;two b\nX;y z\n"


def test_the_delimiter_is_that_of_the_file() -> None:
    for mark in (",", ";", "\t"):
        text = f"id{mark}text\n1{mark}a b. c\n"
        assert loud(text, "text") == text.replace("a b. c", "A B. C")
    assert loud("sep=|\nid|text\n1|a, b\n", "text") == "sep=|\nid|text\n1|A, B\n"
    assert loud("\ufeffid,text\n1,a b\n", "text") == "\ufeffid,text\n1,A B\n"


def test_a_cell_is_quoted_where_its_translation_needs_it() -> None:
    content = b"id,text\n1,one\n"
    document = open_csv(content, Reading("a.csv", columns=("text",)))
    for answer, expected in (("a, b", '"a, b"'), ('"a" b', '"""a"" b"'), ('a "b"', 'a "b"')):  # fmt: skip
        new = translate_document(document, lambda _, a=answer: [Translated(a)])
        assert new.decode() == f"id,text\n1,{expected}\n"
        assert list(csv.reader(StringIO(new.decode())))[1] == ["1", answer]


def test_quotes_of_tsv_are_text_where_they_are_no_cells() -> None:
    text = 'id\ttext\n1\t"so" he said\n2\t"x\n'
    assert loud(text, "text", ending=".tsv") == 'id\ttext\n1\t"SO" HE SAID\n2\t"X\n'
    text = 'id\ttext\n1\t"a ""b""\tc\nd"\n'
    assert loud(text, "text", ending=".tsv") == 'id\ttext\n1\t"A ""B""\tC\nD"\n'
    document = open_tsv(b'id\ttext\n1\t"a\n', Reading("a.tsv", columns=("text",)))
    new = translate_document(document, lambda _: [Translated("b\tc\nd")])
    assert new == b"id\ttext\n1\tb c d\n"


def test_what_cannot_be_read_is_said() -> None:
    for text, columns, said in (
        ("a,b\n1,2\n", (), r"a\.csv:1: which columns are translated\? .*a, b"),
        ("a,b\n1,2\n", ("c",), r"a\.csv:1: no column c; the first row has: a, b"),
        ("a,b\n1,2\n", ("3",), r"a\.csv:1: no column 3"),
        ('a,b\n1,"2\n', ("b",), r"a\.csv:2: a cell begins with a quote that does not"),
        ('a,b\n1,"2" x\n', ("b",), r"a\.csv:2: a cell begins with a quote"),
        ("", ("b",), r"a\.csv:1: no column b"),
    ):
        with pytest.raises(UsageError, match=f"^{said}"):
            open_csv(text.encode(), Reading("a.csv", columns=columns))


CELLS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["two words", 'a "b" c', "a, b", "a\nb c", "<i>x</i> y", "5", "漢字"]),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5),
    mark=st.sampled_from(",;\t"),
    rule=st.sampled_from(sorted(RULES)),
)
def test_any_table_comes_back_and_keeps_its_other_cells(
    rows: list[list[str]], mark: str, rule: str
) -> None:
    out = StringIO()
    csv.writer(out, delimiter=mark).writerows([["id", "text"], *rows])
    content = out.getvalue().encode("utf-8", "replace")
    document = open_csv(content, Reading("a.csv", columns=("text",)))
    assert unchanged(document) == content
    same = translate_document(document, lambda found: list(map(Translated, found)))
    assert same == content
    new = translate_document(document, lambda found: list(map(RULES[rule], found)))
    assert diff_table(content, new, mark, ("text",)) == []


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from([*'",\t\n\r;\0x', "a b", '""']), max_size=14))
def test_damaged_files_are_refused_or_come_back(parts: list[str]) -> None:
    for read, mark in ((open_csv, ","), (open_tsv, "\t")):
        content = f"id{mark}text\n{''.join(parts)}".encode()
        with suppress(UsageError):
            document = read(content, Reading("a", columns=("text",)))
            assert unchanged(document) == content


def test_large_files_are_read_in_time_proportional_to_their_size() -> None:
    for part in ('"a",b\n', "a,b\n", ",", '""', "\n"):
        text = "id,text\n" + part * 3_000
        with suppress(UsageError):
            loud(text, "text")
