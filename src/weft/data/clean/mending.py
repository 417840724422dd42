"""Texts are mended: what was misread, markup, characters that nobody reads, and spaces.

Each function returns a text in which the check finds nothing of its kind any more, as far as that
can be done without guessing what is lost.
"""

import html
import re
from collections.abc import Callable

from weft.data.check.writing import MARKUP, first_misread, mended_letter, unseen_in

# marks of a failed decoding, and halves of characters: the letters that they stand for are gone
_LOST = re.compile("[\ufffd\ud800-\udfff]")
_BLOCKS = re.compile(
    r"</?(?:blockquote|br|div|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|tr|ul)\b", re.I
)
_RUN_OF_SPACES = re.compile(r"\s*[ \t]\s+|\t")
_CLOSING = ".,;:!?)]}…。、，；：！？）」』】"
_ENDS_OF_LINES = "\r\x0b\x0c\x85\u2028\u2029"
_MOST_ROUNDS = 5  # what is mended may show more, as &amp;lt;br&amp;gt; does


def mend_encoding(text: str) -> str:
    """Return a text with UTF-8 that was read as Windows-1252 or Latin-1 read rightly: é for Ã©."""
    if text.isascii():
        return text
    while match := first_misread(text):
        letter = mended_letter(match[0])
        text = f"{text[: match.start()]}{letter}{text[match.end() :]}"
    return text


def without_markup(text: str) -> str:
    """Return a text without tags of HTML, and with the characters that references stand for."""
    for _ in range(_MOST_ROUNDS):
        if "<" not in text and ";" not in text:
            break
        plain = MARKUP.sub(_plain, text)
        if plain == text:
            break
        text = plain
    return MARKUP.sub("", text)


def _plain(match: re.Match[str]) -> str:
    """Return what stands for a tag or a reference: a space for a tag that ends a line."""
    written = match[0]
    if written.startswith("<"):
        return _space_between(match) if _BLOCKS.match(written) else ""
    if match.string[: match.start()].lower().endswith("&amp;"):
        return written  # the next round reads both together
    reference = written if written.startswith("&") else f"&{written}"
    letter = html.unescape(reference.lower())
    if letter == reference.lower():  # there is none of that name
        return ""
    return " " if letter.isspace() else html.unescape(reference)


def _space_between(match: re.Match[str]) -> str:
    """Return a space where a tag stands between two words."""
    before = match.string[match.start() - 1 : match.start()]
    behind = match.string[match.end() : match.end() + 1]
    is_between = before.strip() and behind.strip() and behind not in _CLOSING
    return " " if is_between else ""


def without_unseen(text: str) -> str:
    """Return a text without characters that nobody reads; those of Windows-1252 that were read as
    control characters are what they were, and unusual ends of lines are spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return unseen_in(text).sub(_seen, text)


def _seen(match: re.Match[str]) -> str:
    letter = match[0]
    if letter in _ENDS_OF_LINES:
        return " "
    if "\x80" <= letter <= "\x9f":
        return letter.encode("latin-1").decode("cp1252", "ignore")
    return letter if _LOST.match(letter) else ""


def has_lost(text: str) -> bool:
    """Return whether letters of a text are lost: a mark stands for them."""
    return _LOST.search(text) is not None


def single_spaces(text: str) -> str:
    """Return a text with one space for each run of them, and for a TAB."""
    return _RUN_OF_SPACES.sub(" ", text).strip()


# in the order in which they are done, by the rule's name
MENDS: dict[str, Callable[[str], str]] = {
    "misread-encoding": mend_encoding,
    "markup": without_markup,
    "control-characters": without_unseen,
    "spaces": single_spaces,
}


def mend(text: str, rules: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return a text that is mended by some of these rules until there is nothing to mend, and the
    rules that changed it.
    """
    changed: dict[str, None] = {}
    for _ in range(_MOST_ROUNDS):
        before = text
        for rule in rules:
            mended = MENDS[rule](text)
            if mended != text:
                changed[rule] = None
                text = mended
        if text == before:
            break
    return text, tuple(changed)
