"""Labelled text: rows of tables, each with its labels and its origin, held out and fingerprinted.

A label is a word or a number as text. In single-label text every row has exactly one, in
multi-label text any number.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from weft.console import stages
from weft.data import split
from weft.data.base import Corpus, join, reasons
from weft.data.formats.cells import find_quoting, read_tab_separated
from weft.data.formats.filetype import type_of_name
from weft.data.formats.header import find_header
from weft.data.formats.row import TOO_LONG, on_one_line
from weft.data.formats.shards import shards_of
from weft.data.formats.table import column_names, read_cells, read_table
from weft.data.split import MIN_PAIRS, fold
from weft.errors import DataError, UsageError

EMPTY_TEXT = "empty text"
_NO_LABEL = ("", "nan", "null")  # what tables have where there is none, in any case
_SIGNS = (";", "|", "/")  # that may stand between labels
_NUM_NAMED = 5  # labels that a message names
LABEL_THEM = (
    "label each row or take it out, as weft clean does, or, where a text may have several labels or none, set "
    "data.label_separator"
)

Labels = tuple[str, ...]
Unlabelled = dict[str, str]
"""Rows without a label that should have one: their texts, by where each stands."""


@dataclass(frozen=True, kw_only=True)
class LabelledText(Corpus):
    """Texts with their labels and their origin. A text is stripped, not empty, and holds no line
    end.

    The labels of a row are sorted; its line is where it begins.
    """

    COLUMNS = ("texts", "labels")

    texts: list[str]
    labels: list[Labels]
    multi_label: bool = False

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return the text and labels of each row."""
        return (
            (text, *labels)
            for text, labels in zip(self.texts, self.labels, strict=True)
        )


def read_labelled(
    data: Sequence[str | Path] | str,
    text_column: str = "text",
    label_column: str = "label",
    label_separator: str | None = None,
    settable: bool = True,
    unlabelled: Unlabelled | None = None,
) -> LabelledText:
    """Read and join tables; a row without text is dropped and counted, one without a label is an
    error, or goes into `unlabelled`.

    `settable`: the columns come from a recipe, so that a complaint about one may name its key
    there.

    With a separator the text is multi-label: a cell holds any number of labels with it between
    them, in JSON a list will do as well. Raises DataError with file and line for whatever cannot be
    read as rows.
    """
    items = [data] if isinstance(data, str | Path) else data
    if not items:
        raise UsageError(
            "no data given; name a .csv, .tsv or .jsonl file with a column of text and one of labels"
        )
    if text_column == label_column:
        raise UsageError(
            f"data.text_column and data.label_column are both {text_column!r}; name two columns"
        )
    keys = (
        {text_column: "data.text_column", label_column: "data.label_column"}
        if settable
        else {}
    )
    parts = [
        _read_file(file, (text_column, label_column), label_separator, keys, unlabelled)
        for item in items
        for file in shards_of(Path(item)) or [Path(item)]
    ]
    return parts[0] if len(parts) == 1 else join(parts)


