"""The two sides of a pair by their names: the keys of an object, the columns of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.data.formats.header import Header, header_of_csv
from weft.data.formats.pairs import Sides, choose_direction, doubt_name, other_way
from weft.errors import DataError

INNER = "translation"  # under this name data sets of the web often have both sides
_MOST_SHOWN = 6  # names in a message


def choose_sides(
    path: Path,
    kind: str,
    all_names: Sequence[str],
    names: Sequence[str],
    asked: Sides,
    named: Sides,
) -> tuple[Header, tuple[str, str], list[str]]:
    """Return which of the `names` are the sides, their languages, and notes on the direction.

    The languages are those asked for, else those of the file's name, else the names themselves.
    Raises DataError, with `all_names` of this `kind`, where nothing says which they are.
    """
    header = header_of_csv(names, asked[0] or named[0], asked[1] or named[1])
    if header is None:
        shown = ", ".join(map(repr, all_names[:_MOST_SHOWN])) or "none"
        raise DataError(
            f"{path}: its {kind} ({shown}) do not name the two sides; name two of them by languages (en, de), or "
            "source and target; or, if these are labelled rows, take a recipe such as --recipe classify-fast"
        )
    if named == (None, None):
        named = (header.src_lang, header.tgt_lang)
    pair = choose_direction(asked, named)
    notes = doubt_name(pair, named)
    if header.src_lang and header.tgt_lang and not any(asked):
        notes.append(f"read as {pair[0]} to {pair[1]}; {other_way(pair)}")
    return header, pair, notes


def text_in(
    where: str, value: Any, name: str, remedy: str = "name a column of text"
) -> str:
    """Return a value as text; nothing where there is none. Raises DataError for what is no text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {name!r} is no text; {remedy}")
    if "\0" in value:
        raise DataError(f"{where}: {name!r} holds NUL, which is no text; take it out")
    return value
