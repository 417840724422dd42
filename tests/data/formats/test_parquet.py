"""Parquet and Arrow hold the same text as other files; folders of shards are one text."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.data.corpus import read_pairs
from weft.data.documents import read_documents
from weft.data.formats.shards import shards_of
from weft.data.kind import guess_task
from weft.data.labelled import read_labelled
from weft.errors import DataError, MissingPackage

PAIRS = [("one", "eins"), ("two", "zwei"), ("", "leer"), ("three", "drei")]
KEPT = [pair for pair in PAIRS if pair[0]]


def test_without_pyarrow_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "p.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(MissingPackage, match="pyarrow"):
        read_pairs([path])


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow")


def write_parquet(arrow: Any, path: Path, columns: dict[str, Any], **info: Any) -> str:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table(columns)
    if info:
        kept = json.dumps({"info": {"features": info}})
        table = table.replace_schema_metadata({"huggingface": kept})
    parquet.write_table(table, path, row_group_size=2)
    return str(path)


def columns_of(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    return {
        "id": [str(n) for n in range(len(pairs))],
        "en": [src for src, _ in pairs],
        "de": [tgt for _, tgt in pairs],
    }


def pairs_of(item: str) -> list[tuple[str, ...]]:
    return list(read_pairs([item]).rows())


def test_pairs_in_two_columns_and_in_one(arrow: Any, tmp_path: Path) -> None:
    flat = write_parquet(arrow, tmp_path / "p.parquet", columns_of(PAIRS))
    inner = [{"en": src, "de": tgt} for src, tgt in PAIRS]
    nested = write_parquet(arrow, tmp_path / "n.parquet", {"translation": inner})
    for file in (flat, nested):
        text = read_pairs([file])
        assert list(text.rows()) == KEPT
        assert (text.src_lang, text.tgt_lang) == ("en", "de")
        assert text.where(2) == f"{file}:4"
        assert text.dropped == {"empty side": 1}
        assert list(read_pairs([file], "de", "en").src) == ["eins", "zwei", "drei"]
        assert guess_task(file) == "translation"


def test_both_forms_of_arrow(arrow: Any, tmp_path: Path) -> None:
    table = arrow.table(columns_of(PAIRS))
    for name, new in (("file", arrow.ipc.new_file), ("stream", arrow.ipc.new_stream)):
        path = str(tmp_path / f"{name}.arrow")
        with new(path, table.schema) as writer:
            writer.write_table(table)
        assert pairs_of(path) == KEPT


def test_labels_have_the_names_that_the_file_gives(arrow: Any, tmp_path: Path) -> None:
    names = {"_type": "ClassLabel", "names": ["bad", "good"]}
    columns = {"text": ["a", "b", "c"], "label": [1, 0, 1]}
    file = write_parquet(arrow, tmp_path / "l.parquet", columns, label=names)
    text = read_labelled(file)
    assert text.texts == ["a", "b", "c"]
    assert text.labels == [("good",), ("bad",), ("good",)]
    assert guess_task(file) == "classification"


def test_each_text_is_a_document(arrow: Any, tmp_path: Path) -> None:
    columns = {"text": ["a\n\nb", " ", "c"], "n": [1, 2, 3]}
    file = write_parquet(arrow, tmp_path / "d.parquet", columns)
    documents = read_documents(file, "blank-line")
    assert documents.texts == ["a\n\nb", "c"]
    assert documents.where(1) == f"{file}:3"
    assert guess_task(file) == "language-modelling"


def test_what_cannot_be_read_is_said(arrow: Any, tmp_path: Path) -> None:
    damaged = tmp_path / "d.parquet"
    damaged.write_bytes(b"PAR1 and nothing more")
    numbers = write_parquet(
        arrow, tmp_path / "n.parquet", {"en": [1, 2], "de": ["a", "b"]}
    )
    unnamed = write_parquet(arrow, tmp_path / "u.parquet", {"x": ["a"], "y": ["b"]})
    for file, said in (
        (str(damaged), "cannot be read as Parquet or Arrow"),
        (numbers, "n.parquet:1: 'en' is no text"),
        (unnamed, "its columns ('x', 'y') do not name the two sides"),
    ):
        with pytest.raises(
            DataError, match=said.replace("(", r"\(").replace(")", r"\)")
        ):
            read_pairs([file])


def test_a_data_set_of_splits_is_its_training_text(arrow: Any, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("about it", "utf-8")
    for split, pairs in (("train", PAIRS), ("validation", PAIRS[:1])):
        for n in range(2):
            name = f"{split}-0000{n}-of-00002.parquet"
            write_parquet(arrow, folder / "data" / name, columns_of(pairs))
    assert pairs_of(str(folder)) == KEPT * 2
    assert pairs_of(f"{folder}/validation") == [PAIRS[0]] * 2
    assert guess_task(str(folder)) == "translation"


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    for n, (src, tgt) in enumerate(KEPT):
        (tmp_path / f"part{n}.tsv").write_text(f"{src}\t{tgt}\n", "utf-8")
    text = read_pairs([str(tmp_path)])
    assert list(text.rows()) == KEPT
    assert text.where(2) == f"{tmp_path}/part2.tsv:1"
    saved = tmp_path / "saved"
    (saved / "train").mkdir(parents=True)
    (saved / "dataset_dict.json").write_text("{}", "utf-8")
    (saved / "train" / "state.json").write_text("{}", "utf-8")
    (saved / "train" / "data.tsv").write_text("a\tb\n", "utf-8")
    assert pairs_of(str(saved)) == [("a", "b")]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="is a folder without files of text"):
        shards_of(empty)
    for split in ("dev", "test"):
        (empty / f"{split}-0-of-1.tsv").write_text("a\tb\n", "utf-8")
    with pytest.raises(DataError, match="has several splits; name one: "):
        read_pairs([str(empty)])
    assert pairs_of(f"{empty}/dev") == [("a", "b")]
