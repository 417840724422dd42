"""The code points of texts as arrays, block by block, so that checks of millions of characters cost
little.

A block holds whole texts, each followed by one LF; what is counted over a text leaves that LF out.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from weft.data.scripts import script_of

Codes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BLOCK_CHARS = 1 << 21
_NUM_CODES = 0x110000
_COMMON_SHARE = 0.02  # of a side's letters; a script with fewer is not the side's own


@dataclass(frozen=True)
class Block:
    """Texts `first` to `last` (not included) as code points; `starts` are where each begins."""

    first: int
    last: int
    codes: Codes
    starts: Counts

    def count(self, flags: Flags) -> Counts:
        """Count the characters of each text that have the flag."""
        return np.add.reduceat(flags.astype(np.int32), self.starts).astype(np.int64)


def blocks(texts: Sequence[str]) -> Iterator[Block]:
    """Yield the texts in blocks of about two million characters."""
    first = size = 0
    for number, text in enumerate(texts):
        size += len(text) + 1
        if size >= _BLOCK_CHARS:
            yield _block(texts, first, number + 1)
            first = number + 1
            size = 0
    if first < len(texts):
        yield _block(texts, first, len(texts))


def _block(texts: Sequence[str], first: int, last: int) -> Block:
    part = texts[first:last]
    raw = "\n".join([*part, ""]).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(raw, np.uint32)
    lengths = np.fromiter(map(len, part), np.int64, len(part)) + 1
    starts = np.cumsum(lengths) - lengths
    return Block(first, last, codes, starts)


def letters_of(texts: Sequence[str], stride: int = 1) -> Counter[str]:
    """Count the letters of each script, in every `stride`-th text."""
    total = np.zeros(_NUM_CODES, np.int64)
    for block in blocks(texts[::stride]):
        total += np.bincount(block.codes, minlength=_NUM_CODES)
    scripts: Counter[str] = Counter()
    for code in np.flatnonzero(total).tolist():
        if (script := _script(code)) is not None:
            scripts[script] += int(total[code])
    return scripts


def foreign_letters(
    texts: Sequence[str], scripts: Counter[str]
) -> tuple[Counts, Counts]:
    """Count the letters of each text, and those of scripts that are rare in `scripts`, the counts
    of the whole side.

    In a block of texts without a letter of another script nothing is counted.
    """
    total = scripts.total()
    common = {
        script for script, count in scripts.items() if count >= _COMMON_SHARE * total
    }
    is_letter, is_foreign = np.zeros((2, _NUM_CODES), np.bool_)
    seen = np.zeros(_NUM_CODES, np.bool_)
    letters, foreign = np.zeros((2, len(texts)), np.int64)
    for block in blocks(texts):
        present = np.flatnonzero(np.bincount(block.codes, minlength=_NUM_CODES))
        for code in present[~seen[present]].tolist():
            script = _script(code)
            seen[code] = True
            is_letter[code] = script is not None
            is_foreign[code] = script is not None and script not in common
        if is_foreign[present].any():
            part = slice(block.first, block.last)
            letters[part] = block.count(is_letter[block.codes])
            foreign[part] = block.count(is_foreign[block.codes])
    return letters, foreign


@lru_cache(maxsize=65_536)
def _script(code: int) -> str | None:
    """Return the script of a letter; None for what is no letter."""
    letter = chr(code)
    if not letter.isalpha() or unicodedata.category(letter) == "Lm":
        return None
    return script_of(letter)
