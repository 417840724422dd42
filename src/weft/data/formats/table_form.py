"""The form in which the cells of a table are written, so that a table with further columns can be
written alike.
"""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.data.formats.cells import find_delimiter, find_quoting
from weft.data.formats.filetype import type_of_name
from weft.data.formats.source import read_head
from weft.data.formats.table import NO_KEYS, read_cells

_HEAD = 1 << 16  # bytes in which the first line end is looked for
MARK = codecs.BOM_UTF8.decode()


@dataclass(frozen=True)
class TableForm:
    """The columns of a CSV or TSV file and how it is written.

    `header` has the names of the columns as they stand there. Without `is_quoted` a quote is text
    like any other, and no cell holds a TAB or a line end. `lead` stands before the header: a
    byte-order mark, a line `sep=;`.
    """

    header: list[str]
    delimiter: str
    is_quoted: bool
    line_end: str
    lead: str = ""

    def row(self, cells: Sequence[str]) -> str:
        """Return a row, with its line end, that reads back equal."""
        if not self.is_quoted:
            return self.delimiter.join(cells) + self.line_end
        out = io.StringIO(newline="")
        csv.writer(
            out, delimiter=self.delimiter, lineterminator=self.line_end
        ).writerow(cells)
        return out.getvalue()

    def as_kind(self, kind: str) -> "TableForm":
        """Return the form of a file of the other kind, "csv" or "tsv", with the same columns."""
        mark = MARK if self.lead.startswith(MARK) else ""
        return replace(
            self, delimiter="\t" if kind == "tsv" else ",", is_quoted=True, lead=mark
        )


def cells_kind(path: Path) -> str:
    """Return "csv" or "tsv" for a file that is named so, else ""."""
    kind = type_of_name(path)
    return kind.table if kind is not None and kind.table in ("csv", "tsv") else ""


def form_of(
    path: Path, columns: Sequence[str], keys: Mapping[str, str] = NO_KEYS
) -> TableForm:
    """Find the form of a CSV or TSV file with these columns. Raises DataError as `read_cells`
    does.
    """
    _, header = next(read_cells(path, columns, Counter(), [], keys))
    head = read_head(path, _HEAD)
    line_end = "\r\n" if head.partition(b"\n")[0].endswith(b"\r") else "\n"
    mark = MARK if head.startswith(codecs.BOM_UTF8) else ""
    if cells_kind(path) == "tsv":
        is_quoted = find_quoting(path).kind != "none"
        return TableForm(header, "\t", is_quoted, line_end, mark)
    delimiter, named = find_delimiter(path, columns)
    if len(header) == 1 and not named:  # none stands there
        delimiter = ","
    lead = mark + named + line_end if named else mark
    return TableForm(header, delimiter, True, line_end, lead)
