"""The cleaning of labelled rows: texts, labels, repeats. The other columns stay as they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.config import RowsSection
from weft.console import stages
from weft.data.check.finding import Finding
from weft.data.check.rows import alike_labels, look_over_labelled
from weft.data.clean.cleaned import Cleaned, doomed
from weft.data.clean.mending import has_lost
from weft.data.clean.record import Record
from weft.data.clean.rules import EMPTY, LOST, NO_LABEL, VARIANTS, Choice
from weft.data.formats.table import read_cells, read_table
from weft.data.formats.table_form import TableForm, cells_kind, form_of
from weft.data.labelled import (
    LabelledText,
    Labels,
    as_text,
    label_counts,
    labels_in,
    one_line,
)
from weft.data.split import fold
from weft.errors import DataError

Raw = list[Any] | dict[str, Any]
"""A row as its file has it: cells, or a JSON object."""


@dataclass(frozen=True)
class Table:
    """The rows as their file has them, and the form of a file of cells; None for JSON lines."""

    rows: list[Raw]
    form: TableForm | None


def clean_labelled(
    data: Sequence[str],
    section: RowsSection,
    choice: Choice,
    held_out: Mapping[str, LabelledText],
) -> tuple[Cleaned[LabelledText], Table]:
    """Read and clean labelled rows; return them, and the rows of their files that are left, mended.

    Raises DataError as reading does, but for rows without a label; where tables differ in their
    columns, and where no row is left.
    """
    cleaner = _Cleaner(section, choice)
    for item in data:
        cleaner.read(Path(item))
    num_read = len(cleaner.text) + cleaner.record.num_dropped
    notes = cleaner.text.notes
    cleaner.unify()
    for name, part in held_out.items():
        if choice.does(name, "drop"):
            cleaner.drop_those_in(part, name)
    left = cleaner.resolve()
    cleaned = Cleaned(cleaner.text, cleaner.record, left, num_read, notes)
    return cleaned, Table(cleaner.raws, cleaner.form)


class _Cleaner:
    """Labelled rows that are cleaned, beside the rows of their files."""

    def __init__(self, section: RowsSection, choice: Choice) -> None:
        self.record = Record()
        self.raws: list[Raw] = []
        self.form: TableForm | None = None
        self._choice = choice
        self._separator = section.label_separator
        self._columns = (section.text_column, section.label_column)
        self._keys = {
            section.text_column: "data.text_column",
            section.label_column: "data.label_column",
        }
        self.text = LabelledText(
            texts=[],
            labels=[],
            lines=[],
            files=[],
            file_of=[],
            dropped={},
            multi_label=self._separator is not None,
        )

    def read(self, path: Path) -> None:
        """Read the rows of a file, and mend their texts one by one."""
        stages.enter(f"reading {path}")
        text = self.text
        text.files.append(str(path))
        for line, raw in stages.counted(self._raws_of(path), "rows"):
            where = f"{path}:{line}"
            before = one_line(as_text(f"{where}", self._value(raw, 0)))
            labels = labels_in(where, self._value(raw, 1), self._separator)
            (mended,), rules = self._choice.mend_row((before,))
            place = len(text.files) - 1, line
            row = (", ".join(labels), before)
            if rule := self._reason_to_drop(mended, labels, rules):
                self.record.drop(place, where, rule, row)
                continue
            if rules:
                self.record.mend(place, where, rules, row, (row[0], mended))
                self._write(raw, 0, mended)
            text.texts.append(mended)
            text.labels.append(labels)
            text.lines.append(line)
            text.file_of.append(place[0])
            self.raws.append(raw)

    def unify(self) -> None:
        """Write labels that differ in case, spaces or marks alone as most rows have them."""
        if not self._choice.does(VARIANTS, "mend"):
            return
        usual: dict[str, str] = {}
        for common, *others in alike_labels(label_counts(self.text)):
            usual.update(dict.fromkeys(others, common))
        text = self.text
        for i, labels in enumerate(text.labels if usual else ()):
            unified = tuple(sorted({usual.get(label, label) for label in labels}))
            if unified != labels:
                before = (", ".join(labels), text.texts[i])
                after = (", ".join(unified), text.texts[i])
                self.record.mend(
                    self._place(i), text.where(i), [VARIANTS], before, after
                )
                text.labels[i] = unified
                self._write_labels(self.raws[i], unified)

    def drop_those_in(self, part: LabelledText, rule: str) -> None:
        """Drop the rows whose text a part has, but for case, spaces and marks."""
        held = set(map(fold, part.texts))
        texts = enumerate(self.text.texts)
        self._drop({i: rule for i, text in texts if fold(text) in held})

    def resolve(self) -> list[Finding]:
        """Check and change the text until there is nothing to do; return what is found then."""
        while True:
            if not len(self.text):
                raise DataError(
                    f"{', '.join(self.text.files)}: no row is left; weft check says what is wrong with the text"
                )
            stages.enter("checking the text")
            findings = look_over_labelled(self.text)
            rows = doomed(findings, self._choice)
            if not rows:
                return findings
            self._drop(rows)

    def _raws_of(self, path: Path) -> Iterator[tuple[int, Raw]]:
        """Yield the rows of a file. Raises DataError where its columns are not those before."""
        notes = self.text.notes
        dropped = self.record.unlisted
        is_first = len(self.text.files) == 1
        if not cells_kind(path):
            if not is_first and self.form is not None:
                self._refuse_other_form(path)
            rows = read_table(
                path, self._columns, dropped, notes, self._keys, whole=True
            )
            yield from rows
            return
        form = form_of(path, self._columns, self._keys)
        if is_first:
            self.form = form
        elif self.form is None or self.form.header != form.header:
            self._refuse_other_form(path)
        cells = read_cells(path, self._columns, dropped, notes, self._keys)
        next(cells)
        yield from cells

    def _refuse_other_form(self, path: Path) -> None:
        raise DataError(
            f"{path}: has other columns than {self.text.files[0]}; clean each by itself"
        )

    def _reason_to_drop(self, mended: str, labels: Labels, rules: Sequence[str]) -> str:
        if not mended:
            return EMPTY
        if not labels and self._separator is None:
            return NO_LABEL
        if self._choice.does(LOST, "mend") and has_lost(mended):
            return LOST
        return self._choice.reason_to_drop(rules)

    def _key(self, raw: Raw, column: int) -> Any:
        """Return the key of a column in a row: its name, or the number of its cell."""
        name = self._columns[column]
        if isinstance(raw, dict):
            return name
        assert self.form is not None
        return [head.strip() for head in self.form.header].index(name)

    def _value(self, raw: Raw, column: int) -> Any:
        return raw[self._key(raw, column)]

    def _write(self, raw: Raw, column: int, value: Any) -> None:
        raw[self._key(raw, column)] = value

    def _write_labels(self, raw: Raw, labels: Labels) -> None:
        if isinstance(self._value(raw, 1), list):
            self._write(raw, 1, list(labels))
        else:
            self._write(raw, 1, (self._separator or "").join(labels))

    def _drop(self, rows: Mapping[int, str]) -> None:
        text = self.text
        for i in sorted(rows):
            row = (", ".join(text.labels[i]), text.texts[i])
            self.record.drop(self._place(i), text.where(i), rows[i], row)
        kept = [i for i in range(len(text)) if i not in rows]
        self.text = text.select(kept)
        self.raws = [self.raws[i] for i in kept]

    def _place(self, i: int) -> tuple[int, int]:
        return self.text.file_of[i], self.text.lines[i]
