"""Which columns a table has, and which of them say nothing."""

from pathlib import Path

import pytest

from weft.data.check.columns import look_over_columns
from weft.errors import DataError


def test_columns_are_named_and_those_of_one_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,text,label,lang\n1,a,x,en\n2,b,y,en\n", "utf-8")
    columns, constant = look_over_columns(path, "text", "label")
    assert (
        f"{path}:1: columns: id, text, label, lang; texts are read from 'text'"
        in columns.message
    )
    assert constant.message.endswith("the same in every row: lang")
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"text": "a", "label": 1}\n{"text": "b", "label": 1}\n', "utf-8")
    (columns,) = look_over_columns(lines, "text", "label")
    assert "columns: text, label;" in columns.message
    with pytest.raises(DataError):
        list(look_over_columns(tmp_path / "none.csv", "text", "label"))
