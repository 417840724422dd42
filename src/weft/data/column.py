"""Texts that lie on disk, as a sequence: their bytes one behind the other, and where each ends.

A corpus of many rows holds columns in place of lists, so that its memory does not grow with it. A
column is written once, and read by the process that wrote it and by others of the same run.
"""

import threading
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from weft.data.home import Home, told_of_disk

Positions = npt.NDArray[np.int64]

LARGE = 100_000  # rows; fewer are kept in memory
_BLOCK = 4096  # rows that are read at a time
_SPARSE = 8  # rows of the file for each one that is asked for: then each is read alone


class Column(Sequence[str]):
    """Texts of a file; with `rows` those of these numbers, in this order.

    `home` is a folder that is there as long as a column of it is.
    """

    def __init__(
        self, path: Path, rows: Positions | None = None, home: object = None
    ) -> None:
        """Open the file that a `ColumnWriter` wrote."""
        self.path = path
        self.rows = rows
        self._home = home
        self._bounds: Positions = np.load(
            path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False
        )
        self._file = path.open("rb")
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return len(self._bounds) - 1 if self.rows is None else len(self.rows)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Read one text, or those of a slice."""
        if isinstance(place, slice):
            return list(self._read(range(len(self))[place]))
        row = range(len(self))[place]
        if self.rows is not None:
            row = int(self.rows[row])
        start = int(self._bounds[row])
        end = int(self._bounds[row + 1])
        return _decode(self._bytes(start, end))

    def __iter__(self) -> Iterator[str]:
        places = range(len(self))
        yield from self._read(places)

    def at(self, places: npt.NDArray[np.integer]) -> "Column":
        """Return the texts at these places, in this order, as another column of the file."""
        rows = places.astype(np.int64)
        if self.rows is not None:
            rows = self.rows[rows]
        return Column(self.path, rows, self._home)

    @property
    def size(self) -> int:
        """Count the bytes of all texts, without reading them."""
        if self.rows is None:
            return int(self._bounds[-1])
        starts = self._bounds[self.rows]
        ends = self._bounds[self.rows + 1]
        return int((ends - starts).sum())

    def _read(self, places: range) -> Iterator[str]:
        """Read the texts at some places, block by block."""
        for start in range(0, len(places), _BLOCK):
            end = start + _BLOCK
            part = places[start:end]
            rows = np.arange(part.start, part.stop, part.step)
            if self.rows is not None:
                rows = self.rows[rows]
            if rows.max() - rows.min() < _SPARSE * len(rows):
                yield from self._read_together(rows)
            else:
                yield from map(self.__getitem__, part)

    def _bytes(self, start: int, end: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start)

    def _read_together(self, rows: Positions) -> Iterator[str]:
        """Read rows of the file, and what stands between them, at once."""
        first = int(rows.min())
        last = int(rows.max())
        bounds = self._bounds[first : last + 2]
        begin = int(bounds[0])
        content = self._bytes(begin, int(bounds[-1]))
        places = rows - first
        starts = bounds[places] - begin
        ends = bounds[places + 1] - begin
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        for start, end in spans:
            yield _decode(content[start:end])


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


class ColumnWriter:
    """The file of a column while it grows."""

    def __init__(self, path: Path, home: object = None) -> None:
        self._path = path
        self._home = home
        with told_of_disk():
            self._file = path.open("wb")
        self._lens = array("I")

    def extend(self, texts: Iterable[str]) -> None:
        """Write texts behind those that are there."""
        contents = [text.encode("utf-8", "surrogatepass") for text in texts]
        lens = map(len, contents)
        with told_of_disk():
            self._file.write(b"".join(contents))
        self._lens.extend(lens)

    def close(self) -> Column:
        """End the file, and open it as a column."""
        lens = np.frombuffer(self._lens, np.uint32)
        bounds = np.zeros(len(lens) + 1, np.int64)
        np.cumsum(lens, out=bounds[1:])
        path = self._path.with_suffix(".npy")
        with told_of_disk():
            self._file.close()
            np.save(path, bounds, allow_pickle=False)
        return Column(self._path, home=self._home)


class Growing:
    """Columns of a text while it is read: in memory while rows are few, then on disk."""

    def __init__(self, count: int) -> None:
        self._lists: list[list[str]] = [[] for _ in range(count)]
        self._writers: list[ColumnWriter] = []
        self.length = 0

    def append(self, *texts: str) -> None:
        """Add a row, a text for each column."""
        for column, text in zip(self._lists, texts, strict=True):
            column.append(text)
        self.length += 1
        if self.length >= LARGE and len(self._lists[0]) >= _BLOCK:
            self._flush()

    def done(self) -> list[Sequence[str]]:
        """Return the columns."""
        if not self._writers:
            return list(self._lists)
        self._flush()
        return [writer.close() for writer in self._writers]

    def _flush(self) -> None:
        if not self._writers:
            home = Home()
            for number in range(len(self._lists)):
                path = home.path / f"{number}.txt"
                self._writers.append(ColumnWriter(path, home))
        for writer, column in zip(self._writers, self._lists, strict=True):
            writer.extend(column)
            column.clear()


def joined_texts(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return the texts of all parts, one part behind the other: a column where they are many."""
    is_any_on_disk = any(isinstance(part, Column) for part in parts)
    if not is_any_on_disk and sum(map(len, parts)) < LARGE:
        return [text for part in parts for text in part]
    home = Home()
    writer = ColumnWriter(home.path / "joined.txt", home)
    for part in parts:
        for start in range(0, len(part), _BLOCK):
            end = start + _BLOCK
            writer.extend(part[start:end])
    return writer.close()
