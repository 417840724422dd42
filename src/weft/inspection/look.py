"""A text seen through a model of any task."""

from typing import Any

from weft.inspection.classification import (
    ClassificationInspection,
    inspect_classification,
)
from weft.inspection.language import LanguageInspection, inspect_language
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

Inspection = TranslationInspection | LanguageInspection | ClassificationInspection


def inspect_text(task: Task[Any, Any, Any], text: str) -> Inspection:
    """Run the model on a text and keep what it did. Raises UsageError for an empty text."""
    if isinstance(task, Translation):
        return inspect_translation(task, text)
    if isinstance(task, LanguageModelling):
        return inspect_language(task, text)
    assert isinstance(task, Classification)
    return inspect_classification(task, text)
