"""A model folder is opened as its task: without PyTorch, unless the model needs it.

It is needed by recurrent models, and where its steps were asked for.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.folder.model_folder import FolderConfig, open_model_folder
from weft.kernels.machine import (
    machine_for_use,
    refuse_for_use,
)
from weft.packages import require_torch
from weft.tasks.detecting import detector_of
from weft.tasks.task import Task

_KINDS = {
    "translation": ("weft.tasks.translation", "Translation"),
    "language-modelling": ("weft.tasks.language_modelling", "LanguageModelling"),
    "classification": ("weft.tasks.classification", "Classification"),
}


def kind_of(task: str) -> type[Task[Any, Any]]:
    """Return a task by its name; the modules of the others are not loaded."""
    module, name = _KINDS[task]
    kind: type[Task[Any, Any]] = getattr(import_module(module), name)
    return kind


def load_predictor(
    folder: Path, precision: str = "float32", kernels: str = "auto"
) -> Any:
    """Load a folder's Translator, LanguageModel or Classifier. Raises as `weft.load` does."""
    return predictor_of(load_task(folder, precision, kernels), folder)


def predictor_of(task: Task[Any, Any], folder: Path) -> Any:
    """Return what predicts by a task that a folder holds."""
    predictor = task.predictor()
    predictor.find_detector = partial(detector_of, [folder])
    return predictor


def load_task(
    folder: Path,
    precision: str = "float32",
    kernels: str = "auto",
    is_command: bool = False,
) -> Task[Any, Any]:
    """Return the model in a folder, as its own task.

    `is_command`: the process is its own, and PyTorch's threads may be set. Raises FolderError where
    the folder is missing or damaged, UsageError for a precision that the machine does not have, or
    where PyTorch is needed and missing.
    """
    refuse_for_use(precision, kernels)
    config = open_model_folder(folder).config
    if not needs_torch(config, kernels):
        return kind_of(config.task).load(folder, machine_for_use(precision))
    asked = f"kernels = {kernels}" if kernels != "auto" else f"the model in {folder}"
    require_torch(asked)
    # loaded for what needs it alone
    from weft.kernels.torch_machine import machine_for_torch
    from weft.tasks.choice import load_trainable

    machine = machine_for_torch(precision, kernels, sets_threads=is_command)
    return load_trainable(folder, machine)


def needs_torch(config: FolderConfig, kernels: str = "auto") -> bool:
    """Return whether a model is used by PyTorch: by its kind, or the kernels asked for.

    A GPU is no reason: small models are used faster by the CPU's engine, alone and many at once.
    """
    return config.is_recurrent or kernels == "torch"
