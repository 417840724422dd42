"""The answers that a verb writes: lines, or a table of the input's columns and the answers."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.guesses import Guesses, mostly_unknown
from weft.cli.streams import Lines, growing_sink, progress
from weft.console.wording import remark
from weft.data.check.finding import excerpt
from weft.data.formats.filetype import type_of_name
from weft.data.formats.table_form import TableForm, cells_kind, form_of
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.predict.classifier import Classification
    from weft.predict.prediction import Prediction

_MOST_CHARS = 40  # of an id in a message
_MOST_DOUBTS = 20  # printed one by one
LABEL_COLUMNS = ("label", "probability", "note")
TRANSLATION_COLUMNS = ("translation", "note")
_ID = re.compile(r"(^|[\W_])id$", re.IGNORECASE)  # of a column's name
_JSON = ("json", "jsonl")
_TEXTS = ("tsv", "markdown")


class AnswerTable:
    """The rows of a table, each with its answer in new columns, which `names` name."""

    def __init__(self, form: TableForm, names: Sequence[str]) -> None:
        self.form = form
        self.columns = _new_names(form.header, names)

    def head(self) -> str:
        """Return what precedes the rows: the table's lead and its header with the new columns."""
        return self.form.lead + self.form.row([*self.form.header, *self.columns])

    def row(self, cells: Sequence[str], answers: Sequence[str]) -> str:
        """Return a row of the input with its answers."""
        return self.form.row([*cells, *answers])


def answer_form(
    table: Path, output: Path | None, column: str, option: str = ""
) -> TableForm | None:
    """Return the form of the output table; None where the file names do not ask for a table.

    The column is named, or numbered from 1; None also for a number of rows without names. `option`
    is the one that named it, for the message on a column that is missing.
    """
    from weft.data.labelled import name_of_column

    if output is None or not cells_kind(table) or not cells_kind(output):
        return None
    name = name_of_column(table, column)
    if name is None:
        return None
    keys = {name: option} if option else {}
    form = form_of(table, (name,), keys)
    if cells_kind(table) == cells_kind(output):
        return form
    return form.as_kind(cells_kind(output))


def label_columns(labels: Sequence[str]) -> list[str]:
    """Return the names of the columns of `label_cells`, with one for each of the labels."""
    return [*LABEL_COLUMNS, *(f"probability of {label}" for label in labels)]


def label_cells(
    answer: "Classification", text: str, labels: Sequence[str], separator: str
) -> list[str]:
    """Return the cells of the answer to a text: its labels, their probability, a note.

    `labels` get a cell with their probability each; `separator` joins the labels of one row.
    """
    joined = separator.join(answer.labels)
    probabilities = [f"{answer.probabilities[label]:.4f}" for label in labels]
    first = f"{answer.probability:.4f}"
    return [joined, first, note_on(answer, text), *probabilities]


def translation_cells(prediction: "Prediction", doubts: Sequence[str]) -> list[str]:
    """Return the cells of a translation: the text, and its doubts in a word each.

    Where both the source and the translation were cut, the word for it stands there once.
    """
    words = [doubt.partition(":")[0] for doubt in doubts]
    notes = list(dict.fromkeys(words))
    if prediction.unsure:
        notes.append("unsure")
    return [prediction.text, "; ".join(notes)]


def refuse_other_form(
    output: Path | None,
    source: Path | None,
    is_json: bool,
    is_table: bool,
    for_table: str = "name it .csv, which spreadsheets open",
) -> None:
    """Raise UsageError where the name of the output says a format that is not written.

    Written are lines of JSON, a table, or else lines of text: also cells between TABs, or the lines
    of a source of the same type. `for_table` says how a table is written where the source is one.
    """
    if output is None:
        return
    if output.suffix.lower() == ".gz":
        raise UsageError(f"--output {output}: it is not compressed; leave .gz out")
    kind = type_of_name(output)
    if kind is None or is_table:
        return
    written, name = "lines of text", ".txt"
    source_kind = type_of_name(source) if source is not None else None
    accepted = set(_TEXTS)
    if is_json:
        written, name = "lines of JSON", ".jsonl"
        accepted = set(_JSON)
    elif source_kind is not None:
        accepted |= {source_kind.name} if source_kind.is_text else set()
    if kind.name in accepted:
        return
    remedy = f"name it {name}"
    if kind.name in _JSON:
        remedy = "give --json too"
    elif not is_json and source is not None and cells_kind(source):
        remedy = f"{for_table}; or name it .txt"
    elif not is_json and source_kind is not None and source_kind.name in _JSON:
        whole = output.with_suffix(".jsonl")
        remedy = f"add --json and give --output {whole}, which keeps each row with its answer; or name it .txt"
    raise UsageError(
        f"--output {output}: {written} are written, not {kind.words}; {remedy}"
    )


def note_on(answer: "Classification", text: str) -> str:
    """Return why the answer to a text should be reviewed; "" where nothing is doubtful."""
    if not text.strip():
        return "empty"
    knows_little = mostly_unknown(answer, text) and not answer.nothing_known
    doubts = {
        "knows no word of it": answer.nothing_known,
        "knows few words of it": knows_little,
        "unsure": answer.unsure and not answer.nothing_known,
        "no label": not answer.labels,
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
    """Return the name of a table's row: its number and, of a column "id" or "Ticket-ID", its id.

    With a form, `row` is a list of cells; else it maps columns to values. None, for a line, has no
    name.
    """
    if row is None:
        return ""
    columns = row.items() if form is None else zip(form.header, row, strict=True)
    for name, value in columns:
        if _ID.search(name.strip()):
            if value is None:
                break
            return f"{number} (id {excerpt(str(value)[:_MOST_CHARS])})"
    return str(number)


def write_answers(
    answers: Callable[[int], Iterator[tuple[str, list[str]]]],
    source: Lines,
    output_file: Path | None,
    as_json: bool,
    facts: dict[str, Any],
    guesses: Guesses,
    head: str = "",
) -> None:
    """Write the head and the answers; print doubts and guesses on standard error.

    `answers(n)` yields each answer after the first n, with its doubts. With `facts`, on which the
    output depends, an interrupted file is continued.
    """
    told = 0
    unit = source.unit
    is_typed = source.chunk == 1
    with (
        growing_sink(output_file, facts) as (out, done),
        progress(source.count, done) as advance,
    ):
        out.write(head)
        for number, (text, doubts) in enumerate(answers(done), start=done + 1):
            out.write(text)
            advance()
            if is_typed:
                out.flush()
            for doubt in [] if as_json else doubts:
                told += 1
                if told <= _MOST_DOUBTS or is_typed:
                    remark(f"weft: {unit} {number}: {doubt}")
    if told > _MOST_DOUBTS and not is_typed:
        more = f"{told - _MOST_DOUBTS:,} more such doubts"
        remark(f"weft: {more}; with --json each line says what is doubtful about it")
    for line in guesses.few() if as_json else guesses.lines():
        remark(f"weft: {line}")
