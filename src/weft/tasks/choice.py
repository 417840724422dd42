"""The task that a recipe trains, or a model folder goes on with."""

from pathlib import Path
from typing import Any

from weft.folder import model_folder
from weft.kernels.machine import Machine
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation

TASKS: dict[str, type[TrainableTask[Any, Any, Any]]] = {
    kind.name: kind
    for kind in (
        TrainableTranslation,
        TrainableLanguageModelling,
        TrainableClassification,
    )
}


def load_trainable(folder: Path, machine: Machine) -> TrainableTask[Any, Any, Any]:
    """Return the model in a folder, as its own task. Raises FolderError where it is missing or
    damaged.
    """
    config = model_folder.open_model_folder(folder).config
    return TASKS[config.task].load(folder, machine)
