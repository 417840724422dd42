"""Lines for a person: on a terminal wrapped at words with a hanging indent, some of them in colour.

In a file or pipe a line is never broken: it may be searched for, or read by a program. A command is
never broken on a terminal either: it is there to be copied.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TextIO

WIDEST = 100  # columns; longer lines are hard to read
STYLES = {"bold": "1", "red": "1;31", "yellow": "33", "green": "32"}
MARKS = {
    "FATAL": "red",
    "WARNING": "yellow",
    "FAILS": "red",
    "holds": "green",
    "weft:": "red",
}  # a line's first word

_INDENT = re.compile(r" *")
# the beginning of a line that is a command and nothing else
_COMMAND = re.compile(r" *weft [a-z]")


def width_of(stream: TextIO) -> int | None:
    """Return the columns to wrap at; None where the stream is not a terminal."""
    return min(shutil.get_terminal_size().columns, WIDEST) if stream.isatty() else None


def wrapped(line: str, width: int | None, hanging: int = 2) -> Iterator[str]:
    """Yield the line wrapped to the width, every line after the first indented by `hanging` more.

    Long words and commands stay whole.
    """
    if width is None or len(line) <= width or _COMMAND.match(line):
        yield line
        return
    first = _INDENT.match(line)
    indent = len(first[0]) if first else 0
    yield from textwrap.wrap(
        line[indent:],
        max(width, indent + hanging + 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def say_lines(lines: Iterable[str], stream: TextIO, hanging: int = 2) -> None:
    """Print lines, each wrapped to the terminal; a first word of `MARKS` is in colour."""
    width = width_of(stream)
    for line in lines:
        for i, part in enumerate(wrapped(line, width, hanging)):
            mark = part.split(" ", 1)[0]
            if i == 0 and mark in MARKS:
                rest = part[len(mark) :]
                print(painted(mark, MARKS[mark], stream) + rest, file=stream)
            else:
                print(part, file=stream)
    stream.flush()


def remark(text: str) -> None:
    """Print a note on standard error, wrapped to the terminal and without colour."""
    for part in wrapped(text, width_of(sys.stderr)):
        print(part, file=sys.stderr, flush=True)


def columns(
    pairs: Iterable[tuple[str, str]], width: int, indent: int = 2, most: int = 26
) -> Iterator[str]:
    """Yield the lines of two columns: names, and a text for each.

    A name longer than `most` stands on a line of its own.
    """
    pairs = list(pairs)
    lengths = [len(name) for name, _ in pairs]
    widest = max((length for length in lengths if length <= most), default=0)
    start = indent + widest + 2
    for name, text in pairs:
        room = max(width - start, 20)
        lines = textwrap.wrap(text, room, break_on_hyphens=False)
        head = " " * indent + name
        if lines and len(name) <= widest:
            head = head.ljust(start) + lines.pop(0)
        yield head.rstrip()
        yield from (" " * start + line for line in lines)


def painted(text: str, style: str, stream: TextIO) -> str:
    """Return the text in a style of `STYLES`, on a terminal and unless NO_COLOR is set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not stream.isatty():
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"
