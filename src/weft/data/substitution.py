"""Numbers and placeholders of a translated text, exchanged for those of another text.

That is done only where nothing else of the translation can depend on them: each stands once on both
sides and alike, and the number is of the same plural as before.
"""

import re
from collections.abc import Mapping, Sequence

from weft.data.languages import UNKNOWN, primary

# letters of scripts without spaces, which may touch a number
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
_TOUCHING = rf"[^\W{_SPACELESS}]"
_PLACEHOLDER = (
    r"\{\{[^{}\n]{1,100}+\}\}|[$#%]?\{[\w.]{0,100}+\}"
    r"|%\(\w{1,100}+\)[a-z]|%(?:\d++\$)?[sdif](?!\w)"
)
_NUMBER = rf"(?<!{_TOUCHING})\d++(?:[.,:/'’-]\d++)*+(?!{_TOUCHING})"
_SLOT = re.compile(rf"(?=[\d{{$#%])(?:(?P<placeholder>{_PLACEHOLDER})|{_NUMBER})")
_SIGN = re.compile(r"[\d{%]")  # without one there is no slot
# what may have to change with the number behind it: an article, or one that is cut short
_BEFORE = re.compile(r"(?:\b(?:an?|az)\s|['’])$", re.I)
_AFTER = re.compile(r"[-:'’]\w")  # an ending
_DIGITS = re.compile(r"\d+")

# Source: Unicode CLDR, "Language Plural Rules".
# Languages that have one form for all numbers, and those that have more than that of 1 and another.
_ONE_FORM = "bo dz id ja jv km ko lo ms my su th vi yo yue zh"
_MANY_FORMS = """
ar be br bs ceb cs cy dsb fil ga gd gv he hr hsb is kw lt lv mk mt pl ro ru sh sk sl sr tl uk
"""
_MILLION = 1_000_000


def has_slots(text: str) -> bool:
    """Return whether there is a number or a placeholder in a text."""
    return bool(_SIGN.search(text) and _SLOT.search(text))


def form_of(text: str) -> str:
    """Return a text with a mark in the place of each number and placeholder."""
    return _SLOT.sub(_mark, text)


def _mark(slot: re.Match[str]) -> str:
    return "\0{" if slot["placeholder"] else "\0#"


def substituted(source: str, target: str, text: str, tgt_lang: str) -> str | None:
    """Return a target with the numbers and placeholders of a text that has the form of its source;
    None where that is not safe. The language is BCP-47, empty or `und` where unknown.
    """
    old = _slots(source)
    new = _slots(text)
    changed = {a: b for a, b in zip(old, new, strict=True) if a != b}
    places = list(_SLOT.finditer(target))
    standing = [slot[0] for slot in places]
    for before, after in changed.items():
        if old.count(before) != 1 or standing.count(before) != 1:
            return None
        if not _are_alike(before, after, tgt_lang):
            return None
    if any(slot[0] in changed and _is_bound(slot, target) for slot in places):
        return None
    return _SLOT.sub(lambda slot: changed.get(slot[0], slot[0]), target)


def exchange(text: str, words: Mapping[str, str]) -> str:
    """Return a text with the numbers of some words in the place of those of others, each word with
    that whose numbers take their place.
    """
    changed = {
        before: after
        for old, new in words.items()
        for before, after in zip(_slots(old), _slots(new), strict=True)
    }
    if not changed:
        return text
    return _SLOT.sub(lambda slot: changed.get(slot[0], slot[0]), text)


def _slots(text: str) -> Sequence[str]:
    return [slot[0] for slot in _SLOT.finditer(text)]


def _are_alike(before: str, after: str, language: str) -> bool:
    """Return whether two numbers have the same marks between their digits and are of the same
    plural; any two placeholders are alike.
    """
    if not (before[0].isdigit() and after[0].isdigit()):
        return True
    if _DIGITS.split(before) != _DIGITS.split(after):
        return False
    if not before.isdigit():
        return True
    return _plural(int(before), language) == _plural(int(after), language)


def _plural(number: int, language: str) -> Sequence[int]:
    """Return the same for numbers that surely have the same plural in a language."""
    code = primary(language) if language else UNKNOWN
    if code in _ONE_FORM.split():
        return ()
    if code != UNKNOWN and code not in _MANY_FORMS.split():
        return (min(number, 2), number >= _MILLION)
    if number <= 20:
        return (number,)
    hundredth = number % 100
    # 0 to 20 have forms of their own in some languages, 21 to 99 only by their last digit
    return (min(hundredth, 21), number % 10, number >= _MILLION)


def _is_bound(slot: re.Match[str], target: str) -> bool:
    """Return whether what stands around a number may have to change with it."""
    before = target[: slot.start()]
    return bool(_BEFORE.search(before) or _AFTER.match(target, slot.end()))
