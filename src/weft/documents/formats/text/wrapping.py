"""Text divided into lines: at spaces, and between letters of scripts that have none."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.documents.words import OPENING, is_wide

# marks that no line begins with
_CLOSING = frozenset(".,;:!?)]}…»”’%，。！？；：、）」』】》〉ー")
_WIDE_CLOSING = frozenset("，。！？；：、）」』】》")
_WIDE_OPENING = frozenset("（「『【《")
_SENTENCE_END = frozenset(".!?…。！？")
_CLAUSE_END = frozenset(",;:，、；：")
_SPACE = re.compile(r"[^\S\u00a0\u202f]++")
_MOST_STEPS = 100_000  # to balance the lines of a text; a longer one is filled


@dataclass(frozen=True)
class _Part:
    """A stretch that no line end divides, the space before it, and how wide both are."""

    text: str
    width: int
    space: str


def width_of(text: str) -> int:
    """Return how wide a text is: letters of Chinese, Japanese and Korean count as two."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fill(text: str, first: int, others: int, widest: int) -> list[str]:
    """Divide a text into lines as long as they may be.

    A line has room for `widest` less what stands before it: `first` in the first one, `others` in
    the rest. The spaces where a line ends go.
    """
    lines: list[list[str]] = [[]]
    used = first
    for part in _parts(text, None):
        ends = bool(lines[-1]) and used + len(part.space) + part.width > widest
        if lines[-1] and not ends:
            lines[-1].append(part.space)
        used += len(part.space) + part.width
        if ends:
            lines.append([])
            used = others + part.width
        lines[-1].append(part.text)
    return ["".join(line) for line in lines]


def divide(text: str, widest: int) -> list[str]:
    """Divide a text into lines as long as they may be, each with the spaces after its words."""
    lines: list[list[str]] = [[]]
    used = 0
    parts = list(_parts(text, None))
    spaces = [part.space for part in parts]
    spaces.append(text[len(text.rstrip()) :])
    for part, space in zip(parts, spaces[1:], strict=True):
        width = part.width + len(space)
        if lines[-1] and used + width > widest:
            lines.append([])
            used = 0
        lines[-1].append(part.text + space)
        used += width
    lines[0].insert(0, spaces[0])
    return ["".join(line) for line in lines]


def balance(
    text: str, num_lines: int, widest: int, markup: re.Pattern[str] | None = None
) -> list[str]:
    """Divide a text into so many lines of about equal width, more if one would be too wide.

    What `markup` finds has no width, and no line ends in it.
    """
    parts = list(_parts(text.strip(), markup))
    total = sum(part.width + len(part.space) for part in parts)
    number = max(num_lines, -(-total // widest))
    number = min(number, len(parts))
    if number <= 1:
        return [text.strip()]
    if len(parts) ** 2 * number > _MOST_STEPS:
        return fill(text, 0, 0, max(widest, total // number))
    ends = _best_ends(parts, number, total / number)
    starts = [0, *ends[:-1]]
    return [_joined(parts[start:end]) for start, end in zip(starts, ends, strict=True)]


def _joined(parts: Sequence[_Part]) -> str:
    rest = "".join(part.space + part.text for part in parts[1:])
    return parts[0].text + rest


def _best_ends(parts: Sequence[_Part], number: int, ideal: float) -> list[int]:
    """Return where each line ends, so that their widths differ least from an ideal one."""
    before = [0]
    for part in parts:
        before.append(before[-1] + part.width + len(part.space))
    infinite = float("inf")
    # the least cost of so many lines that end at each place, and where the last of them begins
    costs = [0.0] + [infinite] * len(parts)
    origins: list[list[int]] = []
    for _ in range(number):
        longer = [infinite] * (len(parts) + 1)
        origin = [0] * (len(parts) + 1)
        for end in range(1, len(parts) + 1):
            bonus = _cost_of_end(parts[end - 1].text, ideal) if end < len(parts) else 0
            for start in range(end):
                width = before[end] - before[start]
                cost = costs[start] + (width - ideal) ** 2 + bonus
                if cost < longer[end]:
                    longer[end] = cost
                    origin[end] = start
        costs = longer
        origins.append(origin)
    ends = [len(parts)]
    for origin in reversed(origins[1:]):
        ends.append(origin[ends[-1]])
    return ends[::-1]


def _cost_of_end(text: str, ideal: float) -> float:
    """Return what it costs to end a line after a word: least after a sentence or a clause."""
    last = text.rstrip("\"'”’»)")[-1:]
    if last in _SENTENCE_END:
        return 0
    share = 0.02 if last in _CLAUSE_END else 0.06
    return share * ideal**2


def _parts(text: str, markup: re.Pattern[str] | None) -> Iterator[_Part]:
    """Divide a text where a line may end."""
    space = ""
    place = 0
    for start, end in _runs(text, markup):
        space = text[place:start]
        for part in _wide_parts(text[start:end], markup):
            bare = markup.sub("", part) if markup else part
            yield _Part(part, width_of(bare), space)
            space = ""
        place = end


def _runs(text: str, markup: re.Pattern[str] | None) -> Iterator[tuple[int, int]]:
    """Yield where runs without white space begin and end; that of markup does not divide."""
    found = markup.finditer(text) if markup else ()
    inside = [match.span() for match in found]
    inside.reverse()
    start = 0
    for match in _SPACE.finditer(text):
        while inside and inside[-1][1] <= match.start():
            inside.pop()
        if inside and inside[-1][0] <= match.start():
            continue
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < len(text):
        yield start, len(text)


def _begins_wide(character: str) -> bool:
    return is_wide(character) or character in _WIDE_OPENING


def _wide_parts(run: str, markup: re.Pattern[str] | None) -> Iterator[str]:
    """Divide a run between two letters of which one is of a script without spaces."""
    if run.isascii():
        yield run
        return
    inside: set[int] = set()
    for match in markup.finditer(run) if markup else ():
        # neither in a tag nor beside it
        inside.update(range(match.start(), match.end() + 1))
    start = 0
    for place in range(1, len(run)):
        before = run[place - 1]
        after = run[place]
        if place in inside or after in _CLOSING or before in OPENING:
            continue
        if unicodedata.combining(after):
            continue
        if before in _WIDE_CLOSING or (is_wide(before) and _begins_wide(after)):
            yield run[start:place]
            start = place
    yield run[start:]
