"""Results that show themselves: in lines at Python's prompt, as HTML in a cell of a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import Any

_LINES = "white-space: pre-wrap; line-height: 1.5"
_LEFT = "text-align: left; padding-right: 1.5em"
_RIGHT = "text-align: right; padding-right: 1.5em"


class Shown(ABC):
    """A result of a function of `import weft`."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the result for a person to read, in lines."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as a plain dictionary, which JSON can hold."""

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return lines_in_html(self.lines())


def lines_in_html(lines: Sequence[str]) -> str:
    """Return lines as HTML, each where it stands."""
    content = escape("\n".join(lines))
    return f'<pre style="{_LINES}">{content}</pre>'


def table_in_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML: names in the first column, numbers in the others."""
    made = [_row(cells, "td") for cells in rows]
    return f"<table><thead>{_row(head, 'th')}</thead><tbody>{''.join(made)}</tbody></table>"


def _row(cells: Sequence[str], tag: str) -> str:
    name, *numbers = cells
    made = [f'<{tag} style="{_LEFT}">{escape(name)}</{tag}>']
    made += [f'<{tag} style="{_RIGHT}">{escape(cell)}</{tag}>' for cell in numbers]
    return f"<tr>{''.join(made)}</tr>"
