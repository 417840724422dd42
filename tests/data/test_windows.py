"""Every token a label once, in windows that are the same for the same (seed, epoch, position)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config import SideSection
from weft.data.store import TextStore, prepare_text_store
from weft.data.streams import scored_windows
from weft.data.tokenizer import train_tokenizer
from weft.data.windows import PackedBatches, StreamBatches, WindowBatch, scoring_windows
from weft.errors import DataError

Lens = st.lists(st.integers(1, 40), min_size=1, max_size=30)


class _CountingIds:
    """Ids that count how many of them are read."""

    def __init__(self, ids: Any) -> None:
        self.ids, self.read = ids, 0

    def __getitem__(self, where: Any) -> Any:
        found = self.ids[where]
        self.read += found.size
        return found


class _Store:
    """A store in memory; every id of it is another one, 10 and up, unless they are given."""

    def __init__(self, lens: Sequence[int], ids: Sequence[int] | None = None) -> None:
        self.lens = np.array(lens, dtype=np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.lens)])
        self.ids: Any = np.array(
            range(10, 10 + sum(lens)) if ids is None else ids, dtype=np.uint32
        )

    def __len__(self) -> int:
        return len(self.lens)

    @property
    def num_tokens(self) -> int:
        return len(self.ids)


def store_of(*lens: int) -> TextStore:
    return cast(TextStore, _Store(lens))


def epoch_of(batches: StreamBatches | PackedBatches, epoch: int) -> list[WindowBatch]:
    return [
        batches.batch(epoch, position) for position in range(batches.num_batches(epoch))
    ]


def labels(batches: Sequence[WindowBatch]) -> list[int]:
    """All labels but padding, row by row."""
    return [int(i) for batch in batches for row in batch.tgt_out for i in row if i != 0]


def equal(a: WindowBatch, b: WindowBatch) -> bool:
    fields = ("tgt_in", "tgt_out", "segments", "num_tgt_tokens")
    pairs = [(getattr(a, name), getattr(b, name)) for name in fields]
    return all(
        x == y if y is None or isinstance(y, int) else torch.equal(x, y)
        for x, y in pairs
    )


def segments_of(batch: WindowBatch) -> torch.Tensor:
    assert batch.segments is not None
    return batch.segments


def texts_of(lens: Sequence[int]) -> list[list[int]]:
    """The ids of each document of `store_of(*lens)`."""
    ends = np.cumsum(lens)
    return [
        list(range(10 + end - length, 10 + end))
        for end, length in zip(ends.tolist(), lens, strict=True)
    ]


@pytest.mark.parametrize("kind", [StreamBatches, PackedBatches])
@pytest.mark.parametrize("lens", [(301,), (5, 40, 12, 1, 33, 90, 8)])
def test_the_sizes_of_an_epoch_are_those_of_its_batches(
    kind: type[StreamBatches | PackedBatches], lens: tuple[int, ...]
) -> None:
    batches = kind(store_of(*lens), window_len=20, batch_size=3, seed=1)
    for epoch in (0, 1):
        sizes = [batch.tgt_in.numel() for batch in epoch_of(batches, epoch)]
        assert batches.sizes(epoch).tolist() == sizes


class TestStream:
    def test_a_single_document_is_read_in_parallel_stretches(self) -> None:
        # 9 // 10 + 1 = 1: no offset
        batches = StreamBatches(store_of(9), window_len=3, batch_size=2, seed=1)
        first, second = epoch_of(batches, 0)
        assert first.tgt_in.tolist() == [[10, 11, 12], [14, 15, 16]]
        assert first.tgt_out.tolist() == [[11, 12, 13], [15, 16, 17]]
        assert second.tgt_in.tolist() == [[13], [17]]
        assert second.tgt_out.tolist() == [[14], [18]]
        assert (first.num_tgt_tokens, second.num_tgt_tokens, first.num_src_tokens) == (
            6,
            2,
            0,
        )
        assert (first.segments, first.tgt_in.dtype, first.describe()) == (
            None,
            torch.int64,
            "2 windows of 3 tokens",
        )

    def test_several_documents_end_in_eos_and_are_put_in_another_order(self) -> None:
        batches = StreamBatches(store_of(2, 1, 3), window_len=100, batch_size=1, seed=1)
        orders = set()
        for epoch in range(60):
            (batch,) = epoch_of(batches, epoch)
            joined = [*batch.tgt_in[0].tolist(), int(batch.tgt_out[0, -1])]
            assert joined[1:] == batch.tgt_out[0].tolist()
            parts = " ".join(map(str, joined)).split(" 3")
            assert sorted(map(str.strip, parts)) == ["", "10 11", "12", "13 14 15"]
            orders.add(tuple(joined))
        assert len(orders) == 6

    @settings(max_examples=80, deadline=None)
    @given(
        lens=Lens,
        window_len=st.integers(1, 50),
        batch_size=st.integers(1, 9),
        epoch=st.integers(0, 3),
    )
    def test_a_stretch_of_the_stream_is_predicted_once(
        self, lens: list[int], window_len: int, batch_size: int, epoch: int
    ) -> None:
        several = len(lens) > 1
        total = sum(lens) + several * len(lens)
        if total < 2:
            return
        found = epoch_of(
            StreamBatches(store_of(*lens), window_len, batch_size, 7), epoch
        )
        streams = min(batch_size, total // 2)
        widths = [batch.tgt_in.shape[1] for batch in found]
        assert {batch.tgt_in.shape[0] for batch in found} == {streams}
        assert widths[:-1] == [window_len] * (len(found) - 1)
        assert 1 <= widths[-1] <= window_len
        inputs = torch.cat([batch.tgt_in for batch in found], dim=1)
        outputs = torch.cat([batch.tgt_out for batch in found], dim=1)
        # the streams lie one behind the other
        joined = torch.cat([inputs[:1, 0], outputs.reshape(-1)])
        assert torch.equal(inputs.reshape(-1), joined[:-1])
        assert sum(batch.num_tgt_tokens for batch in found) == outputs.numel()
        lost = total - len(joined)
        assert 0 <= lost <= min(window_len - 1, total // 10) + streams - 1
        whole = Counter(
            [
                *(i for text in texts_of(lens) for i in text),
                *[3] * (several * len(lens)),
            ]
        )
        assert Counter(joined.tolist()) <= whole
        # a document is read from its beginning to its end, then comes eos
        for text in texts_of(lens):
            where = [joined.tolist().index(i) for i in text if i in joined.tolist()]
            assert where == list(
                range(min(where, default=0), min(where, default=0) + len(where))
            )

    def test_a_batch_depends_on_seed_epoch_and_position_alone(self) -> None:
        for store in (store_of(*[13] * 50), store_of(1000)):
            straight = StreamBatches(store, 7, 5, seed=5)
            first, second = epoch_of(straight, 0), epoch_of(straight, 1)
            resumed = StreamBatches(store, 7, 5, seed=5)
            assert equal(resumed.batch(1, 3), second[3])
            assert equal(resumed.batch(0, 3), first[3])
            assert equal(resumed.batch(1, 0), second[0])

    def test_epochs_and_seeds_differ_even_for_one_document(self) -> None:
        for store in (store_of(*[13] * 50), store_of(1000)):
            batches = StreamBatches(store, 7, 5, seed=5)
            begins = {
                tuple(batches.batch(epoch, 0).tgt_in[:, 0].tolist())
                for epoch in range(80)
            }
            assert len(begins) >= 7
            others = [
                StreamBatches(store, 7, 5, seed).batch(0, 0) for seed in range(80)
            ]
            assert len({tuple(batch.tgt_in[:, 0].tolist()) for batch in others}) >= 7

    def test_a_short_text_has_fewer_streams_and_loses_little(self) -> None:
        batches = StreamBatches(store_of(7), window_len=100, batch_size=32, seed=1)
        (batch,) = epoch_of(batches, 0)
        assert batch.tgt_out.tolist() == [[11, 12], [13, 14], [15, 16]]
        (batch,) = epoch_of(StreamBatches(store_of(1, 1), 100, 32, seed=1), 0)
        assert batch.tgt_in.shape == (2, 1)
        for epoch in range(30):
            assert (
                len(
                    labels(epoch_of(StreamBatches(store_of(100), 64, 1, seed=1), epoch))
                )
                >= 89
            )

    def test_two_tokens_are_the_least(self) -> None:
        (batch,) = epoch_of(StreamBatches(store_of(2), 8, 4, seed=1), 0)
        assert (batch.tgt_in.tolist(), batch.tgt_out.tolist()) == ([[10]], [[11]])
        with pytest.raises(DataError, match="single token"):
            StreamBatches(store_of(1), 8, 4, seed=1)

    def test_a_batch_reads_no_more_than_its_own_tokens(self) -> None:
        store = _Store([200] * 300)
        store.ids = _CountingIds(store.ids)
        batches = StreamBatches(cast(TextStore, store), 16, 4, seed=1)
        assert batches.num_batches(0) > 900
        assert store.ids.read == 0
        batches.batch(0, 5)
        assert store.ids.read == 4 * 17


class TestPacked:
    def test_documents_stand_side_by_side(self) -> None:
        (batch,) = epoch_of(
            PackedBatches(store_of(2, 4), window_len=9, batch_size=2, seed=1), 0
        )
        segments = {1: [2, 10, 11], 2: [2, 12, 13, 14, 15]}
        rows = [
            [i for number in order for i in segments[number]] + [0]
            for order in ((1, 2), (2, 1))
        ]  # fmt: skip
        assert batch.tgt_in.tolist() in [[row] for row in rows]
        if batch.tgt_in[0, 1] == 10:
            assert batch.tgt_out.tolist() == [[10, 11, 3, 12, 13, 14, 15, 3, 0]]
            assert segments_of(batch).tolist() == [[1, 1, 1, 2, 2, 2, 2, 2, 0]]
        else:
            assert batch.tgt_out.tolist() == [[12, 13, 14, 15, 3, 10, 11, 3, 0]]
            assert segments_of(batch).tolist() == [[1, 1, 1, 1, 1, 2, 2, 2, 0]]
        assert (batch.num_tgt_tokens, batch.num_src_tokens) == (8, 0)

    def test_a_long_document_goes_on_after_the_token_before(self) -> None:
        (batch,) = epoch_of(
            PackedBatches(store_of(7), window_len=3, batch_size=9, seed=1), 0
        )
        rows = sorted(
            zip(
                batch.tgt_in.tolist(),
                batch.tgt_out.tolist(),
                segments_of(batch).tolist(),
                strict=True,
            )
        )
        assert rows == [
            ([2, 10, 11], [10, 11, 12], [1, 1, 1]),
            ([12, 13, 14], [13, 14, 15], [1, 1, 1]),
            ([15, 16, 0], [16, 3, 0], [1, 1, 0]),
        ]

    @settings(max_examples=80, deadline=None)
    @given(
        lens=Lens,
        window_len=st.integers(1, 50),
        batch_size=st.integers(1, 9),
        epoch=st.integers(0, 3),
    )
    def test_every_token_is_a_label_once_and_sees_its_own_document(
        self, lens: list[int], window_len: int, batch_size: int, epoch: int
    ) -> None:
        batches = epoch_of(
            PackedBatches(store_of(*lens), window_len, batch_size, 7), epoch
        )
        texts = texts_of(lens)
        assert Counter(labels(batches)) == Counter(
            [*(i for text in texts for i in text), *[3] * len(texts)]
        )
        assert {len(batch.tgt_in) for batch in batches[:-1]} <= {batch_size}
        framed = [[2, *text, 3] for text in texts]
        for batch in batches:
            segments = segments_of(batch)
            assert (
                batch.tgt_in.shape
                == batch.tgt_out.shape
                == segments.shape
                == (len(batch.tgt_in), window_len)
            )
            assert torch.equal(segments == 0, batch.tgt_out == 0)
            assert torch.equal(segments == 0, batch.tgt_in == 0)
            assert batch.num_tgt_tokens == int((batch.tgt_out != 0).sum())
            for row in range(len(segments)):
                numbers = segments[row][segments[row] > 0].tolist()
                assert numbers == sorted(numbers)
                assert set(numbers) == set(range(1, max(numbers) + 1))
                for number in set(numbers):
                    own = segments[row] == number
                    ids = [
                        *batch.tgt_in[row][own].tolist(),
                        int(batch.tgt_out[row][own][-1]),
                    ]
                    assert ids[1:] == batch.tgt_out[row][own].tolist()
                    assert any(
                        ids == text[i : i + len(ids)]
                        for text in framed
                        for i in range(len(text))
                    )

    @settings(max_examples=60, deadline=None)
    @given(
        lens=st.lists(st.integers(1, 20), min_size=1, max_size=60),
        window_len=st.integers(21, 40),
    )
    def test_no_two_rows_could_be_one(self, lens: list[int], window_len: int) -> None:
        """Best fit opens a row only for what fits nowhere, so at most one row is at most half
        full.
        """
        used = [
            int((row != 0).sum())
            for batch in epoch_of(PackedBatches(store_of(*lens), window_len, 4, 3), 0)
            for row in segments_of(batch)
        ]
        assert sum(u <= window_len / 2 for u in used) <= 1
        assert len(used) <= 1 + 2 * sum(n + 1 for n in lens) // window_len

    def test_rows_are_well_filled(self) -> None:
        generator = np.random.default_rng(3)
        store = store_of(*np.minimum(generator.geometric(1 / 40, 3000), 500).tolist())
        batches = epoch_of(PackedBatches(store, 128, 16, 1), 0)
        assert sum(batch.num_tgt_tokens for batch in batches) > 0.97 * sum(
            batch.tgt_in.numel() for batch in batches
        )

    def test_a_batch_depends_on_seed_epoch_and_position_alone(self) -> None:
        store = store_of(*range(1, 100))
        straight = PackedBatches(store, 30, 4, seed=5)
        first, second = epoch_of(straight, 0), epoch_of(straight, 1)
        resumed = PackedBatches(store, 30, 4, seed=5)
        assert equal(resumed.batch(1, 3), second[3])
        assert equal(resumed.batch(0, 3), first[3])
        assert not equal(first[3], second[3])
        assert not equal(PackedBatches(store, 30, 4, seed=6).batch(0, 3), first[3])

    def test_documents_keep_changing_company(self) -> None:
        batches = PackedBatches(store_of(*[9] * 200), 30, 4, seed=5)
        company = [
            {
                frozenset(((row[row >= 10] - 10) // 9).tolist())
                for b in epoch_of(batches, epoch)
                for row in b.tgt_out
            }
            for epoch in (0, 1)
        ]
        assert len(company[0] & company[1]) < 0.1 * len(company[0])

    def test_a_row_that_stayed_half_empty_comes_at_any_time(self) -> None:
        batches = PackedBatches(store_of(*[4] * 21), 10, batch_size=1, seed=5)
        sizes = [
            [batch.num_tgt_tokens for batch in epoch_of(batches, epoch)]
            for epoch in range(30)
        ]
        assert {tuple(sorted(some)) for some in sizes} == {(5, *[10] * 10)}
        assert len({some.index(5) for some in sizes}) > 5

    def test_a_batch_reads_no_more_than_its_own_tokens(self) -> None:
        store = _Store([200] * 300)
        store.ids = _CountingIds(store.ids)
        batches = PackedBatches(cast(TextStore, store), 16, 4, seed=1)
        assert batches.num_batches(0) > 900
        assert store.ids.read == 0
        batches.batch(0, 5)
        assert store.ids.read <= 2 * 4 * 16


class TestScoring:
    def test_the_stream_begins_as_after_a_document_and_later_windows_show_what_was_scored(
        self,
    ) -> None:
        first, second = scoring_windows(
            store_of(3, 4), window_len=4, tokens_per_batch=12, packed=False
        )
        assert first.tgt_in.tolist() == [
            [3, 10, 11, 12],
            [11, 12, 3, 13],
            [3, 13, 14, 15],
        ]
        assert first.tgt_out.tolist() == [
            [10, 11, 12, 3],
            [0, 0, 13, 14],
            [0, 0, 15, 16],
        ]
        assert second.tgt_in.tolist() == [[14, 15, 16, 0]]
        assert second.tgt_out.tolist() == [[0, 0, 3, 0]]
        assert (first.num_tgt_tokens, second.num_tgt_tokens, first.segments) == (
            8,
            1,
            None,
        )

    def test_a_single_document_has_no_eos_in_the_stream(self) -> None:
        (batch,) = scoring_windows(
            store_of(3), window_len=50, tokens_per_batch=1, packed=False
        )
        assert (batch.tgt_in.tolist(), batch.tgt_out.tolist()) == (
            [[3, 10, 11]],
            [[10, 11, 12]],
        )
        (batch,) = scoring_windows(
            store_of(1), window_len=50, tokens_per_batch=1, packed=False
        )
        assert (batch.tgt_in.tolist(), batch.tgt_out.tolist()) == ([[3]], [[10]])

    def test_packed_documents_have_bos_and_eos(self) -> None:
        (batch,) = scoring_windows(
            store_of(1, 2), window_len=6, tokens_per_batch=100, packed=True
        )
        assert batch.tgt_in.tolist() == [[2, 10, 2, 11, 12, 0]]
        assert batch.tgt_out.tolist() == [[10, 3, 11, 12, 3, 0]]
        assert segments_of(batch).tolist() == [[1, 1, 2, 2, 2, 0]]

    def test_later_pieces_of_a_packed_document_show_what_was_scored(self) -> None:
        (batch,) = scoring_windows(
            store_of(7, 1), window_len=5, tokens_per_batch=100, packed=True
        )
        assert batch.tgt_in.tolist() == [
            [2, 10, 11, 12, 13],
            [12, 13, 14, 15, 16],
            [2, 17, 0, 0, 0],
        ]
        assert batch.tgt_out.tolist() == [
            [10, 11, 12, 13, 14],
            [0, 0, 15, 16, 3],
            [17, 3, 0, 0, 0],
        ]
        assert (segments_of(batch).tolist(), batch.num_tgt_tokens) == (
            [[1] * 5, [1] * 5, [1, 1, 0, 0, 0]],
            10,
        )

    @pytest.mark.parametrize("packed", [True, False])
    def test_each_token_has_half_a_window_before_it(self, packed: bool) -> None:
        for window_len in range(1, 12):
            seen = {}
            for batch in scoring_windows(store_of(100), window_len, 40, packed):
                for row in batch.tgt_out:
                    seen |= {
                        int(label): place + 1
                        for place, label in enumerate(row)
                        if label
                    }
            rest = [count for label, count in seen.items() if label >= 10 + window_len]
            assert len(seen) == 100 + packed
            assert min(rest) > window_len // 2

    @settings(max_examples=80, deadline=None)
    @given(
        lens=Lens,
        window_len=st.integers(1, 50),
        tokens=st.integers(1, 200),
        packed=st.booleans(),
    )
    def test_every_token_is_scored_exactly_once(
        self, lens: list[int], window_len: int, tokens: int, packed: bool
    ) -> None:
        store, texts = store_of(*lens), texts_of(lens)
        batches = list(scoring_windows(store, window_len, tokens, packed))
        num_eos = len(texts) if packed or len(texts) > 1 else 0
        assert Counter(labels(batches)) == Counter(
            [*(i for text in texts for i in text), *[3] * num_eos]
        )
        before = {
            text[i]: text[i - 1] if i else None
            for text in texts
            for i in range(len(text))
        }
        for batch in batches:
            assert batch.tgt_in.numel() <= tokens or len(batch.tgt_in) == 1
            assert batch.num_tgt_tokens == int((batch.tgt_out != 0).sum())
            for token, label in zip(
                batch.tgt_in.flatten().tolist(),
                batch.tgt_out.flatten().tolist(),
                strict=True,
            ):
                # its input is the token before it, also where a window begins
                if label >= 10:
                    expected = before[label] or (2 if packed else 3)
                    assert token == expected


def test_a_real_store_on_disk(tmp_path: Path) -> None:
    texts = ["the first text", "a second one, longer", "3"]
    tokenizer = train_tokenizer(texts, SideSection(kind="character", vocab_size=300))
    store = prepare_text_store(
        tmp_path, "train", texts, tokenizer, max_len=None, too_long="keep", text_key="k"
    )
    batches = epoch_of(PackedBatches(store, 64, 2, seed=1), 0)
    assert sorted(
        tokenizer.decode(batch.tgt_out[row][segments_of(batch)[row] == number].tolist())
        for batch in batches
        for row in range(len(batch.tgt_out))
        for number in set(segments_of(batch)[row].tolist()) - {0}
    ) == sorted(texts)
    stream = list(scoring_windows(store, 1000, 1, packed=False))
    assert tokenizer.decode(labels(stream)) == "".join(texts)


@settings(deadline=None)
@given(lens=Lens, window_len=st.integers(1, 23), packed=st.booleans())
def test_single_windows_score_the_same_labels_after_the_same_tokens(
    lens: list[int], window_len: int, packed: bool
) -> None:
    """Each label with the tokens that are in sight before it, and none from another document."""
    store = store_of(*lens)
    single = []
    for window in scored_windows(store, window_len, packed):
        assert len(window.inputs) == len(window.labels) <= window_len
        inputs = window.inputs.tolist()
        labels = window.labels.tolist()
        for place in range(window.num_seen, len(labels)):
            single.append((labels[place], tuple(inputs[: place + 1])))
    together = []
    for batch in scoring_windows(store, window_len, 64, packed):
        for row in range(len(batch.tgt_out)):
            inputs = batch.tgt_in[row].tolist()
            labels = batch.tgt_out[row].tolist()
            own = [1] * len(inputs)
            if batch.segments is not None:
                own = batch.segments[row].tolist()
            for place, label in enumerate(labels):
                if label:
                    first = own.index(own[place])
                    together.append((label, tuple(inputs[first : place + 1])))
    assert Counter(single) == Counter(together)
