"""The rows of a large text as hashes, by which it is split, compared and named without its texts.

They are those of `split.keyed_hash`, `overlap.TextHashes` and `signature`, so that what follows
from them is the same as from the texts themselves, as far as two different rows share no hash of 64
bits. They lie on disk, and are read when they are asked for.
"""

import math
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.data.column import Column, Rows
from weft.data.crew import Portable, Task, work
from weft.data.home import Home, told_of_disk
from weft.data.minhash import BANDS, SKETCH, sketch
from weft.data.split import fold, hash_row, keyed_hash

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

STRETCH = 10_000  # rows of a task
_SIGNED = 16  # bytes of a row's hash in a signature
_UNORDERED = 0  # the seed where rows are not held out


class Kind(NamedTuple):
    """The numbers that a kind of hashes has for each row."""

    dtype: np.dtype[Any] = np.dtype(np.uint64)
    width: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Return the bytes of a row."""
        return self.dtype.itemsize * math.prod(self.width)


@dataclass(frozen=True)
class Measures:
    """The hashes of rows, each kind in a file of `home`; with `chosen` those of these rows.

    Of all rows they stay on disk, mapped.
    """

    home: Home
    num_sides: int
    chosen: Rows | None = None

    def at(self, rows: Rows) -> "Measures":
        """Return those of some rows."""
        chosen = rows if self.chosen is None else self.chosen[rows]
        return Measures(self.home, self.num_sides, chosen)

    def side(self, number: int) -> Hashes:
        """Return the hash of each row's folded text on one side."""
        return self._read(f"side{number}")

    @property
    def row(self) -> Hashes:
        """Return the hash of each row, folded."""
        return self._read("row")

    @property
    def order(self) -> Hashes:
        """Return where each row stands in the order by which rows are held out."""
        return self._read("order")

    @property
    def signed(self) -> npt.NDArray[np.uint64]:
        """Return the hash of each row as it stands, two big-endian numbers (rows, 2)."""
        return self._read("signed")

    def band(self, number: int) -> Hashes:
        """Return a hash that rows which say nearly the same are likely to share."""
        return self._read(f"band{number}")

    @property
    def sketch(self) -> npt.NDArray[np.uint8]:
        """Return what tells how many words two rows share (rows, SKETCH)."""
        return self._read("sketch")

    def _read(self, name: str) -> Any:
        file = self.home.path / f"{name}.npy"
        mapped = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
        return mapped if self.chosen is None else mapped[self.chosen]


def measure(columns: Sequence[Column], seed: int = _UNORDERED) -> Measures:
    """Measure the rows of columns; `seed` is that of their order."""
    home = Home()
    count = len(columns[0])
    for name, kind in _kinds(len(columns)).items():
        _make_room(home.path / f"{name}.npy", count, kind)
    common = {
        "columns": describe(columns, home.path),
        "seed": seed,
        "folder": str(home.path),
        "count": count,
    }
    tasks = [{**common, **stretch} for stretch in stretches(count, STRETCH)]
    work("measure", MEASURE, tasks, "rows")
    return Measures(home, len(columns))


def _make_room(path: Path, count: int, kind: Kind) -> None:
    """Begin a file for so many rows, which the processes fill."""
    header = {
        "descr": kind.dtype.str,
        "fortran_order": False,
        "shape": (count, *kind.width),
    }
    with told_of_disk(), path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + count * kind.size)


def stretches(count: int, size: int) -> list[Task]:
    """Divide so many rows into stretches, from `first` to `last`, which is not included."""
    number = max(-(-count // size), 1)
    ends = [n * count // number for n in range(number + 1)]
    return [{"first": first, "last": last} for first, last in pairwise(ends)]


def _kinds(num_sides: int) -> dict[str, Kind]:
    """Return the kinds of hashes, by the names of their files."""
    names = [
        *(f"side{number}" for number in range(num_sides)),
        *(f"band{number}" for number in range(BANDS)),
        "row",
        "order",
    ]
    kinds = dict.fromkeys(names, Kind())
    kinds["signed"] = Kind(np.dtype(">u8"), (_SIGNED // 8,))
    kinds["sketch"] = Kind(np.dtype(np.uint8), (SKETCH,))
    return kinds


def describe(columns: Sequence[Column], folder: Path) -> list[list[str]]:
    """Name the files of columns for another process; the numbers of their rows are written into
    `folder`.
    """
    described = []
    for number, column in enumerate(columns):
        files = [str(column.path)]
        if column.rows is not None:
            rows = folder / f"rows{number}.npy"
            np.save(rows, column.rows, allow_pickle=False)
            files.append(str(rows))
        described.append(files)
    return described


def open_column(described: Sequence[str]) -> Column:
    """Open a column that another process has described."""
    path, *rows = described
    chosen = None
    if rows:
        chosen = np.load(rows[0], mmap_mode="r", allow_pickle=False)
    return Column(Path(path), chosen)


def open_stretch(described: Sequence[str], first: int, last: int) -> list[str]:
    """Read a stretch of a column that another process has described."""
    return open_column(described)[first:last]


def measure_stretch(task: Task) -> str:
    """Measure a stretch of columns; return all kinds of hashes, one behind the other."""
    columns = [
        open_stretch(each, task["first"], task["last"]) for each in task["columns"]
    ]
    hashes = dict(_hashes_of(columns, task["seed"]))
    kinds = _kinds(len(columns))
    contents = [hashes[name].astype(kinds[name].dtype).tobytes() for name in kinds]
    return b64encode(b"".join(contents)).decode()


def keep_hashes(task: Task, found: str) -> None:
    """Write the hashes of a stretch to their places in the files of all."""
    content = memoryview(b64decode(found))
    rows = task["last"] - task["first"]
    rows_behind = task["count"] - task["first"]
    start = 0
    for name, kind in _kinds(len(task["columns"])).items():
        path = Path(task["folder"]) / f"{name}.npy"
        end = start + rows * kind.size
        with told_of_disk(), path.open("r+b") as file:
            file.seek(-rows_behind * kind.size, os.SEEK_END)
            file.write(content[start:end])
        start = end


MEASURE = Portable(measure_stretch, keep_hashes)


def _hashes_of(
    columns: Sequence[Sequence[str]], seed: int
) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield each kind of hashes of rows."""
    signed = b"".join(map(hash_row, zip(*columns, strict=True)))
    yield "signed", np.frombuffer(signed, ">u8").reshape(-1, _SIGNED // 8)
    folded = [list(map(fold, column)) for column in columns]
    for number, column in enumerate(folded):
        yield f"side{number}", hash_texts(column)
    rows = list(zip(*folded, strict=True))
    yield "row", hash_texts(map("\t".join, rows))
    order = [keyed_hash(seed, *row)[:8] for row in rows]
    yield "order", np.frombuffer(b"".join(order), ">u8")
    bands, sketches = sketch(folded)
    yield "sketch", sketches
    for number in range(BANDS):
        yield f"band{number}", bands[:, number]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Hash each folded text to 64 bits, as `overlap.TextHashes` does."""
    contents = (text.encode("utf-8", "surrogatepass") for text in texts)
    digests = (blake2b(content, digest_size=8).digest() for content in contents)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
