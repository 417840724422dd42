"""A look at text before anything is trained: read as training would read it, but on past what
cannot be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from weft.config import ClassificationRecipe, LanguageRecipe, Recipe, TranslationRecipe
from weft.data.check.columns import look_over_columns
from weft.data.check.finding import Finding, gravest_first
from weft.data.check.parts import examine_documents, examine_pairs, examine_rows
from weft.data.check.summary import summarize
from weft.data.check.unequal import unequal_lines
from weft.data.corpus import ParallelText, read_pairs, split_at_comma
from weft.data.documents import Documents, read_documents
from weft.data.labelled import LabelledText, read_labelled
from weft.data.signature import signature
from weft.data.texts import Sources
from weft.errors import DataError

T = TypeVar("T", ParallelText, Documents, LabelledText)
Parts = dict[str, T | None]


@dataclass
class Checkup:
    """What was looked at and what was found; `parts` has numbers of each part that could be
    read.
    """

    task: str
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_fatal(self) -> bool:
        """Whether training on this would be wrong."""
        return any(finding.severity == "fatal" for finding in self.findings)

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        return {
            s: sum(f.severity == s for f in self.findings)
            for s in ("fatal", "warning", "note")
        }

    def words(self) -> str:
        """Return the verdict for a person."""
        if self.is_fatal:
            return "training on this would be wrong"
        warned = ", but look at what is warned of" if self.counts()["warning"] else ""
        return f"nothing stands against training{warned}"

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return {
            "task": self.task,
            "verdict": self.words(),
            "counts": self.counts(),
            "notes": self.notes,
            "parts": self.parts,
            "findings": [finding.to_json() for finding in self.findings],
        }


def check_up(recipe: Recipe, given: Sources) -> Checkup:
    """Read and look over all that was given; what cannot be read is a fatal finding, and the rest
    is looked at.
    """
    found = Checkup(recipe.task)
    if isinstance(recipe, TranslationRecipe):
        _check_pairs(recipe, given, found)
    elif isinstance(recipe, LanguageRecipe):
        parts = _read_parts(
            given,
            lambda items: read_documents(items, recipe.data.documents, recipe.data.raw),
            found,
        )
        _look(parts, examine_documents, found)
    else:
        assert isinstance(recipe, ClassificationRecipe)
        _check_rows(recipe, given, found)
    found.findings = gravest_first(found.findings)
    return found


def _check_pairs(recipe: TranslationRecipe, given: Sources, found: Checkup) -> None:
    langs = (recipe.data.src_lang, recipe.data.tgt_lang)
    _look(
        _read_parts(given, lambda items: read_pairs(items, *langs), found),
        examine_pairs,
        found,
    )


def _check_rows(recipe: ClassificationRecipe, given: Sources, found: Checkup) -> None:
    data = recipe.data
    columns = (data.text_column, data.label_column)
    parts = _read_parts(
        given, lambda items: read_labelled(items, *columns, data.label_separator), found
    )
    if parts["train"] is not None:
        for name in parts["train"].files:
            found.findings += look_over_columns(Path(name), *columns)
    _look(parts, examine_rows, found)


def _look(
    parts: Parts[T], examine: Callable[..., list[Finding]], found: Checkup
) -> None:
    """Numbers of all parts, and the findings; without training text each other part is looked over
    by itself.
    """
    for name, part in parts.items():
        if part is not None:
            found.parts[name] = {**summarize(part), "signature": signature(part.rows())}
    train, *others = parts.values()
    if train is not None:
        found.findings += examine(train, *others)
        return
    for name, part in parts.items():
        found.findings += [
            replace(finding, part=name)
            for finding in (examine(part) if part is not None else ())
        ]


def _read_parts(
    given: Sources, read: Callable[[Sequence[str]], T], found: Checkup
) -> Parts[T]:
    asked = {"train": given.train, "dev": (given.dev,), "test": (given.test,)}
    return {
        name: _read([i for i in items if i], read, name, found)
        for name, items in asked.items()
    }


def _read(
    items: Sequence[str], read: Callable[[Sequence[str]], T], part: str, found: Checkup
) -> T | None:
    """All that can be read of some DATA, joined; the rest becomes findings."""
    if not items:
        return None
    try:
        return read(items)
    except DataError as error:
        whole = error
    if len(items) == 1:
        found.findings.append(_unreadable(items[0], whole, part))
        return None
    sound = [item for item in items if _read([item], read, part, found) is not None]
    if len(sound) == len(items):  # each can be read, but they do not go together
        found.findings.append(_unreadable(", ".join(items), whole, part))
        return None
    return _read(sound, read, part, found)


def _unreadable(item: str, error: DataError, part: str) -> Finding:
    """Why DATA cannot be read; of two files of unequal length also where they part."""
    message, _, remedy = str(error).partition("; ")
    plain = Finding(
        "fatal",
        "unreadable",
        message,
        remedy or "mend or leave out the file",
        1,
        part=part,
    )
    try:
        paths = split_at_comma(item)
        unequal = unequal_lines(*paths) if len(paths) == 2 else None
    except DataError:
        return plain
    return plain if unequal is None else replace(unequal, part=part)
