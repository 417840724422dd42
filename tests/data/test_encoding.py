"""A large text is encoded by processes, to the ids that it has in memory; a killed one goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.config import SideSection
from weft.data import crew, encoding
from weft.data.builtin import everyday
from weft.data.column import Column, ColumnWriter
from weft.data.crew import Task
from weft.data.encoding import encode_stretch
from weft.data.store import ParallelStore, prepare_store
from weft.data.tokenizer import Tokenizer, train_tokenizer

ARRAYS = ("rows", "src_ids", "src_offsets", "tgt_ids", "tgt_offsets")
ROWS = 100


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Sentences, some of which are dropped: empty ones, and long ones."""
    src = [triple.de for triple in everyday()][:ROWS]
    tgt = [triple.en for triple in everyday()][:ROWS]
    src[7] = "  \t"
    src[30] = "lang " * 200
    tgt[31] = "語 \ud800"
    return [src, tgt]


@pytest.fixture(scope="module")
def tokenizers(texts: list[list[str]]) -> tuple[Tokenizer, Tokenizer]:
    src, tgt = texts
    characters = SideSection(kind="character", vocab_size=300)
    return train_tokenizer(src, SideSection(vocab_size=400)), train_tokenizer(
        tgt, characters
    )


@pytest.fixture
def columns(
    texts: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Column]:
    monkeypatch.setattr(encoding, "STRETCH", 30)
    monkeypatch.setenv(crew.VARIABLE, "1")
    written = []
    for number, side in enumerate(texts):
        writer = ColumnWriter(tmp_path / f"{number}.txt")
        writer.extend(side)
        written.append(writer.close())
    return written


def prepared(
    folder: Path, sides: Sequence[Any], tokenizers: tuple[Tokenizer, Tokenizer]
) -> ParallelStore:
    pair = (sides[0], sides[1])
    return prepare_store(folder, "train", pair, tokenizers, max_len=90, text_key="k")


def arrays(store: ParallelStore) -> list[list[int]]:
    return [getattr(store, name).tolist() for name in ARRAYS]


def test_a_column_has_the_ids_of_a_list_in_any_number_of_processes(
    texts: list[list[str]],
    columns: list[Column],
    tokenizers: tuple[Tokenizer, Tokenizer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = prepared(tmp_path / "held", texts, tokenizers)
    assert sum(held.dropped.values()) == 2
    alone = prepared(tmp_path / "alone", columns, tokenizers)
    monkeypatch.setenv(crew.VARIABLE, "2")
    monkeypatch.setattr(encoding, "encode_stretch", None)  # they do it all
    side_by_side = prepared(tmp_path / "both", columns, tokenizers)
    for store in (alone, side_by_side):
        assert arrays(store) == arrays(held)
        assert store.key == held.key
        assert store.dropped == held.dropped
    assert [path.name for path in (tmp_path / "both").iterdir()] == ["train"]


def test_what_a_killed_run_has_encoded_is_not_encoded_again(
    columns: list[Column],
    tokenizers: tuple[Tokenizer, Tokenizer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []

    def until_killed(task: Task) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task["first"])
        encode_stretch(task)

    whole = prepared(tmp_path / "whole", columns, tokenizers)
    folder = tmp_path / "stores"
    monkeypatch.setattr(encoding, "encode_stretch", until_killed)
    with pytest.raises(KeyboardInterrupt):
        prepared(folder, columns, tokenizers)
    (left,) = folder.iterdir()
    files = sorted(left.glob("*.npy"))
    assert len(files) == 2 * len(done)
    # one of them is damaged, and another run's is no longer wanted
    content = bytearray(files[0].read_bytes())
    content[-1] ^= 1
    files[0].write_bytes(content)
    other = folder / "train.encoded-0123456789abcdef"
    other.mkdir()
    again: list[int] = []

    def counted(task: Task) -> None:
        again.append(task["first"])
        encode_stretch(task)

    monkeypatch.setattr(encoding, "encode_stretch", counted)
    store = prepared(folder, columns, tokenizers)
    assert arrays(store) == arrays(whole)
    assert sorted({*again, *done}) == [0, 25, 50, 75]
    assert len(again) == 3
    assert set(again) & set(done) == {0}
    assert [path.name for path in folder.iterdir()] == ["train"]
