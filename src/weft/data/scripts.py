"""The script in which a text is written, by which a tokenizer is chosen."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from weft.data.languages import primary

# The first word of a letter's Unicode name says its script; Han and both kana are one group here.
_GROUPS = {
    "CJK": "Han and kana",
    "IDEOGRAPHIC": "Han and kana",
    "HIRAGANA": "Han and kana",
    "KATAKANA": "Han and kana",
}
# The scripts of languages that are not written in Latin letters, by the first words of the names of
# their letters.
_OTHER_THAN_LATIN = """
CYRILLIC:ru:uk:be:bg:mk:sr:kk:ky:tg:mn:tt:ba:cv:ce:os:ab:kv:cu:mhr ARABIC:ar:fa:ur:ps:ckb:ug:sd:ks
GREEK:el HEBREW:he:yi DEVANAGARI:hi:mr:ne:sa BENGALI:bn:as GURMUKHI:pa GUJARATI:gu ORIYA:or TAMIL:ta
TELUGU:te KANNADA:kn MALAYALAM:ml SINHALA:si THAI:th LAO:lo KHMER:km MYANMAR:my TIBETAN:bo:dz
GEORGIAN:ka ARMENIAN:hy ETHIOPIC:am:ti THAANA:dv CHEROKEE:chr CANADIAN:iu YI:ii HANGUL:ko
CJK:zh:lzh:wuu:yue:ja HIRAGANA:ja KATAKANA:ja
"""
_SPACELESS = {"Han and kana", "THAI", "LAO", "KHMER", "MYANMAR"}
_ENOUGH_TEXTS = 20_000


def count_scripts(texts: Sequence[str]) -> Counter[str]:
    """Count the letters of each script in an evenly spaced sample of the texts."""
    stride = -(-len(texts) // _ENOUGH_TEXTS) or 1
    letters: Counter[str] = Counter()
    for text in texts[::stride]:
        letters.update(text)
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        if letter.isalpha():
            scripts[script_of(letter)] += count
    return scripts


def main_script(scripts: Counter[str]) -> str | None:
    """Return the script with most letters (the first by name on a tie), or None where there is no
    letter.
    """
    return min(scripts, key=lambda name: (-scripts[name], name), default=None)


def is_spaceless(scripts: Counter[str]) -> bool:
    """Return whether most letters are of scripts that write no space between words."""
    return 2 * sum(scripts[name] for name in _SPACELESS) > scripts.total()


def is_spaceless_letter(character: str) -> bool:
    """Return whether a character is a letter of a script that writes no space between words."""
    return ord(character) > 0xDFF and script_of(character) in _SPACELESS


def is_mark(character: str) -> bool:
    """Return whether a character is a punctuation mark or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def script_of(letter: str) -> str:
    """Return the script of a letter; Han and both kana are one."""
    first = unicodedata.name(letter, "UNNAMED").split(" ")[0].split("-")[0]
    return _GROUPS.get(first, first)


def usual_scripts(tag: str) -> frozenset[str]:
    """Return the scripts of a language, by the first words of the names of their letters; Latin
    where no other is known.
    """
    language = primary(tag)
    rows = (entry.split(":") for entry in _OTHER_THAN_LATIN.split())
    found = [script for script, *languages in rows if language in languages]
    return frozenset(found or ["LATIN"])
