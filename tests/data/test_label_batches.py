"""Every row once an epoch with its text's labels, and the same batch for the same (seed, epoch,
position).
"""

from dataclasses import fields
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config import SideSection
from weft.data.label_batches import (
    LabelArray,
    LabelBatch,
    LabelBatches,
    padded_label_batches,
)
from weft.data.store import TextStore, prepare_text_store
from weft.data.tokenizer import train_tokenizer


class _Store:
    """A store in memory whose ids tell their row: those of row i are 10 + i; its text is number 3 *
    i.
    """

    def __init__(self, lens: list[int]) -> None:
        rows = np.arange(len(lens))
        self.ids = np.repeat(10 + rows, lens).astype(np.uint16)
        self.offsets = np.concatenate([[0], np.cumsum(lens, dtype=np.int64)])
        self.lens = np.diff(self.offsets)
        self.rows = 3 * rows

    def __len__(self) -> int:
        return len(self.lens)


def _store(lens: list[int]) -> TextStore:
    return cast(TextStore, _Store(lens))


def _random_store(num_rows: int = 700) -> TextStore:
    return _store(np.random.default_rng(3).integers(1, 30, num_rows).tolist())


def _labels(store: TextStore) -> LabelArray:
    """The label of text 3 * i is i modulo 5; other texts have none that could pass."""
    labels = np.full(3 * len(store), -1, dtype=np.int64)
    labels[::3] = np.arange(len(store)) % 5
    return labels


def _epoch(batches: LabelBatches, epoch: int) -> list[LabelBatch]:
    return [
        batches.batch(epoch, position) for position in range(batches.num_batches(epoch))
    ]


def _equal(a: LabelBatch, b: LabelBatch) -> bool:
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(LabelBatch)]
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in pairs)


@pytest.mark.parametrize("limit", [(200, None), (None, 32)])
def test_the_sizes_of_an_epoch_are_those_of_its_batches(
    limit: tuple[int | None, int | None],
) -> None:
    store = _random_store()
    batches = LabelBatches(store, _labels(store), *limit, seed=1, first_id=7)
    for epoch in (0, 1):
        sizes = [batch.ids.numel() for batch in _epoch(batches, epoch)]
        assert batches.sizes(epoch).tolist() == sizes


def test_a_batch_has_its_rows_their_labels_and_padding() -> None:
    store = _store([2, 3])
    batch = next(padded_label_batches(store, _labels(store), 100))
    assert batch.ids.tolist() == [[10, 10, 0], [11, 11, 11]]
    assert (batch.rows.tolist(), batch.labels.tolist()) == ([0, 1], [0, 1])
    assert (batch.num_src_tokens, batch.num_tgt_tokens, batch.describe()) == (
        5,
        2,
        "2 texts, length 3",
    )
    assert {batch.ids.dtype, batch.labels.dtype} == {torch.int64}


def test_the_first_id_stands_before_every_row() -> None:
    store = _store([2, 3, 1])
    batch = next(padded_label_batches(store, _labels(store), 100, first_id=2))
    assert batch.ids.tolist() == [[2, 12, 0, 0], [2, 10, 10, 0], [2, 11, 11, 11]]
    assert batch.num_src_tokens == 9
    batch = LabelBatches(store, _labels(store), None, 3, 1, first_id=7).batch(0, 0)
    assert batch.ids[:, 0].tolist() == [7, 7, 7]
    assert sorted(batch.ids[:, 1].tolist()) == [10, 11, 12]


def test_several_labels_a_text_are_rows_of_zeros_and_ones() -> None:
    store = _store([1, 1])
    hot = np.zeros((4, 3), dtype=np.float32)
    hot[0, [0, 2]], hot[3, 1] = 1.0, 1.0
    batch = next(padded_label_batches(store, hot, 100))
    assert batch.labels.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    assert batch.labels.dtype == torch.float32
    batch.labels[0, 0] = 5.0
    assert hot[0, 0] == 1.0, "a batch is a copy"


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=40),
    tokens=st.integers(1, 60),
    epoch=st.integers(0, 3),
    first=st.booleans(),
)
def test_token_batches_hold_every_row_once_within_the_limit(
    lengths: list[int], tokens: int, epoch: int, first: bool
) -> None:
    store, before = _store(lengths), [2] if first else []
    labels, first_id = _labels(store), 2 if first else None
    trained = _epoch(LabelBatches(store, labels, tokens, None, 7, first_id), epoch)
    for batches in (
        trained,
        list(padded_label_batches(store, labels, tokens, first_id)),
    ):
        assert sorted(row for b in batches for row in b.rows) == list(
            range(len(lengths))
        )
        for batch in batches:
            assert batch.ids.numel() <= tokens or len(batch.rows) == 1
            assert batch.num_src_tokens == int((batch.ids != 0).sum())
            assert batch.num_tgt_tokens == len(batch.rows) == len(batch.labels)
            for row, ids, label in zip(
                batch.rows, batch.ids, batch.labels, strict=True
            ):
                assert ids[ids != 0].tolist() == before + [10 + row] * lengths[row]
                assert ids[: len(before) + lengths[row]].all(), (
                    "padding is on the right"
                )
                assert label == row % 5


