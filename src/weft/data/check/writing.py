"""The checks of how lines are written, whatever they say: control characters, failed decoding,
markup, scripts, length.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from weft.data.check.characters import foreign_letters, letters_of
from weft.data.check.finding import Finding, Rows
from weft.data.column import Column
from weft.data.scripts import main_script

LONG_CHARS = 2000
# C0 but TAB and LF, DEL, C1, the line separators that some tools split at, byte-order marks, the
# mark of a failed decoding, and halves of characters, which are read as that mark.
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffd\ufeff\ud800-\udfff"
_UNSEEN = re.compile(f"[{_CONTROL}]")
# Nobody sees a zero-width space, either; but Thai, Lao, Burmese and Khmer divide words by it.
_UNSEEN_OR_NO_WIDTH = re.compile(f"[{_CONTROL}\u200b]")
_DIVIDED_WITHOUT_WIDTH = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
UNSEEN = "control characters, zero-width spaces, unusual line separators or replacement characters"
UNSEEN_REMEDY = "check how the text was converted to UTF-8; zero-width spaces (U+200B) can be removed"
# The bytes of one character of UTF-8 as Latin-1 or Windows-1252 would read them.
_HIGH = "\u0080-\u00bf\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019"
_HIGH += "\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178"
_MISREAD = re.compile(
    f"[\u00c2-\u00df][{_HIGH}]|[\u00e0-\u00ef][{_HIGH}]{{2}}|[\u00f0-\u00f4][{_HIGH}]{{3}}"
)
# the letters that a language writes of those whose second byte is that of a no-break space
_WITH_SPACE = "àĠŠƠ"
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ÿ]")
# the ranges of letters that stand beside Latin ones in a word: Latin, modifiers, Greek (TNFα)
_BESIDE_LATIN = (range(0x400), range(0x1D00, 0x2E80))
# behind a letter they are what a person types
_DOUBLED = ("\u2026\u2026", "\u2014\u2014", "\u2013\u2013")
_TAGS = (
    "a|abbr|b|big|blockquote|br|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|script|small|span|strong|style|sub|sup|"
    "table|tbody|td|th|tr|u|ul"
)
MARKUP = re.compile(
    rf"</?(?:{_TAGS})(?:\s[^<>]{{0,200}})?\s*/?>"
    r"|&(?:[a-z]{2,8}|#\d{1,7}|#x[0-9a-f]{1,6});"
    # what is left of them where the & was lost
    r"|(?<![\w&])(?:#\d{2,5}|amp|quot|lt|gt|nbsp);",
    re.IGNORECASE,
)
_ENOUGH_CHARS = 5_000_000  # to know a side's scripts by
_LEAST_FOREIGN = 4  # letters
_MOSTLY = 0.8  # of a line's letters; a name or two in a short line are fewer


def control_characters(rows: Rows, sides: Sequence[Sequence[str]]) -> Iterator[Finding]:
    """Find characters that nobody reads, and marks of failed decoding."""
    found = [
        i
        for i, row in enumerate(zip(*sides, strict=True))
        if any(map(_has_control, row))
    ]
    first = rows.spot(lambda text: unseen_in(text).search(text))
    yield from rows.shares(
        found, "control-characters", UNSEEN, UNSEEN_REMEDY, 0.01, evidence=first
    )


def unseen_in(text: str) -> re.Pattern[str]:
    """Return what finds the characters in a text that nobody reads."""
    if "\u200b" in text and not _DIVIDED_WITHOUT_WIDTH.search(text):
        return _UNSEEN_OR_NO_WIDTH
    return _UNSEEN


def misread(rows: Rows, sides: Sequence[Sequence[str]]) -> Iterator[Finding]:
    """Find UTF-8 that was read as Latin-1 or Windows-1252 and saved again: Ã© for é."""
    found = [
        i
        for i in range(rows.size)
        if any(not s[i].isascii() and is_misread(s[i]) for s in sides)
    ]
    what = "UTF-8 that was misread as Latin-1 or Windows-1252 (such as Ã© for é)"
    remedy = "convert the text again from its original"
    yield from rows.shares(
        found, "misread-encoding", what, remedy, 0.01, 0.5, rows.spot(first_misread)
    )


def markup(
    rows: Rows, sides: Sequence[Sequence[str]], is_written: bool = True
) -> Iterator[Finding]:
    """Find tags and character references of HTML that were left in the text; a model may learn to
    write them.
    """
    found = [
        i
        for i in range(rows.size)
        if any(("<" in s[i] or ";" in s[i]) and MARKUP.search(s[i]) for s in sides)
    ]
    what = "tags or character references of HTML (such as <br> and &amp;)"
    remedy = (
        "remove the markup; otherwise the model learns to write it"
        if is_written
        else "nothing to do if the texts in use will contain it, too; otherwise remove it"
    )
    yield from rows.shares(
        found, "markup", what, remedy, 0.05, evidence=rows.spot(MARKUP.search)
    )


def long_texts(
    rows: Rows, sides: Sequence[Sequence[str]], limit: int = LONG_CHARS
) -> Iterator[Finding]:
    """Find texts of more than `limit` characters."""
    lengths = (max(map(len, row)) for row in zip(*sides, strict=True))
    found = [i for i, length in enumerate(lengths) if length > limit]
    what = f"longer than {limit:,} characters"
    yield from rows.shares(
        found, "long-lines", what, "split documents into sentences", 0.05
    )


def stride_of(side: Sequence[str]) -> int:
    """Return which of a side's texts suffice to know its scripts by, every so many."""
    size = side.size if isinstance(side, Column) else sum(map(len, side))
    return -(-size // _ENOUGH_CHARS) or 1


def wrong_script(
    rows: Rows, sides: Sequence[Sequence[str]], of_whole: Sequence[Counter[str]] = ()
) -> Iterator[Finding]:
    """Find lines written mostly in a script that their side hardly has.

    `of_whole` are the letters of each script on each side of the text that these are rows of.
    """
    found: set[int] = set()
    names = []
    known = of_whole or [letters_of(side, stride_of(side)) for side in sides]
    for side, scripts in zip(sides, known, strict=True):
        letters, foreign = foreign_letters(side, scripts)
        is_wrong = (foreign >= _LEAST_FOREIGN) & (foreign > _MOSTLY * letters)
        found.update(np.flatnonzero(is_wrong).tolist())
        names.append(str(main_script(scripts) or "no letters").capitalize())
    what = f"mostly in another script than the rest of the text ({' and '.join(dict.fromkeys(names))})"
    remedy = "check whether these lines are in the right language"
    yield from rows.shares(sorted(found), "wrong-script", what, remedy, 0.01)


def is_misread(text: str) -> bool:
    """Return whether a stretch of the text turns into one sensible character when it is written as
    bytes again.
    """
    return first_misread(text) is not None


def first_misread(text: str) -> re.Match[str] | None:
    """Return the first stretch that turns into one sensible character as bytes."""
    return next((match for match in _MISREAD.finditer(text) if _is_mended(match)), None)


def _is_mended(match: re.Match[str]) -> bool:
    """Return whether a stretch is a sensible character as bytes, and one that can stand there.

    What a person types is none: é, a no-break space and »; ß and a quotation mark.
    """
    letter = mended_letter(match[0])
    if not letter:
        return False
    if match[0][1] == "\u00a0":
        return letter in _WITH_SPACE
    if not letter.isalpha() or any(ord(letter) in one for one in _BESIDE_LATIN):
        return True
    before = match.string[match.start() - 1 : match.start()]
    return not _LATIN.match(before)


def mended_letter(stretch: str) -> str:
    """Return the sensible character that a stretch is as bytes; "" where it is none."""
    raw = b"".join(_byte(letter) for letter in stretch)
    try:
        letter = raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    if stretch[1:] in _DOUBLED or len(letter) != 1 or not letter.isprintable():
        return ""
    is_sensible = letter.isalpha() or not letter.isalnum()
    return letter if is_sensible else ""


def _byte(letter: str) -> bytes:
    """Return the byte that a character was in Windows-1252; in Latin-1, where Windows-1252 does not
    have it.
    """
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        return letter.encode("latin-1", "replace")


def _has_control(text: str) -> bool:
    """Return whether a text has a control character; printable ASCII, which most text is, need not
    be searched.
    """
    if text.isascii() and text.isprintable():
        return False
    return unseen_in(text).search(text) is not None
