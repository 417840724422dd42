"""The C interface of llama.cpp, in the library that the package xllamacpp brings.

That package's own interface is a server's, which has no logits; its library has all of `llama.h`.
Structures of settings are passed there by value, and change from one version to the next. So only
what is needed of them is named here, and what a library has in those places must be the known
defaults before anything is set.

Shapes: L ids, V vocabulary.
"""

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import FolderError, OutOfMemoryError, UsageError
from weft.ship.opened import Floats

PACKAGE = "xllamacpp"
KNOWN = "2026.10.11549"  # a version whose structures are those below

_AT_ONCE = 256  # ids that are read in one piece
_F32 = 0  # of ggml_type
_OFF = 0  # of llama_flash_attn_type
_ERROR = 4  # of ggml_log_level

_Pointer = ctypes.c_void_p
_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, _Pointer)


class _ModelParams(ctypes.Structure):
    """Settings of a model, of which the devices alone are set."""

    _fields_ = (("devices", _Pointer), ("rest", ctypes.c_ubyte * 512))


class _ContextParams(ctypes.Structure):
    """Settings of a context; `rest` is more than a library has."""

    _fields_ = (
        ("n_ctx", ctypes.c_uint32),
        ("n_batch", ctypes.c_uint32),
        ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32),
        ("n_rs_seq", ctypes.c_uint32),
        ("n_outputs_max", ctypes.c_uint32),
        ("n_outputs_max_per_seq", ctypes.c_uint32),
        ("n_threads", ctypes.c_int32),
        ("n_threads_batch", ctypes.c_int32),
        ("ctx_type", ctypes.c_int32),
        ("rope_scaling_type", ctypes.c_int32),
        ("pooling_type", ctypes.c_int32),
        ("attention_type", ctypes.c_int32),
        ("flash_attn_type", ctypes.c_int32),
        ("of_positions", ctypes.c_float * 8),
        ("callback", _Pointer * 2),
        ("type_k", ctypes.c_int32),
        ("type_v", ctypes.c_int32),
        ("rest", ctypes.c_ubyte * 512),
    )


class _Batch(ctypes.Structure):
    """Ids that are read; where a pointer is null, positions and the sequence follow from those
    before.
    """

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", _Pointer),
        ("embd", _Pointer),
        ("pos", _Pointer),
        ("n_seq_id", _Pointer),
        ("seq_id", _Pointer),
        ("logits", _Pointer),
    )


_DEFAULTS = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_outputs_max": 0,
    "n_outputs_max_per_seq": 1,
    "n_threads": 4,
    "n_threads_batch": 4,
    "rope_scaling_type": -1,
    "pooling_type": -1,
    "attention_type": -1,
    "flash_attn_type": -1,
    "type_k": 1,
    "type_v": 1,
}
_Text = ctypes.c_char_p
_Int = ctypes.c_int32
_Flag = ctypes.c_bool
# what a function gives, and what it takes
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_log_set": (None, (_Log, _Pointer)),
    "llama_backend_init": (None, ()),
    "llama_model_default_params": (_ModelParams, ()),
    "llama_model_load_from_file": (_Pointer, (_Text, _ModelParams)),
    "llama_model_free": (None, (_Pointer,)),
    "llama_model_get_vocab": (_Pointer, (_Pointer,)),
    "llama_context_default_params": (_ContextParams, ()),
    "llama_init_from_model": (_Pointer, (_Pointer, _ContextParams)),
    "llama_free": (None, (_Pointer,)),
    "llama_get_memory": (_Pointer, (_Pointer,)),
    "llama_memory_clear": (None, (_Pointer, _Flag)),
    "llama_decode": (_Int, (_Pointer, _Batch)),
    "llama_get_logits": (ctypes.POINTER(ctypes.c_float), (_Pointer,)),
    "llama_vocab_n_tokens": (_Int, (_Pointer,)),
    "llama_vocab_is_eog": (_Flag, (_Pointer, _Int)),
    "llama_vocab_get_suppress_tokens": (
        ctypes.POINTER(_Int),
        (_Pointer, ctypes.POINTER(_Int)),
    ),
    "llama_tokenize": (_Int, (_Pointer, _Text, _Int, _Pointer, _Int, _Flag, _Flag)),
    "llama_token_to_piece": (_Int, (_Pointer, _Int, _Text, _Int, _Int, _Flag)),
}


