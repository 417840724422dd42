"""Phrases that a translation says twice, though its source does not."""

from collections.abc import Sequence

_LONGEST = 20  # words of a phrase
_LEAST_AT_ONCE = 2  # of one that follows upon itself
_LEAST = 3  # of any other


def doubled_phrase(words: Sequence[str], source: Sequence[str]) -> str:
    """Return a phrase that stands twice: of two words or more one after the other, of three or more
    anywhere.

    Nothing where the source, too, says something twice in this way.
    """
    folded = [word.casefold() for word in words]
    original = [word.casefold() for word in source]
    place = _at_once(folded, _LEAST_AT_ONCE)
    if place and not _at_once(original, 1):
        return _shown(words, place)
    place = _anywhere(folded, _LEAST)
    if place and not _anywhere(original, _LEAST_AT_ONCE):
        return _shown(words, place)
    return ""


def _at_once(words: Sequence[str], least: int) -> tuple[int, int] | None:
    """Return the place and the length of the longest run that follows upon itself."""
    for length in range(min(_LONGEST, len(words) // 2), least - 1, -1):
        for begin in range(length, len(words) - length + 1):
            run = words[begin : begin + length]
            if run == words[begin - length : begin] and _has_letters(run):
                return begin, length
    return None


def _anywhere(words: Sequence[str], least: int) -> tuple[int, int] | None:
    """Return the second place and the length of the longest run that stands twice."""
    for length in range(min(_LONGEST, len(words) // 2), least - 1, -1):
        first: dict[tuple[str, ...], int] = {}
        for begin in range(len(words) - length + 1):
            run = tuple(words[begin : begin + length])
            if begin - first.setdefault(run, begin) >= length and _has_letters(run):
                return begin, length
    return None


def _has_letters(words: Sequence[str]) -> bool:
    return any(any(map(str.isalnum, word)) for word in words)


def _shown(words: Sequence[str], place: tuple[int, int]) -> str:
    begin, length = place
    return " ".join(words[begin : begin + length])
