"""The engine of `decoding.cpp`: packed weights, and sessions that use them.

Shapes: D d_model, V vocabulary, S source tokens, R rows of one step.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import Advanced, Beams, Ids, Indices, StepInput, TopK
from weft.engine.memories import Memories
from weft.engine.packed import (
    KINDS,
    LONG,
    POINTER,
    Packed,
    Signature,
    declared,
    library,
    refuse_missing,
)
from weft.engine.weights import Floats, Weights
from weft.kernels import native

_SIGNATURES: Mapping[str, Signature] = {
    "decoding_session": (POINTER, (POINTER, LONG, LONG)),
    "decoding_end": (None, (POINTER,)),
    "decoding_encode": (ctypes.c_int, (POINTER, LONG, *[POINTER] * 5)),
    "decoding_memory_size": (LONG, (POINTER, LONG)),
    "decoding_copy_memory": (None, (POINTER, LONG, POINTER)),
    "decoding_restore": (ctypes.c_int, (POINTER, LONG, LONG, POINTER)),
    "decoding_record": (None, (POINTER, LONG)),
    "decoding_shares": (
        ctypes.c_int,
        (POINTER, LONG, LONG, *[POINTER] * 3, LONG, POINTER),
    ),
    "decoding_states": (ctypes.c_int, (POINTER, LONG, *[POINTER] * 3)),
    "decoding_step": (
        ctypes.c_int,
        (
            *(POINTER, LONG, *[POINTER] * 5, LONG, POINTER, POINTER, LONG),
            *[POINTER] * 3,
            *(LONG, POINTER, POINTER, POINTER, LONG),
            *(POINTER, LONG, POINTER, POINTER),
        ),
    ),
    "decoding_advance": (
        ctypes.c_int,
        (
            *(POINTER, POINTER, LONG, POINTER, LONG, POINTER, LONG),
            *[POINTER] * 5,
        ),
    ),
}


_BEAMS = (
    *("lengths", "sizes", "max_lens", "eos_ids", "penalties", "worst_scores"),
    *("log_probs", "token_log_probs", "newest", "tokens", "ancestors"),
)


class _Beams(ctypes.Structure):
    _fields_ = (
        *((name, LONG) for name in ("places", "room", "most")),
        *((name, POINTER) for name in _BEAMS),
    )


@dataclass(frozen=True)
class Shares:
    """The shares of source tokens in the product of each row's final state with its `readout` (R,
    D), by the looks of all layers, each norm's scale as it was: `values` (R, S), 0 behind a row's
    own source.

    `evenness` (R) is the mean entropy of the looks' weights, each counted by what its head carried,
    as a share of the most possible. Both are filled by a step.
    """

    readout: Floats
    values: Floats
    evenness: Floats


class Engine:
    """A Transformer's weights, packed for products of one kind; any number of sessions in any
    threads use them.
    """

    def __init__(self, weights: Weights, kind: str = "float32") -> None:
        """Pack the weights; `kind` is "float32", "bfloat16" or "int8".

        Raises UnavailableError where there are no native kernels, or none for these weights.
        """
        refuse_missing(weights.activation, weights.norm)
        self.library = declared(library(), _SIGNATURES)
        self.packed = Packed(weights, kind)
        self.kind = kind
        self.d_model = weights.d_model
        self.vocab_size = int(self.packed.model.vocab_size)
        self._projection = weights.projection
        self.memories = Memories()
        self._lock = Lock()

    def session(self, slots: int, places: int) -> "Session":
        """Start a session of so many sentences, each with so many hypotheses; for one thread at
        a time.
        """
        return Session(self, slots, places)

    def prepare_lists(self) -> None:
        """Pack the output matrix for sentences with a shortlist, if that is not done."""
        with self._lock:
            self.packed.add_lists()

    def prepare_shares(self) -> None:
        """Pack the maps that shares go back through, if that is not done."""
        with self._lock:
            self.packed.add_shares()

    def readout(self, tokens: Indices) -> Floats:
        """Return for each of some tokens what the final states are multiplied with to give its
        logit above the mean of the vocabulary, (R, D).
        """
        assert self._projection is not None
        return self._projection.rows(tokens) - self._mean_row

    @cached_property
    def _mean_row(self) -> Floats:
        assert self._projection is not None
        return self._projection.mean_row()


def engine_of(weights: Weights, kind: str) -> Engine | None:
    """Return the engine of these weights; None where there is none for them on this machine."""
    if kind not in KINDS:
        return None
    try:
        return Engine(weights, kind)
    except native.UnavailableError:
        return None


def why_no_engine(weights: Weights) -> str:
    """Say why these weights have no engine here; "" where they have one."""
    try:
        refuse_missing(weights.activation, weights.norm)
        library()
    except native.UnavailableError as error:
        return str(error)
    return ""


def what_computes(weights: Weights) -> str:
    """Say in words what computes a model of these weights on this machine."""
    if reason := why_no_engine(weights):
        return f"plain NumPy, without the native engine ({reason})"
    return f"the native engine, {native.origin(library())}"


def computer_of(weights: Weights) -> str:
    """Name what computes a model of these weights on this machine: `engine` or `numpy`."""
    return "numpy" if why_no_engine(weights) else "engine"


class Session:
    """Sentences under way: `num_sentences` of them (slots of the library), each with places for
    `beam_size` hypotheses. Used by one thread at a time.
    """

    begins_together = False
    attends = True

    def __init__(self, engine: Engine, num_sentences: int, beam_size: int) -> None:
        self.engine = engine
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self._library = engine.library
        self._handle = self._library.decoding_session(
            ctypes.byref(engine.packed.model), num_sentences, beam_size
        )
        if not self._handle:
            raise MemoryError
        # those of the last step, which seldom change, and where their arrays are
        self._beams: Beams | None = None
        self._places = _Beams()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.decoding_end(self._handle)
            self._handle = None

    def read(
        self,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Encode sentences, each into a slot of its own, whose former content is gone.

        What a sentence becomes has only ids of its `allowed` ones, ascending, and their
        probabilities add up to 1; where it has none, any id. Raises MemoryError.
        """
        if any(len(ids) for ids in allowed):
            self.engine.prepare_lists()
        into = np.asarray(indices, np.int64)
        lists = allowed or [()] * len(sources)
        arrays = into, *_end_to_end(sources), *_end_to_end(lists)
        addresses = (x.ctypes.data for x in arrays)
        status = self._library.decoding_encode(self._handle, len(into), *addresses)
        self._refuse_failure(status)
        for number, key in self.engine.memories.wanted(sources).items():
            self.engine.memories.put(key, self._memory(int(into[number])))

    def read_again(self, sources: Sequence[Sequence[int]]) -> None:
        """Read a source into each slot, from the first on; what the engine's `memories` have of it
        is not computed again. Raises MemoryError.
        """
        rest = []
        for slot, source in enumerate(sources):
            memory = self.engine.memories.take(source)
            if memory is None:
                rest.append(slot)
                continue
            status = self._library.decoding_restore(
                self._handle, slot, len(source), memory.ctypes.data
            )
            self._refuse_failure(status)
        if rest:
            self.read(rest, [sources[slot] for slot in rest])

    def _memory(self, slot: int) -> NDArray[np.uint8]:
        """Copy what a slot has of its source."""
        size = self._library.decoding_memory_size(self._handle, slot)
        memory = np.empty(size, np.uint8)
        self._library.decoding_copy_memory(self._handle, slot, memory.ctypes.data)
        return memory

    def record(self, index: int) -> None:
        """Keep of the next steps of a sentence what `recorded_shares` are made of."""
        self.engine.prepare_shares()
        self._library.decoding_record(self._handle, index)

    def recorded_shares(
        self, index: int, src_len: int, tokens: Ids, ancestors: NDArray[np.int32]
    ) -> tuple[Floats, Floats]:
        """Return what each source token wrote into the logits of a hypothesis's tokens (T, S), and
        how even the looks were that wrote it (T): what `forced_shares_of` gives, bit for bit.

        Raises MemoryError.
        """
        readout = self._filled_up(self.engine.readout(np.asarray(tokens)))
        shares = np.empty((len(tokens), src_len), np.float32)
        evenness = np.empty(len(tokens), np.float32)
        ancestors = np.ascontiguousarray(ancestors, np.int32)
        status = self._library.decoding_shares(
            self._handle,
            index,
            len(tokens),
            ancestors.ctypes.data,
            readout.ctypes.data,
            shares.ctypes.data,
            src_len,
            evenness.ctypes.data,
        )
        self._refuse_failure(status)
        return shares, evenness

    def states(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> Floats:
        """Return the encoder's final states of texts that lie end to end, (ids, D).

        `ends` are where each text ends. Raises MemoryError.
        """
        states = np.empty((len(ids), self.engine.d_model), np.float32)
        if not len(ids):
            return states
        arrays = (ids, ends, states)
        addresses = (x.ctypes.data for x in arrays)
        status = self._library.decoding_states(self._handle, len(ends), *addresses)
        self._refuse_failure(status)
        return states

    def step(
        self,
        inputs: StepInput,
        k: int,
        *,
        wanted: NDArray[np.int64] | None = None,
        beside: Floats | None = None,
        all_log_probs: bool = False,
        as_logits: bool = False,
        attention: Floats | None = None,
        shares: "Shares | None" = None,
    ) -> TopK:
        """Take one more token for each row; return the `k` best next ones of the rows `wanted`.

        Without `wanted` that is all rows; bans and forced ids are those of the rows wanted. The
        best stand first, the lower id among equals. `all_log_probs` returns those of all tokens
        too, `as_logits` what the output layer gave in their place, which differs by one number a
        row. `beside` (R, D) is added to the tokens' vectors. `attention` (R, S) is filled with the
        attention of the last layer to the source, the mean of its heads, 0 behind a row's own
        source; where no row is wanted, nothing behind it is computed. `shares` are filled in the
        place of it. Raises MemoryError.
        """
        sentences, beams, positions = (
            np.ascontiguousarray(x, np.int64)
            for x in (inputs.sentences, inputs.beams, inputs.positions)
        )
        tokens, banned = (
            np.ascontiguousarray(x, np.int32) for x in (inputs.tokens, inputs.banned)
        )
        # its rows may be one and the same: they are read by their stride
        ancestors = np.asarray(inputs.ancestors, np.int32)
        if ancestors.strides[1] != ancestors.itemsize:
            ancestors = np.ascontiguousarray(ancestors)
        if wanted is None:
            wanted = np.arange(len(inputs))
        wanted = np.ascontiguousarray(wanted, np.int64)
        ends = np.zeros(len(wanted)) if inputs.ban_ends is None else inputs.ban_ends
        ban_ends = np.ascontiguousarray(ends, np.int64)
        forced = inputs.forced
        if forced is not None:
            forced = np.ascontiguousarray(forced, np.int32)
        if beside is not None:
            beside = self._filled_up(beside)
        readout = None
        evenness = None
        if shares is not None:
            self.engine.prepare_shares()
            readout = self._filled_up(shares.readout)
            attention, evenness = shares.values, shares.evenness
        best = np.full((len(wanted), k), -np.inf, np.float32)
        ids = np.zeros((len(wanted), k), np.int32)
        every = None
        if all_log_probs:
            every = np.empty((len(wanted), self.engine.vocab_size), np.float32)
        rows = sentences, beams, positions, tokens, ancestors
        status = self._library.decoding_step(
            self._handle,
            len(inputs),
            *(x.ctypes.data for x in rows),
            ancestors.strides[0] // 4,
            _address(beside),
            wanted.ctypes.data,
            len(wanted),
            banned.ctypes.data,
            ban_ends.ctypes.data,
            _address(forced),
            k,
            best.ctypes.data,
            ids.ctypes.data,
            _address(every),
            as_logits,
            _address(attention),
            0 if attention is None else attention.shape[1],
            _address(readout),
            _address(evenness),
        )
        self._refuse_failure(status)
        return best, ids, every

    def advance(
        self, beams: Beams, active: Indices, width: int, banned: NDArray[np.int32]
    ) -> Advanced:
        """Extend the beams of some sentences, as `weft.decoding.decoder.Advances`."""
        if self._beams is not beams:
            self._beams = beams
            self._places = _places_of(beams)
        count = len(active)
        scores = np.empty((count, width), np.float32)
        ended = np.empty((count, width), np.bool_)
        bounds = np.empty(count, np.float32)
        broken = np.empty(count, np.bool_)
        events = LONG()
        status = self._library.decoding_advance(
            self._handle,
            ctypes.byref(self._places),
            count,
            active.ctypes.data,
            width,
            banned.ctypes.data,
            len(banned),
            scores.ctypes.data,
            ended.ctypes.data,
            bounds.ctypes.data,
            broken.ctypes.data,
            ctypes.byref(events),
        )
        self._refuse_failure(status)
        return Advanced(scores, ended, bounds, broken, events.value)

    def _filled_up(self, beside: Floats) -> Floats:
        """Pad rows of d_model numbers to the engine's own width."""
        rows = np.zeros(
            (len(beside), self.engine.packed.model.d_model_padded), np.float32
        )
        rows[:, : beside.shape[1]] = beside
        return rows

    def _refuse_failure(self, status: int) -> None:
        native.refuse_failure(self._library, status, "the decoding engine")


def _places_of(beams: Beams) -> _Beams:
    """Say where the arrays of beams are."""
    addresses = {name: getattr(beams, name).ctypes.data for name in _BEAMS}
    _, places, room = beams.tokens.shape
    most = beams.penalties.shape[1]
    return _Beams(places=places, room=room, most=most, **addresses)


def _end_to_end(rows: Sequence[Ids]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Join rows of ids, and say where each ends."""
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return np.concatenate([np.asarray(row, np.int32) for row in rows]), ends


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data
