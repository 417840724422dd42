"""The native kernels: compiled on first use, kept for the next, left out where that fails."""

import ctypes
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from weft.console import stages

SHARED = Path(__file__).with_name("vectors.h")
FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros"),
)
# where sums need not have an order of their own
OWN_FLAGS = {"training": ("-fassociative-math",)}
SECONDS = 120  # that a compiler may take
HASH_BYTES = hashlib.sha256().digest_size  # at the end of a library


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


class UnavailableError(Exception):
    """There are no native kernels here; says why."""


class _CompilationError(Exception):
    """A compiler did not make what it should; says why."""


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


def _library(source: Path, find_runtime: Callable[[], str]) -> ctypes.CDLL:
    """Load a source's library, compiled where this machine has not done so yet.

    Raises UnavailableError with the reason.
    """
    if platform.system() != "Linux":
        raise UnavailableError(f"they are not made for {platform.system()}")
    runtime = find_runtime()
    path = _folder() / f"{source.stem}-{_fingerprint(source, runtime)}.so"
    _refuse_shared(path.parent)
    if not (_is_own(path) and _is_whole(path)):
        with stages.within("compiling the kernels (once, about 20 s)"):
            _make(source, runtime, path)
    return _loaded(path)


def _loaded(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise UnavailableError(f"{path} cannot be loaded: {error}") from error


def _openmp_runtime(maps: Path = Path("/proc/self/maps")) -> str:
    """Return the path of the OpenMP that torch has loaded: two would fight for the cores."""
    lines = maps.read_text("utf-8", "surrogateescape").split("\n")
    # behind five columns; may have spaces
    paths = (line.split(maxsplit=5)[5] for line in lines if "/" in line)
    for path in paths:
        if re.match(r"lib[gi]?omp.*\.so", path.rpartition("/")[2]):
            return path
    raise UnavailableError("torch has no OpenMP")


def _folder() -> Path:
    """Return the folder of compiled kernels, this user's alone.

    A relative XDG_CACHE_HOME does not count.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "weft"
    except RuntimeError as error:
        raise UnavailableError(
            f"there is no folder to keep them in; {_OTHER_FOLDER}"
        ) from error


_OTHER_FOLDER = "set XDG_CACHE_HOME to a folder of your own that nobody else can write"


def _refuse_shared(folder: Path) -> None:
    """Raise UnavailableError where another user could put a library there: its code would run."""
    if os.path.lexists(folder) and not _is_own(folder):
        raise UnavailableError(
            f"{folder} belongs to another user, or others can write it; remove their right to, or {_OTHER_FOLDER}"
        )


def _is_own(path: Path) -> bool:
    """Return whether a path is this user's or root's and no other can write it; so too a link."""
    try:
        link = path.lstat()
        target = path.stat()
    except OSError:
        return False
    owners = {link.st_uid, target.st_uid}
    if not owners <= {os.geteuid(), 0}:
        return False
    return not target.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_whole(path: Path) -> bool:
    """Return whether a library's last bytes are the hash of the rest: damaged code may crash."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content[:-HASH_BYTES]).digest() == content[-HASH_BYTES:]


def _fingerprint(source: Path, runtime: str) -> str:
    """Hash the source, the way it is compiled, and the CPU that it is compiled for."""
    cpu = re.findall(
        r"^(?:flags|Features|model name)\s*:.*$",
        Path("/proc/cpuinfo").read_text("utf-8"),
        re.M,
    )
    texts = (path.read_text("utf-8") for path in (source, SHARED))
    parts = (*texts, *_flags(source), runtime, *sorted(set(cpu)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _flags(source: Path) -> tuple[str, ...]:
    return (*FLAGS, *OWN_FLAGS.get(source.stem, ()))


def _make(source: Path, runtime: str, path: Path) -> None:
    """Compile by the first compiler that can. Raises UnavailableError.

    Where none could at an earlier start, what they said then is repeated.
    """
    compilers = _compilers()
    if not compilers:
        raise UnavailableError("there is no C++ compiler; install one")
    failure = path.with_name(f"{path.stem}-{_known_by(compilers)}.failed")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_shared(path.parent)
        if _is_own(failure):
            said = failure.read_text("utf-8", "replace")
            raise UnavailableError(
                f"{said} (at an earlier start; to try again, remove {failure})"
            )
        if reasons := _compiled_by_any(compilers, source, runtime, path):
            failure.write_text("; ".join(reasons), "utf-8")
            raise UnavailableError("; ".join(reasons))
    except OSError as error:
        raise UnavailableError(
            f"they cannot be kept in {path.parent} ({error.strerror or error}); {_OTHER_FOLDER}"
        ) from error


def _compilers() -> list[str]:
    """List the compilers in the path, each once, the system's own choice first."""
    by_file: dict[str, str] = {}
    for name in ("c++", "g++", "clang++"):
        if path := shutil.which(name):
            by_file.setdefault(os.path.realpath(path), path)
    return list(by_file.values())


def _known_by(compilers: Iterable[str]) -> str:
    """Hash what identifies the compilers."""
    facts = [
        (os.path.realpath(c), os.stat(c).st_size, os.stat(c).st_mtime_ns)
        for c in compilers
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:8]


def _compiled_by_any(
    compilers: Iterable[str], source: Path, runtime: str, path: Path
) -> list[str]:
    """Compile; return what each compiler said that failed, nothing where one succeeded."""
    reasons = []
    for compiler in compilers:
        try:
            _compile(compiler, source, runtime, path)
        except _CompilationError as error:
            reasons.append(str(error))
        else:
            return []
    return reasons


def _compile(compiler: str, source: Path, runtime: str, path: Path) -> None:
    """Compile a source, with OpenMP where the path of a runtime for it is given.

    The library is written under another name first: of several processes that do so at once none
    sees half of a file. With GNU's OpenMP, Clang leaves all to one thread.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "made.so"
        object_file = Path(folder) / "made.o"
        flags = [flag for flag in _flags(source) if flag != "-shared"]
        wide = ["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else []
        threads = []
        if runtime:
            is_clang = "clang" in Path(os.path.realpath(compiler)).name
            is_gnus = is_clang and "libgomp" in Path(runtime).name
            threads = ["-fopenmp=libgomp" if is_gnus else "-fopenmp"]
        shared = ["-I", str(SHARED.parent)]
        _run(
            [
                compiler,
                *flags,
                *wide,
                *threads,
                *shared,
                "-c",
                str(source),
                "-o",
                str(object_file),
            ]
        )
        _run(
            [
                compiler,
                "-shared",
                str(object_file),
                *([runtime] if runtime else []),
                "-o",
                str(made),
            ]
        )
        with made.open("ab") as file:
            file.write(hashlib.sha256(made.read_bytes()).digest())
        made.chmod(0o700)
        os.replace(made, path)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _CompilationError(
            f"{command[0]} took more than {SECONDS} seconds"
        ) from error
    except OSError as error:
        raise _CompilationError(
            f"{command[0]} cannot be run: {error.strerror}"
        ) from error
    if done.returncode != 0:
        said = next(
            (line for line in done.stderr.split("\n") if "error" in line),
            done.stderr.strip()[:200],
        )
        raise _CompilationError(f"{command[0]} failed: {said}")
