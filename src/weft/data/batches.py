"""Padded batches of similar lengths: each a pure function of (seed, epoch, position), so a run can
resume.

Rows are shuffled, brought into buckets of nearly equal source and target length, cut into batches,
and the batches shuffled, so that the company a row keeps changes from epoch to epoch. Lengths are
padded to even numbers and most batches hold a multiple of eight rows: the kernels of matrix
products are set up anew for every shape they meet, and so meet few.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from weft.data.noise import Noise, padded_rows
from weft.data.store import Ids, ParallelStore, Positions
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID

DEFAULT_TOKENS = 4096
Widths = tuple[Positions, Positions]
"""What the source and the target of each row of a store are padded to, at the least."""

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
    rows: Positions
    num_src_tokens: int
    num_tgt_tokens: int

    def parts(self, count: int) -> list["Batch"]:
        """Return the same rows in at most so many batches, as wide as this one."""
        return [self._part(rows) for rows in slices(len(self.rows), count)]

    def _part(self, rows: slice) -> "Batch":
        src, tgt_in, tgt_out = self.src[rows], self.tgt_in[rows], self.tgt_out[rows]
        numbers = (int((ids != PAD_ID).sum()) for ids in (src, tgt_out))
        return Batch(src, tgt_in, tgt_out, self.rows[rows], *numbers)

    def describe(self) -> str:
        """Its size in words."""
        (rows, src_len), tgt_len = self.src.shape, self.tgt_in.shape[1]
        return f"{rows} pairs, source length {src_len}, target length {tgt_len}"


class Batches:
    """The training batches of a store, epoch by epoch; every row occurs once in each epoch."""

    def __init__(
        self,
        store: ParallelStore,
        tokens_per_batch: int | None,
        batch_size: int | None,
        seed: int,
        noise: Noise | None = None,
    ) -> None:
        """Limit a batch by padded source plus target tokens (bos and eos included), or by
        sentences.

        With neither, 4,096 tokens. A row longer than the limit is a batch of its own. Lengths are
        those without `noise`, which may make a batch larger.
        """
        self._store, self._seed, self._widths = store, seed, _padded_lens(store)
        self._tokens = tokens_per_batch or DEFAULT_TOKENS
        self._batch_size, self._noise = batch_size, noise
        self._epoch = -1
        self._plan: list[Positions] = []

    def num_batches(self, epoch: int) -> int:
        """How many batches the epoch has."""
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
        if self._noise is not None:
            return _collate_noisy(self._store, plan[position], self._noise, epoch)
        return _collate(self._store, plan[position], self._widths)

    def _planned(self, epoch: int) -> list[Positions]:
        if epoch != self._epoch:
            self._plan, self._epoch = self._make_plan(epoch), epoch
        return self._plan

    def _make_plan(self, epoch: int) -> list[Positions]:
        generator = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        order = generator.permutation(len(self._store))
        if self._batch_size is None:
            plan = _cut_by_tokens(
                self._widths, _bucketed(self._widths, order, generator), self._tokens
            )
            last = []
        else:
            remainder = len(order) % self._batch_size
            rows = _bucketed(self._widths, order[remainder:], generator)
            plan = (
                np.split(rows, range(self._batch_size, len(rows), self._batch_size))
                if len(rows)
                else []
            )
            last = [order[:remainder]] if remainder else []
        return [plan[i] for i in generator.permutation(len(plan))] + last


def padded_batches(store: ParallelStore, tokens_per_batch: int) -> Iterator[Batch]:
    """Every row once, in order of length, for evaluation; limited as `Batches` by tokens."""
    order, widths = np.lexsort((store.tgt_lens, store.src_lens)), _padded_lens(store)
    for rows in _cut_by_tokens(widths, order, tokens_per_batch):
        yield _collate(store, rows, widths)


def _padded_lens(store: ParallelStore) -> Widths:
    return even(store.src_lens + 1), even(store.tgt_lens + 1)


def _bucketed(
    widths: Widths, order: Positions, generator: np.random.Generator
) -> Positions:
    """Return the rows sorted by padded length of a side, drawn anew, then of the other.

    Equal ones in the given order.
    """
    first, second = (lens[order] for lens in widths)
    if generator.integers(2):
        first, second = second, first
    # Every other length of the first runs backwards through the second: no batch jumps from longest
    # to shortest.
    second = np.where(first % 4, -second, second)
    return order[np.lexsort((second, first))]


def _cut_by_tokens(widths: Widths, order: Positions, limit: int) -> list[Positions]:
    """Cut the rows into stretches whose padded size is within the limit, but one row at least, many
    in eights.
    """
    src, tgt = (lens[order] for lens in widths)
    batches = []
    start = 0
    # no batch has more rows than that
    most = limit // int((src + tgt).min(initial=limit)) + 1
    while start < len(order):
        ahead = slice(start, start + most)
        sizes = np.maximum.accumulate(src[ahead]) + np.maximum.accumulate(tgt[ahead])
        sizes *= np.arange(1, len(sizes) + 1)
        end = start + round_rows(int(np.searchsorted(sizes, limit, side="right")))
        batches.append(order[start:end])
        start = end
    return batches


def slices(rows: int, count: int) -> list[slice]:
    """At most `count` stretches of rows, all but the last equally long."""
    size = -(-rows // count)
    return [slice(start, start + size) for start in range(0, rows, size)]


def even(lens: Positions) -> Positions:
    """The lengths of all rows as they are padded: to even numbers, but the longest to no more than
    its own.
    """
    return np.minimum(lens + lens % 2, lens.max(initial=0))


def round_rows(fitting: int) -> int:
    """How many rows a batch takes of those that fit: at least one, of more than eight a multiple of
    eight.
    """
    return max(fitting - fitting % ROWS if fitting > ROWS else fitting, 1)


def _collate(store: ParallelStore, rows: Positions, widths: Widths) -> Batch:
    src_lens, tgt_lens = store.src_lens[rows], store.tgt_lens[rows]
    src_width, tgt_width = (int(lens[rows].max(initial=1)) for lens in widths)
    src = _padded(store.src_ids, store.src_offsets, rows, src_width)
    tgt = _padded(store.tgt_ids, store.tgt_offsets, rows, tgt_width)
    each = np.arange(len(rows))
    src[each, src_lens] = EOS_ID
    tgt_in = np.concatenate([np.full((len(rows), 1), BOS_ID), tgt[:, :-1]], axis=1)
    tgt[each, tgt_lens] = EOS_ID
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt),
        rows=rows,
        num_src_tokens=int(src_lens.sum()) + len(rows),
        num_tgt_tokens=int(tgt_lens.sum()) + len(rows),
    )


def _collate_noisy(
    store: ParallelStore, rows: Positions, noise: Noise, epoch: int
) -> Batch:
    drawn = [noise.of(epoch, int(row), store.src(row), store.tgt(row)) for row in rows]
    most = noise.max_len + 1
    src = padded_rows([[*read, EOS_ID] for (_, read), _ in drawn], most)
    tgt_in = padded_rows([[BOS_ID, *read] for _, (_, read) in drawn], most)
    tgt_out = padded_rows([[*ids, EOS_ID] for _, (ids, _) in drawn], most)
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        rows=rows,
        num_src_tokens=int((src != PAD_ID).sum()),
        num_tgt_tokens=int((tgt_out != PAD_ID).sum()),
    )


def _padded(
    ids: Ids, offsets: Positions, rows: Positions, width: int
) -> npt.NDArray[np.int64]:
    """Return the rows' ids as a matrix of int64."""
    starts, ends = offsets[rows], offsets[rows + 1]
    positions = starts[:, None] + np.arange(width)
    inside = positions < ends[:, None]
    padded = np.full(positions.shape, PAD_ID, dtype=np.int64)
    padded[inside] = ids[positions[inside]]
    return padded
