"""The row that every format yields: a number for finding the pair again, and its two sides."""

import re

PairRow = tuple[int, str, str]
"""Line (or TMX unit) from 1, source, target."""

EMPTY_SIDE = "empty side"
BOTH_EMPTY = "both sides empty"
EMPTY_LINE = "empty line"
TOO_LONG = "line too long"
LANGUAGE_MISSING = "unit without both languages"


_BREAKS = re.compile(r"\r*\n[\r\n]*")


def on_one_line(cell: str) -> str:
    """Return a cell without spaces at its ends, and with one for each run of line ends in it.

    A carriage return that ends no line stays, for the check to report.
    """
    if "\n" not in cell:
        return cell.strip()
    parts = (part.strip() for part in _BREAKS.split(cell))
    return " ".join(part for part in parts if part)
