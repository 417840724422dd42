"""Codes within a segment of text, which hold markup of the document that was translated.

TMX and XLIFF 1.2 name them alike: `bpt`, `ept`, `ph`, `it`. A mark stands where a code was, until
the segment is whole.
"""

import re
import unicodedata

# Codes that come in pairs around text and may stand in the middle of a word, and codes that stand
# for something by themselves.
_PAIRED, _SINGLE = {"bpt", "ept"}, {"ph", "it", "ut"}
CODES = _PAIRED | _SINGLE
MOST_CODE_CHARS = 80  # of a code that may be a placeholder
# where a code was taken out; XML itself can hold neither character
_PAIR_MARK, _SINGLE_MARK = "\x01", "\x00"
_BETWEEN_SPACES = re.compile("(\\s)(?:[\x00\x01]+\\s)+")
_BETWEEN = re.compile("(?<=([^\x00\x01]))[\x00\x01]+(?=(.))", re.DOTALL)
_MARKS = re.compile("[\x00\x01]")
_PLACEHOLDER = re.compile(  # of a program's message, which puts a value there
    r"\$?\{{1,2} ?[\w.:-]+ ?\}{1,2}"  # {0}, {name}, {{name}}, ${name}
    # %s, %d, %.2f, %1$s, %(name)s, %@
    r"|%(?:\([\w.-]+\)|\d+\$)?[-#+0]*[\d.]*l{0,2}[a-z@]"
    r"|%\d{1,2}",  # %1
    re.IGNORECASE,
)


def replace_code(name: str, text: str) -> str:
    """Return what stays of a code: a placeholder, or the mark of one that goes.

    Of a longer text the first MOST_CODE_CHARS + 1 characters are enough.
    """
    if name in _PAIRED:
        return _PAIR_MARK
    text = text.strip()
    if len(text) <= MOST_CODE_CHARS and _PLACEHOLDER.fullmatch(text):
        return text
    return _SINGLE_MARK


def has_marks(text: str) -> bool:
    """Return whether codes were taken out of a segment."""
    return _MARKS.search(text) is not None


def without_marks(text: str) -> str:
    """Return the text where codes were taken out: no two spaces for one, and no two words glued to
    one.
    """
    text = _BETWEEN_SPACES.sub(r"\1", text)
    return _MARKS.sub("", _BETWEEN.sub(_in_place_of, text))


def _in_place_of(marks: re.Match[str]) -> str:
    """Return a space for codes of which one stood by itself, in the midst of letters and digits;
    else nothing.
    """
    is_within_word = all(map(_is_of_a_word, marks.groups()))
    return " " if _SINGLE_MARK in marks[0] and is_within_word else ""


def _is_of_a_word(character: str) -> bool:
    """Return whether it is a letter, a mark on one, or a digit."""
    return unicodedata.category(character)[0] in "LMN"
