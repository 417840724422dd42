"""How lines for a person look on a terminal: wrapped at words with a hanging indent, some of them
in colour.

Where nobody watches, a line stays as it is: it may be searched for, or read by a program. A command
is never broken, on a terminal neither: it is there to be copied.
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
# how a line begins that is a command and nothing else
_COMMAND = re.compile(r" *weft [a-z]")


def width_of(stream: TextIO) -> int | None:
    """Return the columns to wrap at; None where the stream is no terminal."""
    return min(shutil.get_terminal_size().columns, WIDEST) if stream.isatty() else None


def wrapped(line: str, width: int | None, hanging: int = 2) -> Iterator[str]:
    """Yield the line in as many as it takes; each but the first `hanging` deeper.

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
    """Print lines for a person, each wrapped to the terminal, its first word in colour where that
    is a mark.
    """
    width = width_of(stream)
    for line in lines:
        for i, part in enumerate(wrapped(line, width, hanging)):
            mark = part.split(" ", 1)[0]
            is_marked = i == 0 and mark in MARKS
            print(
                painted(mark, MARKS[mark], stream) + part[len(mark) :]
                if is_marked
                else part,
                file=stream,
            )
    stream.flush()


def remark(text: str) -> None:
    """Say on standard error what is to be noticed beside the work of a verb; it is no error and has
    no colour.
    """
    for part in wrapped(text, width_of(sys.stderr)):
        print(part, file=sys.stderr, flush=True)


def columns(
    pairs: Iterable[tuple[str, str]], width: int, indent: int = 2, most: int = 26
) -> Iterator[str]:
    """Names, and beside each what it is; a name that is too long for its column stands on a line of
    its own.
    """
    pairs = list(pairs)
    widest = max((len(name) for name, _ in pairs if len(name) <= most), default=0)
    start = indent + widest + 2
    for name, text in pairs:
        lines = textwrap.wrap(text, max(width - start, 20), break_on_hyphens=False) or [
            ""
        ]
        beside = len(name) <= widest
        yield (
            " " * indent + (name.ljust(widest + 2) + lines[0] if beside else name)
        ).rstrip()
        yield from (" " * start + line for line in lines[beside:])


def painted(text: str, style: str, stream: TextIO) -> str:
    """Return the text in a style of `STYLES` where the stream is a terminal and NO_COLOR does not
    forbid it.
    """
    if (
        not stream.isatty()
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
    ):
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"
