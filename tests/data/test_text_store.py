"""Single texts on disk: cut, in windows or whole; nothing lost but what is counted; reused while it
is right.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from weft.config import SideSection
from weft.data import store as store_module
from weft.data.rows import IdRows
from weft.data.store import EMPTY, TextStore, prepare_text_store
from weft.data.tokenizer import Tokenizer, train_tokenizer
from weft.errors import DataError, FolderError
from weft.folder.durable import TEMPORARY

TEXTS = ["abc", "", "defgh\nijk", " \t\n", "é", "lmnopqr"]
KEPT = [0, 2, 4, 5]


class _Letters:
    """A tokenizer whose ids are code points; it notes how it was asked."""

    vocab_size = 2**16
    sha256 = "letters"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.alone: list[str] = []

    def encode_rows(self, texts: Sequence[str]) -> IdRows:
        self.batches.append(list(texts))
        return IdRows.of([[ord(c) for c in text] for text in texts])

    def encode_long(self, text: str) -> list[int]:
        self.alone.append(text)
        return [ord(c) for c in text]


def prepare(
    folder: Path, texts: Any = TEXTS, tokenizer: Any = None, **changed: Any
) -> TextStore:
    arguments: dict[str, Any] = {
        "max_len": None,
        "too_long": "keep",
        "text_key": "k",
    } | changed
    return prepare_text_store(
        folder, "train", texts, cast(Tokenizer, tokenizer or _Letters()), **arguments
    )


def read(store: TextStore) -> list[str]:
    return ["".join(map(chr, store.ids_of(i))) for i in range(len(store))]


def test_texts_come_back_as_they_were_encoded(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, SideSection(kind="character", vocab_size=300))
    store = prepare(tmp_path, tokenizer=tokenizer)
    assert [store.ids_of(i).tolist() for i in range(len(store))] == [
        tokenizer.encode(TEXTS[row]) for row in KEPT
    ]
    assert store.rows.tolist() == KEPT
    assert store.lens.tolist() == [3, 9, 1, 7]
    assert store.offsets.tolist() == [0, 3, 12, 13, 20]
    assert (len(store), store.num_tokens) == (4, 20)
    assert store.ids.dtype == np.uint16
    assert (store.dropped, store.num_cut) == ({EMPTY: 2}, 0)


def test_bytes_are_those_of_the_kept_texts_as_they_were_given(tmp_path: Path) -> None:
    assert prepare(tmp_path).num_bytes == 3 + 9 + 2 + 7
    lower = train_tokenizer(
        ["ſß"],
        SideSection(kind="character", vocab_size=300, lowercase=True, unicode="NFKC"),
    )
    assert prepare(tmp_path, ["ſß", "\ud800"], lower).num_bytes == 4 + 3
    assert prepare(tmp_path, ["語語語"], max_len=1, too_long="cut").num_bytes == 9


def test_a_long_text_is_cut_off_and_counted(tmp_path: Path) -> None:
    store = prepare(tmp_path, max_len=3, too_long="cut")
    assert read(store) == ["abc", "def", "é", "lmn"]
    assert (store.rows.tolist(), store.num_cut, store.dropped) == (KEPT, 2, {EMPTY: 2})


def test_a_long_text_becomes_windows_of_one_number(tmp_path: Path) -> None:
    store = prepare(tmp_path, max_len=3, too_long="windows")
    assert read(store) == ["abc", "def", "gh\n", "ijk", "é", "lmn", "opq", "r"]
    assert store.rows.tolist() == [0, 2, 2, 2, 4, 5, 5, 5]
    assert (store.num_cut, store.dropped) == (2, {EMPTY: 2})


def test_without_a_limit_nothing_is_cut(tmp_path: Path) -> None:
    for too_long, max_len in (
        ("keep", 1),
        ("keep", None),
        ("cut", None),
        ("windows", None),
        ("cut", 9),
    ):
        store = prepare(tmp_path, max_len=max_len, too_long=too_long)
        assert (read(store), store.num_cut) == ([TEXTS[row] for row in KEPT], 0)


def test_chunks_are_bounded_and_leave_no_seams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a" * n for n in (4, 5, 11, 2, 10, 1, 0, 3, 3)]
    whole = prepare(tmp_path / "whole", texts, max_len=6, too_long="windows")
    monkeypatch.setattr(store_module, "LONG_TEXT", 10)
    monkeypatch.setattr(store_module, "_CHUNK", 3)
    letters = _Letters()
    parts = prepare(
        tmp_path / "parts", iter(texts), letters, max_len=6, too_long="windows"
    )
    assert [list(map(len, batch)) for batch in letters.batches] == [
        [4, 5],
        [2],
        [10],
        [1, 0, 3],
        [3],
    ]
    assert letters.alone == ["a" * 11]
    for name in ("rows", "ids", "offsets"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert (
        (whole.num_cut, whole.num_bytes) == (parts.num_cut, parts.num_bytes) == (2, 39)
    )


def test_a_text_of_many_characters_has_the_ids_that_it_has_anywhere(
    tmp_path: Path,
) -> None:
    tokenizer = train_tokenizer(
        ["ab ba abba"], SideSection(kind="character", vocab_size=300)
    )
    text = "ab\nba " * 20_000
    assert len(text) > store_module.LONG_TEXT
    store = prepare(tmp_path, [text, "ab"], tokenizer)
    assert store.ids_of(0).tolist() == tokenizer.encode(text)
    assert store.ids_of(1).tolist() == tokenizer.encode("ab")


def test_it_is_reused_while_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(tmp_path, max_len=3, too_long="cut")
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_Writer", None)
        # the text is not even looked at
        again = prepare(tmp_path, None, max_len=3, too_long="cut")
    assert (again.key, again.dropped, again.num_cut, again.num_bytes) == (
        first.key, first.dropped, first.num_cut, first.num_bytes,
    )  # fmt: skip
    assert again.ids.tolist() == first.ids.tolist()
    other = _Letters()
    other.sha256 = "others"
    keys = {
        first.key,
        prepare(tmp_path, max_len=4, too_long="cut").key,
        prepare(tmp_path, max_len=3, too_long="windows").key,
        prepare(tmp_path, max_len=3, too_long="cut", text_key="l").key,
        prepare(tmp_path, tokenizer=other, max_len=3, too_long="cut").key,
        prepare(tmp_path, max_len=3).key,
    }
    assert len(keys) == 6
    # no limit is kept with "keep"
    assert prepare(tmp_path, max_len=4).key == prepare(tmp_path, max_len=3).key
    assert [p.name for p in tmp_path.iterdir()] == ["train"]


@pytest.mark.parametrize(
    "name", ["ids.npy", "offsets.npy", "rows.npy", "manifest.json"]
)
@pytest.mark.parametrize("fault", ["flipped", "missing"])
def test_a_damaged_store_is_made_anew(tmp_path: Path, name: str, fault: str) -> None:
    prepare(tmp_path)
    good = {p.name: p.read_bytes() for p in sorted((tmp_path / "train").iterdir())}
    content = bytearray(good[name])
    content[-3] ^= 1
    (tmp_path / "train" / name).unlink()
    if fault == "flipped":
        (tmp_path / "train" / name).write_bytes(content)
    with pytest.raises(FolderError):
        TextStore(tmp_path / "train")
    prepare(tmp_path)
    assert {
        p.name: p.read_bytes() for p in sorted((tmp_path / "train").iterdir())
    } == good


def test_an_interrupted_write_leaves_nothing_and_leftovers_go(tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield "a" * 200_000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path, interrupted())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / f"{TEMPORARY}0123").mkdir()
    prepare(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["train"]


def test_no_text_left_is_an_error_that_counts(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"train: no text is left to use .2 empty.; check"
    ):
        prepare(tmp_path, ["", " "])
    with pytest.raises(DataError, match="there is none"):
        prepare(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


def test_the_arrays_are_mapped_not_read(tmp_path: Path) -> None:
    store = prepare(tmp_path)
    for array in (store.ids, store.offsets, store.rows):
        assert not array.flags.owndata
        assert not array.flags.writeable
