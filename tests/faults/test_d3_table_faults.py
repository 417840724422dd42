"""Row D3 of the fault table: tables that are not what they seem end in one line with file, line and
columns.
"""

import json
from pathlib import Path

import pytest

from weft.data.labelled import read_labelled
from weft.errors import DataError


def write(path: Path, content: str) -> str:
    path.write_bytes(content.encode())
    return str(path)


def refusal(data: str, *columns: str) -> str:
    """The one-line reason why data is refused, with exit code 3."""
    with pytest.raises(DataError) as caught:
        read_labelled([data], *columns)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "delimiter"), [("t.csv", ","), ("t.csv", ";"), ("t.tsv", "\t")]
)
def test_D3_a_missing_column_is_named_with_those_there_are(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    path = write(
        tmp_path / name,
        f"id{delimiter}sentence{delimiter}Label\n1{delimiter}good{delimiter}pos\n",
    )
    message = refusal(path)
    assert message.startswith(
        f"{path}:1: no column 'text' and no column 'label'; columns: id, sentence, Label; "
    )
    assert (
        "name the right one by --set data.text_column=...; did you mean --set data.label_column=Label?"
        in message
    )
    assert "did you mean --set data.label_column=Label?" in refusal(path, "sentence")
    assert read_labelled(path, "sentence", "Label").texts == ["good"]


def test_D3_a_missing_key_of_json_is_named_with_its_line(tmp_path: Path) -> None:
    objects = [{"text": "a", "label": "x"}, {"text": "b", "labels": "y"}]
    path = write(tmp_path / "t.jsonl", "".join(json.dumps(o) + "\n" for o in objects))
    assert (
        refusal(path)
        == f"{path}:2: no key 'label'; keys: text, labels; did you mean --set data.label_column=labels?"
    )


def test_D3_a_table_without_a_header_is_recognised(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "what a film,pos\nso dull,neg\n")
    assert "columns: what a film, pos" in refusal(path)
    assert (
        "; if this is a row, add a first line that names the columns (text,label); "
        in refusal(path)
    )


def test_D3_quotes_delimiters_and_line_breaks_within_cells_are_text(
    tmp_path: Path,
) -> None:
    content = (
        'text,label\r\n"He said ""no"",\r\nand\nleft",neg\r\n"fine, thanks",pos\r\n'
    )
    text = read_labelled(write(tmp_path / "t.csv", content))
    assert text.texts == ['He said "no", and left', "fine, thanks"]
    assert [label for (label,) in text.labels] == ["neg", "pos"]
    assert [text.where(i).rsplit(":", 1)[1] for i in range(2)] == ["2", "5"]


@pytest.mark.parametrize("separator", ["\r", "\u2028", "\x85", "\x0b", "\x0c", "\x1e"])
def test_D3_other_separators_end_no_row(tmp_path: Path, separator: str) -> None:
    assert len(f"a{separator}b".splitlines()) == 2, (
        "the character must be one that careless readers split at"
    )
    read = [
        read_labelled(write(tmp_path / "t.csv", f'text,label\n"a{separator}b",x\nc,y\n')),
        read_labelled(write(tmp_path / "t.tsv", f"text\tlabel\na{separator}b\tx\nc\ty\n")),
        read_labelled(write(tmp_path / "t.jsonl", f'{{"text": {json.dumps(f"a{separator}b")}, "label": "x"}}\n'
                                                  '{"text": "c", "label": "y"}\n')),
    ]  # fmt: skip
    assert [text.texts for text in read] == [
        ["a b" if separator == "\r" else f"a{separator}b", "c"]
    ] * 3
    assert [text.lines for text in read] == [[2, 3], [2, 3], [1, 2]]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        (
            "t.csv",
            "text,label\nfine,pos\nfine, thanks,pos\n",
            "3: 3 cells where the header names 2 columns",
        ),
        (
            "t.csv",
            'text,label\n"two\nlines",pos\nfine\n',
            "4: 1 cell where the header names 2 columns",
        ),
        (
            "t.tsv",
            "text\tlabel\nfine\tpos\t\n",
            "2: 3 cells where the header names 2 columns",
        ),
    ],
)
def test_D3_ragged_rows_are_named_with_both_counts(
    tmp_path: Path, name: str, content: str, place: str
) -> None:
    path = write(tmp_path / name, content)
    assert refusal(path).startswith(f"{path}:{place}")


def test_D3_an_open_quote_is_named_where_it_opened(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        'text,label\n"fine",pos\n"dull,neg\n' + "good,pos\n" * 10_000,
    )
    assert refusal(path).startswith(
        f"{path}:3: a quote opens a cell here that is never closed"
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", "text,label\n", "no row below the header"),
        ("t.tsv", "text\tlabel", "no row below the header"),
        ("t.csv", "text,label\n\n \n", "no row below the header (empty line: 2)"),
        ("t.csv", "", "is empty (0 bytes)"),
        ("t.jsonl", "", "is empty (0 bytes)"),
        ("t.csv", "text,label\n,pos\n", "no row with text (empty text: 1)"),
    ],
)
def test_D3_a_header_alone_and_an_empty_file_are_refused(
    tmp_path: Path, name: str, content: str, reason: str
) -> None:
    path = write(tmp_path / name, content)
    assert refusal(path) == f"{path}: {reason}"
