"""Padded batches of similar lengths: each a pure function of (seed, epoch, position), so a run can
resume.

Rows are shuffled, brought into buckets of nearly equal source and target length, cut into batches,
and the batches shuffled, so that the company a row keeps changes from epoch to epoch. Lengths are
padded to even numbers and most batches hold a multiple of eight rows: the kernels of matrix
products are set up anew for every shape they meet, and so meet few.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from weft.data.store import Ids, Lens, ParallelStore, Positions
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID

DEFAULT_TOKENS = 4096
T = TypeVar("T")
N = TypeVar("N", np.int32, np.int64)
Integers = npt.NDArray[np.integer]
Weights = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Widths = tuple[Lens, Lens]
"""What the source and the target of each row of a store are padded to, at the least."""

# drawn for by seed and epoch, beside the order: no batch has that position
_FOR_WEIGHTS = 2**40
ROWS = 8  # a batch of more rows than that holds a multiple of it


@dataclass(frozen=True)
class Batch:
    """Sentences of one micro-batch, padded on the right with PAD_ID.

    `src` ends with eos, `tgt_in` is bos and target, `tgt_out` is target and eos. The numbers of
    tokens count what is not padding, the final eos included, bos not. `rows` are positions in the
    store.
    """

    src: Int[Tensor, "B S"]
    tgt_in: Int[Tensor, "B T"]
    tgt_out: Int[Tensor, "B T"]
    rows: Rows
    num_src_tokens: int
    num_tgt_tokens: int

    def parts(self, count: int) -> list["Batch"]:
        """Return the same rows in at most so many batches, as wide as this one."""
        return [self._part(rows) for rows in slices(len(self.rows), count)]

    def _part(self, rows: slice) -> "Batch":
        src = self.src[rows]
        tgt_out = self.tgt_out[rows]
        return Batch(
            src=src,
            tgt_in=self.tgt_in[rows],
            tgt_out=tgt_out,
            rows=self.rows[rows],
            num_src_tokens=int((src != PAD_ID).sum()),
            num_tgt_tokens=int((tgt_out != PAD_ID).sum()),
        )

    def describe(self) -> str:
        """Describe the size of the batch in words."""
        rows, src_len = self.src.shape
        tgt_len = self.tgt_in.shape[1]
        return f"{rows} pairs, source length {src_len}, target length {tgt_len}"


class Batches:
    """The training batches of a store, epoch by epoch.

    Every row occurs once in each epoch. With weights, it occurs as often as its weight says: of 2.5
    twice, and in every other epoch, drawn by seed and epoch, once more.
    """

    def __init__(
        self,
        store: ParallelStore,
        tokens_per_batch: int | None,
        batch_size: int | None,
        seed: int,
        weights: Weights | None = None,
    ) -> None:
        """Set the limit of a batch: padded source plus target tokens (bos and eos included), or
        sentences; and the weights of all rows of the store, none of which is below 0.

        With neither limit, 4,096 tokens. A row longer than the limit is a batch of its own.
        """
        self._store = store
        self._seed = seed
        self._widths = _padded_lens(store)
        self._tokens = tokens_per_batch or DEFAULT_TOKENS
        self._batch_size = batch_size
        self._weights = weights
        self._epoch = -1
        self._plan: list[Rows] = []

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch."""
        return len(self._planned(epoch))

    def batch(self, epoch: int, position: int) -> Batch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        plan = self._planned(epoch)
        if not 0 <= position < len(plan):
            raise IndexError(
                f"epoch {epoch} has batches 0 to {len(plan) - 1}, not {position}"
            )
        return _collate(self._store, plan[position], self._widths)

    def sizes(self, epoch: int) -> Positions:
        """Count the tokens of each batch of an epoch, padding included."""
        return padded_sizes(self._planned(epoch), self._widths)

    def _planned(self, epoch: int) -> list[Rows]:
        if epoch != self._epoch:
            self._plan = self._make_plan(epoch)
            self._epoch = epoch
        return self._plan

    def _make_plan(self, epoch: int) -> list[Rows]:
        generator = epoch_generator(self._seed, epoch)
        order = self._rows_of(epoch)
        generator.shuffle(order)
        if self._batch_size is None:
            sorted_rows = _bucketed(self._widths, order, generator)
            plan = _cut_by_tokens(self._widths, sorted_rows, self._tokens)
            return shuffled(plan, generator)
        # What makes no full batch is drawn from all lengths, not always from the longest.
        remainder = len(order) % self._batch_size
        last = order[:remainder]
        sorted_rows = _bucketed(self._widths, order[remainder:], generator)
        plan = shuffled(cut_evenly(sorted_rows, self._batch_size), generator)
        return [*plan, last] if remainder else plan

    def _rows_of(self, epoch: int) -> Rows:
        """Return the rows of an epoch, each as often as its weight says."""
        rows = np.arange(len(self._store), dtype=np.int32)
        if self._weights is None:
            return rows
        generator = np.random.default_rng([self._seed, epoch, _FOR_WEIGHTS])
        drawn = generator.random(len(rows))
        drawn += self._weights
        counts = drawn.astype(np.int32)  # rounded down
        if not counts.any():  # an epoch is never empty
            counts[self._weights.argmax()] = 1
        return np.repeat(rows, counts)


def padded_batches(store: ParallelStore, tokens_per_batch: int) -> Iterator[Batch]:
    """Yield every row once, in order of length, for evaluation; a batch is limited by tokens as in
    `Batches`.
    """
    order = np.lexsort((store.tgt_lens, store.src_lens)).astype(np.int32)
    widths = _padded_lens(store)
    for rows in _cut_by_tokens(widths, order, tokens_per_batch):
        yield _collate(store, rows, widths)


