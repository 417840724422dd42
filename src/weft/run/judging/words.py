"""How many words one text is away from another."""

import re
from collections.abc import Sequence

from weft.predict.segments import joiner

_WORD = re.compile(r"\w+|[^\w\s]")
# The same one to eight words, or one to twenty characters, again and again: more often than a text
# has them.
_SAME_WORDS = re.compile(r"(?<!\S)(\S+(?: \S+){0,7}?)(?: \1){4,}(?!\S)")
_SAME_CHARACTERS = re.compile(r"(\S{1,20}?)\1{7,}")
_KEPT = 3  # of a run, for the eye


def shorten_runs(text: str) -> str:
    """Return the text with what it says again and again said three times, and how often: `the the
    the … (×80)`.
    """
    text = _SAME_WORDS.sub(lambda run: _shortened(run, " "), text)
    return _SAME_CHARACTERS.sub(lambda run: _shortened(run, ""), text)


def _shortened(run: re.Match[str], between: str) -> str:
    times = (len(run[0]) + len(between)) // (len(run[1]) + len(between))
    return f"{between.join([run[1]] * _KEPT)} … (×{times})"


def words_of(text: str, language: str) -> list[str]:
    """Words and marks without case; for a language that puts no spaces between words, its
    characters.
    """
    folded = text.casefold()
    return (
        _WORD.findall(folded)
        if joiner(language)
        else [c for c in folded if not c.isspace()]
    )


def edits(one: Sequence[str], other: Sequence[str]) -> int:
    """Fewest words put in, left out or replaced that make one of the other (Levenshtein
    distance).
    """
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, candidate in enumerate(other, start=1):
            here = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != candidate))
            diagonal, row[j] = row[j], here
    return row[-1]
