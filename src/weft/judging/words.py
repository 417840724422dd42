"""How many words one text is away from another."""

import re
from collections.abc import Sequence

from weft.predict.segments import joiner

_WORD = re.compile(r"\w+|[^\w\s]")


def words_of(text: str, language: str) -> list[str]:
    """Words and marks without case; for a language that puts no spaces between words, its characters."""
    folded = text.casefold()
    return _WORD.findall(folded) if joiner(language) else [c for c in folded if not c.isspace()]


def edits(one: Sequence[str], other: Sequence[str]) -> int:
    """Fewest words put in, left out or replaced that make one of the other (Levenshtein distance)."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, candidate in enumerate(other, start=1):
            here = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != candidate))
            diagonal, row[j] = row[j], here
    return row[-1]
