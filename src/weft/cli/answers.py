"""The table that `weft classify` writes: the columns of the input, then those of the answers."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.data.check.finding import excerpt
from weft.data.formats.table_form import TableForm, cells_kind, form_of

if TYPE_CHECKING:
    from weft.predict.classifier import Classification

_MOST_CHARS = 40  # of an id in a message
COLUMNS = ("label", "probability", "note")


class AnswerTable:
    """The rows of a table, each with its answer in new columns.

    `labels` get a column with their probability each; `separator` joins the labels of one row.
    """

    def __init__(self, form: TableForm, labels: Sequence[str], separator: str) -> None:
        self.form = form
        self.labels = labels
        self.separator = separator
        names = [*COLUMNS, *(f"probability of {label}" for label in labels)]
        self.columns = _new_names(form.header, names)

    def head(self) -> str:
        """Return what precedes the rows: the table's lead and its header with the new columns."""
        return self.form.lead + self.form.row([*self.form.header, *self.columns])

    def row(self, cells: Sequence[str], answer: "Classification", text: str) -> str:
        """Return a row of the input with the answer to its text."""
        labels = self.separator.join(answer.labels)
        cells = [*cells, labels, f"{answer.probability:.4f}", note_on(answer, text)]
        for label in self.labels:
            cells.append(f"{answer.probabilities[label]:.4f}")
        return self.form.row(cells)


def answer_form(table: Path, output: Path | None, column: str) -> TableForm | None:
    """Return the form of the output table; None where the file names do not ask for a table."""
    if output is None or not cells_kind(table) or not cells_kind(output):
        return None
    form = form_of(table, (column,))
    if cells_kind(table) == cells_kind(output):
        return form
    return form.as_kind(cells_kind(output))


def note_on(answer: "Classification", text: str) -> str:
    """Return why the answer to a text should be reviewed; "" where nothing is doubtful."""
    if not text.strip():
        return "empty"
    doubts = {
        "knows no word of it": answer.nothing_known,
        "unsure": answer.unsure and not answer.nothing_known,
        "cut": answer.truncated,
    }
    return "; ".join(doubt for doubt, is_so in doubts.items() if is_so)


def _new_names(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the new columns.

    If the table has a column of one of these names, in any case, all get the prefix "model_", or
    else "model2_" and so on.
    """
    taken = {name.strip().casefold() for name in header}
    for prefix in _prefixes():
        prefixed = [prefix + name for name in names]
        if taken.isdisjoint(name.casefold() for name in prefixed):
            return prefixed
    raise AssertionError("there are as many prefixes as numbers")


def _prefixes() -> Iterator[str]:
    yield ""
    yield "model_"
    for number in count(2):
        yield f"model{number}_"


def named_row(number: int, row: Any, form: TableForm | None) -> str:
    """Return the name of a table's row: its number and, of a column "id" in any case, its id.

    With a form, `row` is a list of cells; else it maps columns to values. None, for a line, has no
    name.
    """
    if row is None:
        return ""
    columns = row.items() if form is None else zip(form.header, row, strict=True)
    for name, value in columns:
        if name.strip().casefold() == "id":
            if value is None:
                break
            return f"{number} (id {excerpt(str(value)[:_MOST_CHARS])})"
    return str(number)
