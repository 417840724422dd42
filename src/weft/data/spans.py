"""The tokens of a text by its characters."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from weft.data.tokenizer import Tokenizer


class TokenSpans:
    """The tokens of a line by its characters; `ids` are without eos, and may break off."""

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int], line: str) -> None:
        spelled = tokenizer.spell_each(ids)
        lengths = list(map(len, spelled))
        written = len(tokenizer.spell(ids))
        leading = sum(lengths) - written
        # where each token ends among the bytes of the normalized line
        self._ends = list(accumulate(lengths, initial=-leading))
        self._ends.pop(0)
        normal = tokenizer.normalize(line)
        self._starts = tokenizer.starts(line)
        sizes = (len(character.encode("utf-8", "replace")) for character in normal)
        self._bytes = list(accumulate(sizes, initial=0))

    def of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first token of some characters and the one after their last; None where the
        row ends before them.
        """
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end)
        count = len(self._ends)
        if last <= first or not count:
            return None
        first_byte = self._bytes[first]
        last_byte = self._bytes[last]
        begin = bisect_right(self._ends, first_byte)
        stop = bisect_left(self._ends, last_byte)
        if stop >= count or begin > stop:
            return None
        return begin, stop + 1
