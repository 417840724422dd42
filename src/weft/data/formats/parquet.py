"""Parquet and Arrow files: rows of named columns, as the `datasets` library of Hugging Face keeps
them. They are read some rows at a time by pyarrow, a package of the extra `parquet`.

A pair stands in two columns that are named as those of CSV are, or within one that is called
`translation`. Labels that are numbers have the names that the file gives them (ClassLabel).
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.data.formats.named_sides import INNER, choose_sides, text_in
from weft.data.formats.pairs import OpenPairs, Sides
from weft.data.formats.row import PairRow
from weft.errors import DataError
from weft.packages import require

_ROWS = 1024  # that are in memory at a time
_FEATURES = b"huggingface"  # the key under which `datasets` describes columns


class ColumnFile:
    """A Parquet or Arrow file: the names of its columns, and its rows."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises DataError where it is none, MissingPackage without pyarrow."""
        require("reading Parquet and Arrow files", "pyarrow", "parquet")
        self.path = path
        self._arrow: Any = import_module("pyarrow")
        with self._told():
            self._schema: Any = self._opened()[0]
        self.names: list[str] = list(self._schema.names)

    def rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the values of these columns, row by row. Raises DataError for a damaged file."""
        named = {column: self._names_of_labels(column) for column in columns}
        with self._told():
            for batch in self._opened()[1]:
                values = [batch.column(column).to_pylist() for column in columns]
                for row in zip(*values, strict=True):
                    cells = zip(columns, row, strict=True)
                    yield {name: _labelled(cell, named[name]) for name, cell in cells}

    def inner_names(self) -> list[str]:
        """Return the names within the column of pairs; none where there is no such column."""
        if INNER not in self.names:
            return []
        kind = self._schema.field(INNER).type
        if not self._arrow.types.is_struct(kind):
            return []
        return [kind.field(number).name for number in range(kind.num_fields)]

    def _opened(self) -> tuple[Any, Iterator[Any]]:
        """Return the schema and the rows in batches."""
        if _is_parquet(self.path):
            file = import_module("pyarrow.parquet").ParquetFile(self.path)
            batches = file.iter_batches(batch_size=_ROWS, use_threads=False)
            return file.schema_arrow, batches
        source = self._arrow.memory_map(str(self.path))
        try:
            reader = self._arrow.ipc.open_file(source)
        except self._arrow.ArrowInvalid:  # a stream, as `datasets` writes it
            source.seek(0)
            stream = self._arrow.ipc.open_stream(source)
            return stream.schema, stream
        count = range(reader.num_record_batches)
        return reader.schema, map(reader.get_batch, count)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (self._arrow.ArrowException, OSError) as error:
            said = str(error).split("\n", maxsplit=1)[0]
            raise DataError(
                f"{self.path}: cannot be read as Parquet or Arrow ({said:.120}); copy it again"
            ) from None

    def _names_of_labels(self, column: str) -> list[str] | None:
        """Return the names of a column's labels, by their numbers; None where it has none."""
        metadata = self._schema.metadata or {}
        try:
            info = json.loads(metadata.get(_FEATURES, b"{}"))["info"]
            feature = info["features"][column]
        except (ValueError, KeyError, TypeError):
            return None
        if isinstance(feature, list) and feature:
            feature = feature[0]
        if "feature" in feature:  # of a list
            feature = feature["feature"]
        names = feature.get("names")
        return names if feature.get("_type") == "ClassLabel" else None


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _labelled(value: Any, names: list[str] | None) -> Any:
    """Return the names of labels for their numbers, nothing for a number that has none."""
    if names is None:
        return value
    if isinstance(value, list):
        return [_labelled(one, names) for one in value]
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return None


def open_parquet(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open pairs, by the languages asked for and those of the file's name, else by the columns.

    Raises DataError where nothing says which columns are the two sides.
    """
    file = ColumnFile(path)
    inner = file.inner_names()
    names = inner or file.names
    header, pair, notes = choose_sides(path, "columns", file.names, names, asked, named)
    sides = (header.cells[header.src], header.cells[header.tgt])
    rows = _pairs(file, sides, is_inner=bool(inner))
    return OpenPairs(rows=rows, languages=pair, dropped=Counter(), notes=notes)


def _pairs(
    file: ColumnFile, sides: tuple[str, str], *, is_inner: bool
) -> Iterator[PairRow]:
    """Yield the number of each row, from 1, and its two sides."""
    columns = [INNER] if is_inner else list(sides)
    for number, row in enumerate(file.rows(columns), start=1):
        cells: Mapping[str, Any] = row
        if is_inner:
            cells = row[INNER] or {}
        where = f"{file.path}:{number}"
        src, tgt = (text_in(where, cells.get(side), side) for side in sides)
        yield number, src, tgt
