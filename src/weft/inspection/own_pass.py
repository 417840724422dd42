"""The model of a task as an inspection reads it: by its weights, in plain NumPy.

PyTorch is loaded where the task has been loaded by it, and computes a recurrent model alone.
"""

from dataclasses import replace
from typing import Any, TypeAlias

from weft.config import Seq2SeqSection
from weft.engine.weights import ClassifierWeights, Weights
from weft.folder.arrays import Arrays
from weft.inspection.views import PlainView, TranslationView
from weft.predict.weights import causal_weights, seq2seq_weights
from weft.predict.weights import classifier_weights as weights_of_classifier
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

AnyTask: TypeAlias = Task[Any, Any]


def translation_view(task: Translation) -> TranslationView:
    """Return the model of a translator."""
    if task.weights is not None:
        return PlainView(task.weights)
    from weft.inspection.trained import view_of

    return view_of(task)


def language_weights(task: LanguageModelling) -> Weights:
    """Return the weights of a language model, also of one that PyTorch computes."""
    if task.weights is not None:
        return task.weights
    from weft.inspection.trained import language_weights_of

    return language_weights_of(task)


def classifier_weights(task: Classification) -> ClassifierWeights:
    """Return the weights of a classifier, also of one that PyTorch computes."""
    if task.weights is not None:
        return task.weights
    from weft.inspection.trained import classifier_weights_in

    return classifier_weights_in(task)


def with_weights(task: AnyTask, arrays: Arrays) -> AnyTask:
    """Return the same model with other weights, by the names that a folder stores them by."""
    if getattr(task, "weights", None) is None:
        from weft.inspection.trained import filled

        return filled(task, arrays)
    if isinstance(task, Translation):
        assert isinstance(task.config.model, Seq2SeqSection)
        return replace(task, weights=seq2seq_weights(task.config.model, arrays))
    if isinstance(task, LanguageModelling):
        return replace(task, weights=causal_weights(task.config.model, arrays))
    assert isinstance(task, Classification)
    return replace(task, weights=weights_of_classifier(task.config.model, arrays))
