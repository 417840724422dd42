"""The native kernels: a wheel has them built, else they are compiled on first use and kept.

Where neither can be had, they are left out.
"""

import ctypes
import os
import platform
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from weft.errors import UsageError
from weft.kernels import levels
from weft.kernels.compiling import (
    OTHERS_WRITE,
    UnavailableError,
    compiled,
    native_flags,
)
from weft.kernels.levels import SHARED, Level

__all__ = [
    "UnavailableError",
    "has_threads",
    "library",
    "load",
    "origin",
    "refuse_failure",
]

VARIABLE = "WEFT_KERNELS"  # may name the level to use, or NATIVE
NATIVE = "native"  # compiled for this very CPU


class Heads(ctypes.Structure):
    """A tensor (B, H, L, d_k), each d_k in one piece: where it lies, and its strides in numbers."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "head", "position")),
    )


class Mask(ctypes.Structure):
    """A mask of (B, H, queries, keys), each row in one piece, broadcast by strides of 0.

    Without data nothing is masked.
    """

    _fields_ = (
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "head", "query")),
    )


class Sizes(ctypes.Structure):
    """B, H, queries, keys and d_k of an attention."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in ("batch", "heads", "queries", "keys", "width")
    )


_POINTER = ctypes.c_void_p
_LONG = ctypes.c_int64
_REAL = ctypes.c_double
_SEED = ctypes.c_uint64
_HEADS = ctypes.POINTER(Heads)
_MASK = ctypes.POINTER(Mask)
_SIZES = ctypes.POINTER(Sizes)
_ARGUMENTS = {
    "add_dropped": (*[_POINTER] * 3, _LONG, _LONG, _REAL, _SEED),
    "drop": (_POINTER, _POINTER, _LONG, _LONG, _REAL, _SEED),
    "relu_dropped": (_POINTER, _LONG, _LONG, _REAL, _SEED, _LONG),
    "gated": (*[_POINTER] * 3, *[_LONG] * 4),
    "gated_backward": (*[_POINTER] * 4, *[_LONG] * 4),
    "rotated": (_HEADS, _HEADS, _SIZES, _POINTER, _POINTER, _REAL),
    "layer_norm": (*[_POINTER] * 6, _LONG, _LONG, _REAL),
    "layer_norm_backward": (*[_POINTER] * 8, _LONG, _LONG),
    "sums_of_squares": (*[_POINTER] * 2, _LONG, _POINTER),
    "transposed": (_POINTER, _POINTER, _LONG, _LONG, _LONG),
    "transposed_to_float": (_POINTER, _POINTER, _LONG, _LONG, _LONG),
    "column_sums": (_POINTER, _POINTER, _REAL, _LONG, _POINTER, _LONG, _LONG, _LONG),
    "attention": (_HEADS, _HEADS, _HEADS, _MASK, _HEADS, _SIZES, _REAL, _SEED),
    "attention_backward": (
        _HEADS,
        _HEADS,
        _HEADS,
        _MASK,
        *[_HEADS] * 4,
        _SIZES,
        _REAL,
        _SEED,
    ),
    "cross_entropy": (*[_POINTER] * 4, _LONG, _LONG, _REAL, _LONG),
    "cross_entropy_twice": (*[_POINTER] * 5, _LONG, _LONG, _REAL, _LONG, _REAL),
}
TYPES = ("float32", "bfloat16")
_IN_FLOAT32_ALONE = ("sums_of_squares",)


@cache
def load() -> ctypes.CDLL:
    """Load the kernels of training, with the types of their arguments. Raises UnavailableError."""
    library = _library(SHARED.with_name("training.cpp"), _openmp_runtime)
    for name, arguments in _ARGUMENTS.items():
        for kind in TYPES[:1] if name in _IN_FLOAT32_ALONE else TYPES:
            function = getattr(library, f"{name}_{kind}")
            function.argtypes = arguments
            function.restype = ctypes.c_int
    return library


def has_threads() -> bool:
    """Tell whether the kernels of training use several threads. Raises UnavailableError."""
    return bool(load().has_threads())


@cache
def library(source: Path) -> ctypes.CDLL:
    """Load the functions of a C++ source that needs no threads of its own. Raises
    UnavailableError.
    """
    return _library(source, lambda: "")


def origin(library: ctypes.CDLL) -> str:
    """Say where a library comes from: "built for avx512", or "compiled here"."""
    path = Path(library._name)
    if path.parent != levels.BUILT:
        return "compiled here"
    return f"built for {levels.level_named(path)}"


def refuse_failure(library: ctypes.CDLL, status: int, name: str) -> None:
    """Raise the error that a call's status stands for; see `guarded` in vectors.h.

    Its words are those of the C++ exception. `name` is what the user knows the library by.
    """
    if status == 1:
        raise MemoryError(name)
    if status:
        library.last_failure.restype = ctypes.c_char_p
        words = library.last_failure().decode()
        raise RuntimeError(f"{name} failed: {words}; please report this")


