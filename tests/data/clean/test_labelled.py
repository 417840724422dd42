"""Labelled rows are cleaned with all their columns, in their own form."""

import csv
import json
from pathlib import Path

import pytest

from weft.config import RowsSection
from weft.data.clean.cleaned import Cleaned
from weft.data.clean.labelled import Table, clean_labelled
from weft.data.clean.rules import Choice
from weft.data.clean.writing import Destination, rows_as_file
from weft.data.labelled import LabelledText
from weft.errors import DataError

WORDS = [
    "good",
    "bad",
    "slow",
    "quick",
    "bright",
    "dull",
    "warm",
    "cold",
    "sharp",
    "soft",
]
ROWS = [
    (f"{n}", "pos" if n % 2 else "neg", f"a {one} and {other} day number {n * n}")
    for n, (one, other) in enumerate((a, b) for a in WORDS for b in WORDS if a != b)
]


def clean(path: Path, **keys: str) -> tuple[Cleaned[LabelledText], Table]:
    choice = Choice.of("classification", [], [])
    return clean_labelled([str(path)], RowsSection(**keys), choice, {})


def test_cells_of_other_columns_stay_and_labels_are_unified(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    rows = [("id", "label", "text"), *ROWS]
    rows[4] = (rows[4][0], "Neg", rows[4][2])
    rows[6:6] = [("x", "pos", " "), ("y", "", "no label here"), ("z", *ROWS[0][1:])]
    rows[12] = (rows[12][0], rows[12][1], f'<p>{rows[12][2]}</p>, "quoted"')
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    cleaned, table = clean(path)
    counts = {
        rule: (n["mended"], n["dropped"]) for rule, n in cleaned.record.counts().items()
    }
    assert counts == {
        "markup": (1, 0),
        "empty": (0, 1),
        "no-label": (0, 1),
        "duplicates": (0, 1),
        "label-variants": (1, 0),
    }
    place = Destination.of(str(tmp_path / "out.csv"), None, [str(path)])
    place.write(rows_as_file(table, place.texts[0]))
    with place.texts[0].open(newline="") as file:
        found = list(csv.reader(file))
    wanted = [list(row) for row in rows if row[0] not in ("x", "y", "z")]
    wanted[4][1] = "neg"
    wanted[9][2] = wanted[9][2].replace("<p>", "").replace("</p>", "")
    assert found == wanted
    again, _ = clean(place.texts[0])
    assert again.record.num_changes == 0


def test_json_objects_keep_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    objects = [{"text": text, "label": label, "n": [n]} for n, label, text in ROWS]
    objects[3] = {**objects[3], "text": "caf\u00c3\u00a9 &amp; bar"}
    objects.append(dict(objects[0]))
    path.write_text("".join(json.dumps(row) + "\n" for row in objects))
    _, table = clean(path)
    place = Destination.of(str(tmp_path / "out.jsonl.gz"), None, [str(path)])
    place.write(rows_as_file(table, place.texts[0]))
    objects[3]["text"] = "caf\u00e9 & bar"
    assert table.rows == objects[:-1]
    again, _ = clean(place.texts[0])
    assert again.record.num_changes == 0


def test_labels_of_several_are_unified_too(tmp_path: Path) -> None:
    path = tmp_path / "made.tsv"
    lines = [f"{text}\tred;Blue\n" for _, _, text in ROWS]
    lines[5] = lines[5].replace("Blue", "blue")
    path.write_text("text\tlabel\n" + "".join(lines))
    _, table = clean(path, label_separator=";")
    assert table.rows[5][1] == "Blue;red"
    assert table.rows[4][1] == "red;Blue"


def test_tables_of_other_columns_are_not_joined(tmp_path: Path) -> None:
    paths = []
    for name, head in (("a.csv", "text,label"), ("b.csv", "label,text")):
        paths.append(str(tmp_path / name))
        Path(paths[-1]).write_text(f"{head}\none,two\n")
    with pytest.raises(DataError, match="has other columns than"):
        clean_labelled(paths, RowsSection(), Choice.of("classification", [], []), {})
