"""Words and marks of a text with their places, and which of two texts belong together.

Unlike words of an alignment, a mark here stands by itself: a tag may end between a word and its
full stop.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

# letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han
_HAN = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WIDE = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_HAN}"
# brackets and other marks after which there is no space
OPENING = frozenset("([{«„“‘¿¡（「『【《")
_HAN_LETTER = re.compile(f"[{_HAN}]")
_WIDE_LETTER = re.compile(f"[{_WIDE}]")
_PART = re.compile(f"[{_WIDE}]+|[^{_WIDE}]+")
_RUN = re.compile(r"\S+")
_MOST_IN_A_WORD = 64  # words here in a word of an alignment


@dataclass(frozen=True)
class Word:
    """A word or a run of marks, and where it stands in its text."""

    start: int
    end: int
    is_mark: bool


def is_wide(character: str) -> bool:
    """Return whether a character is of a script without spaces between words."""
    return _WIDE_LETTER.match(character) is not None


def is_han(character: str) -> bool:
    """Return whether a character is of Chinese or Japanese, which have no spaces at all."""
    return _HAN_LETTER.match(character) is not None


def is_mark(character: str) -> bool:
    """Return whether a character is a punctuation mark or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def split_words(text: str, cuts: Collection[int] = ()) -> list[Word]:
    """Return the words and marks of a text: all of it but white space.

    In scripts without spaces a word ends at each of the `cuts`, without any after each letter.
    """
    found: list[Word] = []
    for run in _RUN.finditer(text):
        for part in _PART.finditer(text, run.start(), run.end()):
            if is_wide(part[0][0]):
                found += _wide_words(part, cuts)
            else:
                found += _trimmed(text, part.start(), part.end())
    return found


def _trimmed(text: str, start: int, end: int) -> Iterator[Word]:
    """Yield a word, and before and after it the marks at its edges."""
    first = start
    while first < end and is_mark(text[first]):
        first += 1
    last = end
    while last > first and is_mark(text[last - 1]):
        last -= 1
    for begin, stop, are_marks in (
        (start, first, True),
        (first, last, False),
        (last, end, True),
    ):
        if begin < stop:
            yield Word(begin, stop, are_marks)


def _wide_words(part: re.Match[str], cuts: Collection[int]) -> Iterator[Word]:
    start = part.start()
    for place in range(start + 1, part.end() + 1):
        is_inside = place < part.end()
        if is_inside and unicodedata.category(part.string[place])[0] == "M":
            continue
        if not is_inside or not cuts or place in cuts:
            yield Word(start, place, False)
            start = place


Alignment = Sequence[tuple[int, int, int, int]]
"""Places where a source word begins and ends, and where its target word does."""


def link(
    src: Sequence[Word], tgt: Sequence[Word], alignment: Alignment
) -> list[list[int]]:
    """Return for each source word the numbers of the target words that belong to it.

    Within two words of the alignment words belong to words, marks before them to such, and marks
    after them.
    """
    targets: list[set[int]] = [set() for _ in src]
    src_places = _Places(src)
    tgt_places = _Places(tgt)
    for src_start, src_end, tgt_start, tgt_end in alignment:
        src_parts = src_places.parts(src_start, src_end)
        tgt_parts = tgt_places.parts(tgt_start, tgt_end)
        for sources, found in zip(src_parts, tgt_parts, strict=True):
            for number in sources:
                targets[number].update(found)
    return [sorted(numbers) for numbers in targets]


class _Places:
    """Finds words by their places."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._starts = [word.start for word in words]
        self._ends = [word.end for word in words]

    def parts(self, start: int, end: int) -> tuple[list[int], list[int], list[int]]:
        """Return the numbers of the marks, words and marks again that a stretch touches."""
        first = bisect_right(self._ends, start)
        last = min(bisect_left(self._starts, end), first + _MOST_IN_A_WORD)
        touched = range(first, max(first, last))
        words = [number for number in touched if not self._words[number].is_mark]
        if not words:
            return [], [], list(touched)
        before = list(range(first, words[0]))
        after = [number for number in touched if number > words[0]]
        marks = [number for number in after if self._words[number].is_mark]
        return before, words, marks
