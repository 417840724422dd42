"""The model of a task as an inspection reads it: by its weights, in plain NumPy.

PyTorch is loaded where the task has been loaded by it, and computes a recurrent model alone.
"""

from weft.engine.weights import ClassifierWeights, Weights
from weft.inspection.views import PlainView, TranslationView
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.translation import Translation


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
