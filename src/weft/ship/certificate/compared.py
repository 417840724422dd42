"""The text that two forms of a model are compared on: where it is from, and whether the model was
trained on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.config import PairsSection
from weft.data.check.finding import counted
from weft.data.texts import Sources, gather_pairs
from weft.errors import UsageError
from weft.run.begun import held_out
from weft.ship.source import Source
from weft.tasks.task import training_hashes

# below so many rows a comparison says little; so many are asked for
_FEW = 20
_ENOUGH = 200


@dataclass(frozen=True)
class ComparedText:
    """A text as its task reads it; `about` names it in words, `notes` say what speaks against what
    is found on it.
    """

    text: Any
    about: str
    notes: tuple[str, ...] = ()


def compared_text(source: Source, data: Sequence[str], builtin: str) -> ComparedText:
    """Return the text that is named, else the test part of a `builtin` corpus, else what the
    model's own run holds out.

    Raises UsageError where there is none.
    """
    if data:
        return _named(source, source.task.read(data))
    if builtin:
        pairs = gather_pairs(PairsSection(builtin=builtin), Sources())
        return _held_out(source, pairs.test, "the built-in test text")
    try:
        part, text = held_out(source.folder)
    except UsageError as error:
        raise UsageError(f"{error}, or --uncertified") from None
    return _held_out(source, text, f"the run's own {part} text")


def _named(source: Source, text: Any) -> ComparedText:
    """Return a text that somebody named, of which the hashes of the training text alone tell
    whether it was trained on.
    """
    task = source.task
    hashes = training_hashes(source.folder)
    known = "not known"
    if hashes is not None:
        num_shared = len(hashes.shared(task.overlap_rows(text)))
        known = f"{num_shared:,}" if num_shared else "none"
    count = counted(len(text), task.unit)
    about = f"{count} that the exporter named (trained on: {known})"
    marks = task.shared_rows(text, hashes)
    notes = (*marks, *task.doubts(text, hashes), *_few(source, text))
    return ComparedText(text, about, notes)


def _held_out(source: Source, text: Any, of: str) -> ComparedText:
    """Return a text that was held out from training, of which some may stand there, too."""
    task = source.task
    hashes = training_hashes(source.folder)
    about = f"{counted(len(text), task.unit)} of {of}, held out from training"
    marks = task.shared_rows(text, hashes)
    if hashes is not None and marks:
        num_shared = len(hashes.shared(task.overlap_rows(text)))
        about += f", {num_shared:,} of which stand in the training text, too"
    return ComparedText(text, about, (*marks, *_few(source, text)))


def _few(source: Source, text: Any) -> list[str]:
    """Say that a text has few rows; a document may have any length."""
    task = source.task
    if len(text) >= _FEW or not task.few_rows:
        return []
    count = counted(len(text), task.unit)
    verb = "is" if len(text) == 1 else "are"
    return [f"{count} {verb} little to compare on: give {_ENOUGH} or so as DATA"]
