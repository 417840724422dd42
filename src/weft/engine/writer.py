"""The native engine as a language model: texts that grow, each in a slot of a session.

Shapes: N texts, L new tokens of each, T with those before them, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.decoding.decoder import Floats, Indices, StepInput
from weft.engine.bindings import Engine, Session
from weft.engine.ngrams import Ids, beside
from weft.engine.packed import KINDS
from weft.engine.weights import Weights
from weft.kernels.native import UnavailableError


@dataclass(frozen=True)
class WriterCache:
    """Texts under way, each in a slot of a session, which holds their keys and values.

    A cache is good until something else is decoded after it: the slot then holds the longer text.
    """

    session: Session
    slots: Indices
    ids: Ids

    def until(self, length: int) -> "WriterCache":
        """Cut to the first `length` positions; later ones are overwritten as decoding goes on."""
        return WriterCache(self.session, self.slots, self.ids[:, :length])

    def select(self, rows: Indices) -> "WriterCache":
        """Keep or reorder rows. Raises ValueError where one is repeated: a slot holds one text."""
        if len(set(rows.tolist())) < len(rows):
            raise ValueError("a text in a slot cannot continue in two ways")
        return WriterCache(self.session, self.slots[rows], self.ids[rows])


@dataclass(frozen=True)
class Reading:
    """Tokens of a text that are read next, into a slot: those from `begin` to `end` of `ids`.

    The text in sight begins at `first`, whose position is 0; what is before `begin` was read, or
    `begin` is `first`. The logits of what follows the last `num_wanted` are asked for. `is_whole`:
    a text that is scored, all of whose positions are read alike.
    """

    slot: int
    ids: Sequence[int]
    first: int
    begin: int
    end: int
    num_wanted: int
    is_whole: bool = False

    def __len__(self) -> int:
        return self.end - self.begin


def writer_of(weights: Weights, precision: str) -> "Writer | None":
    """Return the engine's form of a language model; None where there is none on this machine."""
    if precision not in KINDS:
        return None
    try:
        return Writer(weights, precision)
    except UnavailableError:
        return None


class Writer:
    """A language model of the native engine, with its n-grams and matches."""

    def __init__(self, weights: Weights, precision: str = "float32") -> None:
        """Pack the weights for products of this precision.

        Raises UnavailableError where there is no native library, or none for these weights.
        """
        self.weights = weights
        self.engine = Engine(weights, precision)

    def prefill(self, ids: Ids) -> WriterCache:
        """Read beginnings of one length (N, L), without padding; L may be 0."""
        count, length = ids.shape
        session = self.engine.session(count, 1)
        start = WriterCache(session, np.arange(count), ids[:, :0])
        if not length:
            return start
        _, cache = self._step(ids, start, np.zeros(0, np.int64))
        return cache

    def decode(self, ids: Ids, cache: WriterCache) -> tuple[Floats, WriterCache]:
        """Read new tokens (N, L) after those in the cache; return the logits of what follows each
        (N, L, V), and the longer cache.
        """
        count, length = ids.shape
        if not ids.size:
            empty = np.zeros((count, length, self.engine.vocab_size), np.float32)
            return empty, cache
        rows, longer = self._step(ids, cache, None)
        return rows.reshape(count, length, -1), longer

    def _step(
        self, ids: Ids, cache: WriterCache, wanted: Indices | None
    ) -> tuple[Floats, WriterCache]:
        """Take new tokens; return the logits of the rows wanted, None: of all."""
        count, length = ids.shape
        first = cache.ids.shape[1]
        read = np.concatenate([cache.ids, ids], axis=1)
        slots = np.repeat(cache.slots, length)
        times = np.arange(first, first + length)
        # a slot has one text, whose past stands at the first place
        only_place = np.zeros(first + length, np.int32)
        inputs = StepInput(
            sentences=slots,
            beams=np.zeros_like(slots),
            positions=np.tile(times, count),
            tokens=ids.astype(np.int32).ravel(),
            ancestors=np.broadcast_to(only_place, (count * length, first + length)),
        )
        vectors = beside(self.weights, read, length)
        if vectors is not None:
            vectors = vectors.reshape(count * length, -1)
        _, _, logits = cache.session.step(
            inputs,
            0,
            wanted=wanted,
            beside=vectors,
            all_log_probs=True,
            as_logits=True,
        )
        assert logits is not None
        return logits, WriterCache(cache.session, cache.slots, read)


class Slots:
    """Texts at any positions, which take one step together; each is in a slot of a session.

    A text is read as if it were alone, to the last bit, whatever stands beside it, and in whatever
    parts it is read. For one thread at a time.
    """

    reads_in_parts = True

    def __init__(self, writer: Writer, count: int) -> None:
        """Make room for `count` texts."""
        self.weights = writer.weights
        self.session = writer.engine.session(count, 1)

    def read(self, readings: Sequence[Reading]) -> list[Floats]:
        """Read tokens of several texts; return for each the logits that it wants (num_wanted, V).

        Raises MemoryError; the same can then be read in smaller portions.
        """
        lengths = np.array([len(reading) for reading in readings])
        tokens: list[int] = []
        positions = []
        for reading in readings:
            tokens += reading.ids[reading.begin : reading.end]
            begin = reading.begin - reading.first
            positions.append(np.arange(begin, begin + len(reading)))
        slots = np.repeat([reading.slot for reading in readings], lengths)
        times = np.concatenate(positions)
        # a slot has one text, whose past stands at the first place
        only_place = np.zeros(int(times.max()) + 1, np.int32)
        inputs = StepInput(
            sentences=slots,
            beams=np.zeros_like(slots),
            positions=times,
            tokens=np.array(tokens, np.int32),
            ancestors=np.broadcast_to(only_place, (len(slots), len(only_place))),
        )
        counts = [reading.num_wanted for reading in readings]
        ends = np.cumsum(lengths)
        wanted = [
            np.arange(end - count, end) for end, count in zip(ends, counts, strict=True)
        ]
        _, _, logits = self.session.step(
            inputs,
            0,
            wanted=np.concatenate(wanted),
            beside=self._beside(readings),
            all_log_probs=True,
            as_logits=True,
        )
        assert logits is not None
        return np.split(logits, np.cumsum(counts)[:-1])

    def leave(self, slot: int) -> None:
        """Drop a text; the next one in its slot overwrites it."""

    def _beside(self, readings: Sequence[Reading]) -> Floats | None:
        """Sum the vectors of n-grams and matches at all new tokens (R, D); None where the model has
        none.
        """
        if self.weights.ngrams is None and self.weights.matches is None:
            return None
        return np.concatenate([self._beside_one(reading) for reading in readings])

    def _beside_one(self, reading: Reading) -> Floats:
        ids = np.array([reading.ids[reading.first : reading.end]], np.int64)
        vectors = beside(self.weights, ids, len(reading))
        assert vectors is not None
        return vectors[0]
