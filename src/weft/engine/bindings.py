"""The engine of `decoding.cpp`: a Transformer's weights as its products want them, and sessions
that use them.

Shapes: D d_model, F d_ff, W the width of all heads together as the engine lays them out, V
vocabulary, S source tokens, R rows of one step. Every width is filled up with zeros to whole
registers.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import Advanced, Beams, Ids, Indices, StepInput, TopK
from weft.engine.memories import Memories
from weft.engine.weights import Attention, Floats, Layer, Linear, Norm, Weights
from weft.kernels import native
from weft.kernels.activations import ACTIVATIONS, NORMS

SOURCE = Path(__file__).with_name("decoding.cpp")
KINDS = ("float32", "bfloat16", "int8")
# numbers in four bytes; of int8 the library says
_PER_GROUP = {"float32": 1, "bfloat16": 2}
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
_ALIGNMENT = 64  # bytes: a cache line, and the widest register
_BFLOAT16_NAN = 0x7FC0


class _Matrix(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("weights", "scales", "starts", "bias")),
        ("inputs", _LONG),
        ("outputs", _LONG),
    )


class _Norm(ctypes.Structure):
    _fields_ = (("gain", _POINTER), ("bias", _POINTER))


class _Layer(ctypes.Structure):
    _fields_ = (
        ("norms", _Norm * 3),
        ("after", _Norm * 3),
        *(
            (name, _Matrix)
            for name in (
                "self_qkv",
                "self_out",
                "cross_query",
                "cross_kv",
                "cross_out",
                "inner",
                "gate",
                "outer",
                "cross_back",
            )
        ),
        ("self_gains", _POINTER * 2),
        ("cross_gains", _POINTER * 2),
    )


_WHOLE = (
    *(
        "kind",
        "d_model",
        "d_model_padded",
        "d_ff",
        "head_dim",
        "groups",
        "lanes",
        "steps",
        "norm_first",
    ),
    *(
        "root_mean_square",
        "activation",
        "num_encoder_layers",
        "num_decoder_layers",
        "vocab_size",
        "half",
        "num_heads",
    ),
)


_BEAMS = (
    *("lengths", "sizes", "max_lens", "eos_ids", "penalties", "worst_scores"),
    *("log_probs", "token_log_probs", "newest", "tokens", "ancestors"),
)


class _Beams(ctypes.Structure):
    _fields_ = (
        *((name, _LONG) for name in ("places", "room", "most")),
        *((name, _POINTER) for name in _BEAMS),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, _LONG) for name in _WHOLE),
        *(
            (name, ctypes.c_double)
            for name in ("eps", "score_scale", "embedding_scale")
        ),
        *(
            (f"{side}_{what}", _POINTER)
            for side in ("src", "tgt")
            for what in ("tokens", "positions")
        ),
        *((name, _POINTER) for name in ("cosines", "sines")),
        ("encoder", ctypes.POINTER(_Layer)),
        ("decoder", ctypes.POINTER(_Layer)),
        ("encoder_norm", _Norm),
        ("decoder_norm", _Norm),
        ("projection", _Matrix),
        ("listed", _Matrix),
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


@dataclass(frozen=True)
class Heads:
    """The layout of heads: in `groups`, in each dimension after dimension, one lane a head."""

    num_heads: int
    head_dim: int

    @property
    def lanes(self) -> int:
        """Count the heads of a group: a power of two, at most the numbers of a register."""
        return min(_lanes(), 1 << (self.num_heads - 1).bit_length())

    @property
    def groups(self) -> int:
        return -(-self.num_heads // self.lanes)

    @property
    def steps(self) -> int:
        """Return the dimensions of a head, padded so that those of a group make whole vectors."""
        return -(-self.head_dim * self.lanes // _lanes()) * _lanes() // self.lanes

    def laid_out(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Order rows of heads, one behind the other, as the engine has them: (W, ...)."""
        rest = rows.shape[1:]
        apart = np.zeros((self.groups * self.lanes, self.steps, *rest), rows.dtype)
        by_head = rows.reshape(self.num_heads, self.head_dim, *rest)
        apart[: self.num_heads, : self.head_dim] = by_head
        grouped = apart.reshape(self.groups, self.lanes, self.steps, *rest)
        return grouped.swapaxes(1, 2).reshape(-1, *rest)

    def into(self, linear: Linear) -> Linear:
        """Return a map to heads, its outputs in the engine's order."""
        return Linear(
            self.laid_out(linear.stored),
            None if linear.bias is None else self.laid_out(linear.bias),
            None if linear.scales is None else self.laid_out(linear.scales),
        )

    def out_of(self, linear: Linear) -> Linear:
        """Return a map from heads, its inputs in the engine's order."""
        stored = self.laid_out(linear.stored.T).T
        return Linear(stored, linear.bias, linear.scales)


