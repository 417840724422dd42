"""Tables: the same rows from CSV, TSV and JSON Lines, every wrong table a one-line reason with its
place.
"""

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data.formats import lines
from weft.data.formats.table import column_names, read_table
from weft.errors import DataError

COLUMNS = ("text", "label")


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows(
    path: Path, dropped: Counter[str] | None = None, notes: list[str] | None = None
) -> list[tuple[Any, ...]]:
    """The line of each row, its text and its label."""
    found = read_table(
        path,
        COLUMNS,
        Counter() if dropped is None else dropped,
        [] if notes is None else notes,
    )
    return [(line, row["text"], row["label"]) for line, row in found]


def refusal(path: Path, **keys: str) -> str:
    with pytest.raises(DataError) as caught:
        list(read_table(path, COLUMNS, Counter(), [], keys))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_format_gives_the_same_rows(tmp_path: Path, ending: str) -> None:
    comma = write(
        tmp_path / f"a.csv{ending}", "id,label,text\n1,pos,Good.\n2,neg,你好\n"
    )
    semicolon = write(
        tmp_path / f"b.csv{ending}", "id;label;text\n1;pos;Good.\n2;neg;你好\n"
    )
    tab = write(
        tmp_path / f"c.csv{ending}", 'id\tlabel\ttext\n1\t"pos"\tGood.\n2\tneg\t你好\n'
    )
    tsv = write(
        tmp_path / f"d.TSV{ending}", "id\tlabel\ttext\r\n1\tpos\tGood.\r\n2\tneg\t你好"
    )
    expected = [(2, "Good.", "pos"), (3, "你好", "neg")]
    assert [rows(path) for path in (comma, semicolon, tab, tsv)] == [expected] * 4
    for name in ("e.jsonl", "f.ndjson", "g.json"):
        objects = "".join(
            json.dumps({"label": b, "id": n, "text": t}) + "\n" for n, t, b in expected
        )
        assert rows(write(tmp_path / f"{name}{ending}", objects)) == [
            (n - 1, t, b) for n, t, b in expected
        ]


def test_quoted_cells_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    content = 'text,label\n"one, ""two""\r\nthree\n\nfour",a\n\n"",b\n5" disk,"c"\n"""",d\n"\rlone \u2028",e\n'
    dropped: Counter[str] = Counter()
    assert rows(write(tmp_path / "t.csv", content), dropped) == [
        (2, 'one, "two"\nthree\n\nfour', "a"),
        (7, "", "b"),
        (8, '5" disk', "c"),
        (9, '"', "d"),
        (10, "\rlone \u2028", "e"),
    ]
    assert dropped == {"empty line": 1}


def test_quotes_of_both_kinds_stay_text_and_that_is_said(tmp_path: Path) -> None:
    notes: list[str] = []
    path = write(
        tmp_path / "t.tsv", 'text\tlabel\n"Hi," he said\ta\n"all ""quoted"""\tb\n"\tc\n'
    )
    assert [text for _, text, _ in rows(path, None, notes)] == [
        '"Hi," he said',
        '"all ""quoted"""',
        '"',
    ]
    assert len(notes) == 1
    assert (
        "quotes stay part of the text: 1 cell is quoted as spreadsheets do it, but 2 not so"
        in notes[0]
    )


cells = st.text(st.sampled_from('ab",;\t\n\r é\u2028'), max_size=6)


