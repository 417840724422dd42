"""The tokens of a store in the order in which a language model reads them, and the windows that
score each of them once.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.data.store import Positions, TextStore
from weft.data.tokenizer import BOS_ID, EOS_ID


def overlap(window_len: int) -> int:
    """Return how many positions a window for evaluation shares with the one before it.

    Half of them, so that each token but the first has at least as many before it in sight.
    """
    return window_len // 2


def scoring_starts(length: int, window_len: int) -> range:
    """Return where the windows for evaluation of so many tokens begin."""
    shared = overlap(window_len)
    end = max(min(length, 1), length - shared)
    return range(0, end, window_len - shared)


@dataclass(frozen=True)
class ScoredWindow:
    """A window of L tokens: `labels` (L) are the tokens after each of the `inputs` (L); the first
    `num_seen` are there to be seen, and were labels of the window before.
    """

    inputs: Positions
    labels: Positions
    num_seen: int


def scored_windows(
    store: TextStore, window_len: int, packed: bool
) -> Iterator[ScoredWindow]:
    """Yield windows in which every token, and every eos that training has, is a label exactly once.

    `packed`: documents are read one by one, from bos on; else they are one stream in their order,
    and eos stands before its first token. Windows overlap by half (`overlap`).
    """
    if packed:
        yield from _windows_of_documents(store, window_len)
        return
    stream = Stream(store, np.arange(len(store)))
    length = len(stream)
    for start in scoring_starts(length, window_len):
        end = min(start + window_len, length)
        ids = stream.at(np.arange(max(start - 1, 0), end))
        if not start:
            ids = np.concatenate([[EOS_ID], ids])
        yield ScoredWindow(ids[:-1], ids[1:], overlap(window_len) if start else 0)


def has_ends(store: TextStore, packed: bool) -> bool:
    """Return whether each document's end symbol is a label: in one stream, of several documents."""
    return packed or len(store) > 1


def _windows_of_documents(store: TextStore, window_len: int) -> Iterator[ScoredWindow]:
    pieces = Pieces(store, window_len, overlap(window_len))
    for number, length in enumerate(pieces.lens.tolist()):
        first = int(pieces.starts[number])
        positions = np.arange(first, first + length + 1)
        documents = np.full(len(positions), pieces.documents[number])
        ids = pieces.framed(documents, positions)
        yield ScoredWindow(ids[:-1], ids[1:], int(pieces.seen[number]))


class Stream:
    """The documents of a store in some order as one sequence, with eos after each where there are
    several.
    """

    def __init__(self, store: TextStore, order: Positions) -> None:
        self._store = store
        self._order = order
        lens = store.lens[order] + has_ends(store, packed=False)
        self._ends = np.cumsum(lens)
        self._starts = self._ends - lens

    def __len__(self) -> int:
        return int(self._ends[-1])

    def at(self, positions: Positions) -> Positions:
        """Return the ids at these positions; nothing else of the store is read."""
        number = np.searchsorted(self._ends, positions, side="right")
        document = self._order[number]
        inside = positions - self._starts[number]
        is_eos = inside == self._store.lens[document]
        place = self._store.offsets[document]
        place += np.where(is_eos, 0, inside)
        ids = self._store.ids[place].astype(np.int64)
        return np.where(is_eos, EOS_ID, ids)


class Pieces:
    """The documents of a store, framed by bos and eos, in pieces of at most `longest` labels.

    The first `shared` positions of a document's later pieces are the last ones of the piece before,
    and no labels.
    """

    def __init__(self, store: TextStore, longest: int, shared: int = 0) -> None:
        self._store = store
        self.longest = longest
        step = longest - shared
        num_labels = store.lens + 1
        counts = -(-np.maximum(num_labels - shared, 1) // step)
        documents = np.repeat(np.arange(len(store)), counts)
        number = places(counts)
        self.documents: Positions = documents
        self.starts: Positions = number * step
        self.seen: Positions = np.where(number > 0, shared, 0)
        left = num_labels[documents] - self.starts
        self.lens: Positions = np.minimum(left, longest)

    def pack(self, order: Positions) -> list[list[int]]:
        """Pack pieces into rows: each goes, in this order, where it leaves the least room (best
        fit).
        """
        rows: list[list[int]] = []
        with_room: defaultdict[int, list[int]] = defaultdict(list)
        rooms: list[int] = []  # those that some row has, rising
        lens = self.lens[order].tolist()
        for piece, length in zip(order.tolist(), lens, strict=True):
            fitting = bisect_left(rooms, length)
            if fitting == len(rooms):
                room = self.longest
                row = len(rows)
                rows.append([])
            else:
                room = rooms[fitting]
                row = with_room[room].pop()
                if not with_room[room]:
                    del rooms[fitting]
            rows[row].append(piece)
            left = room - length
            if left:
                if not with_room[left]:
                    insort(rooms, left)
                with_room[left].append(row)
        return rows

    def framed(self, documents: Positions, positions: Positions) -> Positions:
        """Return the ids at positions in bos, ids, eos of documents."""
        lens = self._store.lens[documents]
        place = self._store.offsets[documents]
        place += np.clip(positions - 1, 0, lens - 1)
        ids = self._store.ids[place].astype(np.int64)
        ids[positions == 0] = BOS_ID
        ids[positions == lens + 1] = EOS_ID
        return ids


def places(counts: Positions) -> Positions:
    """Count 0, 1, 2 ... anew for each of the counts, all in a row."""
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(starts, counts)
