"""Places of the characters of a changed text in the text that it was made of.

They are counted in characters, which are Unicode code points.
"""

from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate

import tokenizers
from tokenizers.models import WordLevel
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import Split

_UNKNOWN = "?"


class Characters:
    """A normalizer of the `tokenizers` library, followed character by character."""

    def __init__(self, normalizer: Normalizer) -> None:
        self._normalizer = normalizer

    def starts(self, text: str) -> list[int]:
        """Return for each character of the normalized text where the one begins that it is of.

        No place is before that of an earlier one, as it could be where marks on a letter are put
        in order.
        """
        encoding = self._inner.encode(text, add_special_tokens=False)
        starts = (start for start, _ in encoding.offsets)
        return list(accumulate(starts, max))

    @cached_property
    def _inner(self) -> tokenizers.Tokenizer:
        """Build a tokenizer each of whose tokens is a character."""
        inner = tokenizers.Tokenizer(WordLevel({_UNKNOWN: 0}, unk_token=_UNKNOWN))
        inner.normalizer = self._normalizer
        inner.pre_tokenizer = Split(tokenizers.Regex(r"[\s\S]"), "isolated")
        return inner


def starts_after(text: str, changed: str) -> list[int]:
    """Return for each character of a changed text where in the text it comes from.

    What changed is found by comparison: where as many characters stand for as many others, one for
    one, else the first of them for all.
    """
    if text == changed:
        return list(range(len(text)))
    starts: list[int] = []
    # the heuristic that it leaves out ignores what is frequent, as letters are
    matcher = SequenceMatcher(None, text, changed, autojunk=False)
    for _, first, last, begin, end in matcher.get_opcodes():
        if last - first == end - begin:
            starts += range(first, last)
        else:
            place = first if last > first else max(0, first - 1)
            starts += [place] * (end - begin)
    return starts
