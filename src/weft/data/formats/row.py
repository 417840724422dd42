"""The row that every format yields: a number for finding the pair again, and its two sides."""

Row = tuple[int, str, str]
"""Line (or TMX unit) from 1, source, target."""

EMPTY_SIDE = "empty side"
BOTH_EMPTY = "both sides empty"
EMPTY_LINE = "empty line"
TOO_LONG = "line too long"
LANGUAGE_MISSING = "unit without both languages"
