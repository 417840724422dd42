"""Every row once an epoch, little padding, and the same batch for the same (seed, epoch,
position).
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config import SideSection, TokenizerSection
from weft.data.batches import Batch, Batches, epoch_generator, padded_batches
from weft.data.store import ParallelStore, prepare_store
from weft.data.tokenizer import build_tokenizers


class _Store:
    """A store in memory whose ids tell their row: source ids of row i are 10 + i, target ids 1000 +
    i.
    """

    def __init__(self, src_lens: list[int], tgt_lens: list[int]) -> None:
        rows = np.arange(len(src_lens))
        self.src_ids = np.repeat(10 + rows, src_lens).astype(np.uint16)
        self.tgt_ids = np.repeat(1000 + rows, tgt_lens).astype(np.uint16)
        self.src_offsets, self.tgt_offsets = (
            np.concatenate([[0], np.cumsum(lens, dtype=np.int64)])
            for lens in (src_lens, tgt_lens)
        )
        self.src_lens, self.tgt_lens = (
            np.diff(self.src_offsets),
            np.diff(self.tgt_offsets),
        )

    def __len__(self) -> int:
        return len(self.src_lens)


def _store(src_lens: list[int], tgt_lens: list[int]) -> ParallelStore:
    return cast(ParallelStore, _Store(src_lens, tgt_lens))


def _random_store(num_rows: int = 700) -> ParallelStore:
    generator = np.random.default_rng(3)
    src = generator.integers(1, 30, num_rows)
    tgt = np.maximum(1, src + generator.integers(-3, 4, num_rows))
    return _store(src.tolist(), tgt.tolist())


def _epoch(batches: Batches, epoch: int) -> list[Batch]:
    return [
        batches.batch(epoch, position) for position in range(batches.num_batches(epoch))
    ]


def _size(batch: Batch) -> int:
    return batch.src.numel() + batch.tgt_in.numel()


def _equal(a: Batch, b: Batch) -> bool:
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(Batch)]
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in pairs)


@pytest.mark.parametrize("limit", [(200, None), (None, 32)])
def test_the_sizes_of_an_epoch_are_those_of_its_batches(
    limit: tuple[int | None, int | None],
) -> None:
    batches = Batches(_random_store(), *limit, seed=1)
    for epoch in (0, 1):
        sizes = [_size(batch) for batch in _epoch(batches, epoch)]
        assert batches.sizes(epoch).tolist() == sizes


def test_a_batch_has_its_rows_with_bos_eos_and_padding() -> None:
    batch = next(padded_batches(_store([2, 3], [1, 4]), 100))
    assert batch.rows.tolist() == [0, 1]
    assert batch.src.tolist() == [[10, 10, 3, 0], [11, 11, 11, 3]]
    assert batch.tgt_in.tolist() == [[2, 1000, 0, 0, 0], [2, 1001, 1001, 1001, 1001]]
    assert batch.tgt_out.tolist() == [[1000, 3, 0, 0, 0], [1001, 1001, 1001, 1001, 3]]
    assert (batch.num_src_tokens, batch.num_tgt_tokens) == (7, 7)
    assert {batch.src.dtype, batch.tgt_in.dtype, batch.tgt_out.dtype} == {torch.int64}


def test_a_batch_is_a_stretch_of_the_shuffled_rows_in_order_of_their_lengths() -> None:
    store = _random_store(400)
    lens = [(store.src_lens + 1).tolist(), (store.tgt_lens + 1).tolist()]
    widths = [[min(n + n % 2, max(side)) for n in side] for side in lens]
    batches = Batches(store, 300, None, 5)
    flipped = set()
    for epoch in range(6):
        generator = epoch_generator(5, epoch)
        rows = generator.permutation(400).tolist()
        is_flipped = int(generator.integers(2))
        first, second = widths[::-1] if is_flipped else widths
        signs = [-1 if n % 4 else 1 for n in first]
        keys = [(a, sign * b) for a, b, sign in zip(first, second, signs, strict=True)]
        rows.sort(key=keys.__getitem__)
        for batch in _epoch(batches, epoch):
            place = rows.index(batch.rows[0])
            assert batch.rows.tolist() == rows[place : place + len(batch.rows)]
        flipped.add(is_flipped)
    assert flipped == {0, 1}


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=40
    ),
    tokens=st.integers(1, 80),
    epoch=st.integers(0, 3),
)
def test_token_batches_hold_every_row_once_within_the_limit(
    lengths: list[tuple[int, int]], tokens: int, epoch: int
) -> None:
    store = _store(*map(list, zip(*lengths, strict=True)))
    for batches in (
        _epoch(Batches(store, tokens, None, 7), epoch),
        list(padded_batches(store, tokens)),
    ):
        assert sorted(row for b in batches for row in b.rows) == list(
            range(len(lengths))
        )
        for batch in batches:
            assert _size(batch) <= tokens or len(batch.rows) == 1
            assert batch.num_src_tokens == int((batch.src != 0).sum())
            assert (
                batch.num_tgt_tokens
                == int((batch.tgt_out != 0).sum())
                == int((batch.tgt_in != 0).sum())
            )
            for row, src, tgt in zip(batch.rows, batch.src, batch.tgt_out, strict=True):
                assert src[src != 0].tolist() == [10 + row] * lengths[row][0] + [3]
                assert tgt[tgt != 0].tolist() == [1000 + row] * lengths[row][1] + [3]


@pytest.mark.parametrize(
    ("num_rows", "batch_size"), [(700, 32), (64, 32), (5, 32), (33, 32), (7, 1)]
)
def test_sentence_batches_have_exactly_that_many_but_the_last(
    num_rows: int, batch_size: int
) -> None:
    batches = _epoch(Batches(_random_store(num_rows), None, batch_size, 1), 0)
    sizes = [len(batch.rows) for batch in batches]
    assert sizes == [batch_size] * (num_rows // batch_size) + [
        num_rows % batch_size
    ] * (num_rows % batch_size > 0)
    assert sorted(row for b in batches for row in b.rows) == list(range(num_rows))


def test_a_row_beyond_the_limit_is_a_batch_of_its_own() -> None:
    batches = _epoch(Batches(_store([90, 2, 2], [90, 2, 2]), 20, None, 1), 0)
    assert sorted(batch.rows.tolist() for batch in batches)[0] == [0]
    assert sorted(len(batch.rows) for batch in batches) == [1, 2]


def test_four_thousand_tokens_where_nothing_is_said() -> None:
    store = _random_store()
    assert [b.rows.tolist() for b in _epoch(Batches(store, None, None, 1), 0)] == [
        b.rows.tolist() for b in _epoch(Batches(store, 4096, None, 1), 0)
    ]


@pytest.mark.parametrize(("tokens", "batch_size"), [(256, None), (None, 16)])
def test_a_batch_depends_on_seed_epoch_and_position_alone(
    tokens: int | None, batch_size: int | None
) -> None:
    store = _random_store()
    straight = Batches(store, tokens, batch_size, 5)
    first, second = _epoch(straight, 0), _epoch(straight, 1)
    resumed = Batches(store, tokens, batch_size, 5)
    assert _equal(resumed.batch(1, 3), second[3])
    assert _equal(resumed.batch(0, 3), first[3])
    assert _equal(resumed.batch(1, 0), second[0])
    assert not _equal(first[3], second[3])
    assert not _equal(Batches(store, tokens, batch_size, 6).batch(0, 3), first[3])


def test_batches_come_in_random_order_of_length_and_with_other_rows_each_epoch() -> (
    None
):
    batches = Batches(_random_store(), 256, None, 5)
    first, second = _epoch(batches, 0), _epoch(batches, 1)
    widths = [batch.src.shape[1] for batch in first]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.5
    before = {frozenset(batch.rows.tolist()) for batch in first}
    after = {frozenset(batch.rows.tolist()) for batch in second}
    assert len(before & after) < 0.1 * len(before)


def test_rows_of_one_length_are_mixed_anew_each_epoch() -> None:
    batches = Batches(_store([5] * 240, [5] * 240), 12 * 24, None, 5)
    first, second = (
        [set(b.rows.tolist()) for b in _epoch(batches, epoch)] for epoch in (0, 1)
    )
    assert [len(rows) for rows in first] == [24] * 10
    assert max(len(a & b) for a in first for b in second) < 12


def test_a_batch_is_filled_to_the_very_limit() -> None:
    assert [len(b.rows) for b in padded_batches(_store([1] * 6, [1] * 6), 8)] == [
        2,
        2,
        2,
    ]
    assert [len(b.rows) for b in padded_batches(_store([1] * 6, [1] * 6), 7)] == [1] * 6


def test_batches_meet_few_shapes() -> None:
    generator = np.random.default_rng(3)
    store = _store(*generator.integers(1, 40, (2, 3000)).tolist())
    batches = [
        batch
        for epoch in range(3)
        for batch in _epoch(Batches(store, 4096, None, 5), epoch)
    ]
    assert {len(b.rows) % 8 for b in batches if len(b.rows) > 8} == {0}
    longest = max(int(lens.max()) for lens in (store.src_lens, store.tgt_lens)) + 1
    lengths = {side.shape[1] for b in batches for side in (b.src, b.tgt_in)}
    assert {length % 2 for length in lengths - {longest}} == {0}
    assert max(lengths) == longest, "no row is padded beyond what the longest has"


def test_evaluation_batches_go_up_in_length_and_never_change() -> None:
    store = _random_store()
    batches = list(padded_batches(store, 300))
    lengths = [length for batch in batches for length in store.src_lens[batch.rows]]
    assert lengths == sorted(lengths)
    assert all(
        _equal(a, b) for a, b in zip(batches, padded_batches(store, 300), strict=True)
    )


def test_positions_beyond_an_epoch_are_refused() -> None:
    batches = Batches(_random_store(), 256, None, 1)
    for position in (-1, batches.num_batches(0)):
        with pytest.raises(IndexError, match="epoch 0 has batches 0 to"):
            batches.batch(0, position)


@pytest.mark.long
def test_padding_on_multi30k_is_below_five_percent_while_batches_vary(
    tmp_path: Path,
) -> None:
    folder = (
        Path(os.environ.get("WEFT_DATA", Path(__file__).parents[3] / "shared" / "data"))
        / "multi30k"
    )
    if not folder.is_dir():
        pytest.skip(
            f"{folder} is absent; set WEFT_DATA to a folder that holds multi30k"
        )
    src, tgt = (
        (folder / f"train.{lang}").read_text("utf-8").split("\n")[:-1]
        for lang in ("en", "de")
    )
    side = SideSection(kind="bpe", vocab_size=8000)
    tokenizers = build_tokenizers(TokenizerSection(src=side, tgt=side), src, tgt)
    store = prepare_store(
        tmp_path, "train", (src, tgt), tokenizers, max_len=256, text_key="multi30k"
    )
    assert len(store) == len(src)
    batches = Batches(store, 4096, None, 1)
    epochs = [_epoch(batches, epoch) for epoch in (0, 1)]
    for epoch in epochs:
        real = sum(batch.num_src_tokens + batch.num_tgt_tokens for batch in epoch)
        assert 1 - real / sum(map(_size, epoch)) < 0.05
    where = np.empty(len(store), dtype=np.int64)
    for number, batch in enumerate(epochs[1]):
        where[batch.rows] = number
    # Of the rows that share a batch with a given row, how many do so again in the next epoch?
    again = [
        float((np.bincount(where[b.rows]) ** 2).sum()) / len(b.rows) ** 2
        for b in epochs[0]
    ]
    assert float(np.mean(again)) < 0.25


def test_weights_of_one_change_no_batch() -> None:
    store = _random_store()
    ones = np.ones(len(store))
    for limit in ({"tokens_per_batch": 300}, {"batch_size": 16}):
        sizes = {"tokens_per_batch": None, "batch_size": None} | limit
        plain = Batches(store, seed=5, **sizes)
        weighted = Batches(store, seed=5, weights=ones, **sizes)
        for epoch in range(2):
            for one, other in zip(
                _epoch(plain, epoch), _epoch(weighted, epoch), strict=True
            ):
                assert one.rows.tolist() == other.rows.tolist()
                assert torch.equal(one.src, other.src)


def test_a_row_is_read_as_often_as_its_weight_says() -> None:
    store = _random_store(400)
    weights = np.repeat([2.5, 0.25, 1.0, 0.0], 100)
    batches = Batches(store, 300, None, seed=5, weights=weights)
    seen = []
    for epoch in range(40):
        rows = np.concatenate([batch.rows for batch in _epoch(batches, epoch)])
        counts = np.bincount(rows, minlength=400)
        assert set(counts[:100]) <= {2, 3}
        assert set(counts[100:200]) <= {0, 1}
        assert set(counts[200:300]) == {1}
        assert not counts[300:].any()
        seen.append(counts)
    assert len({counts.tobytes() for counts in seen}) == 40
    mean = np.mean(seen, axis=0)
    assert abs(mean[:100].mean() - 2.5) < 0.05
    assert abs(mean[100:200].mean() - 0.25) < 0.05
    # a function of seed, epoch and position alone, whatever was asked for before
    again = Batches(store, 300, None, seed=5, weights=weights)
    assert again.batch(7, 1).rows.tolist() == batches.batch(7, 1).rows.tolist()
    other = Batches(store, 300, None, seed=6, weights=weights)
    assert other.batch(7, 1).rows.tolist() != batches.batch(7, 1).rows.tolist()


def test_an_epoch_of_hardly_any_weight_is_not_empty() -> None:
    store = _random_store(5)
    weights = np.array([1e-9, 1e-9, 1e-8, 1e-9, 1e-9])
    batches = Batches(store, 300, None, seed=5, weights=weights)
    assert [batch.rows.tolist() for batch in _epoch(batches, 3)] == [[2]]
