"""A text seen through a model of any task."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from weft.errors import UsageError
from weft.inspection.classification import (
    PARTS,
    ClassificationInspection,
    inspect_classification,
    reasons_data,
)
from weft.inspection.language import LanguageInspection, inspect_language
from weft.inspection.packing import budget_for, packed, plain
from weft.inspection.tokens import USUAL, Limits
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

Inspection: TypeAlias = (
    TranslationInspection | LanguageInspection | ClassificationInspection
)

_ROOM = 4  # times a page's budget has an answer, which nobody keeps


def inspect_text(
    task: Task[Any, Any],
    text: str,
    limits: Limits = USUAL,
    beam_size: int | None = None,
) -> Inspection:
    """Run the model on a text and keep what it did. Raises UsageError for an empty text, and for a
    beam size where nothing is searched for.

    It needs PyTorch for a recurrent model alone, and where the task was loaded by PyTorch.
    """
    if isinstance(task, Translation):
        return inspect_translation(task, text, beam_size, limits)
    if beam_size is not None:
        raise UsageError(
            f"beam_size is for translation; this model is for {task.name}: leave it out"
        )
    if isinstance(task, LanguageModelling):
        return inspect_language(task, text, limits)
    assert isinstance(task, Classification)
    return inspect_classification(task, text, limits)


def inspection_data(
    task: Task[Any, Any],
    text: str,
    limits: Limits = USUAL,
    is_packed: bool = False,
    parts: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what `weft inspect` shows of a text, as docs/inspection.md describes it: a dictionary
    for JSON, of lists or of packed arrays. With `parts`, these of a classifier's contributions
    alone.

    Raises UsageError for an empty text, and for parts that the model does not have.
    """
    refuse_parts(task, parts)
    if not parts:
        inspection = inspect_text(task, text, limits)
        return _packed(inspection.to_data()) if is_packed else inspection.to_json()
    assert isinstance(task, Classification)
    data = reasons_data(task, text, parts, limits)
    found: dict[str, Any] = _packed(data) if is_packed else plain(data)
    return found


def _packed(data: dict[str, Any]) -> dict[str, Any]:
    """Pack an answer that is awaited: quickly, and with more room than a page that is kept has."""
    return packed(data, _ROOM * budget_for(data), deflates=False)


def refuse_parts(task: Task[Any, Any], parts: Sequence[str]) -> None:
    """Raise UsageError for parts that cannot be asked for alone of this model."""
    if not parts:
        return
    if not isinstance(task, Classification):
        raise UsageError(
            f"parts are those of a classifier's contributions; this model is for {task.name}: leave them out"
        )
    if any(part not in PARTS for part in parts):
        raise UsageError(f"parts: each must be one of {', '.join(PARTS)}")
