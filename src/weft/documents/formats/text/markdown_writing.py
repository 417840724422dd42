"""Translations as Markdown: nothing becomes a mark by accident, and every mark is read as one.

What is written is parsed again and compared with what stood there. First all marks of the words
are escaped, then escapes go that nobody would write, if the parse stays the same.
"""

import re
from collections.abc import Callable, Mapping

from weft.documents.formats.text.markdown_inline import Inline, parser
from weft.documents.formats.text.wrapping import fill
from weft.documents.words import is_wide

# escapes that go, and what stays of them
_NEEDLESS = (
    (re.compile(r"(?<=\w)\\_(?=\w)"), "_"),
    (re.compile(r"(?<=\s)\\\*(?=\s)"), "*"),
    (re.compile(r"\\<(?=[\s\d=]|$)"), "<"),
    (re.compile(r"(?<![~\\])\\~(?!\\?~)"), "~"),
    (re.compile(r"\\&(?!#?\w{1,31};)"), "&"),
    (re.compile(r"(?<!^)\\\[([^\[\]\\^]+)\\\](?!\\?[(\[:])"), r"[\1]"),
    (re.compile(r"\\\\(?=[A-Za-z0-9])"), r"\\"),
)
# what begins a block at the head of a line, and where a backslash hinders it
_BLOCK = re.compile(
    r"(?m)^([ \t]*)(?:(\d{1,9})(?=[.)](?:[ \t]|$))|(?=(?:#{1,6}|[-+])(?:[ \t]|$)|>|:{3}|~{3}|[=-]+[ \t]*$|\|))"
)
# what a line of a filled paragraph does not begin with, whatever a dialect makes of it
_BEGINS_BLOCK = re.compile(r"[-+*](?:\s|$)|\d+[.)]|[#>=|]|:::|\$\$|\[!")
_HARD = re.compile(r" {2,}$|\\$")
_HELD = "\ue0f2"  # a space at which no line ends
_TITLE_END = re.compile(r"(?<=\s)(#+\s*)$")
_MOST_TRIES = 40  # loose marks that are mended in a text

References = Mapping[str, object]


def write_paragraph(text: str, original: str, references: References) -> str | None:
    """Return a text as a paragraph, with its marks; None where it cannot be written as one."""
    written = _write(text, original, references, _at_heads)
    if written is None:
        return None
    content = _paragraph(written, references)
    if content is None:
        return None
    # hard breaks at its ends are none
    shape = Inline(original.strip(), references).shape()
    return written if Inline(content, references).shape() == shape else None


def is_html(text: str) -> bool:
    """Return whether a text is read as one block of HTML."""
    tokens = parser().parse(text, {})
    return [token.type for token in tokens] == ["html_block"]


def write_title(text: str, original: str, references: References) -> str | None:
    """Return a text as a heading after its `#`."""
    return _write(text, original, references, lambda s: _TITLE_END.sub(r"\\\1", s))


def write_cell(text: str, original: str, references: References) -> str | None:
    """Return a text as a cell of a table, before its pipes are escaped."""
    return _write(text, original, references, _at_heads)


def fill_paragraph(
    written: str, references: References, indents: tuple[int, int], width: int
) -> str:
    """Divide a paragraph into lines of a width, of which the first and the others have indents.

    It stays as it is where that would change what is read, and in scripts without spaces.
    """
    if any(map(is_wide, written)):
        return written
    masked = list(written)
    found = Inline(written, references)
    for place in found.held_spaces():
        masked[place] = _HELD
    lines: list[str] = []
    for line in "".join(masked).split("\n"):
        ending = _HARD.search(line)
        body = line[: ending.start()] if ending else line
        first = indents[1] if lines else indents[0]
        parts = fill(body, first, indents[1], width)
        parts[-1] += ending[0] if ending else ""
        lines += parts
    filled = "\n".join(lines).replace(_HELD, " ")
    is_plain = not any(map(_BEGINS_BLOCK.match, lines[1:]))
    again = Inline(filled, references)
    is_same = again.shape() == found.shape() and again.words() == found.words()
    if is_plain and is_same and _paragraph(filled, references) is not None:
        return filled
    return written


def _at_heads(text: str) -> str:
    """Put a backslash before what would begin a block at the head of a line."""
    return _BLOCK.sub(lambda found: f"{found[1]}{found[2] or ''}\\", text)


def _write(
    text: str, original: str, references: References, guard: Callable[[str], str]
) -> str | None:
    """Return a text with as few escapes as it needs; None if its marks are not those of the
    original.
    """
    if not text.strip():
        return None
    shape = Inline(original, references).shape()
    full = guard(text)
    found = Inline(full, references)
    if found.shape() != shape:
        full = _mended(full, found, references)
        found = Inline(full, references)
        if found.shape() != shape:
            return None
    bare = text
    for needless, left in _NEEDLESS:
        bare = needless.sub(left, bare)
    bare = guard(bare)
    again = Inline(bare, references)
    is_same = again.shape() == shape and again.words() == found.words()
    return bare if is_same else full


def _mended(text: str, found: Inline, references: References) -> str:
    """Put spaces around marks of emphasis that are none beside letters or other marks.

    Of such marks the first opens and the second closes.
    """
    if any(text[start] == "_" for start, _ in found.loose_marks()):
        parts = list(text)
        for start, end in found.loose_marks():
            if text[start] == "_":
                parts[start:end] = "*" * (end - start)
        text = "".join(parts)
        found = Inline(text, references)
    loose = found.loose_marks()[:_MOST_TRIES]
    opened: set[str] = set()
    parts = []
    place = 0
    for start, end in loose:
        mark = text[start:end]
        parts.append(text[place:start])
        if mark in opened:
            opened.discard(mark)
            parts += (mark, " ")
        else:
            opened.add(mark)
            parts += (" ", mark)
        place = end
    return "".join([*parts, text[place:]])


def _paragraph(text: str, references: References) -> str | None:
    """Return what is in a text that is one paragraph; None of any other."""
    tokens = parser().parse(text, {"references": dict(references)})
    types = [token.type for token in tokens]
    if types != ["paragraph_open", "inline", "paragraph_close"]:
        return None
    content: str = tokens[1].content
    return content
