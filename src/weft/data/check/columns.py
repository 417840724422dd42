"""The columns of a table: which there are, which are read, and which say the same in every row."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from weft.data.check.finding import Finding
from weft.data.formats.table import column_names, read_table

_MOST_NAMED = 20


def look_over_columns(
    path: Path, text_column: str, label_column: str
) -> Iterator[Finding]:
    """Yield a note on the columns that are read, and one on columns of a single value. Raises
    DataError as reading does.
    """
    heads = column_names(path, (text_column, label_column))
    names = list(dict.fromkeys(filter(None, heads)))
    listing = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        listing += f" and {len(names) - _MOST_NAMED} more"
    yield Finding(
        "note",
        "columns",
        f"{path}:1: columns: {listing}; texts are read from {text_column!r}, labels from {label_column!r}",
        "if this is not intended, set data.text_column and data.label_column",
        len(names),
    )
    if len(names) > 2 and (same := _constant(path, names)):
        yield Finding(
            "note",
            "constant-columns",
            f"{path}:1: the same in every row: {', '.join(same[:_MOST_NAMED])}",
            "nothing to do unless one of them should be read: nothing can be learned from it",
            len(same),
        )


def _constant(path: Path, names: list[str]) -> list[str]:
    """Find columns of one value, in tables of two rows and more; in JSON only those that every
    object has.
    """
    first: dict[str, str] = {}
    varying: set[str] = set()
    size = 0
    for _, row in read_table(path, names, Counter(), []):
        size += 1
        for name in names:
            value = str(row[name])
            if first.setdefault(name, value) != value:
                varying.add(name)
    if size < 2:
        return []
    return [name for name in names if name not in varying]
