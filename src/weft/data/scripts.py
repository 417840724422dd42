"""The script in which a text is written, by which a tokenizer is chosen."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

# The first word of a letter's Unicode name says its script; Han and both kana are one group here.
_GROUPS = {
    "CJK": "Han and kana",
    "IDEOGRAPHIC": "Han and kana",
    "HIRAGANA": "Han and kana",
    "KATAKANA": "Han and kana",
}
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


def script_of(letter: str) -> str:
    """Return the script of a letter; Han and both kana are one."""
    first = unicodedata.name(letter, "UNNAMED").split(" ")[0].split("-")[0]
    return _GROUPS.get(first, first)
