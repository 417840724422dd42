"""Lines of a text with what ends them: LF, CR LF, or CR where that is how a file ends its lines."""

import re
from typing import NamedTuple

_LINE = re.compile(r"([^\r\n]*+)(\r\n?|\n|\Z)")


class Line(NamedTuple):
    """A line, and its end: empty for a last line that has none."""

    text: str
    end: str


def lines_of(text: str) -> list[Line]:
    """Divide a text into lines; joined they are the text again."""
    found = [Line(match[1], match[2]) for match in _LINE.finditer(text)]
    while found and not found[-1].text and not found[-1].end:
        found.pop()
    return found