class LlamaCpp:
    """The library; what it says of errors is kept."""

    def __init__(self) -> None:
        place = _place_of_library()
        try:
            library = ctypes.CDLL(str(place))
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(library, name)
                function.restype = result
                function.argtypes = arguments
        except (OSError, AttributeError) as error:
            raise _unknown(str(error)) from None
        self.functions: Any = library
        self.context_params()
        self.errors: list[str] = []
        self._log = _Log(self._hear)
        library.llama_log_set(self._log, None)
        library.llama_backend_init()

    def context_params(self) -> Any:
        """Return the settings of a context as the library has them.

        Raises UsageError where they are not in the known places.
        """
        params = self.functions.llama_context_default_params()
        for name, value in _DEFAULTS.items():
            found = getattr(params, name)
            if found != value:
                raise _unknown(f"{name} is {found}, not {value}")
        return params

    def _hear(self, level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            self.errors.append(text.decode("utf-8", "replace").strip())


class Model:
    """A model in a GGUF file, and its vocabulary."""

    def __init__(self, path: Path) -> None:
        self.library = llama_cpp()
        functions = self.library.functions
        params = functions.llama_model_default_params()
        # no device beside the CPU, where there are some
        self._devices = (_Pointer * 1)(None)
        params.devices = ctypes.addressof(self._devices)
        self.library.errors.clear()
        self.pointer = functions.llama_model_load_from_file(bytes(path), params)
        if not self.pointer:
            why = next(iter(self.library.errors), "it does not say why")
            raise FolderError(f"{path}: llama.cpp does not open it: {why}")
        self.vocab = functions.llama_model_get_vocab(self.pointer)
        self.vocab_size = functions.llama_vocab_n_tokens(self.vocab)
        weakref.finalize(self, functions.llama_model_free, self.pointer)

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, with those that the file asks for around it; names of special
        pieces in it are text.
        """
        content = text.encode("utf-8", "replace")
        tokenize = self.library.functions.llama_tokenize
        ids = np.zeros(len(content) + 2, np.int32)
        places = ids.ctypes.data, len(ids)
        count = tokenize(self.vocab, content, len(content), *places, True, False)
        return [int(number) for number in ids[:count]]

    def detokenize(self, ids: Sequence[int]) -> str:
        """Return the text of ids; special pieces are not in it.

        It is put together piece by piece, as a person gets it: `llama_detokenize` would take out
        spaces before marks.
        """
        return b"".join(map(self._piece, ids)).decode("utf-8", "replace")

    def _piece(self, number: int) -> bytes:
        write = self.library.functions.llama_token_to_piece
        size = -write(self.vocab, number, None, 0, 0, False)
        content = ctypes.create_string_buffer(max(size, 1))
        count = write(self.vocab, number, content, size, 0, False)
        return content.raw[: max(count, 0)]

    @property
    def suppressed(self) -> list[int]:
        """Return the ids that are never to be written."""
        count = ctypes.c_int32(0)
        find = self.library.functions.llama_vocab_get_suppress_tokens
        ids = find(self.vocab, ctypes.byref(count))
        return [ids[place] for place in range(count.value)]

    def is_end(self, number: int) -> bool:
        """Return whether a text ends at an id."""
        return bool(self.library.functions.llama_vocab_is_eog(self.vocab, number))


class Context:
    """A model with memory of what it has read, of at most `length` ids.

    With `is_exact` keys and values are remembered in float32 and attention is plain; else both are
    as llama.cpp chooses.
    """

    def __init__(
        self, model: Model, length: int, num_threads: int, *, is_exact: bool
    ) -> None:
        self.model = model
        self.length = length
        self.functions = model.library.functions
        params = model.library.context_params()
        params.n_ctx = length
        for name in ("n_batch", "n_ubatch", "n_outputs_max", "n_outputs_max_per_seq"):
            setattr(params, name, _AT_ONCE)
        params.n_threads = params.n_threads_batch = num_threads
        if is_exact:
            params.type_k = params.type_v = _F32
            params.flash_attn_type = _OFF
        self.pointer = self.functions.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise OutOfMemoryError(f"llama.cpp has no memory for {length} positions")
        weakref.finalize(self, self.functions.llama_free, self.pointer)

    def forget(self) -> None:
        """Begin anew: nothing was read."""
        memory = self.functions.llama_get_memory(self.pointer)
        self.functions.llama_memory_clear(memory, True)

    def read(self, ids: Sequence[int]) -> Floats:
        """Read ids after those before; return the logits after each (L, V)."""
        starts = range(0, len(ids), _AT_ONCE)
        parts = [self._read_some(ids[start : start + _AT_ONCE]) for start in starts]
        return np.concatenate(parts)

    def _read_some(self, ids: Sequence[int]) -> Floats:
        array = np.array(ids, np.int32)
        wanted = np.ones(len(array), np.int8)
        batch = _Batch(
            n_tokens=len(array),
            token=array.ctypes.data,
            logits=wanted.ctypes.data,
        )
        if code := self.functions.llama_decode(self.pointer, batch):
            raise OutOfMemoryError(f"llama.cpp did not read {len(array)} ids: {code}")
        logits = self.functions.llama_get_logits(self.pointer)
        shape = len(array), self.model.vocab_size
        found: Floats = np.ctypeslib.as_array(logits, shape).copy()
        return found

    def go_on(self, ids: Sequence[int], limit: int) -> list[int]:
        """Write at most so many ids after others, the most probable each time, until an end, which
        is not among them, or the end of memory; ids that are suppressed are never written.
        """
        self.forget()
        room = self.length - len(ids)
        return list(self._greedy(ids, min(limit, room)))

    def _greedy(self, ids: Sequence[int], limit: int) -> Iterator[int]:
        suppressed = self.model.suppressed
        newest = list(ids)
        for _ in range(limit):
            logits = self.read(newest)[-1]
            logits[suppressed] = -np.inf
            number = int(logits.argmax())
            if self.model.is_end(number):
                return
            yield number
            newest = [number]


@cache
def llama_cpp() -> LlamaCpp:
    """Return the library, which is loaded once."""
    return LlamaCpp()


def _place_of_library() -> Path:
    """Return the file of the library. Raises UsageError where it is not found."""
    spec = find_spec(PACKAGE)
    folders = (spec and spec.submodule_search_locations) or ()
    for folder in folders:
        for ending in EXTENSION_SUFFIXES:
            place = Path(folder) / f"{PACKAGE}{ending}"
            if place.is_file():
                return place
    raise _unknown("it has no library")


def _unknown(why: str) -> UsageError:
    return UsageError(
        f"{PACKAGE} {version(PACKAGE)} has another interface than Weft knows ({why}): "
        f"pip install {PACKAGE}=={KNOWN}, or leave the certificate out (--uncertified)"
    )