@pytest.mark.parametrize(
    ("num_rows", "batch_size"), [(700, 32), (64, 32), (5, 32), (33, 32), (7, 1)]
)
def test_batches_of_texts_have_exactly_that_many_but_the_last(
    num_rows: int, batch_size: int
) -> None:
    store = _random_store(num_rows)
    batches = _epoch(LabelBatches(store, _labels(store), None, batch_size, 1), 0)
    sizes = [len(batch.rows) for batch in batches]
    assert sizes == [batch_size] * (num_rows // batch_size) + [
        num_rows % batch_size
    ] * (num_rows % batch_size > 0)
    assert sorted(row for b in batches for row in b.rows) == list(range(num_rows))


def test_a_row_beyond_the_limit_is_a_batch_of_its_own() -> None:
    store = _store([90, 2, 2])
    batches = _epoch(LabelBatches(store, _labels(store), 20, None, 1), 0)
    assert sorted(sorted(batch.rows.tolist()) for batch in batches) == [[0], [1, 2]]


def test_a_batch_is_filled_to_the_very_limit() -> None:
    store = _store([2] * 6)
    labels = _labels(store)
    for tokens, first_id, expected in (
        (6, None, [3, 3]),
        (5, None, [2, 2, 2]),
        (6, 2, [2, 2, 2]),
        (1, 2, [1] * 6),
    ):
        assert [
            len(b.rows) for b in padded_label_batches(store, labels, tokens, first_id)
        ] == expected


def test_four_thousand_tokens_where_nothing_is_said() -> None:
    store = _random_store()
    assert [
        b.rows.tolist()
        for b in _epoch(LabelBatches(store, _labels(store), None, None, 1), 0)
    ] == [
        b.rows.tolist()
        for b in _epoch(LabelBatches(store, _labels(store), 4096, None, 1), 0)
    ]


@pytest.mark.parametrize(("tokens", "batch_size"), [(128, None), (None, 16)])
def test_a_batch_depends_on_seed_epoch_and_position_alone(
    tokens: int | None, batch_size: int | None
) -> None:
    store = _random_store()
    labels = _labels(store)
    straight = LabelBatches(store, labels, tokens, batch_size, 5)
    first, second = _epoch(straight, 0), _epoch(straight, 1)
    resumed = LabelBatches(store, labels, tokens, batch_size, 5)
    assert _equal(resumed.batch(1, 3), second[3])
    assert _equal(resumed.batch(0, 3), first[3])
    assert _equal(resumed.batch(1, 0), second[0])
    assert not _equal(first[3], second[3])
    assert not _equal(
        LabelBatches(store, labels, tokens, batch_size, 6).batch(0, 3), first[3]
    )


def test_batches_come_in_random_order_of_length_and_with_other_rows_each_epoch() -> (
    None
):
    store = _random_store()
    batches = LabelBatches(store, _labels(store), 256, None, 5)
    first, second = _epoch(batches, 0), _epoch(batches, 1)
    widths = [batch.ids.shape[1] for batch in first]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.5
    before, after = (
        {frozenset(b.rows.tolist()) for b in epoch} for epoch in (first, second)
    )
    assert len(before & after) < 0.1 * len(before)


def test_little_is_padded() -> None:
    store = _random_store()
    batches = _epoch(LabelBatches(store, _labels(store), 256, None, 5), 0)
    assert (
        sum(b.num_src_tokens for b in batches) / sum(b.ids.numel() for b in batches)
        > 0.9
    )


def test_evaluation_batches_go_up_in_length_and_never_change() -> None:
    store = _random_store()
    batches = list(padded_label_batches(store, _labels(store), 300))
    lengths = [length for batch in batches for length in store.lens[batch.rows]]
    assert lengths == sorted(lengths)
    again = padded_label_batches(store, _labels(store), 300)
    assert all(_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_positions_beyond_an_epoch_are_refused() -> None:
    store = _random_store()
    batches = LabelBatches(store, _labels(store), 256, None, 1)
    for position in (-1, batches.num_batches(0)):
        with pytest.raises(IndexError, match="epoch 0 has batches 0 to"):
            batches.batch(0, position)


def test_every_window_of_a_text_has_the_labels_of_the_text(tmp_path: Path) -> None:
    texts = ["red green", "", "blue " * 9, "green"]
    tokenizer = train_tokenizer(texts, SideSection(kind="word"))
    store = prepare_text_store(
        tmp_path,
        "train",
        texts,
        tokenizer,
        max_len=4,
        too_long="windows",
        text_key="made",
    )
    labels = np.array([5, -1, 7, 11], dtype=np.int64)
    batches = list(padded_label_batches(store, labels, 12))
    found = sorted(
        (int(label), tokenizer.decode(ids.tolist()).strip())
        for batch in batches
        for label, ids in zip(batch.labels, batch.ids, strict=True)
    )
    assert found == [
        (5, "red green"),
        (7, "blue"),
        (7, "blue blue blue blue"),
        (7, "blue blue blue blue"),
        (11, "green"),
    ]
