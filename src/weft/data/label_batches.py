"""Padded batches of labelled texts: each a pure function of (seed, epoch, position), as those of
pairs are.

Rows are shuffled, sorted by padded length, cut into batches, and the batches shuffled; lengths and
numbers of rows are padded and rounded as those of pairs are. A text may have several rows in its
store, one a window; each has the text's labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.data.batches import (
    cut_evenly,
    epoch_generator,
    even,
    padded_sizes,
    rows_within,
    shuffled,
    slices,
)
from weft.data.store import Positions, TextStore
from weft.data.tokenizer import PAD_ID

DEFAULT_TOKENS = 4096

LabelArray = npt.NDArray[np.int64] | npt.NDArray[np.float32]
"""For each text its class number; or a row of as many numbers as there are labels, 1 for each
that it has.
"""


@dataclass(frozen=True)
class LabelBatch:
    """Texts of one micro-batch, padded on the right with PAD_ID.

    `labels` are class numbers, or of multi-label text a row of 0 and 1 a text. `rows` are positions
    in the store. `num_src_tokens` counts what is not padding, a `first_id` included;
    `num_tgt_tokens` is the number of rows, for the loss is a mean over texts.
    """

    ids: Int[Tensor, "B L"]
    labels: Int[Tensor, " B"] | Float[Tensor, "B C"]
    rows: Positions
    num_src_tokens: int
    num_tgt_tokens: int

    def parts(self, count: int) -> list["LabelBatch"]:
        """Return the same texts in at most so many batches, as wide as this one."""
        return [self._part(rows) for rows in slices(len(self.rows), count)]

    def _part(self, rows: slice) -> "LabelBatch":
        ids = self.ids[rows]
        return LabelBatch(
            ids=ids,
            labels=self.labels[rows],
            rows=self.rows[rows],
            num_src_tokens=int((ids != PAD_ID).sum()),
            num_tgt_tokens=len(ids),
        )

    def describe(self) -> str:
        """Describe the size of the batch in words."""
        rows, length = self.ids.shape
        return f"{rows} texts, length {length}"


class LabelBatches:
    """The training batches of a store, epoch by epoch; every row occurs once in each epoch."""

    def __init__(
        self,
        store: TextStore,
        labels: LabelArray,
        tokens_per_batch: int | None,
        batch_size: int | None,
        seed: int,
        first_id: int | None = None,
    ) -> None:
        """Set the limit of a batch: padded tokens (`first_id` included), or texts; with neither,
        4,096 tokens.

        `labels` are indexed by the numbers in `store.rows`. `first_id` is put before every row, for
        a model that pools its first token. A row longer than the limit is a batch of its own.
        """
        self._rows = _Rows(store, labels, first_id)
        self._tokens = tokens_per_batch or DEFAULT_TOKENS
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = -1
        self._plan: list[Positions] = []

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch."""
        return len(self._planned(epoch))

    def batch(self, epoch: int, position: int) -> LabelBatch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        plan = self._planned(epoch)
        if not 0 <= position < len(plan):
            raise IndexError(
                f"epoch {epoch} has batches 0 to {len(plan) - 1}, not {position}"
            )
        return self._rows.collate(plan[position])

    def sizes(self, epoch: int) -> Positions:
        """Count the tokens of each batch of an epoch, padding included."""
        return padded_sizes(self._planned(epoch), [self._rows.widths])

    def _planned(self, epoch: int) -> list[Positions]:
        if epoch != self._epoch:
            self._plan = self._make_plan(epoch)
            self._epoch = epoch
        return self._plan

    def _make_plan(self, epoch: int) -> list[Positions]:
        generator = epoch_generator(self._seed, epoch)
        order = generator.permutation(len(self._rows.lens))
        if self._batch_size is None:
            plan = self._rows.cut(self._rows.sorted(order), self._tokens)
            return shuffled(plan, generator)
        # What makes no full batch is drawn from all lengths, not always from the longest.
        remainder = len(order) % self._batch_size
        last = order[:remainder]
        rows = self._rows.sorted(order[remainder:])
        plan = shuffled(cut_evenly(rows, self._batch_size), generator)
        return [*plan, last] if remainder else plan


def padded_label_batches(
    store: TextStore,
    labels: LabelArray,
    tokens_per_batch: int,
    first_id: int | None = None,
) -> Iterator[LabelBatch]:
    """Yield every row once, in order of length, for evaluation; a batch is limited by tokens as in
    `LabelBatches`.
    """
    rows = _Rows(store, labels, first_id)
    for batch in rows.cut(np.argsort(rows.lens, kind="stable"), tokens_per_batch):
        yield rows.collate(batch)


class _Rows:
    """The rows of a store with their labels, and the id that goes before each."""

    def __init__(
        self, store: TextStore, labels: LabelArray, first_id: int | None
    ) -> None:
        self._store = store
        self._labels = labels
        self._first_id = first_id
        self._before = int(first_id is not None)
        self.lens: Positions = store.lens + self._before
        self.widths = even(self.lens)

    def sorted(self, order: Positions) -> Positions:
        """Sort rows by padded length; equal ones stay in their order."""
        return order[np.argsort(self.widths[order], kind="stable")]

    def cut(self, order: Positions, limit: int) -> list[Positions]:
        """Cut rows into stretches whose padded size is within the limit, but one row at least, many
        in eights.
        """
        lens = np.maximum(self.widths[order], 1)
        # no batch has more rows than that
        most = limit // int(lens.min(initial=limit)) + 1
        batches = []
        start = 0
        while start < len(order):
            widths = np.maximum.accumulate(lens[start : start + most])
            end = start + rows_within(widths, limit)
            batches.append(order[start:end])
            start = end
        return batches

    def collate(self, rows: Positions) -> LabelBatch:
        starts = self._store.offsets[rows] - self._before
        lens = self.lens[rows]
        places = np.arange(int(self.widths[rows].max(initial=0)))
        inside = places < lens[:, None]
        if self._first_id is not None:
            inside[:, 0] = False
        ids = np.full(inside.shape, PAD_ID, dtype=np.int64)
        ids[inside] = self._store.ids[(starts[:, None] + places)[inside]]
        if self._first_id is not None:
            ids[:, 0] = self._first_id
        return self._batch(ids, rows, int(lens.sum()))

    def _batch(
        self, ids: npt.NDArray[np.int64], rows: Positions, num_src_tokens: int
    ) -> LabelBatch:
        labels = torch.from_numpy(self._labels[self._store.rows[rows]])
        return LabelBatch(
            torch.from_numpy(ids), labels, rows, num_src_tokens, len(rows)
        )
