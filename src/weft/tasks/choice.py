"""The task of a recipe or of a model folder."""

from pathlib import Path
from typing import Any

from weft.folder import model_folder
from weft.kernels.machine import Machine, machine_for_use
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

TASKS: dict[str, type[Task[Any, Any, Any]]] = {
    kind.name: kind for kind in (Translation, LanguageModelling, Classification)
}


def load_predictor(
    folder: Path, precision: str = "float32", kernels: str = "auto"
) -> Any:
    """Load a folder's Translator, LanguageModel or Classifier. Raises as `weft.load` does."""
    return load_task(folder, machine_for_use(precision, kernels)).predictor()


def load_task(folder: Path, machine: Machine) -> Task[Any, Any, Any]:
    """Return the model in a folder, as its own task. Raises FolderError where it is missing or
    damaged.
    """
    return TASKS[model_folder.open_model_folder(folder).config.task].load(
        folder, machine
    )
