"""Compiles native code for this CPU by the machine's compiler, and keeps what it made."""

import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from weft.console import stages
from weft.kernels import levels
from weft.kernels.levels import SHARED

SECONDS = 120  # that a compiler may take
_CPU_FACTS = Path("/proc/cpuinfo")


class UnavailableError(Exception):
    """There are no native kernels here; says why."""


class _CompilationError(Exception):
    """A compiler did not make what it should; says why."""


def compiled(source: Path, runtime: str, flags: tuple[str, ...]) -> Path:
    """Return the library of a source, compiled with these flags now or at an earlier start.

    Raises UnavailableError with the reason.
    """
    flags = (*levels.flags_of(source), *flags)
    path = _folder() / f"{source.stem}-{_fingerprint(source, runtime, flags)}.so"
    _refuse_shared(path.parent)
    if not (is_own(path) and levels.is_whole(path)):
        with stages.within("compiling the kernels (once, about 20 s)"):
            _make(source, runtime, flags, path)
    return path


def native_flags() -> tuple[str, ...]:
    """Return the compiler's flags for this very CPU."""
    if platform.machine() == "x86_64":
        return ("-march=native", "-mprefer-vector-width=512")
    return ("-march=native",)


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


OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHER_FOLDER = "set XDG_CACHE_HOME to a folder of your own that nobody else can write"


def _refuse_shared(folder: Path) -> None:
    """Raise UnavailableError where another user could put a library there: its code would run."""
    if os.path.lexists(folder) and not is_own(folder):
        raise UnavailableError(
            f"{folder} belongs to another user, or others can write it; remove their right to, or {_OTHER_FOLDER}"
        )


def is_own(path: Path) -> bool:
    """Return whether a path is this user's or root's and no other can write it; so too a link."""
    try:
        link = path.lstat()
        target = path.stat()
    except OSError:
        return False
    owners = {link.st_uid, target.st_uid}
    if not owners <= {os.geteuid(), 0}:
        return False
    return not target.st_mode & OTHERS_WRITE


def _fingerprint(source: Path, runtime: str, flags: tuple[str, ...]) -> str:
    """Hash the source, the way it is compiled, and the CPU that it is compiled for."""
    try:
        about = _CPU_FACTS.read_text("utf-8", "replace")
    except OSError as error:
        raise UnavailableError(f"they are kept by the CPU's facts: {error}") from error
    cpu = re.findall(r"^(?:flags|Features|model name)\s*:.*$", about, re.M)
    texts = (path.read_text("utf-8") for path in (source, SHARED))
    parts = (*texts, *flags, runtime, *sorted(set(cpu)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _make(source: Path, runtime: str, flags: tuple[str, ...], path: Path) -> None:
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
        if is_own(failure):
            said = failure.read_text("utf-8", "replace")
            raise UnavailableError(
                f"{said} (at an earlier start; to try again, remove {failure})"
            )
        if reasons := _compiled_by_any(compilers, source, runtime, flags, path):
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
    compilers: Iterable[str],
    source: Path,
    runtime: str,
    flags: tuple[str, ...],
    path: Path,
) -> list[str]:
    """Compile; return what each compiler said that failed, nothing where one succeeded."""
    reasons = []
    for compiler in compilers:
        try:
            _compile(compiler, source, runtime, flags, path)
        except _CompilationError as error:
            reasons.append(str(error))
        else:
            return []
    return reasons


def _compile(
    compiler: str, source: Path, runtime: str, flags: tuple[str, ...], path: Path
) -> None:
    """Compile a source, with OpenMP where the path of a runtime for it is given.

    The library is written under another name first: of several processes that do so at once none
    sees half of a file. With GNU's OpenMP, Clang leaves all to one thread.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "made.so"
        object_file = Path(folder) / "made.o"
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
        levels.seal(made)
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
