"""The table of a sweep as text, CSV, Markdown and LaTeX."""

import csv
import io
import re
from collections.abc import Callable

from weft.console.tables import columns_of
from weft.console.tables import table as fixed
from weft.sweep.form import Form
from weft.sweep.table import LOWER_IS_BETTER, Line, Table

# digits behind the point
_DIGITS = {"bleu": 2, "bleu_lc": 2, "chrf": 2, "accuracy": 4, "perplexity": 2}
_USUAL_DIGITS = 4
_WORDS = {"bleu": "BLEU", "bleu_lc": "BLEU in lower case", "chrf": "chrF"}
_ABSENT = "–"
_COLUMNS = (
    *("text", "row", "on", "score", "seeds", "runs", "mean", "deviation"),
    *("difference", "p", "minutes", "steps", "parameters"),
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def formed(table: Table, form: Form) -> str:
    """Return a table in a form, with a line end behind it."""
    return _FORMS[form](table)


def score_in_words(name: str) -> str:
    """Return the name of a score as a person says it."""
    return _WORDS.get(name, name.replace("_", " "))


def _text(table: Table) -> str:
    rows = _cells(table)
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    names = 2 if table.names_texts else 1
    numbers = range(names, len(widths))
    width = sum(widths) + 2 * len(widths)
    lines = [*fixed(rows, width, numbers), *_below(table)]
    return "\n".join(lines) + "\n"


def _markdown(table: Table) -> str:
    head, *rows = [list(map(_escaped_pipe, cells)) for cells in _cells(table)]
    names = 2 if table.names_texts else 1
    marks = ["---"] * names + ["---:"] * (len(head) - names)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)]
    below = _below(table)
    if below:
        lines += ["", *(f"{line}  " for line in below)]
    return "\n".join(lines) + "\n"


def _latex(table: Table) -> str:
    head, *rows = [list(map(_in_latex, cells)) for cells in _cells(table)]
    names = 2 if table.names_texts else 1
    lines = [f"\\begin{{tabular}}{{{'l' * names}{'r' * (len(head) - names)}}}"]
    lines += [r"\hline", f"{' & '.join(head)} \\\\", r"\hline"]
    lines += [f"{' & '.join(cells)} \\\\" for cells in rows]
    lines += [r"\hline", r"\end{tabular}"]
    lines += [f"% {line}" for line in _below(table)]
    return "\n".join(lines) + "\n"


def _csv(table: Table) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for line in table.lines:
        writer.writerow(
            [
                *(line.text, line.row, table.part, line.score),
                *(len(line.scores), line.num_runs),
                *map(_exact, (line.mean, line.deviation, line.difference, line.p)),
                *map(_exact, (line.minutes, line.steps)),
                line.parameters,
            ]
        )
    return written.getvalue()


_FORMS: dict[Form, Callable[[Table], str]] = {
    Form.TEXT: _text,
    Form.CSV: _csv,
    Form.MARKDOWN: _markdown,
    Form.LATEX: _latex,
}


def _cells(table: Table) -> list[list[str]]:
    """Return the heads and the rows of the forms for people."""
    scores = dict.fromkeys(line.score for line in table.lines)
    named = " / ".join(map(score_in_words, scores))
    heads = ["row", f"{named} on {table.part}", "difference", "p"]
    heads += ["minutes", "steps", "parameters", "seeds"]
    if table.names_texts:
        heads.insert(0, "text")
    rows = [heads]
    for line in table.lines:
        cells = [line.row, _score(line), _difference(line), _p(line.p)]
        cells += [_number(line.minutes, 1), _number(line.steps, 0)]
        cells += [_number(line.parameters, 0), _seeds(line)]
        if table.names_texts:
            cells.insert(0, line.text)
        rows.append(cells)
    return rows


def _score(line: Line) -> str:
    """Return mean and deviation."""
    if line.mean is None:
        return _ABSENT
    digits = _digits(line)
    shown = f"{line.mean:.{digits}f}"
    if line.deviation is not None:
        shown += f" ± {line.deviation:.{digits}f}"
    return shown


def _difference(line: Line) -> str:
    if line.difference is None:
        return ""
    return f"{line.difference:+.{_digits(line)}f}"


def _p(p: float | None) -> str:
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _number(value: float | None, digits: int) -> str:
    return _ABSENT if value is None else f"{value:,.{digits}f}"


def _seeds(line: Line) -> str:
    """Return how many seeds are in the mean, and of how many where some are missing."""
    count = len(line.scores)
    return f"{count}" if count == line.num_runs else f"{count} of {line.num_runs}"


def _digits(line: Line) -> int:
    return _DIGITS.get(line.score, _USUAL_DIGITS)


def _exact(value: float | None) -> str:
    """Return a number for a program: as many digits as tell something."""
    return "" if value is None else f"{value:.6g}"


def _below(table: Table) -> list[str]:
    """Return the lines below a table: what its numbers are, then its notes."""
    lines = []
    if any(line.deviation is not None for line in table.lines):
        lines.append("mean ± standard deviation over seeds")
    if any(line.p is not None for line in table.lines):
        over = "seeds"
        if any(line.is_over_rows for line in table.lines):
            over += f" and the rows of {table.part}"
        lines.append(f"difference: to the first row; p: over {over}")
    if any(line.score in LOWER_IS_BETTER for line in table.lines):
        lines.append("lower is better")
    said = [f"{'; '.join(lines)}"] if lines else []
    return [*said, *table.notes]


def _escaped_pipe(cell: str) -> str:
    return cell.replace("|", "\\|")


def _in_latex(cell: str) -> str:
    """Return a cell with what TeX reads as a command made harmless, and signs in its own form."""
    shown = "".join(_LATEX.get(character, character) for character in cell)
    shown = shown.replace("±", r"$\pm$").replace("< ", "$<$ ").replace("–", "--")
    return re.sub(r"^([+-])(?=\d)", lambda sign: f"${sign[1]}$", shown)
