"""Texts that lie on disk, as a sequence: their bytes one behind the other, and where each ends.

A corpus of many rows holds columns in place of lists, so that its memory does not grow with it. A
column is written once, and read by the process that wrote it and by others of the same run.
"""

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from weft.data.home import Home, told_of_disk

Positions = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

LARGE = 100_000  # rows; fewer are kept in memory
_BLOCK = 4096  # rows that are read at a time
# rows of the file, or bytes, for each that is asked for: then each row is read alone
_SPARSE = 8
_BOUND = np.dtype(np.int64)


class Column(Sequence[str]):
    """Texts of a file; with `rows` those of these numbers, in this order.

    `home` is a folder that is there as long as a column of it is.
    """

    def __init__(
        self, path: Path, rows: Rows | None = None, home: object = None
    ) -> None:
        """Open the files that a `ColumnWriter` wrote."""
        self.path = path
        self.rows = rows
        self._home = home
        self._texts = _Bytes(path)
        self._bounds = _Bytes(_bounds_beside(path))

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        num_bounds = self._bounds.size // _BOUND.itemsize
        return num_bounds - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Read one text, or those of a slice."""
        if isinstance(place, slice):
            places = range(len(self))
            contents = self._contents(places[place])
            return list(_decoded(contents))
        row = range(len(self))[place]
        if self.rows is not None:
            row = int(self.rows[row])
        bounds = self._bounds_from(row, row + 1)
        content = self._texts.read(*bounds.tolist())
        return _decode(content)

    def __iter__(self) -> Iterator[str]:
        return _decoded(self.contents())

    def at(self, places: npt.NDArray[np.integer]) -> "Column":
        """Return the texts at these places, in this order, as another column of the file."""
        rows = places.astype(np.int32, copy=False)
        if self.rows is not None:
            rows = self.rows[rows]
        return Column(self.path, rows, self._home)

    def contents(self) -> Iterator[list[bytes]]:
        """Yield the UTF-8 of all texts, some at a time."""
        return self._contents(range(len(self)))

    @property
    def size(self) -> int:
        """Count the bytes of all texts, without reading them."""
        spans = self._spans(range(len(self)))
        return sum(int((ends - starts).sum()) for starts, ends in spans)

    @property
    def num_characters(self) -> int:
        """Count the characters of all texts."""
        return sum(_count_characters(b"".join(some)) for some in self.contents())

    def _contents(self, places: range) -> Iterator[list[bytes]]:
        """Yield the UTF-8 of the texts at some places, block by block."""
        for starts, ends in self._spans(places):
            first = int(starts.min())
            last = int(ends.max())
            size = int((ends - starts).sum())
            if last - first > _SPARSE * size:
                spans = _pairs(starts, ends)
                yield [self._texts.read(start, end) for start, end in spans]
                continue
            # with what stands between them
            content = self._texts.read(first, last)
            spans = _pairs(starts - first, ends - first)
            yield [content[start:end] for start, end in spans]

    def _spans(self, places: range) -> Iterator[tuple[Positions, Positions]]:
        """Yield where the texts at some places begin in the file, and where they end, block by
        block.
        """
        for start in range(0, len(places), _BLOCK):
            end = start + _BLOCK
            rows = self._rows_at(places[start:end])
            first = int(rows.min())
            last = int(rows.max())
            if last - first > _SPARSE * len(rows):
                each = [self._bounds_from(row, row + 1) for row in rows.tolist()]
                starts, ends = np.transpose(each)
                yield starts, ends
                continue
            bounds = self._bounds_from(first, last + 1)
            rows = rows - first
            yield bounds[rows], bounds[rows + 1]

    def _rows_at(self, places: range) -> npt.NDArray[np.integer]:
        """Return the rows of the file at some places."""
        each = np.arange(places.start, places.stop, places.step)
        return each if self.rows is None else self.rows[each]

    def _bounds_from(self, first: int, last: int) -> Positions:
        """Read where rows begin, from one to another; they end where the next begins."""
        size = _BOUND.itemsize
        begin = first * size
        end = (last + 1) * size
        content = self._bounds.read(begin, end)
        return np.frombuffer(content, _BOUND)


def _pairs(starts: Positions, ends: Positions) -> Iterator[tuple[int, int]]:
    return zip(starts.tolist(), ends.tolist(), strict=True)


class _Bytes:
    """The bytes of a file, read by any thread."""

    def __init__(self, path: Path) -> None:
        self.size = path.stat().st_size
        self._file = path.open("rb")
        self._lock = threading.Lock()
        close = self._file.close
        weakref.finalize(self, close)

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes from one place to another."""
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start)


def _bounds_beside(path: Path) -> Path:
    """Return the file that says where the texts of another begin, and where the last ends."""
    return path.with_suffix(".bounds")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def _decoded(contents: Iterable[list[bytes]]) -> Iterator[str]:
    each = chain.from_iterable(contents)
    return map(_decode, each)


def _count_characters(content: bytes) -> int:
    """Count characters of UTF-8: the bytes that begin one."""
    octets = np.frombuffer(content, np.uint8)
    are_first = octets & 0xC0 != 0x80
    return int(np.count_nonzero(are_first))


def encoded(texts: Sequence[str]) -> Iterator[list[bytes]]:
    """Yield the UTF-8 of texts, some at a time."""
    if isinstance(texts, Column):
        yield from texts.contents()
        return
    for start in range(0, len(texts), _BLOCK):
        end = start + _BLOCK
        yield [text.encode("utf-8", "surrogatepass") for text in texts[start:end]]


class ColumnWriter:
    """The files of a column while they grow."""

    def __init__(self, path: Path, home: object = None) -> None:
        self._path = path
        self._home = home
        self._end = 0
        with told_of_disk():
            self._texts = path.open("wb")
            self._bounds = _bounds_beside(path).open("wb")
            self._bounds.write(bytes(_BOUND.itemsize))

    def extend(self, texts: Iterable[str]) -> None:
        """Write texts behind those that are there."""
        contents = [text.encode("utf-8", "surrogatepass") for text in texts]
        lens = list(map(len, contents))
        ends = self._end + np.cumsum(lens, dtype=_BOUND)
        self._end += sum(lens)
        with told_of_disk():
            self._texts.write(b"".join(contents))
            self._bounds.write(ends.tobytes())

    def close(self) -> Column:
        """End the files, and open them as a column."""
        with told_of_disk():
            self._texts.close()
            self._bounds.close()
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
