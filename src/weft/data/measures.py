"""The rows of a large text as hashes, by which it is split, compared and named without its texts.

They are those of `split.keyed_hash`, `overlap.TextHashes` and `signature`, so that what follows
from them is the same as from the texts themselves, as far as two different rows share no hash of 64
bits. They lie on disk, and are read when they are asked for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.data.column import Column, Home
from weft.data.crew import Task, work
from weft.data.minhash import BANDS, SKETCH, sketch
from weft.data.split import fold, hash_row, keyed_hash

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

STRETCH = 50_000  # rows of a task
_SIGNED = 16  # bytes of a row's hash in a signature
_UNORDERED = 0  # the seed where rows are not held out


@dataclass(frozen=True)
class Measures:
    """The hashes of rows, each kind in a file of `home`; with `chosen` those of these rows."""

    home: Home
    num_sides: int
    chosen: Positions | None = None

    def at(self, rows: Positions) -> "Measures":
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
        mapped = np.load(self.home.path / f"{name}.npy", mmap_mode="r")
        rows = slice(None) if self.chosen is None else self.chosen
        return np.array(mapped[rows])


def measure(columns: Sequence[Column], seed: int = _UNORDERED) -> Measures:
    """Measure the rows of columns; `seed` is that of their order."""
    home = Home()
    count = len(columns[0])
    for name, (dtype, *shape) in _kinds(len(columns)).items():
        path = home.path / f"{name}.npy"
        np.lib.format.open_memmap(path, "w+", dtype, (count, *shape)).flush()
    described = [describe(column, home.path, n) for n, column in enumerate(columns)]
    tasks = [
        {"columns": described, "seed": seed, "folder": str(home.path), **stretch}
        for stretch in stretches(count)
    ]
    work("measure", measure_stretch, tasks, "rows")
    return Measures(home, len(columns))


def stretches(count: int) -> list[Task]:
    """Divide so many rows into stretches, from `first` to `last`, which is not included."""
    number = max(-(-count // STRETCH), 1)
    ends = [n * count // number for n in range(number + 1)]
    return [{"first": first, "last": last} for first, last in pairwise(ends)]


def _kinds(num_sides: int) -> dict[str, tuple[Any, ...]]:
    """Return the type and the width of each kind of hashes."""
    kinds: dict[str, tuple[Any, ...]] = {
        f"side{number}": (np.uint64,) for number in range(num_sides)
    }
    kinds |= {"row": (np.uint64,), "order": (np.uint64,)}
    kinds["signed"] = (np.dtype(">u8"), _SIGNED // 8)
    kinds |= {f"band{number}": (np.uint64,) for number in range(BANDS)}
    return {**kinds, "sketch": (np.uint8, SKETCH)}


def describe(column: Column, folder: Path, number: int) -> list[str]:
    """Name the files of a column for another process; the numbers of its rows are written into
    `folder`.
    """
    if column.rows is None:
        return [str(column.path)]
    rows = folder / f"rows{number}.npy"
    np.save(rows, column.rows, allow_pickle=False)
    return [str(column.path), str(rows)]


def open_stretch(described: Sequence[str], first: int, last: int) -> list[str]:
    """Read a stretch of a column that another process has described."""
    path, *rows = described
    chosen = np.load(rows[0], mmap_mode="r") if rows else None
    return Column(Path(path), chosen)[first:last]


def measure_stretch(task: Task) -> None:
    """Measure a stretch of columns, and write it."""
    first, last = task["first"], task["last"]
    columns = [open_stretch(each, first, last) for each in task["columns"]]
    folded = [list(map(fold, column)) for column in columns]
    found: dict[str, npt.NDArray[Any]] = {}
    for number, column in enumerate(folded):
        found[f"side{number}"] = hash_texts(column)
    found["row"] = hash_texts(map("\t".join, zip(*folded, strict=True)))
    order = [keyed_hash(task["seed"], *row)[:8] for row in zip(*folded, strict=True)]
    found["order"] = np.frombuffer(b"".join(order), ">u8")
    signed = b"".join(map(hash_row, zip(*columns, strict=True)))
    found["signed"] = np.frombuffer(signed, ">u8").reshape(-1, _SIGNED // 8)
    bands, found["sketch"] = sketch(folded)
    for number in range(BANDS):
        found[f"band{number}"] = bands[:, number]
    for name, values in found.items():
        path = Path(task["folder"]) / f"{name}.npy"
        whole = np.load(path, mmap_mode="r+")
        whole[first:last] = values
        whole.flush()


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Hash each folded text to 64 bits, as `overlap.TextHashes` does."""
    contents = (text.encode("utf-8", "surrogatepass") for text in texts)
    digests = (blake2b(content, digest_size=8).digest() for content in contents)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
