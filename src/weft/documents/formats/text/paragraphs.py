"""Paragraphs of plain text whose lines a program has filled, found by their lines alone.

Lines are one paragraph where no line could have taken the next one's first word, and they read on:
most begin with a small letter. Verses, lists, tables and addresses fail one of both.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.documents.formats.text.lines import Line
from weft.documents.formats.text.wrapping import width_of
from weft.documents.words import is_wide

# before the words of a line: white space and marks of quotations and comments
_PREFIX = re.compile(r"(?: *(?:[>|;]|#+|//) ?)* *")
_LIST = re.compile(r"(?:[-–—*+•]|\(?\w{1,3}[.)])\s")
_COLUMNS = re.compile(r"\t| {3,}")
_LEAST_WIDTH = 55
_SLACK = 4  # columns that a program may leave: two spaces after a sentence, say
_LEAST_LINES = 3  # of a paragraph that shows how wide the file is filled
_LEAST_UNCASED = 4  # the same, in scripts without small letters
_LEAST_SMALL = 0.5  # share of lines that begin with a small letter


@dataclass(frozen=True)
class Paragraph:
    """Lines that are one text: the first and the one after the last, what stands before each but
    the first, and how wide they are.
    """

    first: int
    end: int
    prefix: str
    width: int


def paragraphs_of(lines: Sequence[Line]) -> list[Paragraph]:
    """Return the paragraphs of a text, in their order."""
    blocks = list(_blocks(lines))
    widest = 0
    found = []
    for block in blocks:
        if block.end - block.first >= _LEAST_LINES and _is_filled(lines, block):
            found.append(block)
            widest = max(widest, block.width)
    for block in blocks:
        # two lines show nothing by themselves
        if block.end - block.first == 2 and widest:
            wide = Paragraph(block.first, block.end, block.prefix, widest)
            if block.width <= widest and _is_filled(lines, wide):
                found.append(wide)
    return sorted(found, key=lambda block: block.first)


def _blocks(lines: Sequence[Line]) -> Iterator[Paragraph]:
    """Yield runs of lines that could be paragraphs by what stands before their words."""
    first = 0
    prefix: str | None = None
    for number, line in enumerate(lines):
        here = _prefix(line.text)
        words = line.text[len(here) :]
        goes_on = (
            number > first
            and bool(words)
            and not _LIST.match(words)
            and not _COLUMNS.search(words.rstrip())
            and not lines[number - 1].text.endswith(("  ", "\\"))
            and (here == prefix or (prefix is None and _may_follow(lines[first], here)))
        )
        if goes_on:
            prefix = here
            continue
        yield from _block(lines, first, number, prefix)
        first = number
        prefix = None
    yield from _block(lines, first, len(lines), prefix)


def _prefix(text: str) -> str:
    found = _PREFIX.match(text)
    return found[0] if found else ""


def _may_follow(first: Line, prefix: str) -> bool:
    """Return whether lines with a prefix may belong to a first one: its marks are the same."""
    here = _prefix(first.text)
    words = first.text[len(here) :]
    if not words or _COLUMNS.search(words.rstrip()):
        return False
    if listed := _LIST.match(words):
        return len(prefix) >= len(here) + len(listed[0]) - 1
    return here.strip() == prefix.strip()


def _block(
    lines: Sequence[Line], first: int, end: int, prefix: str | None
) -> Iterator[Paragraph]:
    if prefix is not None and end - first > 1:
        width = max(width_of(line.text.rstrip()) for line in lines[first:end])
        yield Paragraph(first, end, prefix, width)


def _is_filled(lines: Sequence[Line], block: Paragraph) -> bool:
    """Return whether no line has room for the next one's first word, and most read on."""
    texts = [line.text.rstrip() for line in lines[block.first : block.end]]
    if block.width < _LEAST_WIDTH or any(map(is_wide, "".join(texts))):
        return False
    heads = [text[len(block.prefix) :].split(None, 1)[0] for text in texts[1:]]
    for text, head in zip(texts, heads, strict=False):
        if width_of(text) + 1 + width_of(head) + _SLACK <= block.width:
            return False
    letters = [next(filter(str.isalpha, head), "") for head in heads]
    small = [letter for letter in letters if letter.islower()]
    cased = [letter for letter in letters if letter.lower() != letter.upper()]
    if not cased:
        return len(texts) >= _LEAST_UNCASED
    return len(small) >= _LEAST_SMALL * len(cased)
