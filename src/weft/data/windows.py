"""Windows of documents, for a language model: each batch a pure function of (seed, epoch,
position).

`StreamBatches` joins all documents into one text and reads it in several places at once.
`PackedBatches` puts documents side by side into rows, each as if it were alone. In both a window's
labels are its inputs, one token on.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from weft.data.batches import slices
from weft.data.store import Positions, TextStore
from weft.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
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
        """There is no source."""
        return 0

    def lens(self) -> Int[Tensor, " N"]:
        """How many tokens see each other: those of each row, or with `segments` of each document
        (or none).
        """
        if self.segments is None:
            return (self.tgt_out != PAD_ID).sum(1)
        rows = torch.arange(len(self.segments))[:, None] * (self.segments.max() + 1)
        return torch.bincount((self.segments + rows)[self.segments > 0])

    def parts(self, count: int) -> list["WindowBatch"]:
        """Return the same windows in at most so many batches."""
        return [self._part(rows) for rows in slices(len(self.tgt_in), count)]

    def _part(self, rows: slice) -> "WindowBatch":
        segments = None if self.segments is None else self.segments[rows]
        num_tgt_tokens = int((self.tgt_out[rows] != PAD_ID).sum())
        return WindowBatch(
            self.tgt_in[rows], self.tgt_out[rows], segments, num_tgt_tokens
        )

    def describe(self) -> str:
        """Its size in words."""
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
        """A text of fewer than 2 x `batch_size` tokens has fewer streams. Raises DataError below 2
        tokens.
        """
        self._store, self._window_len, self._seed = store, window_len, seed
        length = len(_Stream(store, np.arange(len(store))))
        if length < 2:
            raise DataError(
                "the training text is a single token, after which nothing follows; give more text"
            )
        self._num_streams = min(batch_size, length // 2)
        self._planned = lru_cache(maxsize=1)(self._make_plan)

    def num_batches(self, epoch: int) -> int:
        """How many batches the epoch has; one more or less from epoch to epoch."""
        return -(-self._planned(epoch)[2] // self._window_len)

    def batch(self, epoch: int, position: int) -> WindowBatch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        _refuse_beyond(epoch, position, self.num_batches(epoch))
        stream, starts, length = self._planned(epoch)
        begin = position * self._window_len
        end = min(begin + self._window_len, length)
        ids = torch.from_numpy(stream.at(starts[:, None] + np.arange(begin, end + 1)))
        return WindowBatch(
            tgt_in=ids[:, :-1].contiguous(),
            tgt_out=ids[:, 1:].contiguous(),
            segments=None,
            num_tgt_tokens=len(starts) * (end - begin),
        )

    def _make_plan(self, epoch: int) -> tuple["_Stream", Positions, int]:
        """Return the epoch's stream, where each parallel one starts in it, and how many labels each
        has.
        """
        generator = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        stream = _Stream(self._store, generator.permutation(len(self._store)))
        first = int(generator.integers(min(self._window_len, len(stream) // 10 + 1)))
        length = (len(stream) - 1 - first) // self._num_streams
        return stream, first + length * np.arange(self._num_streams), length


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
        self._pieces = _Pieces(store, window_len)
        self._batch_size, self._seed = batch_size, seed
        self._planned = lru_cache(maxsize=1)(self._make_plan)

    def num_batches(self, epoch: int) -> int:
        """How many batches the epoch has; one more or less from epoch to epoch."""
        return -(-len(self._planned(epoch)) // self._batch_size)

    def batch(self, epoch: int, position: int) -> WindowBatch:
        """Return the batch at a position, counted from 0, of an epoch. Raises IndexError beyond its
        last.
        """
        _refuse_beyond(epoch, position, self.num_batches(epoch))
        start = position * self._batch_size
        return self._pieces.collate(
            self._planned(epoch)[start : start + self._batch_size]
        )

    def _make_plan(self, epoch: int) -> list[list[int]]:
        """Return the pieces of every row."""
        generator = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        rows = self._pieces.pack(generator.permutation(len(self._pieces.lens)))
        return [rows[i] for i in generator.permutation(len(rows))]


def scoring_windows(
    store: TextStore, window_len: int, tokens_per_batch: int, packed: bool
) -> Iterator[WindowBatch]:
    """Windows for evaluation, in which every token, and every eos that training has, is a label
    exactly once.

    Packed as in training; else the documents are one stream in their order, and eos stands before
    its first token. Windows overlap: what a later one shares with the one before it is there to be
    seen, and no label. A batch has at most `tokens_per_batch` tokens, padding included, but one
    window at least.
    """
    most = max(1, tokens_per_batch // window_len)
    if packed:
        pieces = _Pieces(store, window_len, overlap(window_len))
        rows = pieces.pack(np.arange(len(pieces.lens)))
        yield from (
            pieces.collate(rows[i : i + most]) for i in range(0, len(rows), most)
        )
        return
    stream = _Stream(store, np.arange(len(store)))
    starts = np.array(scoring_starts(len(stream), window_len))
    for i in range(0, len(starts), most):
        yield _scoring_batch(stream, starts[i : i + most], window_len)


def overlap(window_len: int) -> int:
    """How many positions a window for evaluation shares with the one before it.

    Half of them, so that each token but the first has at least as many before it in sight.
    """
    return window_len // 2


def scoring_starts(length: int, window_len: int) -> range:
    """Where the windows for evaluation of so many tokens begin."""
    shared = overlap(window_len)
    return range(0, max(min(length, 1), length - shared), window_len - shared)


class _Stream:
    """The documents of a store in some order as one sequence, with eos after each where there are
    several.
    """

    def __init__(self, store: TextStore, order: Positions) -> None:
        self._store, self._order = store, order
        lens = store.lens[order] + (len(store) > 1)
        self._ends = np.cumsum(lens)
        self._starts = self._ends - lens

    def __len__(self) -> int:
        return int(self._ends[-1])

    def at(self, positions: Positions) -> Positions:
        """Return the ids at these positions; nothing else of the store is read."""
        number = np.searchsorted(self._ends, positions, side="right")
        document, inside = self._order[number], positions - self._starts[number]
        is_eos = inside == self._store.lens[document]
        ids = self._store.ids[
            self._store.offsets[document] + np.where(is_eos, 0, inside)
        ]
        return np.where(is_eos, EOS_ID, ids.astype(np.int64))


class _Pieces:
    """The documents of a store, framed by bos and eos, in pieces of at most `longest` labels.

    The first `shared` positions of a document's later pieces are the last ones of the piece before,
    and no labels.
    """

    def __init__(self, store: TextStore, longest: int, shared: int = 0) -> None:
        self._store, self._longest = store, longest
        counts = -(-np.maximum(store.lens + 1 - shared, 1) // (longest - shared))
        self.documents: Positions = np.repeat(np.arange(len(store)), counts)
        number = (
            np.arange(len(self.documents))
            - (np.cumsum(counts) - counts)[self.documents]
        )
        self.starts: Positions = number * (longest - shared)
        self.seen: Positions = np.where(number > 0, shared, 0)
        self.lens: Positions = np.minimum(
            store.lens[self.documents] + 1 - self.starts, longest
        )

    def pack(self, order: Positions) -> list[list[int]]:
        """Rows of pieces: each goes, in this order, where it leaves the least room (best fit)."""
        rows: list[list[int]] = []
        with_room: defaultdict[int, list[int]] = defaultdict(list)
        rooms: list[int] = []  # those that some row has, rising
        for piece, length in zip(
            order.tolist(), self.lens[order].tolist(), strict=True
        ):
            fitting = bisect_left(rooms, length)
            if fitting == len(rooms):
                room, row = self._longest, len(rows)
                rows.append([])
            else:
                room = rooms[fitting]
                row = with_room[room].pop()
                if not with_room[room]:
                    del rooms[fitting]
            rows[row].append(piece)
            if room > length:
                if not with_room[room - length]:
                    insort(rooms, room - length)
                with_room[room - length].append(row)
        return rows

    def collate(self, rows: Sequence[Sequence[int]]) -> WindowBatch:
        """Return the batch of these rows of pieces."""
        pieces = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
        numbers = np.concatenate([np.arange(1, len(row) + 1) for row in rows])
        lens = self.lens[pieces]
        of_token = np.repeat(np.arange(len(pieces)), lens)
        inside = np.arange(len(of_token)) - (np.cumsum(lens) - lens)[of_token]
        documents, positions = (
            self.documents[pieces][of_token],
            self.starts[pieces][of_token] + inside,
        )
        used = np.array([self.lens[row].sum() for row in rows])
        filled = np.arange(self._longest) < used[:, None]
        is_label = inside >= self.seen[pieces][of_token]
        return WindowBatch(
            tgt_in=_spread(filled, self._framed(documents, positions)),
            tgt_out=_spread(
                filled,
                np.where(is_label, self._framed(documents, positions + 1), PAD_ID),
            ),
            segments=_spread(filled, numbers[of_token]),
            num_tgt_tokens=int(is_label.sum()),
        )

    def _framed(self, documents: Positions, positions: Positions) -> Positions:
        """Return the ids at positions in bos, ids, eos of documents."""
        lens = self._store.lens[documents]
        ids = self._store.ids[
            self._store.offsets[documents] + np.clip(positions - 1, 0, lens - 1)
        ].astype(np.int64)
        ids[positions == 0] = BOS_ID
        ids[positions == lens + 1] = EOS_ID
        return ids


def _scoring_batch(stream: _Stream, starts: Positions, window_len: int) -> WindowBatch:
    """Windows that begin at these positions of the stream; what is beyond its end is padding."""
    place, last = np.arange(min(window_len, len(stream))), len(stream) - 1
    positions = starts[:, None] + place
    inside = positions < len(stream)
    is_label = inside & ((starts[:, None] == 0) | (place >= overlap(window_len)))
    before = np.where(
        positions == 0, EOS_ID, stream.at(np.clip(positions - 1, 0, last))
    )
    return WindowBatch(
        tgt_in=torch.from_numpy(np.where(inside, before, PAD_ID)),
        tgt_out=torch.from_numpy(
            np.where(is_label, stream.at(np.minimum(positions, last)), PAD_ID)
        ),
        segments=None,
        num_tgt_tokens=int(is_label.sum()),
    )


def _spread(filled: Bools, values: Positions) -> Int[Tensor, "B T"]:
    """Values, row by row, where `filled`; PAD_ID elsewhere."""
    matrix = np.full(filled.shape, PAD_ID, dtype=np.int64)
    matrix[filled] = values
    return torch.from_numpy(matrix)


def _refuse_beyond(epoch: int, position: int, count: int) -> None:
    if not 0 <= position < count:
        raise IndexError(f"epoch {epoch} has batches 0 to {count - 1}, not {position}")
