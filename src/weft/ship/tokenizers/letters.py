"""The letters in which a sentencepiece model has its pieces: one for each byte, as Weft's own
tokenizers write them, and others at places where Weft's pattern cuts a text.

sentencepiece has no pattern. What the pattern does is done by letters instead:

- Digits are cut in threes: the last letter of three digits is another one, so that no piece goes on
  behind it.
- Of several spaces the last belongs to the word behind it: those before it are another letter.

A piece that can stand there has a second name with these letters.

A tokenizer that puts a space before a text leaves it out again where it decodes. sentencepiece does
the same with its own sign for a space, so such a side's spaces are written with it; those of any
other side are letters like all.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from weft.data.pipeline import SPECIALS, smallest_pieces

SPACE = "▁"
# of the bytes, in their order
LETTERS = tuple(smallest_pieces("byte")[len(SPECIALS) :])
SPACE_LETTER = LETTERS[0x20]
# Letters that no text becomes, as all characters of the first plane are rewritten.
INNER_SPACE = "\ue000"
_LAST = 0xE100  # and the byte of a digit's last letter


@dataclass(frozen=True)
class Endings:
    """The places in a text that have other letters.

    `space` is how a space is written. `zeros` are the digits 0 of the scripts whose numbers are cut
    in threes; with `spaces`, those before the last of several spaces have a letter of their own.
    """

    space: str
    zeros: frozenset[str] = frozenset()
    spaces: bool = False

    @classmethod
    def of(cls, space: str, pieces: Iterable[bytes]) -> "Endings":
        """Return what a vocabulary needs: nothing more where no piece has several digits or
        spaces.
        """
        zeros: set[str] = set()
        spaces = False
        for piece in pieces:
            if len(piece) == 1:
                continue
            text = piece.decode("utf-8", "ignore")
            zeros.update(map(zero_of, filter(str.isdecimal, text)))
            if text.isspace() and " " in text:
                spaces = True
        return cls(space, frozenset(zeros), spaces)

    def second_name(self, name: str) -> str:
        """Return the other name of a piece, "" where it stands at no such place."""
        if self.spaces and self.space in name and self._is_white(name):
            return name.replace(self.space, INNER_SPACE)
        ends = _ends_of_numbers(self.zeros, self.space)
        return with_last(name) if name in ends else ""

    def _is_white(self, name: str) -> bool:
        letters = name.replace(self.space, SPACE_LETTER)
        text = bytes(map(LETTERS.index, letters))
        return text.decode("utf-8", "replace").isspace()


def letters_of(content: bytes, space: str) -> str:
    """Write bytes as letters, and a space as said."""
    letters = "".join(LETTERS[byte] for byte in content)
    return letters.replace(SPACE_LETTER, space)


def with_last(letters: str) -> str:
    """Return letters with the last one as it is at the end of three digits."""
    byte = LETTERS.index(letters[-1])
    return letters[:-1] + chr(_LAST + byte)


def zero_of(digit: str) -> str:
    """Return the 0 of the script that a decimal digit is of."""
    value = unicodedata.decimal(digit)
    return chr(ord(digit) - value)


def threes_of(zero: str) -> Iterator[str]:
    """Yield all numbers of three digits of a script, by its 0."""
    first = ord(zero)
    digits = map(chr, range(first, first + 10))
    return map("".join, product(digits, repeat=3))


@cache
def _ends_of_numbers(zeros: frozenset[str], space: str) -> frozenset[str]:
    """Return what may end with three digits, in letters: them, with a space before them or without,
    and each end of them, of whole digits or not.
    """
    found: set[str] = set()
    for zero in zeros:
        for number in threes_of(zero):
            letters = letters_of(number.encode(), space)
            found.add(space + letters)
            for start in range(len(letters)):
                found.add(letters[start:])
    return frozenset(found)
