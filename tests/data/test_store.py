"""What lies on disk is what the tokenizers gave; it is reused while it is right and made anew where
it is not.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.config import SideSection
from weft.data import store as store_module
from weft.data.store import EMPTY, ParallelStore, prepare_store
from weft.data.tokenizer import Tokenizer, train_tokenizer
from weft.errors import DataError, FolderError
from weft.folder.durable import TEMPORARY

SRC = ["ab", "", "abc abc", "a" * 50, "ca", "  \t", "x語", "b"]
TGT = ["hello", "hello", "hello hello", "hello", "hi", "hi", "語", "h" * 60]
KEPT = [0, 2, 4, 6]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    src = train_tokenizer(SRC, SideSection(kind="character", vocab_size=300))
    return src, train_tokenizer(TGT[:-1], SideSection(kind="bpe", vocab_size=300))


def _prepare(
    folder: Path, pair: tuple[Tokenizer, Tokenizer], **changed: Any
) -> ParallelStore:
    arguments: dict[str, Any] = {
        "src_texts": SRC,
        "tgt_texts": TGT,
        "max_len": 20,
        "text_key": "k",
    } | changed
    sides = (arguments.pop("src_texts"), arguments.pop("tgt_texts"))
    return prepare_store(folder, "train", sides, pair, **arguments)


def test_pairs_come_back_as_they_were_encoded(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    store = _prepare(tmp_path, tokenizers)
    assert store.rows.tolist() == KEPT
    assert len(store) == len(KEPT)
    for i, row in enumerate(KEPT):
        assert store.src(i).tolist() == tokenizers[0].encode(SRC[row])
        assert store.tgt(i).tolist() == tokenizers[1].encode(TGT[row])
    assert store.src_lens.tolist() == [len(store.src(i)) for i in range(len(store))]
    assert store.tgt_lens.tolist() == [len(store.tgt(i)) for i in range(len(store))]
    assert store.num_src_tokens == store.src_lens.sum()
    assert store.num_tgt_tokens == store.tgt_lens.sum()
    assert tokenizers[0].decode(store.src(3)) == "x語"


def test_pairs_are_dropped_together_and_counted(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    assert _prepare(tmp_path, tokenizers).dropped == {
        "longer than data.max_len": 2,
        EMPTY: 2,
    }
    assert _prepare(tmp_path, tokenizers, max_len=50).dropped == {
        "longer than data.max_len": 1,
        EMPTY: 2,
    }
    assert _prepare(tmp_path, tokenizers, max_len=49).dropped == {
        "longer than data.max_len": 2,
        EMPTY: 2,
    }


def test_chunks_leave_no_seams(
    tmp_path: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = _prepare(tmp_path / "whole", tokenizers)
    monkeypatch.setattr(store_module, "_CHUNK", 3)
    parts = _prepare(
        tmp_path / "parts", tokenizers, src_texts=iter(SRC), tgt_texts=iter(TGT)
    )
    for name in ("rows", "src_ids", "src_offsets", "tgt_ids", "tgt_offsets"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


def test_ids_take_two_bytes_where_they_fit(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    store = _prepare(tmp_path / "small", tokenizers)
    assert store.src_ids.dtype == np.uint16
    every = SideSection(kind="character", vocab_size=100_000, unicode="raw")
    many = "".join(chr(0x20000 + i) for i in range(2**16 - 260))
    large = train_tokenizer([many], every)
    assert large.vocab_size == 2**16
    fits = _prepare(
        tmp_path / "fits", (large, large), src_texts=[many[-1]], tgt_texts=[many[-1]]
    )
    assert fits.src_ids.dtype == np.uint16
    larger = train_tokenizer([many + "a"], every)
    wide = _prepare(
        tmp_path / "wide", (larger, larger), src_texts=[many[-1]], tgt_texts=[many[-1]]
    )
    assert wide.tgt_ids.dtype == np.uint32
    assert fits.src(0).tolist() == [2**16 - 1]
    assert wide.src(0).tolist() == [2**16]


def test_it_is_reused_while_nothing_changed(
    tmp_path: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = _prepare(tmp_path, tokenizers)
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_Writer", None)
        # the text is not even looked at
        again = _prepare(tmp_path, tokenizers, src_texts=None, tgt_texts=None)
    assert again.key == first.key
    assert again.dropped == first.dropped
    assert again.src_ids.tolist() == first.src_ids.tolist()
    other = train_tokenizer(SRC, SideSection(kind="character", vocab_size=264))
    keys = {
        first.key,
        _prepare(tmp_path, tokenizers, text_key="l").key,
        _prepare(tmp_path, tokenizers, max_len=21).key,
        _prepare(tmp_path, (other, tokenizers[1])).key,
        _prepare(tmp_path, (tokenizers[0], other)).key,
    }
    assert len(keys) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["train"]


def test_changed_text_replaces_the_store(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    _prepare(tmp_path, tokenizers)
    changed = _prepare(
        tmp_path, tokenizers, src_texts=["cab"], tgt_texts=["hello"], text_key="other"
    )
    assert changed.rows.tolist() == [0]
    assert changed.src(0).tolist() == tokenizers[0].encode("cab")


@pytest.mark.parametrize(
    "name", ["src_ids.npy", "tgt_offsets.npy", "rows.npy", "manifest.json"]
)
@pytest.mark.parametrize("fault", ["flipped", "truncated", "empty", "missing"])
def test_a_damaged_store_is_made_anew(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer], name: str, fault: str
) -> None:
    good = {
        p.name: p.read_bytes() for p in sorted(_folder(tmp_path, tokenizers).iterdir())
    }
    path = tmp_path / "train" / name
    content = bytearray(good[name])
    if fault == "flipped":
        content[-3] ^= 1
    path.unlink()
    if fault != "missing":
        path.write_bytes(
            {"flipped": content, "truncated": content[:-5], "empty": b""}[fault]
        )
    with pytest.raises(FolderError):
        ParallelStore(tmp_path / "train")
    _prepare(tmp_path, tokenizers)
    assert {
        p.name: p.read_bytes() for p in sorted((tmp_path / "train").iterdir())
    } == good


def _folder(tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> Path:
    _prepare(tmp_path, tokenizers)
    return tmp_path / "train"


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    def interrupted() -> Any:
        yield from SRC[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _prepare(tmp_path, tokenizers, src_texts=interrupted())
    assert list(tmp_path.iterdir()) == []
    assert _prepare(tmp_path, tokenizers).rows.tolist() == KEPT


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    leftover = tmp_path / f"{TEMPORARY}0123"
    leftover.mkdir()
    (leftover / "src_ids.npy").write_bytes(b"half")
    _prepare(tmp_path, tokenizers)
    assert [p.name for p in tmp_path.iterdir()] == ["train"]


def test_a_file_in_the_way_is_replaced(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    (tmp_path / "train").write_bytes(b"not a folder")
    assert _prepare(tmp_path, tokenizers).rows.tolist() == KEPT


def test_sides_of_different_length_are_an_error(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    with pytest.raises(
        DataError, match="train: source and target have different numbers of lines"
    ):
        _prepare(tmp_path, tokenizers, src_texts=SRC[:-1])
    assert list(tmp_path.iterdir()) == []


def test_no_pair_left_is_an_error_that_counts(
    tmp_path: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> None:
    with pytest.raises(
        DataError,
        match=r"train: no pair is left to use .6 longer than data.max_len, 2 empty",
    ):
        _prepare(
            tmp_path, tokenizers, max_len=1, tgt_texts=["hello hello hi"] * len(SRC)
        )
    with pytest.raises(DataError, match="there is none"):
        _prepare(tmp_path, tokenizers, src_texts=[], tgt_texts=[])
    assert list(tmp_path.iterdir()) == []
