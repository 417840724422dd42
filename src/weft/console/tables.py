"""Tables of a fixed width, whatever the letters in them.

Source: Unicode Standard Annex 11, East Asian Width.
"""

import unicodedata
from collections.abc import Collection, Iterator, Sequence

GAP = "  "
FEWEST = 6  # columns of a name that is cut
_NO_WIDTH = ("Mn", "Me", "Cf")


def columns_of(text: str) -> int:
    """Count the columns that a terminal gives to a text."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    is_wide = unicodedata.east_asian_width(character) in ("W", "F")
    return 2 if is_wide else 1


def fitted(text: str, width: int) -> str:
    """Return a text that has at most so many columns, cut where it is longer."""
    if columns_of(text) <= width:
        return text
    kept = ""
    for character in text:
        longer = kept + character
        if columns_of(longer) > width - 1:
            break
        kept = longer
    return f"{kept}…"


def table(
    rows: Sequence[Sequence[str]], width: int, numbers: Collection[int] = ()
) -> Iterator[str]:
    """Yield the lines of a table, heads first, of at most so many columns: names are cut so that it
    fits.

    `numbers` are the places of cells that end under each other; the others begin so.
    """
    needed = []
    for column in zip(*rows, strict=True):
        needed.append(max(map(columns_of, column)))
    room = width - len(GAP) * (len(needed) - 1)
    widths = _fit(needed, room, numbers)
    for row in rows:
        cells = []
        for place, text in enumerate(row):
            is_number = place in numbers
            cells.append(_placed(text, widths[place], is_number))
        yield GAP.join(cells).rstrip()


def _fit(needed: Sequence[int], room: int, numbers: Collection[int]) -> list[int]:
    """Take columns from the widest names until all fit; if they are short, from anything."""
    widths = list(needed)
    names = [column for column in range(len(widths)) if column not in numbers]
    while sum(widths) > room:
        widest = max(names, key=widths.__getitem__)
        if widths[widest] <= FEWEST:
            widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _placed(text: str, width: int, is_number: bool) -> str:
    cut = fitted(text, width)
    blank = " " * (width - columns_of(cut))
    return blank + cut if is_number else cut + blank
