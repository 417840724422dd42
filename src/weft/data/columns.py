"""A sentence on which columns of a table will be read, from its first rows."""

from collections.abc import Sequence
from pathlib import Path

from weft.config import ClassificationRecipe, Recipe, TranslationRecipe
from weft.data.corpus import split_at_comma
from weft.data.formats.cells import head_rows
from weft.data.formats.filenames import pair_from_name
from weft.data.formats.filetype import type_of
from weft.data.formats.header import find_header_of, places_of_text
from weft.data.kind import first_lines
from weft.errors import DataError

_FEWEST = 3  # columns, of which some are not read
_MOST_NAMED = 12


def describe_columns(recipe: Recipe, item: str) -> str:
    """Say which columns of CSV or TSV are read, and how others are chosen.

    Returns "" where there are no more than two, and where the file cannot be read.
    """
    try:
        paths = split_at_comma(item)
        if len(paths) != 1:
            return ""
        kind = type_of(paths[0])
        table = "tsv" if kind is None else kind.table
        rows = _first_rows(paths[0], table)
    except DataError:  # whoever reads it says so
        return ""
    if not rows or len(rows[0]) < _FEWEST:
        return ""
    read = ""
    if isinstance(recipe, TranslationRecipe):
        read = _of_pairs(recipe, paths[0], rows, table == "csv")
    elif isinstance(recipe, ClassificationRecipe):
        read = _of_rows(recipe, rows[0])
    return f"{item}: {read}" if read else ""


def _first_rows(path: Path, table: str) -> list[list[str]]:
    """Return the cells of the first rows, without spaces around them; none of what is neither CSV
    nor TSV.
    """
    rows: list[list[str]] = []
    lines = first_lines(path)
    if table == "csv":
        rows = head_rows(path, lines)
    elif table == "tsv":
        rows = [line.replace('"', "").split("\t") for line in lines if line.strip()]
    return [list(map(str.strip, row)) for row in rows]


def _of_pairs(
    recipe: TranslationRecipe, path: Path, rows: list[list[str]], is_csv: bool
) -> str:
    src_lang, tgt_lang = pair_from_name(path.name) or (None, None)
    src_lang = recipe.data.src_lang or src_lang
    tgt_lang = recipe.data.tgt_lang or tgt_lang
    names = rows[0]
    header = find_header_of(rows, is_csv, src_lang, tgt_lang)
    if header is not None:
        src = f"{names[header.src]} is read as the source"
        read = f"{src} and {names[header.tgt]} as the target"
        return _among(names, read, "data.src_lang", "data.tgt_lang")
    if is_csv:
        return ""
    places = places_of_text(rows)
    which = "the first two"
    if places != (0, 1):
        first, second = (place + 1 for place in places)
        which = f"columns {first} and {second}"
    return f"{which} of {len(names)} columns are read"


def _of_rows(recipe: ClassificationRecipe, names: list[str]) -> str:
    text, label = recipe.data.text_column, recipe.data.label_column
    if text not in names or label not in names:
        return ""
    read = f"{text} is read as the text and {label} as the label"
    return _among(names, read, "data.text_column", "data.label_column")


def _among(names: Sequence[str], read: str, *keys: str) -> str:
    """Say what is read of columns with these names, and which settings choose others."""
    shown = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown += f" and {len(names) - _MOST_NAMED:,} more"
    settings = " ".join(f"--set {key}=..." for key in keys)
    return f"of its columns {shown}, {read}; {settings} choose others"
