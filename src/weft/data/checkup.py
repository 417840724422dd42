"""The check of text before anything is trained: it reads as training would, but continues past what
cannot be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.config import ClassificationRecipe, LanguageRecipe, Recipe, TranslationRecipe
from weft.data.base import Corpus
from weft.data.check.columns import look_over_columns
from weft.data.check.finding import Finding, Rows, Severity, gravest_first
from weft.data.check.parts import (
    examine_directions,
    examine_documents,
    examine_rows,
)
from weft.data.check.summary import summarize
from weft.data.check.unequal import unequal_lines
from weft.data.corpus import ParallelText, measured, split_at_comma
from weft.data.directions import read_directions
from weft.data.documents import read_documents
from weft.data.labelled import (
    LABEL_THEM,
    LabelledText,
    Unlabelled,
    no_label,
    read_labelled,
)
from weft.data.texts import Sources, text_signature
from weft.data.train_text import TrainText, names_of
from weft.errors import DataError

SEVERITIES: tuple[Severity, ...] = ("fatal", "warning", "note")
Reader = Callable[[Sequence[str]], Corpus]
Examiner = Callable[..., list[Finding]]


@dataclass
class Checkup:
    """The result of a check: the findings; `parts` has numbers of each part that could be read."""

    task: str
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_fatal(self) -> bool:
        """Return whether training on this text would be wrong."""
        return any(finding.severity == "fatal" for finding in self.findings)

    def counts(self) -> dict[str, int]:
        """Count the findings of each severity."""
        severities = [finding.severity for finding in self.findings]
        return {name: severities.count(name) for name in SEVERITIES}

    def words(self) -> str:
        """Say the verdict in words."""
        if self.is_fatal:
            return "this text would spoil training"
        warned = ", but see the warnings" if self.counts()["warning"] else ""
        return f"ready for training{warned}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as a plain dictionary."""
        return {
            "task": self.task,
            "verdict": self.words(),
            "counts": self.counts(),
            "notes": self.notes,
            "parts": self.parts,
            "findings": [finding.to_json() for finding in self.findings],
        }


def check_up(recipe: Recipe, sources: Sources) -> Checkup:
    """Read and check every part of the text; what cannot be read is a fatal finding, and the rest
    is checked.
    """
    checkup = Checkup(recipe.task)
    unlabelled: Unlabelled = {}
    read, examine = _reader_and_examiner(recipe, unlabelled)
    items = {
        "train": [item for item in _train_files(recipe, sources) if item],
        "dev": [sources.dev] if sources.dev else [],
        "test": [sources.test] if sources.test else [],
    }
    parts: dict[str, Corpus | None] = {}
    for name, named in items.items():
        parts[name] = _read(named, read, name, checkup)
        if unlabelled and parts[name] is not None:
            checkup.findings.append(_about_unlabelled(unlabelled, name))
        unlabelled.clear()
    train = parts["train"]
    if isinstance(recipe, ClassificationRecipe) and train is not None:
        columns = (recipe.data.text_column, recipe.data.label_column)
        for name in train.files:
            checkup.findings += look_over_columns(Path(name), *columns)
    _examine(parts, examine, checkup)
    checkup.findings = gravest_first(checkup.findings)
    return checkup


def _reader_and_examiner(
    recipe: Recipe, unlabelled: Unlabelled
) -> tuple[Reader, Examiner]:
    """Return what reads DATA as a recipe says, and what examines the parts of such text.

    Rows without a label that should have one go into `unlabelled`.
    """
    if isinstance(recipe, TranslationRecipe):
        pairs = recipe.data
        return lambda items: read_directions(_texts(items), pairs), examine_directions
    if isinstance(recipe, LanguageRecipe):
        text = recipe.data
        ends = (text.documents, text.raw)
        return lambda items: read_documents(items, *ends), examine_documents
    assert isinstance(recipe, ClassificationRecipe)
    rows = recipe.data
    columns = (rows.text_column, rows.label_column, rows.label_separator)

    def read(items: Sequence[str]) -> LabelledText:
        return read_labelled(items, *columns, unlabelled=unlabelled)

    return read, examine_rows


def _about_unlabelled(unlabelled: Unlabelled, part: str) -> Finding:
    """Say which rows of a part have no label."""
    where = list(unlabelled)
    rows = Rows(
        len(where), "rows", where.__getitem__, lambda i: (unlabelled[where[i]],)
    )
    every = range(len(where))
    return Finding(
        "fatal",
        "no-label",
        no_label(unlabelled),
        LABEL_THEM,
        len(where),
        examples=rows.examples(every),
        part=part,
        places=rows.places(every),
    )


def _train_files(recipe: Recipe, sources: Sources) -> tuple[str, ...]:
    """Return the training text as it was named. Raises UsageError for weights and tags where these
    have no meaning.
    """
    is_pairs = isinstance(recipe, TranslationRecipe)
    return names_of(sources.train) if is_pairs else sources.train_files


def _texts(items: Sequence[str]) -> list[TrainText]:
    return list(map(TrainText, items))


def _examine(
    parts: dict[str, Corpus | None], examine: Examiner, checkup: Checkup
) -> None:
    """Add the numbers of all parts, and the findings; without training text each other part is
    checked by itself.
    """
    for name, part in parts.items():
        if isinstance(part, ParallelText):
            parts[name] = measured(part)
    present = {name: part for name, part in parts.items() if part is not None}
    for name, part in present.items():
        numbers = summarize(part)
        checkup.parts[name] = {**numbers, "signature": text_signature(part)}
    train, *others = parts.values()
    if train is not None:
        checkup.findings += examine(train, *others)
        return
    for name, part in present.items():
        checkup.findings += [replace(finding, part=name) for finding in examine(part)]


def _read(
    items: Sequence[str], read: Reader, part: str, checkup: Checkup
) -> Corpus | None:
    """Read all that can be read of some DATA, joined; the rest becomes findings."""
    if not items:
        return None
    try:
        return read(items)
    except DataError as error:
        reason = error
    if len(items) == 1:
        checkup.findings.append(_unreadable(items[0], reason, part))
        return None
    sound = [item for item in items if _read([item], read, part, checkup) is not None]
    if len(sound) == len(items):  # each can be read, but they do not go together
        checkup.findings.append(_unreadable(", ".join(items), reason, part))
        return None
    return _read(sound, read, part, checkup)


def _unreadable(item: str, error: DataError, part: str) -> Finding:
    """Say why DATA cannot be read; of two files of unequal length also where they part."""
    message, _, remedy = str(error).partition("; ")
    plain = Finding(
        "fatal",
        "unreadable",
        message,
        remedy or "correct the file or leave it out",
        1,
        part=part,
    )
    try:
        paths = split_at_comma(item)
        unequal = unequal_lines(*paths) if len(paths) == 2 else None
    except DataError:
        return plain
    return plain if unequal is None else replace(unequal, part=part)
