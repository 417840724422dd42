"""Words of a text, and the number of them that another text has otherwise."""

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
    """Return the text with what it repeats said three times: `the the the … (×80)`."""
    text = _SAME_WORDS.sub(_shortened_words, text)
    return _SAME_CHARACTERS.sub(_shortened_characters, text)


def _shortened_words(run: re.Match[str]) -> str:
    times = run[0].count(" ") + 1
    words = run[1].count(" ") + 1
    shown = " ".join([run[1]] * _KEPT)
    return f"{shown} … (×{times // words})"


def _shortened_characters(run: re.Match[str]) -> str:
    times = len(run[0]) // len(run[1])
    shown = run[1] * _KEPT
    return f"{shown} … (×{times})"


def words_of(text: str, language: str) -> list[str]:
    """Return the words and punctuation marks of a text, in lower case.

    For a language that puts no spaces between words: its characters.
    """
    folded = text.casefold()
    if joiner(language):
        return _WORD.findall(folded)
    return [character for character in folded if not character.isspace()]


def edits(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the fewest words to insert, delete or replace that make one text of the other.

    This is the Levenshtein distance, row by row of its table.
    """
    above = list(range(len(other) + 1))
    for word in one:
        left = above[0] + 1
        row = [left]
        for j, candidate in enumerate(other):
            replaced = above[j]
            if word != candidate:
                replaced += 1
            deleted = above[j + 1] + 1
            inserted = left + 1
            left = min(replaced, inserted, deleted)
            row.append(left)
        above = row
    return above[-1]