def quantized(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantize a matrix (N, M) to int8 with a scale for each row (N): weight = int8 times scale.

    To the nearest of 255 steps, symmetric.

    Scales are rounded up to 17 binary digits: 127 of them are exact then, and what was quantized
    stays as it is.
    """
    largest = np.abs(weight).max(1, initial=0.0)
    bits = (largest / np.float32(127)).view(np.int32)
    scales = ((bits + 0x7F) & ~0x7F).view(np.float32)
    steps = np.maximum(scales, np.finfo(np.float32).tiny)
    # what is not finite becomes 0
    with np.errstate(invalid="ignore"):
        return np.rint(weight / steps[:, None]).astype(np.int8), scales


def to_bfloat16(numbers: Floats) -> NDArray[np.uint16]:
    """Round to bfloat16, to even where two are equally near: the upper half of each number's
    bits.
    """
    bits = numbers.view(np.uint32)
    is_odd = (bits >> 16) & 1
    rounded = bits + (is_odd + np.uint32(0x7FFF))
    upper = (rounded >> 16).astype(np.uint16)
    upper[np.isnan(numbers)] = _BFLOAT16_NAN
    return upper


@cache
def library() -> ctypes.CDLL:
    """Load the compiled functions. Raises UnavailableError with the reason."""
    compiled = native.library(SOURCE)
    signatures = {
        "decoding_lanes": (_LONG, ()),
        "decoding_int8_group": (_LONG, ()),
        "decoding_session": (_POINTER, (_POINTER, _LONG, _LONG)),
        "decoding_end": (None, (_POINTER,)),
        "decoding_encode": (ctypes.c_int, (_POINTER, _LONG, *[_POINTER] * 5)),
        "decoding_memory_size": (_LONG, (_POINTER, _LONG)),
        "decoding_copy_memory": (None, (_POINTER, _LONG, _POINTER)),
        "decoding_restore": (ctypes.c_int, (_POINTER, _LONG, _LONG, _POINTER)),
        "decoding_states": (ctypes.c_int, (_POINTER, _LONG, *[_POINTER] * 3)),
        "decoding_step": (
            ctypes.c_int,
            (
                *(_POINTER, _LONG, *[_POINTER] * 5, _LONG, _POINTER, _POINTER, _LONG),
                *[_POINTER] * 3,
                *(_LONG, _POINTER, _POINTER, _POINTER, _LONG),
                *(_POINTER, _LONG, _POINTER, _POINTER),
            ),
        ),
        "decoding_advance": (
            ctypes.c_int,
            (
                *(_POINTER, _POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG),
                *[_POINTER] * 5,
            ),
        ),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(compiled, name)
        function.restype, function.argtypes = result, arguments
    return compiled


def refuse_missing(activation: str, norm: str) -> None:
    """Raise UnavailableError where an activation or a norm has no native code."""
    if ACTIVATIONS[activation].number is None:
        raise native.UnavailableError(f"{activation} has no native code")
    if NORMS[norm].centred is None:
        raise native.UnavailableError(f"the norm {norm} has no native code")


class Engine:
    """A Transformer's weights, packed for products of one kind; any number of sessions in any
    threads use them.
    """

    def __init__(self, weights: Weights, kind: str = "float32") -> None:
        """Pack the weights; `kind` is "float32", "bfloat16" or "int8".

        Raises UnavailableError where there are no native kernels, or none for these weights.
        """
        refuse_missing(weights.activation, weights.norm)
        self._library = library()
        self._kept: list[object] = []  # what the structures point to
        self.kind = kind
        self.vocab_size = 0
        projection = _Matrix()
        if weights.projection is not None:
            self.vocab_size = len(weights.projection.stored)
            projection = self._matrix(weights.projection, missing=-float("inf"))
        heads = Heads(weights.num_heads, weights.head_dim)
        d_model = weights.d_model
        self.d_model = d_model
        self.num_heads = weights.num_heads
        self.head_dim = weights.head_dim
        first = (weights.encoder or weights.decoder)[0]
        rotary = weights.rotary
        src = weights.src
        tgt = weights.tgt
        self._model = _Model(
            kind=KINDS.index(kind),
            d_model=d_model,
            d_model_padded=_filled(d_model),
            d_ff=_filled(first.inner.stored.shape[0]),
            head_dim=weights.head_dim,
            groups=heads.groups,
            lanes=heads.lanes,
            steps=heads.steps,
            norm_first=weights.norm_first,
            root_mean_square=not NORMS[weights.norm].centred,
            activation=ACTIVATIONS[weights.activation].number,
            num_encoder_layers=len(weights.encoder),
            num_decoder_layers=len(weights.decoder),
            vocab_size=self.vocab_size,
            half=rotary[0].shape[1] if rotary else 0,
            num_heads=weights.num_heads,
            eps=weights.eps,
            score_scale=weights.head_dim**-0.5,
            embedding_scale=weights.embedding_scale,
            src_tokens=self._rows(src.tokens if src else None),
            src_positions=self._rows(src.positions if src else None),
            tgt_tokens=self._rows(tgt.tokens if tgt else None),
            tgt_positions=self._rows(tgt.positions if tgt else None),
            cosines=self._pointer(rotary[0]) if rotary else None,
            sines=self._pointer(rotary[1]) if rotary else None,
            encoder=self._layers(weights.encoder, heads),
            decoder=self._layers(weights.decoder, heads),
            encoder_norm=self._norm(weights.encoder_norm),
            decoder_norm=self._norm(weights.decoder_norm),
            projection=projection,
        )
        self._projection = weights.projection
        self._decoder = weights.decoder
        self.memories = Memories()
        self._lock = Lock()

    def session(self, slots: int, places: int) -> "Session":
        """Start a session of so many sentences, each with so many hypotheses; for one thread at
        a time.
        """
        return Session(self, slots, places)

    def prepare_lists(self) -> None:
        """Pack the output matrix for sentences with a shortlist, if that is not done."""
        assert self._projection is not None
        with self._lock:
            if not self._model.listed.weights:
                self._model.listed = self._matrix(self._projection, is_packed=False)

    def prepare_shares(self) -> None:
        """Pack the maps that shares go back through, if that is not done."""
        heads = Heads(self.num_heads, self.head_dim)
        with self._lock:
            for number, layer in enumerate(self._decoder):
                native_layer = self._model.decoder[number]
                if layer.cross_attention is None or native_layer.cross_back.weights:
                    continue
                out = heads.out_of(layer.cross_attention.output)
                back = Linear(np.ascontiguousarray(out.weight.T), None)
                native_layer.cross_back = self._matrix(back, kind="float32")

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

    def _layers(self, layers: tuple[Layer, ...], heads: Heads) -> ctypes.Array[_Layer]:
        array = (_Layer * len(layers))(*(self._layer(layer, heads) for layer in layers))
        self._kept.append(array)
        return array

    def _layer(self, layer: Layer, heads: Heads) -> _Layer:
        own, cross = layer.self_attention, layer.cross_attention
        self_qkv = _joined(
            *(heads.into(part) for part in (own.query, own.key, own.value))
        )
        native_layer = _Layer(
            norms=(_Norm * 3)(*(self._norm(norm) for norm in layer.norms)),
            after=(_Norm * 3)(*(self._norm(norm) for norm in layer.after)),
            self_gains=self._gains(own),
            gate=_Matrix() if layer.gate is None else self._matrix(layer.gate),
            self_qkv=self._matrix(self_qkv),
            self_out=self._matrix(heads.out_of(own.output)),
            inner=self._matrix(layer.inner),
            outer=self._matrix(layer.outer),
        )
        if cross is not None:
            native_layer.cross_query = self._matrix(heads.into(cross.query))
            native_layer.cross_kv = self._matrix(
                _joined(heads.into(cross.key), heads.into(cross.value))
            )
            native_layer.cross_out = self._matrix(heads.out_of(cross.output))
            native_layer.cross_gains = self._gains(cross)
        return native_layer

    def _matrix(
        self,
        linear: Linear,
        missing: float = 0.0,
        is_packed: bool = True,
        kind: str | None = None,
    ) -> _Matrix:
        """Pack a matrix in panels, or one output behind the other, for products of the engine's own
        kind or of another.

        Outputs that only pad have the bias `missing`.
        """
        kind = kind or self.kind
        num_outputs, num_inputs = linear.stored.shape
        outputs = _filled(num_outputs)
        inputs = _filled(num_inputs)
        biases = np.full(outputs, missing, np.float32)
        biases[:num_outputs] = 0.0 if linear.bias is None else linear.bias
        scales = starts = None
        group = _PER_GROUP.get(kind) or int(self._library.decoding_int8_group())
        numbers: NDArray[Any]
        if kind == "int8":
            numbers, steps = _in_int8(linear)
            offset = np.int32(-128 if group == 4 else 0)
            scales = self._pointer(_filled_with(0.0, steps, (outputs,)))
            whole = _filled_with(0, numbers, (outputs, inputs))
            starts = self._pointer(offset * whole.sum(1, dtype=np.int32))
            whole = whole if group == 4 else whole.astype(np.int16)
        else:
            whole = _filled_with(0.0, linear.weight, (outputs, inputs))
            whole = to_bfloat16(whole) if kind == "bfloat16" else whole
        panels = whole.reshape(outputs // _lanes(), _lanes(), inputs // group, group)
        return _Matrix(
            weights=self._pointer(panels.swapaxes(1, 2) if is_packed else panels),
            scales=scales,
            starts=starts,
            bias=self._pointer(biases),
            inputs=inputs,
            outputs=outputs,
        )

    def _norm(self, norm: Norm | None) -> _Norm:
        if norm is None:
            return _Norm()
        bias = np.zeros_like(norm.gain) if norm.bias is None else norm.bias
        return _Norm(*(self._rows(part[None]) for part in (norm.gain, bias)))

    def _gains(self, attention: Attention) -> ctypes.Array[ctypes.c_void_p]:
        gains = (attention.query_gain, attention.key_gain)
        pointers = (_POINTER * 2)()
        for place, gain in enumerate(gains):
            if gain is not None:
                pointers[place] = self._pointer(gain)
        return pointers

    def _rows(self, table: Floats | None) -> int | None:
        """Pad rows of d_model numbers with zeros."""
        if table is None:
            return None
        missing = _filled(table.shape[1]) - table.shape[1]
        return self._pointer(np.pad(table, ((0, 0), (0, missing))))

    def _pointer(self, array: NDArray[Any]) -> int:
        """Keep a copy that begins at a whole cache line, and return its address."""
        kept = _aligned(array)
        self._kept.append(kept)
        return kept.ctypes.data


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

    def __init__(self, engine: Engine, num_sentences: int, beam_size: int) -> None:
        self.engine = engine
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self._library = engine._library
        self._handle = self._library.decoding_session(
            ctypes.byref(engine._model), num_sentences, beam_size
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
        events = _LONG()
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
        rows = np.zeros((len(beside), self.engine._model.d_model_padded), np.float32)
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


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array, row after row, to memory that begins at a whole cache line."""
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def _lanes() -> int:
    """Return how many numbers a register of this CPU holds."""
    return int(library().decoding_lanes())


def _filled(size: int) -> int:
    return -(-size // _lanes()) * _lanes()


def _in_int8(linear: Linear) -> tuple[NDArray[np.int8], Floats]:
    """Return a matrix in int8 and its scales: as a folder stores them, or quantized here."""
    if linear.scales is None:
        return quantized(linear.weight)
    return linear.stored.astype(np.int8, copy=False), linear.scales


def _filled_with(
    value: float, part: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return an array of this shape that begins with the part and is the value elsewhere."""
    whole = np.full(shape, value, part.dtype)
    whole[tuple(slice(size) for size in part.shape)] = part
    return whole


def _joined(*linears: Linear) -> Linear:
    """Join several maps of one input, their outputs behind each other."""
    stored = np.concatenate([linear.stored for linear in linears])
    biases = [linear.bias for linear in linears if linear.bias is not None]
    scales = [linear.scales for linear in linears if linear.scales is not None]
    return Linear(
        stored,
        np.concatenate(biases) if biases else None,
        np.concatenate(scales) if scales else None,
    )