@settings(max_examples=80, deadline=None)
@given(
    table=st.lists(st.tuples(cells, cells), min_size=1, max_size=5),
    delimiter=st.sampled_from(",;"),
)
def test_what_the_standard_library_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    table: list[tuple[str, str]],
    delimiter: str,
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(
        buffer, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    writer.writerows([COLUMNS, *table])
    path = write(tmp_path_factory.mktemp("csv") / "t.csv", buffer.getvalue())
    # Within a cell CR LF is a line end like any other.
    assert [(text, label) for _, text, label in rows(path)] == [
        tuple(cell.replace("\r\n", "\n") for cell in row) for row in table
    ]


@settings(max_examples=80, deadline=None)
@given(content=st.text(st.sampled_from('a",\n'), max_size=20))
def test_where_the_strict_standard_reader_reads_so_do_we(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    path = write(tmp_path_factory.mktemp("csv") / "t.csv", f"text,label\n{content}")
    try:
        expected = [
            row
            for row in csv.reader(io.StringIO(content, newline=""), strict=True)
            if row
        ]
    except csv.Error:
        expected = []
    if expected and all(len(row) == 2 for row in expected):
        assert [[text, label] for _, text, label in rows(path)] == expected
    else:
        assert refusal(path)


def test_columns_come_in_any_order_with_spaces_around_their_names(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "t.csv", "\ufeff, label ,n,,text\nx,a,1,y,one\n")
    assert rows(path) == [(2, "one", "a")]


def test_json_values_stay_what_they_are(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        '{"text": "a\\nb", "label": ["x", 1]}\n\n{"label": NaN, "text": null}\n',
    )
    dropped: Counter[str] = Counter()
    (first, second) = rows(path, dropped)
    assert first == (1, "a\nb", ["x", 1])
    assert second[:2] == (3, None)
    assert second[2] != second[2]  # NaN alone
    assert dropped == {"empty line": 1}


class TestMissingColumns:
    def test_what_there_is_and_what_is_near_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "text,Label\na,b\n")
        assert (
            refusal(path)
            == ":1: no column 'label'; columns: text, Label; rename Label to 'label'"
        )
        keys = {"text": "data.text_column", "label": "data.label_column"}
        other = write(tmp_path / "o.csv", "id,message,category\n1,a,b\n")
        assert (
            "name the right ones by --set data.text_column=... --set data.label_column=...; if these are pairs, "
            in refusal(other, **keys)
        )
        assert "did you mean --set data.label_column=Label?" in refusal(
            path, label="data.label_column"
        )
        path = write(tmp_path / "t.csv", "text,sentiment\na,b\n")
        assert (
            "columns: text, sentiment; name the right one by --set data.label_column=..."
            in refusal(path, label="data.label_column")
        )

    def test_the_option_that_named_a_column_is_part_of_the_remedy(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "t.csv", "ID,Text\n1,b\n")
        keys = {"text": "--column"}
        with pytest.raises(DataError, match=r"; did you mean --column Text\?$"):
            list(read_table(Path(path), ("text",), Counter(), [], keys))
        path = write(tmp_path / "u.csv", "ID,The text\n1,b\n")
        keys = {"the text": "--column"}
        with pytest.raises(DataError, match=r"did you mean --column 'The text'\?$"):
            list(read_table(Path(path), ("the text",), Counter(), [], keys))

    def test_a_first_line_that_is_data_is_recognised(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "what a film\tpos\nso dull\tneg\n")
        assert "columns: what a film, pos;" in refusal(path)
        header = "add a first line that names the columns (text,label)"
        assert (
            f"; if this is a row, {header}; if it names them, rename the right one to 'text'; "
            in refusal(path)
        )
        assert "first line" not in refusal(write(tmp_path / "u.csv", "text,x\na,b\n"))
        for row in ("why was this film ever made,neg", "17,neg", f"{'w' * 41};neg"):
            assert refusal(write(tmp_path / "v.csv", f"{row}\na,b\n")).endswith(
                f"; this looks like a row: {header}"
            )

    def test_long_and_invisible_names_stay_on_one_line(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "t.csv",
            f'"a\nb",{"x" * 5000},{",".join(f"n{i}" for i in range(50))}\n',
        )
        message = refusal(path)
        assert len(message) < 400
        assert r"'a\nb', xxxxx" in message
        assert "and 32 more" in message

    def test_a_name_that_stands_twice_is_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "\ntext,label,n, n\na,b,1,2\n")
        assert ":2: two columns are named n" in refusal(path)

    def test_json_lists_the_keys_of_that_object(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "t.jsonl",
            '{"text": "a", "label": "b"}\n{"text": "a", "lable": "b"}\n',
        )
        assert (
            refusal(path)
            == ":2: no key 'label'; keys: text, lable; rename lable to 'label'"
        )
        assert "keys: none" in refusal(write(tmp_path / "t.jsonl", "{}\n"))


