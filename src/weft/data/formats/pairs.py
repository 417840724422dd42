"""An open file of pairs, whatever its format, and the direction in which it is read."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.data import languages
from weft.data.formats.row import PairRow

Sides = tuple[str | None, str | None]
"""The languages of source and target; None for one that is not said."""


@dataclass(frozen=True, kw_only=True)
class OpenPairs:
    """The rows of a file of pairs, still to be read, and the languages that they are read as.

    A side may have spaces around it, go over several lines or be empty: whoever reads the rows
    joins it to one line (`row.on_one_line`) and counts the empty ones. A blank line is no row.
    Where each line is a pair, the reader counts it in `dropped`, as `filled_lines` does, and it is
    told as a pair with both sides empty; where blank lines only separate entries, nobody counts
    them.

    `notes` say what is doubtful about the direction, and what the reader assumes. None names the
    file: whoever reads the rows puts it before each. `dropped`, `notes` and `coded` fill as rows
    are read. `coded` has the numbers of the rows that codes were taken out of; `marked` has both
    sides of the last row with the marks of its codes (`codes`), and nothing where it had none. With
    `by_unit` a row's number is that of its unit, not of a line.
    """

    rows: Iterator[PairRow]
    languages: tuple[str, str]
    dropped: Counter[str]
    notes: list[str]
    coded: set[int] = field(default_factory=set)
    marked: list[str] = field(default_factory=list)
    by_unit: bool = False


PairReader = Callable[[Path, Sides, Sides], OpenPairs]
"""Opens a file, by the languages that are asked for and those of the file's name."""


def choose_direction(asked: Sides, named: Sides) -> tuple[str, str]:
    """Return the languages asked for, else those that the file names, else `und`."""
    src = asked[0] or named[0] or languages.UNKNOWN
    tgt = asked[1] or named[1] or languages.UNKNOWN
    return src, tgt


def doubt_name(pair: tuple[str, str], named: Sides) -> list[str]:
    """Return a doubt if the file's name has the two languages the other way round, else none."""
    in_name = [language and languages.primary(language) for language in named]
    reversed_pair = [languages.primary(language) for language in reversed(pair)]
    if in_name != reversed_pair or in_name[0] == in_name[1]:
        return []
    read = f"read as {pair[0]} to {pair[1]}"
    return [f"named {named[0]} to {named[1]}, but {read}; is that right?"]


def other_way(pair: tuple[str, str]) -> str:
    """Say how the same file is read in the other direction."""
    src, tgt = pair
    return f"to train {tgt} to {src}, add --set data.src_lang={tgt} --set data.tgt_lang={src}"
