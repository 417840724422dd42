"""The rules by which sentencepiece rewrites a text before it tokenizes, and what it decodes.

A rule has a string and what stands for it; at each place of a text the longest string counts.
Weft's tokenizers work on bytes. So every character is rewritten as its letters (`letters.py`), in
the normal form and case of the tokenizer, and a sentencepiece model has the pieces of Weft, letter
by letter, those that are a part of a character too. What it decodes is rewritten back.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, permutations, product

from tokenizers import normalizers

from weft.config import SideSection
from weft.ship.tokenizers.letters import (
    INNER_SPACE,
    LETTERS,
    SPACE,
    SPACE_LETTER,
    Endings,
    letters_of,
    threes_of,
    with_last,
)

Rules = dict[str, str]
Form = Callable[[str], str]

_FORMS = {
    "NFC": normalizers.NFC(),
    "NFKC": normalizers.NFKC(),
}
_UNKNOWN = "\ufffd"
# sentencepiece has at most so many strings that begin alike
_MOST_SPACES = 31
# characters beyond the first plane that new versions of Unicode add to
_PICTURES = range(0x1F000, 0x20000)
# Planes in which Unicode has characters.
_FIRST_PLANES = range(0x40000)
_LAST_PLANE = range(0xE0000, 0xF0000)


def rules_of_text(settings: SideSection, endings: Endings) -> Rules:
    """Return the rules for a text that is tokenized."""
    form = _form_of(settings.unicode, settings.lowercase)
    # sentencepiece writes a space its own way by itself
    space = " " if endings.space == SPACE else endings.space
    rules = dict(_rules_of_characters(settings.unicode, settings.lowercase, space))
    for key in _numbers(form, endings.zeros):
        letters = letters_of(form(key).encode(), space)
        rules[key] = with_last(letters)
    if endings.spaces:
        for count in range(2, _MOST_SPACES + 1):
            inner = INNER_SPACE * (count - 1)
            rules[" " * count] = inner + space
    return rules


@cache
def _rules_of_characters(unicode: str, lowercase: bool, space: str) -> Rules:
    """Return those of all characters, in a normal form, as the letters of their bytes."""
    form = _form_of(unicode, lowercase)
    rules: Rules = {}
    for key in _strings_of(unicode):
        letters = letters_of(form(key).encode(), space)
        if letters != key:
            rules[key] = letters
    return rules


def rules_of_output() -> Rules:
    """Return the rules for a text that is decoded: letters become characters, what is no character
    U+FFFD, as often as Python and Rust have it.
    """
    rules: Rules = dict.fromkeys(LETTERS[0x80:], _UNKNOWN)
    rules[LETTERS[0]] = _UNKNOWN  # a rule cannot give NUL
    for character in _every_character():
        letters = letters_of(character.encode(), SPACE_LETTER)
        for end in range(1, len(letters)):
            rules[letters[:end]] = _UNKNOWN
        if letters != character:
            rules[letters] = character
    return rules


def is_known(character: str) -> bool:
    """Return whether a character is one of those that there are rules for."""
    code = ord(character)
    if code < 0x10000:
        return code > 0 and not 0xD800 <= code < 0xE000
    if code in _PICTURES:
        return True
    return unicodedata.category(character) not in ("Cn", "Co")


@cache
def _every_character() -> tuple[str, ...]:
    codes = chain(_FIRST_PLANES, _LAST_PLANE)
    return tuple(filter(is_known, map(chr, codes)))


def _form_of(unicode: str, lowercase: bool) -> Form:
    steps = []
    if unicode != "raw":
        steps.append(_FORMS[unicode])
    if lowercase:
        steps.append(normalizers.Lowercase())
    form: Form = normalizers.Sequence(steps).normalize_str
    return form


def _strings_of(unicode: str) -> Iterator[str]:
    """Yield all characters, and the strings that become another text than they do one by one."""
    yield from _every_character()
    if unicode != "raw":
        normalizer = _FORMS[unicode]
        yield from _joined_by(normalizer.normalize_str)


def _joined_by(normal: Form) -> Iterator[str]:
    """Yield the strings of several characters that a normal form joins.

    They are the decompositions of characters: in all orders of their marks, joined in part, and
    with other characters that are the same in this form; of Hangul, which has most of them, without
    such others.
    """
    others = _others_by(normal)
    for character in _every_character():
        decomposed = unicodedata.normalize("NFD", character)
        if len(decomposed) == 1:
            continue
        has_marks = all(map(unicodedata.combining, decomposed[1:]))
        same = others if has_marks else {}
        for parts in _orders(decomposed, has_marks):
            ways = [[part, *same.get(part, [])] for part in parts]
            for string in map("".join, product(*ways)):
                one_by_one = "".join(map(normal, string))
                if normal(string) != one_by_one:
                    yield string


def _others_by(normal: Form) -> dict[str, list[str]]:
    """Return for each character the others that become it in a normal form."""
    others: dict[str, list[str]] = {}
    for character in _every_character():
        text = normal(character)
        if text != character and len(text) == 1:
            others.setdefault(text, []).append(character)
    return others


def _orders(decomposed: str, has_marks: bool) -> Iterator[list[str]]:
    """Yield the parts of a character, its marks in every order, and with the first of them
    joined.
    """
    base = decomposed[0]
    orders: Iterable[Sequence[str]] = [decomposed[1:]]
    if has_marks:
        orders = permutations(decomposed[1:])
    for order in orders:
        begun = base
        for place, mark in enumerate(order):
            yield [unicodedata.normalize("NFC", begun), *order[place:]]
            begun += mark


def _numbers(form: Form, zeros: frozenset[str]) -> Iterator[str]:
    """Yield all threes of digits that become digits of the scripts of `zeros`."""
    for digit in filter(str.isdecimal, _every_character()):
        is_zero = unicodedata.decimal(digit) == 0
        if is_zero and form(digit) in zeros:
            yield from threes_of(digit)