class TestBadTables:
    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            (
                "t.csv",
                "text,label\na,b\n\nc,d,e\n",
                ":4: 3 cells where the header names 2 columns",
            ),
            (
                "t.csv",
                'text,label\n"a\nb",c\nd\n',
                ":4: 1 cell where the header names 2 columns",
            ),
            (
                "t.tsv",
                "text\tlabel\na\tb\nc\n",
                ":3: 1 cell where the header names 2 columns",
            ),
            ("t.csv", "text,label\n", ": no row below the header"),
            ("t.csv", "text,label", ": no row below the header"),
            (
                "t.csv",
                "\n\n",
                ":1: no column 'text' and no column 'label'; columns: none",
            ),
            (
                "t.csv",
                "\ufeff",
                ":1: no column 'text' and no column 'label'; columns: none",
            ),
            ("t.csv", "", ": is empty (0 bytes)"),
            ("t.csv.gz", "", ": is empty (0 bytes)"),
            ("t.jsonl", "\n", ": no row (empty line: 1)"),
            (
                "t.csv",
                'text,label\na,b\n"c,d\ne,f\n',
                ":3: a quote opens a cell here that is never closed",
            ),
            (
                "t.csv",
                'text,label\n"a\nb","c\nd\n',
                ":3: a quote opens a cell here that is never closed",
            ),
            (
                "t.csv",
                'text,label\n"a" b,c\n',
                ":2: ' ' after the quote that closes a cell",
            ),
            (
                "t.csv",
                'text,label\n"a\nb"c",d\n',
                ":3: 'c' after the quote that closes a cell (which opened in line 2)",
            ),
            (
                "t.jsonl",
                '{"text": "a", "label": "b"}\n{"text": \n',
                ":2: not JSON: Expecting value at column",
            ),
            ("t.json", '[{"text": "a", "label": "b"}]', ":1: JSON, but not an object"),
            ("t.json", '{\n"text": "a"}', ":1: not JSON"),
            (
                "t.jsonl",
                '{"text": "a", "label": 1, "label": 2}',
                ":1: JSON that cannot be read: the key 'label' occurs twice",
            ),
            (
                "t.jsonl",
                "[" * 100_000,
                ":1: JSON that cannot be read: nested too deeply",
            ),
            (
                "t.jsonl",
                f'{{"text": {"1" * 5000}}}',
                ":1: JSON that cannot be read: Exceeds the limit",
            ),
            ("t.txt", "text\tlabel\na\tb\n", ": what kind of table is it?"),
            (
                "t.xlsx",
                "PK",
                ": is a spreadsheet, not rows of .csv, .tsv or .jsonl; save it as CSV",
            ),
            ("t.tmx", "<tmx/>", "(TMX), not rows of .csv, .tsv or .jsonl; it holds"),
            (
                "t.csv",
                "PK\x03\x04",
                ": is a spreadsheet or a zip archive, whatever its name; open it in a",
            ),
            ("t.csv", b"text,label\na,\xff\n", ":2: not UTF-8 at the text's byte 13"),
            ("t.csv", b"text,label\na,\0\n", ":2: NUL at the text's byte 13"),
            ("t.csv", "text,label\na,b\n".encode("utf-16"), ":1: looks like UTF-16"),
        ],
    )
    def test_the_place_and_the_reason_are_named(
        self, tmp_path: Path, name: str, content: str | bytes, expected: str
    ) -> None:
        assert expected in refusal(write(tmp_path / name, content))

    def test_missing_files_and_folders(self, tmp_path: Path) -> None:
        write(tmp_path / "train.csv", "text,label\na,b\n")
        assert "no such file; did you mean" in refusal(tmp_path / "trian.csv")
        assert "is a folder" in refusal(tmp_path)


