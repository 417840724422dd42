"""The row that every format yields: a number for finding the pair again, and its two sides."""

Row = tuple[int, str, str]
"""Line (or TMX unit) from 1, source, target."""

EMPTY_SIDE = "empty side"
BOTH_EMPTY = "both sides empty"
EMPTY_LINE = "empty line"
TOO_LONG = "line too long"
LANGUAGE_MISSING = "unit without both languages"


def on_one_line(cell: str) -> str:
    """Return a cell that goes over several lines, with a space for each of their ends."""
    if "\n" not in cell:
        return cell
    return " ".join(part.strip() for part in cell.split("\n") if part.strip())
