"""Characters by what the rules of sentences ask of them: those that are alike share an id.

A graph has tables by these ids, and a package's vocabulary has the id of each character. One that
is not in it is taken for a letter without case.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PAD = "<PAD>"
UNKNOWN = "<UNK>"
# the letters of words that the rules know have numbers; OTHER is any other character's
OTHER = 63

_LAST = 0x1FFFF  # of the planes with characters that are no letters
_NOBODYS = frozenset(
    {"Cn", "Co", "Cs"}
)  # categories: no character, private, half of one
# Sets of characters that `weft.data.segment` has beside those of `sentence_rules`.
_SETS = {
    "space": " ",
    "boundary": r" (\[{\"'“‘«„¿¡\-",
    "asks": "?؟？",
    "exclaims": "!?",
    "dot": ".",
    "dash": r"—–―\-",
    "pause": "、，；：,;:",
    "quote": "」』”’",
    "particle": "とっ",
    "guillemet": "»›",
    "vowel": "\u0900-\u0903\u093a-\u094f",  # a sign behind its letter
    "word": "\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff",  # small letters that may be one
    "letter": r"^\W\d_",
    "digit": r"\d",
}
_OF_RULES = ("wide", "narrow", "closing", "either", "unspaced", "questions")


@dataclass(frozen=True)
class Kind:
    """A kind of character: its properties, and the number of its letter."""

    properties: frozenset[str]
    letter: int


# around a text there is nothing but a boundary; most characters are letters without case
_NOTHING = (("nothing", "boundary"), 0)
_PLAIN = (("letter",), OTHER)


@dataclass(frozen=True)
class Characters:
    """The ids of characters, the kind that each id stands for, and the numbers of letters."""

    ids: Mapping[str, int]
    kinds: Sequence[Kind]
    letters: Mapping[str, int]


def characters_of(rules: Mapping[str, Any], words: Sequence[str]) -> Characters:
    """Sort all characters by what the rules ask of them; letters that `words` have, in lower case,
    are told apart.
    """
    known = sorted({letter for word in words for letter in word})
    assert len(known) < OTHER, "there are no more numbers for letters"
    letters = {letter: number for number, letter in enumerate(known, start=1)}
    ids = {PAD: 0, UNKNOWN: 1}
    numbers = {_NOTHING: 0, _PLAIN: 1}
    sets = _sets_of(_every(), rules)
    for character, names in sets.items():
        letter = letters.get(character.lower(), OTHER)
        kind = names, letter
        number = numbers.setdefault(kind, len(numbers))
        if kind != _PLAIN:
            ids[character] = number
    kinds = [Kind(frozenset(names), letter) for names, letter in numbers]
    return Characters(ids, kinds, letters)


def _every() -> str:
    """Return the characters of the first planes."""
    points = map(chr, range(ord(" "), _LAST + 1))
    known = [point for point in points if unicodedata.category(point) not in _NOBODYS]
    return "".join(known)


def _sets_of(text: str, rules: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the sets that each character of a text is in."""
    sets = {**_SETS, **{name: rules[name] for name in _OF_RULES}}
    sets["boundary"] += rules["wide"]  # a sentence may begin right behind one
    found: dict[str, tuple[str, ...]] = dict.fromkeys(text, ())
    for name, members in sets.items():
        for character in re.findall(f"[{members}]", text):
            found[character] = (*found[character], name)
    for name, is_in in (("small", str.islower), ("capital", str.isupper)):
        for character in filter(is_in, text):
            found[character] = (*found[character], name)
    return found
