"""The levels of a CPU's instructions that a wheel has native libraries for.

CMake runs this file to learn what to build, and `native.py` looks here for what was built. It
imports nothing of Weft's, which is not installed yet where a wheel is made.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
SHARED = PACKAGE / "kernels" / "vectors.h"
SOURCES = (PACKAGE / "kernels" / "training.cpp", PACKAGE / "engine" / "decoding.cpp")
BUILT = PACKAGE / "kernels" / "built"  # where a wheel has its libraries
FLAGS = (
    *("-std=c++17", "-O3", "-fPIC"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros"),
)
# training: sums need not have an order of their own; decoding: a compiler that may join a product
# and a sum does so in some copies of a loop and not in others, and rows would differ by that
OWN_FLAGS = {
    "training": ("-fassociative-math",),
    "decoding": ("-ffp-contract=off",),
}
THREADED = ("training",)  # sources whose loops take OpenMP's threads
# sources that use instructions for products of int8 and bfloat16
WITH_NARROW = ("decoding",)
HASH_BYTES = hashlib.sha256().digest_size  # at the end of a library


@dataclass(frozen=True)
class Level:
    """A level: the names that Linux has for its instructions, and the compiler's flags for them.

    On a CPU that has `beyond`, too, the engine is faster as compiled there. A source that uses no
    instructions for int8 and bfloat16 gives the same library as at the level `wide`, if one is
    named, and shares it.
    """

    name: str
    instructions: tuple[str, ...]
    flags: tuple[str, ...]
    beyond: str = ""
    wide: str = ""


_AVX2 = ("avx2", "fma", "f16c")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_AVX512_FLAGS = (
    *("-mavx2", "-mfma", "-mf16c"),
    *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
    "-mprefer-vector-width=512",
)
_VNNI = (*_AVX512, "avx512_vnni")
_VNNI_FLAGS = (*_AVX512_FLAGS, "-mavx512vnni")
_BF16 = (*_VNNI, "avx512_bf16")
_BF16_FLAGS = (*_VNNI_FLAGS, "-mavx512bf16")
LEVELS = (  # each has the instructions of those before
    Level("sse4.1", ("sse4_1",), ("-msse4.1",)),
    Level("avx2", _AVX2, ("-mavx2", "-mfma", "-mf16c"), "avx_vnni"),
    Level("avx512", _AVX512, _AVX512_FLAGS),
    Level("avx512-vnni", _VNNI, _VNNI_FLAGS, wide="avx512"),
    Level("avx512-bf16", _BF16, _BF16_FLAGS, wide="avx512"),
)


def instructions(about: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Read the instructions that this CPU has, by Linux's names; none where they are not told."""
    try:
        text = about.read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    line = re.search(r"^flags\s*:(.*)$", text, re.M)
    return frozenset(line[1].split() if line else ())


def levels_of(cpu: frozenset[str]) -> list[Level]:
    """List the levels that a CPU with these instructions has, the best first."""
    return [level for level in reversed(LEVELS) if cpu.issuperset(level.instructions)]


def flags_of(source: Path) -> tuple[str, ...]:
    """Return the flags that a source is compiled with, whatever the CPU."""
    return (*FLAGS, *OWN_FLAGS.get(source.stem, ()))


def file_name(source: Path, level: Level, has_threads: bool) -> str:
    """Name the library of a source, after its text: a library of another text is not its own."""
    digest = hashlib.sha256()
    for path in (source, SHARED):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    threads = "-threads" if has_threads else ""
    name = level.wide if level.wide and source.stem not in WITH_NARROW else level.name
    return f"{source.stem}-{name}{threads}-{digest.hexdigest()[:16]}.so"


def level_named(library: Path) -> str:
    """Return the level that the name of a library tells."""
    _, _, rest = library.stem.partition("-")
    name, _, _ = rest.rpartition("-")
    return name.removesuffix("-threads")


def seal(path: Path) -> None:
    """Write the hash of a library behind it, by which `is_whole` knows it."""
    content = path.read_bytes()
    path.write_bytes(content + hashlib.sha256(content).digest())


def is_whole(path: Path) -> bool:
    """Return whether a library's last bytes are the hash of the rest: damaged code may crash."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content[:-HASH_BYTES]).digest() == content[-HASH_BYTES:]


def plan() -> Iterator[str]:
    """Yield a line for each library of a wheel: its source, its name, and its compiler's flags."""
    for source in SOURCES:
        for level in LEVELS:
            if level.wide and source.stem not in WITH_NARROW:
                continue
            for has_threads in (False, True) if source.stem in THREADED else (False,):
                threads = ("-fopenmp",) if has_threads else ()
                name = file_name(source, level, has_threads)
                flags = (*flags_of(source), *level.flags, *threads)
                yield " ".join((str(source), name, *flags))


if __name__ == "__main__":  # as CMake runs it: alone, or with a library to seal
    if sys.argv[1:]:
        seal(Path(sys.argv[1]))
    else:
        print(*plan(), sep="\n")