def read_texts(
    path: Path, text_column: str, dropped: Counter[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the text of each row of a table, empty ones too, and the whole row, every column by its
    name.

    Line breaks in a text stay, here and below: a translator divides it there. Raises DataError as
    `read_labelled` does.
    """
    for line, row in read_table(path, (text_column,), dropped, [], whole=True):
        yield as_text(f"{path}:{line}", row[text_column]).strip(), row


def name_of_column(path: Path, column: str) -> str | None:
    """Return the name of a table's column, which is given by its name or its number from 1.

    None for a number of lines with TABs that no row of names heads. Raises DataError for a number
    that the first row does not reach.
    """
    if not column.isdecimal():
        return column
    if _always_has_names(path):
        names = column_names(path)
    else:
        rows = read_tab_separated(path, find_quoting(path), Counter())
        names = next((cells for _, cells in rows if cells is not None), [])
        if not find_header(names, None, None):
            return None
    _refuse_no_column(f"{path}:1", int(column), len(names))
    return names[int(column) - 1].strip()


def read_column(
    path: Path, column: str, dropped: Counter[str], notes: list[str]
) -> Iterator[str]:
    """Yield the text of one column of each row of a table, empty ones too; the column by its name,
    or its number from 1.

    By a number also of lines with TABs that no row of names heads; where one does, it is no text.
    Raises DataError as `read_labelled` does, and for a number that a row does not reach.
    """
    if column.isdecimal() and not _always_has_names(path):
        yield from _numbered(path, int(column), dropped, notes)
        return
    if column.isdecimal():
        names = column_names(path)
        _refuse_no_column(f"{path}:1", int(column), len(names))
        column = names[int(column) - 1]
    keys = {column: "--column"}
    for line, row in read_table(path, (column,), dropped, notes, keys):
        yield as_text(f"{path}:{line}", row[column]).strip()


def _always_has_names(path: Path) -> bool:
    """Return whether a file is of a type of table that names its columns, as all but TSV do."""
    kind = type_of_name(path)
    return kind is not None and kind.table not in ("", "tsv")


def _numbered(
    path: Path, column: int, dropped: Counter[str], notes: list[str]
) -> Iterator[str]:
    """Yield a column of lines with TABs."""
    quoting = find_quoting(path)
    notes.extend(f"{path}: {note}" for note in quoting.notes)
    for count, (line, cells) in enumerate(read_tab_separated(path, quoting, dropped)):
        if cells is None:
            dropped[TOO_LONG] += 1
            continue
        _refuse_no_column(f"{path}:{line}", column, len(cells))
        if not count and find_header(cells, None, None):
            notes.append(f"{path}: the first row names the columns and is no text")
        else:
            yield cells[column - 1].strip()


def _refuse_no_column(where: str, column: int, width: int) -> None:
    if not 1 <= column <= width:
        raise DataError(
            f"{where}: there is no column {column}, but {width}; they are counted from 1"
        )


def read_cell_texts(path: Path, text_column: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the text of each row of CSV or TSV, empty ones too, and all its cells, with line ends
    as they stand there.

    Raises DataError as `read_labelled` does.
    """
    rows = read_cells(path, (text_column,), Counter(), [], keeps_cr=True)
    _, header = next(rows)
    place = [name.strip() for name in header].index(text_column)
    for _, cells in rows:
        yield cells[place].strip(), cells


def from_rows(
    rows: Iterable[tuple[str, Sequence[str]]], name: str, multi_label: bool = False
) -> LabelledText:
    """Make a text of labelled rows that come from no file, by the same rules; line n is the n-th
    row.
    """
    numbered = enumerate(rows, start=1)
    if multi_label:
        several = ((n, text, list(labels)) for n, (text, labels) in numbered)
        return _keep(name, several, Counter(), [], ",")
    one = ((n, text, _only(f"{name}:{n}", labels)) for n, (text, labels) in numbered)
    return _keep(name, one, Counter(), [], None)


def fingerprint_labelled(text: LabelledText) -> str:
    """Hash texts, labels and their order (SHA-256); file names and line numbers do not count."""
    digest = sha256(f"{text.multi_label}\n{len(text)}\n".encode())
    for row, labels in zip(text.texts, text.labels, strict=True):
        digest.update(f"{json.dumps([row, *labels])}\n".encode())
    return digest.hexdigest()


def split_labelled(
    text: LabelledText, dev_size: int | None, test_size: int | None, seed: int
) -> tuple[LabelledText, LabelledText | None, LabelledText | None]:
    """Split the rows into training, dev and test; None for a part without rows, and for both below
    200 rows.

    A size of None is chosen by the corpus: 4 %, at least 20, at most 1,000. Labels have in each
    part about the share that they have in the whole. Equal folded texts stay together; those with
    different labels, and whatever has a label that training would not see, train. So a part can be
    smaller than its size. Depends on seed and content alone. Raises UsageError if nothing would be
    left to train on.
    """
    if len(text) < MIN_PAIRS:
        return text, None, None
    sizes = split.held_out_sizes(len(text), dev_size, test_size, "rows")
    dev: set[int] = set()
    test: set[int] = set()
    strata = _strata(text)
    total = sum(map(len, strata))
    done = 0
    for rows in strata:
        dev_share, test_share = (_share(size, done, len(rows), total) for size in sizes)
        texts = [text.texts[i] for i in rows]
        held_out = split.hold_out(texts, texts, dev_share, test_share, seed)
        _, dev_rows, test_rows = held_out
        dev.update(rows[i] for i in dev_rows)
        test.update(rows[i] for i in test_rows)
        done += len(rows)
    return _cut(text, dev, test)


def label_counts(text: LabelledText) -> dict[str, int]:
    """Count the rows of each label; the labels come sorted."""
    counts = Counter(label for labels in text.labels for label in labels)
    return {label: counts[label] for label in sorted(counts)}


def _read_file(
    path: Path,
    columns: tuple[str, str],
    separator: str | None,
    keys: Mapping[str, str],
    unlabelled: Unlabelled | None,
) -> LabelledText:
    dropped: Counter[str] = Counter()
    notes: list[str] = []
    text_column, label_column = columns
    stages.enter(f"reading {path}")
    rows = read_table(path, columns, dropped, notes, keys)
    cells = ((line, row[text_column], row[label_column]) for line, row in rows)
    return _keep(str(path), cells, dropped, notes, separator, unlabelled)


def _only(where: str, labels: Sequence[str]) -> str:
    if len(labels) > 1:
        raise DataError(
            f"{where}: {len(labels)} labels, but this text is not multi-label"
        )
    return labels[0] if labels else ""


def _keep(
    name: str,
    cells: Iterable[tuple[int, Any, Any]],
    dropped: Counter[str],
    notes: list[str],
    separator: str | None,
    unlabelled: Unlabelled | None = None,
) -> LabelledText:
    """Collect the rows that have text. Raises DataError if none has, or if some have no label but
    should, unless these are to go into `unlabelled`.
    """
    texts: list[str] = []
    labels_of: list[Labels] = []
    lines: list[int] = []
    without: Unlabelled = {}
    for line, raw_text, raw_label in stages.counted(cells, "rows"):
        text = one_line(as_text(f"{name}:{line}", raw_text))
        if not text:
            dropped[EMPTY_TEXT] += 1
            continue
        labels = labels_in(f"{name}:{line}", raw_label, separator)
        if not labels and separator is None:
            without[f"{name}:{line}"] = text
            continue
        texts.append(text)
        labels_of.append(labels)
        lines.append(line)
    if unlabelled is None or not texts:
        _refuse_unlabelled(without)
    else:
        unlabelled |= without
    if not texts:
        raise DataError(f"{name}: no row with text ({reasons(dropped) or 'no rows'})")
    return LabelledText(
        texts=texts,
        labels=labels_of,
        lines=lines,
        files=[name],
        file_of=[0] * len(texts),
        dropped=dict(dropped),
        notes=notes,
        multi_label=separator is not None,
    )


def one_line(text: str) -> str:
    """Return a text as models read it, on one line; any carriage return is a line end."""
    return on_one_line(text.replace("\r", "\n"))


def _refuse_unlabelled(rows: Unlabelled) -> None:
    if rows:
        raise DataError(f"{no_label(rows)}; {LABEL_THEM}")


def no_label(rows: Unlabelled) -> str:
    """Say that rows have no label, and where the first of them stands."""
    count = "1 row has" if len(rows) == 1 else f"{len(rows):,} rows have"
    return f"{next(iter(rows))}: no label ({count} none: empty, nan or null)"


def as_text(where: str, value: Any) -> str:
    """Return a cell as text; numbers and truth values as JSON writes them, null and NaN as
    nothing.
    """
    if isinstance(value, str):
        return value
    # JSON has no NaN, but what writes JSON often does
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, dict | list):
        what = "a list" if isinstance(value, list) else "an object"
        raise DataError(f"{where}: {what} where text or a number should be")
    return json.dumps(value)


def labels_in(where: str, value: Any, separator: str | None) -> Labels:
    """Return the labels of a cell, each once and sorted.

    A cell of single-label text has one, or none where it is missing.
    """
    if separator is None:
        if isinstance(value, list):
            sign = _sign_of_no(value)
            raise DataError(
                f'{where}: a list of labels; for rows of several labels add --set "data.label_separator={sign}" '
                "(a list needs no sign between its labels; a table that weft classify writes has it there)"
            )
        items = [value]
    elif isinstance(value, list):
        items = value
    else:
        items = as_text(where, value).split(separator)
    labels = {_label(where, item) for item in items}
    return tuple(sorted(label for label in labels if label is not None))


def _sign_of_no(labels: Sequence[Any]) -> str:
    """Return a sign that may stand between labels, for it is in none of these."""
    shown = "".join(map(str, labels))
    return next((sign for sign in _SIGNS if sign not in shown), _SIGNS[0])


def _label(where: str, value: Any) -> str | None:
    """Return a label with single spaces inside and none around; None where a table has nothing."""
    label = " ".join(as_text(where, value).split())
    if any("\ud800" <= character <= "\udfff" for character in label):
        raise DataError(
            f"{where}: the label {label!r:.60} holds half of a character (a lone surrogate)"
        )
    return None if label.casefold() in _NO_LABEL else label


def _strata(text: LabelledText) -> list[list[int]]:
    """Group rows by their rarest label; a text that occurs with different labels is in no group."""
    counts = label_counts(text)
    folded = list(map(fold, text.texts))
    several = with_several_labels(folded, text.labels)
    strata: dict[str, list[int]] = {}
    for index, labels in enumerate(text.labels):
        if folded[index] not in several:
            rarest = min(labels, key=lambda label: (counts[label], label), default="")
            strata.setdefault(rarest, []).append(index)
    return [strata[label] for label in sorted(strata)]


def with_several_labels(
    folded: Sequence[str], labels: Sequence[Labels]
) -> dict[str, int]:
    """Find the texts that occur with different labels; return for each the first row that differs
    from the text's first.
    """
    first: dict[str, Labels] = {}
    several: dict[str, int] = {}
    for index, (text, own) in enumerate(zip(folded, labels, strict=True)):
        if first.setdefault(text, own) != own:
            several.setdefault(text, index)
    return several


def _share(size: int, done: int, count: int, total: int) -> int:
    """Return a stratum's share of a part's size; over all strata the shares sum to the size."""
    return size * (done + count) // total - size * done // total


def _cut(
    text: LabelledText, dev: set[int], test: set[int]
) -> tuple[LabelledText, LabelledText | None, LabelledText | None]:
    """Return the three parts, without held-out rows whose labels training would never see."""
    kept = [i for i in range(len(text)) if i not in dev and i not in test]
    known = {label for i in kept for label in text.labels[i]}
    dev_rows = [i for i in sorted(dev) if known.issuperset(text.labels[i])]
    test_rows = [i for i in sorted(test) if known.issuperset(text.labels[i])]
    held = {*dev_rows, *test_rows}
    return (
        text.select(i for i in range(len(text)) if i not in held),
        text.select(dev_rows) if dev_rows else None,
        text.select(test_rows) if test_rows else None,
    )


def named(labels: Sequence[str]) -> str:
    """Return the first few labels, quoted, and how many more there are."""
    more = f" and {len(labels) - _NUM_NAMED} more" if len(labels) > _NUM_NAMED else ""
    first = ", ".join(map(quoted, labels[:_NUM_NAMED]))
    return (first or "nothing") + more


def quoted(label: str) -> str:
    """Write a label as Python does, so that nothing invisible stays unseen; a long one is cut."""
    return repr(label if len(label) <= 40 else f"{label[:40]}…")
