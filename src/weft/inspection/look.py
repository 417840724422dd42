"""A text seen through a model of any task."""

from typing import Any

from weft.inspection.classification import (
    ClassificationInspection,
    inspect_classification,
)
from weft.inspection.language import LanguageInspection, inspect_language
from weft.inspection.translation import TranslationInspection, inspect_translation
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation

Inspection = TranslationInspection | LanguageInspection | ClassificationInspection


def inspect_text(task: TrainableTask[Any, Any, Any], text: str) -> Inspection:
    """Run the model on a text and keep what it did. Raises UsageError for an empty text."""
    if isinstance(task, TrainableTranslation):
        return inspect_translation(task, text)
    if isinstance(task, TrainableLanguageModelling):
        return inspect_language(task, text)
    assert isinstance(task, TrainableClassification)
    return inspect_classification(task, text)