def epoch_generator(seed: int, epoch: int) -> np.random.Generator:
    """Create the generator of random numbers for one epoch of a run."""
    sequence = np.random.SeedSequence([seed, epoch])
    return np.random.default_rng(sequence)


def shuffled(plan: list[T], generator: np.random.Generator) -> list[T]:
    """Shuffle the batches of an epoch."""
    order = generator.permutation(len(plan))
    return [plan[i] for i in order]


def padded_sizes(plan: Sequence[Integers], widths: Sequence[Integers]) -> Positions:
    """Count the tokens of each batch, padded to its widest row; `widths` are those of all rows."""
    sizes = np.zeros(len(plan), dtype=np.int64)
    for number, rows in enumerate(plan):
        row = sum(int(lens[rows].max()) for lens in widths)
        sizes[number] = len(rows) * row
    return sizes


def cut_evenly(rows: npt.NDArray[N], size: int) -> list[npt.NDArray[N]]:
    """Cut rows into batches of `size`."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _padded_lens(store: ParallelStore) -> Widths:
    return even(store.src_lens + 1), even(store.tgt_lens + 1)


def _bucketed(widths: Widths, order: Rows, generator: np.random.Generator) -> Rows:
    """Sort the rows by the padded length of one side, which is drawn for each epoch, then by that
    of the other; equal rows keep their order.
    """
    first, second = (lens[order] for lens in widths)
    if generator.integers(2):
        first, second = second, first
    # Every other length of the first runs backwards through the second: no batch jumps from longest
    # to shortest.
    np.negative(second, out=second, where=first % 4 > 0)
    return order[np.lexsort((second, first))]


def _cut_by_tokens(widths: Widths, order: Rows, limit: int) -> list[Rows]:
    """Cut the rows into stretches whose padded size is within the limit: of at least one row, and
    above eight of a multiple of eight.
    """
    src, tgt = (lens[order] for lens in widths)
    batches = []
    start = 0
    # no batch has more rows than that
    shortest = int((src + tgt).min(initial=limit))
    most = limit // shortest + 1
    while start < len(order):
        ahead = slice(start, start + most)
        src_width = np.maximum.accumulate(src[ahead])
        tgt_width = np.maximum.accumulate(tgt[ahead])
        end = start + rows_within(src_width + tgt_width, limit)
        batches.append(order[start:end])
        start = end
    return batches


def rows_within(widths: Integers, limit: int) -> int:
    """Count the rows that a batch takes: as many as fit into `limit`, at least one, and above eight
    a multiple of eight.

    `widths` are those of batches of one row, two, and so on.
    """
    sizes = widths * np.arange(1, len(widths) + 1)
    fitting = np.searchsorted(sizes, limit, side="right")
    return round_rows(int(fitting))


def stretch_lens(count: int, size: int) -> Positions:
    """Cut so many into stretches of `size`; return how many each has. The last has what is left."""
    starts = np.arange(0, count, size)
    left = count - starts
    return np.minimum(left, size)


def slices(rows: int, count: int) -> list[slice]:
    """Cut so many rows into at most `count` stretches, all but the last equally long."""
    size = -(-rows // count)
    return [slice(start, start + size) for start in range(0, rows, size)]


def even(lens: npt.NDArray[N]) -> npt.NDArray[N]:
    """Round the lengths of all rows up to even numbers, as they are padded, but the longest to no
    more than its own.
    """
    longest = lens.max(initial=0)
    return np.minimum(lens + lens % 2, longest)


def round_rows(fitting: int) -> int:
    """Round down the number of rows that fit: above eight to a multiple of eight; it is one at
    least.
    """
    if fitting > ROWS:
        return fitting - fitting % ROWS
    return max(fitting, 1)


def _collate(store: ParallelStore, rows: Rows, widths: Widths) -> Batch:
    num_rows = len(rows)
    src_lens = _lens_of(store.src_offsets, rows)
    tgt_lens = _lens_of(store.tgt_offsets, rows)
    src_width, tgt_width = (int(lens[rows].max(initial=1)) for lens in widths)
    src = _padded(store.src_ids, store.src_offsets, rows, src_width)
    tgt = _padded(store.tgt_ids, store.tgt_offsets, rows, tgt_width)
    each = np.arange(num_rows)
    src[each, src_lens] = EOS_ID
    bos = np.full((num_rows, 1), BOS_ID)
    # before eos is written into `tgt`: the decoder never reads eos
    tgt_in = np.concatenate([bos, tgt[:, :-1]], axis=1)
    tgt[each, tgt_lens] = EOS_ID
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt),
        rows=rows,
        num_src_tokens=int(src_lens.sum()) + num_rows,
        num_tgt_tokens=int(tgt_lens.sum()) + num_rows,
    )


def _lens_of(offsets: Positions, rows: Rows) -> Positions:
    """Return how many ids the rows have."""
    return offsets[rows + 1] - offsets[rows]


def _padded(
    ids: Ids, offsets: Positions, rows: Rows, width: int
) -> npt.NDArray[np.int64]:
    """Return the rows' ids as a matrix of int64."""
    starts = offsets[rows][:, None]
    ends = offsets[rows + 1][:, None]
    positions = starts + np.arange(width)
    inside = positions < ends
    padded = np.full(positions.shape, PAD_ID, dtype=np.int64)
    padded[inside] = ids[positions[inside]]
    return padded
