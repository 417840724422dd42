"""Phrases that a translation says twice, though its source does not.

They are made of words, and in scripts without spaces between words of characters: a model's pieces
are cut otherwise where a phrase follows upon itself.
"""

from collections.abc import Sequence
from itertools import accumulate

from weft.data.scripts import count_scripts, is_spaceless

_LONGEST = 40  # words or characters of a phrase
# a word weighs as much as two characters; so much weighs a phrase that follows upon itself, any
# other, and what a source may say twice as well
_WORD = 2
_AT_ONCE = 3
_ANYWHERE = 6
_OF_SOURCE = 2 * _WORD


def doubled_phrase(words: Sequence[str], source: Sequence[str]) -> str:
    """Return a phrase that stands twice: of two words (three characters) or more one after the
    other, of three words (six characters) or more anywhere.

    Nothing where the source, too, says something twice in this way.
    """
    text = _Units(words)
    original = _Units(source)
    place = text.at_once(_AT_ONCE)
    if place and not original.at_once(1):
        return text.shown(*place)
    place = text.anywhere(_ANYWHERE)
    if place and not original.anywhere(_OF_SOURCE):
        return text.shown(*place)
    return ""


class _Units:
    """A text in words and characters, each with its weight."""

    def __init__(self, words: Sequence[str]) -> None:
        self.units: list[str] = []
        weights: list[int] = []
        for word in words:
            if not word.isascii() and is_spaceless(count_scripts([word])):
                self.units += word
                weights += [1] * len(word)
            else:
                self.units.append(word)
                weights.append(_WORD)
        self.folded = [unit.casefold() for unit in self.units]
        self.weights = weights
        self._sums = [0, *accumulate(weights)]

    def at_once(self, least: int) -> tuple[int, int] | None:
        """Return the place and the length of the longest run, of some weight, that follows upon
        itself.
        """
        units = self.folded
        for length in range(self._longest, 0, -1):
            for begin in range(length, len(units) - length + 1):
                if units[begin] != units[begin - length]:
                    continue
                run = units[begin : begin + length]
                is_same = run == units[begin - length : begin]
                if is_same and self._counts(begin, length, least):
                    return begin, length
        return None

    def anywhere(self, least: int) -> tuple[int, int] | None:
        """Return the second place and the length of the longest run that stands twice."""
        units = self.folded
        for length in range(self._longest, 0, -1):
            first: dict[tuple[str, ...], int] = {}
            for begin in range(len(units) - length + 1):
                run = tuple(units[begin : begin + length])
                is_apart = begin - first.setdefault(run, begin) >= length
                if is_apart and self._counts(begin, length, least):
                    return begin, length
        return None

    def shown(self, begin: int, length: int) -> str:
        """Return a run as it is written, without spaces between characters of such scripts."""
        text = ""
        for place in range(begin, begin + length):
            is_joined = self.weights[place] == 1 and text
            text += (
                self.units[place] if is_joined or not text else f" {self.units[place]}"
            )
        return text

    @property
    def _longest(self) -> int:
        return min(_LONGEST, len(self.units) // 2)

    def _counts(self, begin: int, length: int, least: int) -> bool:
        """Return whether a run weighs enough, and is not all marks."""
        weight = self._sums[begin + length] - self._sums[begin]
        run = self.units[begin : begin + length]
        return weight >= least and any(any(map(str.isalnum, unit)) for unit in run)
