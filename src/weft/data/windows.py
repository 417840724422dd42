"""Windows of documents, for a language model: each batch a pure function of (seed, epoch,
position).

`StreamBatches` joins all documents into one text and reads it in several places at once.
`PackedBatches` puts documents side by side into rows, each as if it were alone. In both a window's
labels are its inputs, one token on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from weft.data.batches import epoch_generator, shuffled, slices, stretch_lens
from weft.data.store import Positions, TextStore
from weft.data.streams import Pieces, Stream, overlap, places, scoring_starts
from weft.data.tokenizer import EOS_ID, PAD_ID
from weft.errors import DataError

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one micro-batch, padded on the right with PAD_ID.

    `tgt_out` holds the token after each of `tgt_in`. `segments` numbers the documents of a row from
    1, with 0 for padding: a token may see its own document alone. Where it is None, a token may see
    all before it in its row. The number of tokens counts the labels that are not padding.
    """

    tgt_in: Int[Tensor, "B T"]
    tgt_out: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"] | None
    num_tgt_tokens: int

    @property
    def num_src_tokens(self) -> int:
        """Return 0: there is no source."""
        return 0

    def lens(self) -> Int[Tensor, " N"]:
        """Count the tokens that see each other: those of each row, or with `segments` of each
        document (or none).
        """
        if self.segments is None:
            return (self.tgt_out != PAD_ID).sum(1)
        step = self.segments.max() + 1
        first_of_row = torch.arange(len(self.segments))[:, None] * step
        numbers = self.segments + first_of_row
        return torch.bincount(numbers[self.segments > 0])

    def parts(self, count: int) -> list["WindowBatch"]:
        """Return the same windows in at most so many batches."""
        return [self._part(rows) for rows in slices(len(self.tgt_in), count)]

    def _part(self, rows: slice) -> "WindowBatch":
        tgt_out = self.tgt_out[rows]
        return WindowBatch(
            tgt_in=self.tgt_in[rows],
            tgt_out=tgt_out,
            segments=None if self.segments is None else self.segments[rows],
            num_tgt_tokens=int((tgt_out != PAD_ID).sum()),
        )

    def describe(self) -> str:
        """Describe the size of the batch in words."""
        rows, length = self.tgt_in.shape
        return f"{rows} windows of {length} tokens"


