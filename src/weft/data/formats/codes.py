"""Codes within a segment of text, which hold markup of the document that was translated.

TMX and XLIFF 1.2 name them alike: `bpt`, `ept`, `ph`, `it`. A mark stands where a code was, until
the segment is whole; a translation memory keeps the text with its marks beside that without any.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

# Codes that come in pairs around text and may stand in the middle of a word, and codes that stand
# for something by themselves.
_PAIRED, _SINGLE = {"bpt", "ept"}, {"ph", "it", "ut"}
CODES = _PAIRED | _SINGLE
MOST_CODE_CHARS = 80  # of a code that may be a placeholder
# how the mark of a code begins, and of a tag that only names its text, and how each ends; XML
# itself can hold none of these characters
_SINGLE_MARK, _PAIR_MARK, _QUIET_MARK, _END = "\x00", "\x01", "\x03", "\x02"
_ANY = "(?:[\x00\x01][^\x02]*+\x02)"
_BETWEEN_SPACES = re.compile(f"(\\s)(?:{_ANY}++\\s)+")
_BETWEEN = re.compile(f"(?<=([^\x02])){_ANY}++(?=(.))", re.DOTALL)
_MARKS = re.compile(_ANY)
_QUIET = re.compile("\x03[^\x02]*+\x02")
_EVERY = re.compile("([\x00\x01\x03])([^\x02]*+)\x02")
_OPENS, _CLOSES = "(", ")"
_LINE_END = re.compile(r"\r?\n")
_PLACEHOLDER = re.compile(  # of a program's message, which puts a value there
    r"\$?\{{1,2} ?[\w.:-]+ ?\}{1,2}"  # {0}, {name}, {{name}}, ${name}
    # %s, %d, %.2f, %1$s, %(name)s, %@
    r"|%(?:\([\w.-]+\)|\d+\$)?[-#+0]*[\d.]*l{0,2}[a-z@]"
    r"|%\d{1,2}",  # %1
    re.IGNORECASE,
)


class Mark(NamedTuple):
    """A mark in a text: `shown` is what stands there of a code by itself, `name` what both halves
    of a pair have.
    """

    start: int
    end: int
    is_pair: bool
    opens: bool
    name: str
    shown: str


def is_paired(name: str) -> bool:
    """Return whether codes of a name come in pairs around text."""
    return name in _PAIRED


def pair_mark(opens: bool, name: str, is_quiet: bool = False) -> str:
    """Return the mark of a half of a pair; a quiet one stands for no code that was taken out."""
    begin = _QUIET_MARK if is_quiet else _PAIR_MARK
    return begin + (_OPENS if opens else _CLOSES) + _clean(name) + _END


def replace_code(text: str, label: str = "") -> str:
    """Return what stays of a code by itself: a placeholder, or the mark of one that goes, with its
    text or else its label.

    Of a longer text the first MOST_CODE_CHARS + 1 characters are enough.
    """
    text = text.strip()
    if len(text) <= MOST_CODE_CHARS and _PLACEHOLDER.fullmatch(text):
        return text
    return _SINGLE_MARK + _clean(text[:MOST_CODE_CHARS] or label) + _END


def _clean(text: str) -> str:
    return re.sub("[\x00-\x03]", "", text)


def has_marks(text: str) -> bool:
    """Return whether codes were taken out of a segment."""
    return _MARKS.search(text) is not None


def has_any(text: str) -> bool:
    """Return whether there is a mark in a text, a quiet one too."""
    return _END in text and _EVERY.search(text) is not None


def marks_in(text: str) -> Iterator[Mark]:
    """Yield the marks in a text."""
    for found in _EVERY.finditer(text):
        start, end = found.span()
        inner = found[2]
        if found[1] == _SINGLE_MARK:
            yield Mark(start, end, False, False, "", inner)
        else:
            yield Mark(start, end, True, inner[:1] == _OPENS, inner[1:], "")


def without_marks(text: str) -> str:
    """Return the text where codes were taken out: no two spaces for one, and no two words glued to
    one.
    """
    text = _BETWEEN_SPACES.sub(r"\1", _QUIET.sub("", text))
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


class MarkedText(NamedTuple):
    """A text, whether codes were taken out of it, and it with their marks if it has any."""

    text: str
    is_coded: bool
    marked: str = ""


def text_of(pieces: list[str]) -> MarkedText:
    """Return the text that is read in pieces, with line ends as spaces."""
    text = _LINE_END.sub(" ", "".join(pieces))
    if not has_any(text):
        return MarkedText(text, False)
    return MarkedText(without_marks(text), has_marks(text), text)


def marked_sides(src: MarkedText, tgt: MarkedText) -> list[str]:
    """Return both sides with their marks; nothing where there is none."""
    is_any = bool(src.marked or tgt.marked)
    return [src.marked or src.text, tgt.marked or tgt.text] if is_any else []
