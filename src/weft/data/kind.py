"""The kind of text that a file holds, by its name and its beginning: pairs, documents or labelled
rows.
"""

from collections.abc import Sequence
from pathlib import Path

from weft.data.formats.cells import head_rows
from weft.data.formats.filetype import (
    decode_head,
    how_to_translate,
    type_of,
    type_of_name,
)
from weft.data.formats.header import (
    are_sentences,
    find_header,
    header_with_rare_code,
    names_a_language,
)
from weft.data.formats.json_object import parse_object
from weft.data.formats.jsonl import holds_pairs
from weft.data.formats.parquet import ColumnFile
from weft.data.formats.registry import FileType
from weft.data.formats.shards import shards_of
from weft.data.formats.source import read_head
from weft.data.formats.table import is_parquet
from weft.data.train_text import split_at_comma
from weft.errors import DataError

KINDS = {
    "translation": "pairs of sentences: a translator",
    "language-modelling": "running text: a language model",
    "classification": "labelled rows: a classifier",
}

COLUMNS = ("text", "label")  # of labelled rows, unless settings name others
_DOCUMENTS = ("sheet", "office")  # types of files
_HEAD = 1 << 16  # bytes that are read
_FEWEST_ROWS = 30  # below it, that a column repeats itself says nothing
_FEWEST_PAIRS = 10  # of sentences below names that are no languages
_MOST_LABELS = 50
_LONGEST_LABEL = 40


def guess_task(
    item: str, text_column: str = COLUMNS[0], label_column: str = COLUMNS[1]
) -> str:
    """Guess the task of the text that `item` names.

    What is missing or cannot be read is taken for pairs. Raises DataError for a spreadsheet and
    for an office document: what is in them may be of any task.
    """
    named = type_of_name(Path(item))
    if named is not None and named.name in _DOCUMENTS:
        remedy = named.remedy + how_to_translate(named, Path(item))
        raise DataError(f"{item}: is {named.words}; {remedy}")
    try:
        paths = list(map(_first_file, split_at_comma(item)))
        if len(paths) == 2:
            return "translation"
        named = type_of_name(paths[0])
        if named is not None and (named.task or is_parquet(paths[0])):
            return _task_of(named, paths[0], (text_column, label_column))
        held = type_of(paths[0])
        lines = first_lines(paths[0])
    except DataError:
        return "translation"
    if held is not None and held.task:
        return held.task
    cells = [line.split("\t") for line in lines]
    names = {cell.strip().strip('"') for cell in cells[0]}
    is_tsv = named is not None and named.name == "tsv"
    if is_tsv and ({text_column, label_column} & names or _has_labels(cells)):
        return "classification"
    is_pairs = is_tsv or len(cells[0]) > 1
    return "translation" if is_pairs else "language-modelling"


def _first_file(path: Path) -> Path:
    """Return the first file of a folder of shards, else the path itself."""
    return next(iter(shards_of(path)), path)


def _task_of(kind: FileType, path: Path, columns: tuple[str, str]) -> str:
    """Return the task of a type of files; CSV and JSON lines may hold pairs.

    It does where its first row names two languages, one of them perhaps by a code that is not known
    (`kos`) above sentences; also where it has two columns, none of which is
    that of the text or the labels, and one is named by a language, or both hold sentences: what is
    wrong with it is then said as of pairs. Only its ASCII counts, in whatever encoding.
    """
    task = kind.task
    if is_parquet(path):
        return _task_of_columns(path, columns)
    if kind.name == "jsonl" and path.is_file():
        return "translation" if _are_objects_of_pairs(path, columns) else task
    if kind.table != "csv" or not path.is_file():
        return task
    names, *rows = head_rows(path, first_lines(path)) or [[]]
    if find_header(names, None, None) is not None:
        return "translation"
    is_of_rows = any(name.strip() in columns for name in names)
    if is_of_rows:
        return task
    is_pairs = header_with_rare_code([names, *rows], None, None) is not None
    if len(names) == 2:
        is_pairs = names_a_language(names) or _hold_pairs(names, rows, columns)
    return "translation" if is_pairs else task


def _task_of_columns(path: Path, columns: tuple[str, str]) -> str:
    """Return the task of a file of columns, by their names."""
    file = ColumnFile(path)
    if set(columns) <= set(file.names):
        return "classification"
    if file.inner_names() or find_header(file.names, None, None) is not None:
        return "translation"
    return "language-modelling" if columns[0] in file.names else "translation"


def _are_objects_of_pairs(path: Path, columns: tuple[str, str]) -> bool:
    """Return whether the first object of JSON lines has the sides of a pair, and neither the text
    nor the labels.
    """
    line = next(filter(None, map(str.strip, first_lines(path))), "{}")
    try:
        row = parse_object(str(path), line)
    except DataError:  # whoever reads it says so
        return False
    return holds_pairs(row) and set(row).isdisjoint(columns)


def _hold_pairs(
    names: Sequence[str], rows: Sequence[Sequence[str]], columns: tuple[str, str]
) -> bool:
    """Return whether two columns hold sentences, below two codes of languages or without names."""
    if columns != COLUMNS or not are_sentences(rows):
        return False
    are_codes = find_header(names, None, None, least_known=0) is not None
    return are_codes or len(rows) >= _FEWEST_PAIRS


def first_lines(path: Path) -> list[str]:
    """Return the lines of the file's beginning without the last one, which may be cut off; at least
    one.
    """
    lines = decode_head(read_head(path, _HEAD)).split("\n")
    if len(lines) > 1:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _has_labels(rows: list[list[str]]) -> bool:
    """Return whether of two columns exactly one repeats a few single words."""
    if len(rows) < _FEWEST_ROWS or any(len(row) != 2 for row in rows):
        return False
    first = _are_labels([row[0].strip() for row in rows])
    second = _are_labels([row[1].strip() for row in rows])
    return first != second


def _are_labels(cells: list[str]) -> bool:
    few = 1 < len(set(cells)) <= min(_MOST_LABELS, len(cells) // 5)
    return few and all(
        cell and " " not in cell and len(cell) <= _LONGEST_LABEL for cell in cells
    )