@dataclass(frozen=True)
class _Built:
    """A library of the wheel; `runtime` is the OpenMP whose threads it takes, if any."""

    path: Path
    level: Level
    runtime: str


def _library(source: Path, find_runtime: Callable[[], str]) -> ctypes.CDLL:
    """Load a source's library: the wheel's, or one compiled here where that is faster.

    What was compiled is kept. Raises UnavailableError with the reason, and UsageError where the
    environment asks for a level that this CPU does not have.
    """
    if platform.system() != "Linux":
        raise UnavailableError(f"they are not made for {platform.system()}")
    runtime = find_runtime()
    cpu = levels.instructions()
    asked = os.environ.get(VARIABLE, "")
    if asked == NATIVE:
        return _compiled(source, runtime, native_flags())
    if asked:
        level = _level_called(asked, cpu)
        flags = level.flags
        built = _built(source, runtime, [level])
        is_best = True
    else:
        flags = native_flags()
        built = _built(source, runtime, levels.levels_of(cpu))
        is_best = built is not None and _is_best(built, source, runtime, cpu)
    compile_here = partial(_compiled, source, runtime, flags)
    if built is None:
        return compile_here()
    take_built = partial(_loaded, built.path, built.runtime)
    first, second = take_built, compile_here
    if not is_best:
        first, second = second, first
    try:
        return first()
    except UnavailableError:
        return second()


def _compiled(source: Path, runtime: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    return _loaded(compiled(source, runtime, flags))


def _level_called(name: str, cpu: frozenset[str]) -> Level:
    """Return the level of a name. Raises UsageError where there is none, or not on this CPU."""
    by_name = {level.name: level for level in levels.LEVELS}
    if name not in by_name:
        names = ", ".join((*by_name, NATIVE))
        raise UsageError(f"{VARIABLE} = {name}: it must be one of {names}")
    missing = [one for one in by_name[name].instructions if one not in cpu]
    if missing:
        raise UsageError(f"{VARIABLE} = {name}: this CPU has no {', '.join(missing)}")
    return by_name[name]


def _built(source: Path, runtime: str, wanted: Sequence[Level]) -> _Built | None:
    """Find the first library of these levels in the wheel that is whole and cannot be planted.

    With an OpenMP runtime, one that takes its threads is looked for first.
    """
    runtimes = (runtime, "") if runtime else ("",)
    for level in wanted:
        for one in runtimes:
            name = levels.file_name(source, level, has_threads=bool(one))
            path = levels.BUILT / name
            if _is_as_safe_as_this(path) and levels.is_whole(path):
                return _Built(path, level, one)
    return None


def _is_best(built: _Built, source: Path, runtime: str, cpu: frozenset[str]) -> bool:
    """Return whether a library compiled here would be no faster."""
    if built.runtime != runtime or built.level != levels.levels_of(cpu)[0]:
        return False
    return source.stem not in levels.WITH_NARROW or built.level.beyond not in cpu


def _is_as_safe_as_this(path: Path) -> bool:
    """Return whether nobody can replace a library of the wheel but who can replace this module.

    It is compared with this file, and its folder with this file's folder.
    """
    here = Path(__file__)
    pairs = ((path, here), (path.parent, here.parent))
    return all(_is_as_safe(one, other) for one, other in pairs)


def _is_as_safe(path: Path, known: Path) -> bool:
    """Return whether a path is root's, this user's or the known one's owner's, and no more open."""
    try:
        link = path.lstat()
        target = path.stat()
        other = known.stat()
    except OSError:
        return False
    if not {link.st_uid, target.st_uid} <= {os.geteuid(), 0, other.st_uid}:
        return False
    allowed = other.st_mode
    if target.st_gid != other.st_gid:
        allowed &= ~stat.S_IWGRP
    return not target.st_mode & ~allowed & OTHERS_WRITE


def _loaded(path: Path, runtime: str = "") -> ctypes.CDLL:
    """Load a library, which may take what it lacks from an OpenMP runtime that is loaded.

    Raises UnavailableError.
    """
    try:
        if runtime:  # its functions can be found from now on; it is not loaded again
            ctypes.CDLL(runtime, ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise UnavailableError(f"{path} cannot be loaded: {error}") from error


def _openmp_runtime(maps: Path = Path("/proc/self/maps")) -> str:
    """Return the path of the OpenMP that torch has loaded: two would fight for the cores.

    One in torch's own folder comes before one that another package may have brought. Where there is
    none, the kernels have one thread: empty.
    """
    lines = maps.read_text("utf-8", "surrogateescape").split("\n")
    # behind five columns; may have spaces
    paths = [line.split(maxsplit=5)[5] for line in lines if "/" in line]
    runtimes = [
        path
        for path in paths
        if re.match(r"lib[gi]?omp.*\.so", path.rpartition("/")[2])
    ]
    return min(runtimes, key=lambda path: "/torch/" not in path, default="")
