"""The table that `weft classify` writes: the columns of the input, and behind them what the model
says.
"""

from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.data.check.finding import excerpt
from weft.data.formats.table_form import TableForm, cells_kind, form_of

if TYPE_CHECKING:
    from weft.predict.classifier import Classification

_MOST_CHARS = 40  # of an id that is told
COLUMNS = ("label", "probability", "note")


class AnswerTable:
    """Writes rows of the input with an answer to each."""

    def __init__(self, form: TableForm, labels: Sequence[str], separator: str) -> None:
        """Set the form; `labels` get a column of probabilities each, `separator` joins several
        labels.
        """
        self.form, self.labels, self.separator = form, labels, separator
        self.columns = _new_names(
            form.header, [*COLUMNS, *(f"probability of {label}" for label in labels)]
        )

    def head(self) -> str:
        """Return the head of the table."""
        return self.form.lead + self.form.row([*self.form.header, *self.columns])

    def row(self, cells: Sequence[str], answer: "Classification", text: str) -> str:
        """Return a row of the input and the answer to its text."""
        of_labels = [f"{answer.probabilities[label]:.4f}" for label in self.labels]
        said = [
            self.separator.join(answer.labels),
            f"{answer.probability:.4f}",
            note_on(answer, text),
        ]
        return self.form.row([*cells, *said, *of_labels])


def answer_form(table: Path, output: Path | None, column: str) -> TableForm | None:
    """Choose how to write answers to a table's rows; None where the names ask for no table."""
    if output is None or not cells_kind(table) or not cells_kind(output):
        return None
    form = form_of(table, (column,))
    return (
        form
        if cells_kind(table) == cells_kind(output)
        else form.as_kind(cells_kind(output))
    )


def note_on(answer: "Classification", text: str) -> str:
    """Say why a row should be looked over; "" where nothing speaks for that."""
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

    Where the table has one of them, in any case, all begin with "model_".
    """
    taken = {name.strip().casefold() for name in header}
    prefixes = chain(("", "model_"), (f"model{n}_" for n in count(2)))
    candidates = ([prefix + name for name in names] for prefix in prefixes)
    return next(
        some
        for some in candidates
        if taken.isdisjoint(name.casefold() for name in some)
    )


def named_row(number: int, row: Any, form: TableForm | None) -> str:
    """Return a table's row by its number and, where a column is named "id" in any case, by that; of
    a line nothing.

    Of a table with a form a row is its cells, else its columns by their names.
    """
    if row is None:
        return ""
    columns = row.items() if form is None else zip(form.header, row, strict=True)
    found = next(
        (value for name, value in columns if name.strip().casefold() == "id"), None
    )
    return (
        str(number)
        if found is None
        else f"{number} (id {excerpt(str(found)[:_MOST_CHARS])})"
    )