class TestLongLines:
    @pytest.fixture(autouse=True)
    def _short_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines, "MAX_LINE_CHARS", 50)

    @pytest.mark.parametrize(
        ("name", "header", "row"),
        [
            ("t.csv", "text,label\n", "{},b\n"),
            ("t.tsv", "text\tlabel\n", "{}\tb\n"),
            ("t.jsonl", "", '{{"text": "{}", "label": "b"}}\n'),
        ],
    )
    def test_rows_that_are_too_long_are_dropped_and_counted(
        self, tmp_path: Path, name: str, header: str, row: str
    ) -> None:
        dropped: Counter[str] = Counter()
        path = write(
            tmp_path / name,
            header + "".join(row.format(text) for text in ("a", "x" * 60, "c")),
        )
        assert [text for _, text, _ in rows(path, dropped)] == ["a", "c"]
        assert dropped == {"line too long": 1}
        path = write(tmp_path / name, header + row.format("x" * 60))
        assert "no row" in refusal(path)
        assert "(line too long: 1)" in refusal(path)

    def test_a_header_that_is_too_long_is_not_passed_over(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", f"text,label,{'x' * 60}\ntext,label\na,b\n")
        assert ":1: longer than 50 characters" in refusal(path)

    def test_rows_are_never_taken_from_the_inside_of_a_cell_that_a_long_line_opened(
        self, tmp_path: Path
    ) -> None:
        inside = f'text,label\n"{"x" * 60}\nc,d\nstill the same",b\n"e",f\n'
        message = refusal(write(tmp_path / "t.csv", inside))
        assert (
            ":2: too long to be read, and a cell seems to continue after it" in message
        )
        outside = f'text,label\n"{"x" * 60}",b\nc,d\n"e",f\n5" disk,g\n'
        assert [row[1] for row in rows(write(tmp_path / "t.csv", outside))] == [
            "c",
            "e",
            '5" disk',
        ]

    def test_a_quote_that_swallows_the_file_is_stopped_where_it_opened(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "t.csv", 'text,label\na,b\n"c,d\n' + "e,f\n" * 1000)
        assert (
            ":3: a quote opens a cell here that is not closed within 50 characters"
            in refusal(path)
        )
        path = write(tmp_path / "t.csv", f'text,label\n"a\n{"x" * 60}\n",b\n')
        assert (
            ":2: a quote opens a cell here that is not closed within 50 characters"
            in refusal(path)
        )


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_the_line_by_which_a_spreadsheet_names_the_delimiter_is_no_row(
    tmp_path: Path, first: str
) -> None:
    path = write(tmp_path / "t.csv", f"{first}\r\ntext;label\r\na, b;x\r\n")
    assert rows(path) == [(3, "a, b", "x")]
    assert column_names(Path(path)) == ["text", "label"]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("text (de, at);label\na;b\nc, d;e\n", ["text (de, at)", "label"]),
        ("text (de; at),label\na,b\nc,e\n", ["text (de; at)", "label"]),
        ("id\ttext, all of it\n1\ta, b; c\n", ["id", "text, all of it"]),
        ('"text; of, it";label\n"a\nb, c";d\n', ["text; of, it", "label"]),
        ("text\na, b\n", ["text"]),
    ],
)
def test_the_delimiter_is_the_one_that_fits_the_rows(
    tmp_path: Path, content: str, names: list[str]
) -> None:
    path = write(tmp_path / "t.csv", content)
    assert column_names(Path(path)) == names
    if len(names) > 1:
        assert (
            len(list(read_table(Path(path), names, Counter(), [])))
            == content.replace("\nb", "").count("\n") - 1
        )


def test_wanted_columns_speak_for_a_delimiter(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "text;label,more\na;b,c\n")
    assert column_names(Path(path)) == ["text;label", "more"]
    assert rows(write(tmp_path / "t.csv", "text;label;a,b\na;x;1,2\n")) == [
        (2, "a", "x")
    ]


def test_a_table_that_a_spreadsheet_wrote_as_tsv_is_read_without_its_quotes(
    tmp_path: Path,
) -> None:
    notes: list[str] = []
    path = write(
        tmp_path / "t.tsv", 'text\tlabel\n"He said ""no""."\ta\n"two\nlines"\tb\n'
    )
    assert rows(path, None, notes) == [
        (2, 'He said "no".', "a"),
        (3, "two\nlines", "b"),
    ]
    assert len(notes) == 1
    assert "cells are quoted, as spreadsheets write TSV" in notes[0]