class StreamBatches:
    """The training batches of a store whose documents are joined, in an order of each epoch, into
    one stream.

    The stream is cut into `batch_size` parallel ones of equal length, and batch w has the w-th
    window of each; the last one may be shorter. eos follows every document where there are several;
    a document alone has none, since its end would be learned from a single example. Every token of
    the stream is a label once, but these: the first ones, up to a tenth of the stream and below
    `window_len`, whose number is drawn for each epoch, so that the windows of a single document
    differ from epoch to epoch; and what the division leaves over at the end, fewer than
    `batch_size`.
    """

    def __init__(
        self, store: TextStore, window_len: int, batch_size: int, seed: int
    ) -> None:
        """Set the shape of a batch; a text of fewer than 2 x `batch_size` tokens has fewer streams.
        Raises DataError below 2 tokens.
        """
        self._store = store
        self._window_len = window_len
        self._seed = seed
        length = len(Stream(store, np.arange(len(store))))
        if length < 2:
            raise DataError(
                "the training text is a single token, after which nothing follows; give more text"
            )
        self._num_streams = min(batch_size, length // 2)
        self._planned = lru_cache(maxsize=1)(self._make_plan)

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch; epochs may differ by one."""
        _, _, length = self._planned(epoch)
        return -(-length // self._window_len)

    def batch(self, epoch: int, position: int) -> WindowBatch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        _refuse_beyond(epoch, position, self.num_batches(epoch))
        stream, starts, length = self._planned(epoch)
        begin = position * self._window_len
        end = min(begin + self._window_len, length)
        positions = starts[:, None] + np.arange(begin, end + 1)
        ids = torch.from_numpy(stream.at(positions))
        return WindowBatch(
            tgt_in=ids[:, :-1].contiguous(),
            tgt_out=ids[:, 1:].contiguous(),
            segments=None,
            num_tgt_tokens=len(starts) * (end - begin),
        )

    def sizes(self, epoch: int) -> Positions:
        """Count the tokens of each batch of an epoch."""
        _, starts, length = self._planned(epoch)
        lens = stretch_lens(length, self._window_len)
        return len(starts) * lens

    def _make_plan(self, epoch: int) -> tuple[Stream, Positions, int]:
        """Return the epoch's stream, where each parallel one starts in it, and how many labels each
        has.
        """
        generator = epoch_generator(self._seed, epoch)
        order = generator.permutation(len(self._store))
        stream = Stream(self._store, order)
        most = min(self._window_len, len(stream) // 10 + 1)
        first = int(generator.integers(most))
        length = (len(stream) - 1 - first) // self._num_streams
        starts = first + length * np.arange(self._num_streams)
        return stream, starts, length


class PackedBatches:
    """The training batches of a store whose documents stand side by side in rows, in other company
    each epoch.

    A document is bos and its ids, its labels its ids and eos. One that is longer than `window_len`
    is cut into pieces, and a later piece begins with the token before it instead of bos: so every
    token is a label once in each epoch. Every batch has `batch_size` rows but the last, which has
    what is left.
    """

    def __init__(
        self, store: TextStore, window_len: int, batch_size: int, seed: int
    ) -> None:
        self._pieces = Pieces(store, window_len)
        self._batch_size = batch_size
        self._seed = seed
        self._planned = lru_cache(maxsize=1)(self._make_plan)

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch; epochs may differ by one."""
        return -(-len(self._planned(epoch)) // self._batch_size)

    def batch(self, epoch: int, position: int) -> WindowBatch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        _refuse_beyond(epoch, position, self.num_batches(epoch))
        start = position * self._batch_size
        rows = self._planned(epoch)[start : start + self._batch_size]
        return _collated(self._pieces, rows)

    def sizes(self, epoch: int) -> Positions:
        """Count the tokens of each batch of an epoch, padding included."""
        rows = self._planned(epoch)
        counts = stretch_lens(len(rows), self._batch_size)
        return counts * self._pieces.longest

    def _make_plan(self, epoch: int) -> list[list[int]]:
        """Return the pieces of every row."""
        generator = epoch_generator(self._seed, epoch)
        order = generator.permutation(len(self._pieces.lens))
        rows = self._pieces.pack(order)
        return shuffled(rows, generator)


def scoring_windows(
    store: TextStore, window_len: int, tokens_per_batch: int, packed: bool
) -> Iterator[WindowBatch]:
    """Yield windows for evaluation, in which every token, and every eos that training has, is a
    label exactly once.

    `packed`: documents stand side by side, as in training; else they are one stream in their order,
    and eos stands before its first token. Windows overlap: what a later one shares with the one
    before it is there to be seen, and no label. A batch has at most `tokens_per_batch` tokens,
    padding included, but one window at least.
    """
    most = max(1, tokens_per_batch // window_len)
    if packed:
        pieces = Pieces(store, window_len, overlap(window_len))
        rows = pieces.pack(np.arange(len(pieces.lens)))
        for i in range(0, len(rows), most):
            yield _collated(pieces, rows[i : i + most])
        return
    stream = Stream(store, np.arange(len(store)))
    starts = np.array(scoring_starts(len(stream), window_len))
    for i in range(0, len(starts), most):
        yield _scoring_batch(stream, starts[i : i + most], window_len)


def _collated(packed: Pieces, rows: Sequence[Sequence[int]]) -> WindowBatch:
    """Return the batch of these rows of pieces."""
    pieces = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
    numbers = np.concatenate([np.arange(1, len(row) + 1) for row in rows])
    lens = packed.lens[pieces]
    piece = np.repeat(pieces, lens)  # of each token, as all below
    inside = places(lens)
    documents = packed.documents[piece]
    positions = packed.starts[piece] + inside
    is_label = inside >= packed.seen[piece]
    ids = packed.framed(documents, positions)
    labels = packed.framed(documents, positions + 1)
    labels[~is_label] = PAD_ID

    used = np.array([packed.lens[row].sum() for row in rows])
    filled = np.arange(packed.longest) < used[:, None]
    return WindowBatch(
        tgt_in=_spread(filled, ids),
        tgt_out=_spread(filled, labels),
        segments=_spread(filled, np.repeat(numbers, lens)),
        num_tgt_tokens=int(is_label.sum()),
    )


def _scoring_batch(stream: Stream, starts: Positions, window_len: int) -> WindowBatch:
    """Build the windows that begin at these positions of the stream; what is beyond its end is
    padding.
    """
    length = len(stream)
    starts = starts[:, None]
    place = np.arange(min(window_len, length))
    positions = starts + place
    inside = positions < length
    is_new = (starts == 0) | (place >= overlap(window_len))
    is_label = inside & is_new
    before = np.clip(positions - 1, 0, length - 1)
    ids = stream.at(before)
    ids[positions == 0] = EOS_ID
    labels = stream.at(np.minimum(positions, length - 1))
    tgt_in = np.where(inside, ids, PAD_ID)
    tgt_out = np.where(is_label, labels, PAD_ID)
    return WindowBatch(
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        segments=None,
        num_tgt_tokens=int(is_label.sum()),
    )


def _spread(filled: Bools, values: Positions) -> Int[Tensor, "B T"]:
    """Put values, row by row, where `filled` is true, and PAD_ID elsewhere."""
    matrix = np.full(filled.shape, PAD_ID, dtype=np.int64)
    matrix[filled] = values
    return torch.from_numpy(matrix)


def _refuse_beyond(epoch: int, position: int, count: int) -> None:
    if not 0 <= position < count:
        raise IndexError(f"epoch {epoch} has batches 0 to {count - 1}, not {position}")
