"""The tokens of a text by its characters."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from weft.data.tokenizer import Tokenizer


class TokenSpans:
    """The tokens of a line by its characters; `ids` are without eos, and may break off."""

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int], line: str) -> None:
        spelled = tokenizer.spell_each(ids)
        written = len(tokenizer.spell(ids))
        leading = sum(map(len, spelled)) - written
        # where each token ends among the bytes of the normalized line
        self._ends = [end - leading for end in accumulate(map(len, spelled))]
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
        if last <= first or not self._ends:
            return None
        begin = bisect_right(self._ends, self._bytes[first])
        stop = bisect_left(self._ends, self._bytes[last])
        if stop >= len(self._ends) or begin > stop:
            return None
        return begin, stop + 1
