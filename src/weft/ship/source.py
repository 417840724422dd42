"""A model that is to leave: its weights in float32, its tokenizers, and what computes it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.config import Section
from weft.data.marks import pieces_of
from weft.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from weft.errors import UsageError
from weft.folder.arrays import Arrays
from weft.folder.layout import SCALES
from weft.folder.model_folder import (
    ClassificationConfig,
    FolderConfig,
    LanguageConfig,
    TranslationConfig,
    open_model_folder,
)
from weft.predict.parameters import (
    Parameters,
    causal_parameters,
    classifier_parameters,
    stored_shapes,
)
from weft.tasks.opening import load_task
from weft.tasks.task import Task
from weft.tasks.translation import Translation, weights_of
from weft.tasks.translation import parameters_of as translation_parameters


class NoHome(UsageError):
    """A model that another program does not compute, with the reason."""


@dataclass(frozen=True, eq=False)
class Source:
    """A model in a folder. `arrays` are its weights by their names in the folder, in float32; those
    of an int8 model are multiplied by their scales. `task` computes with these very numbers; `own`
    as Weft uses the folder, an int8 model in int8.

    `tokenizers` are source and target of a translator (one object twice where joint), of any other
    model its only one.
    """

    folder: Path
    task: Task[Any, Any]
    own: Task[Any, Any]
    arrays: Arrays

    @property
    def config(self) -> FolderConfig:
        """Return the content of the folder's config.json."""
        config: FolderConfig = self.task.config
        return config

    @property
    def shape(self) -> Section:
        """Return the shape of the model: the config's section `model`."""
        config = self.config
        assert isinstance(
            config, TranslationConfig | LanguageConfig | ClassificationConfig
        )
        return config.model

    @property
    def tokenizers(self) -> tuple[Tokenizer, ...]:
        """Return the tokenizers, the source's first."""
        return tuple(self.task.tokenizers)

    @property
    def start_id(self) -> int:
        """Return the id that a text of a language model begins with: bos, or, as one stream is cut
        anywhere, the eos of the text before.
        """
        assert isinstance(self.config, LanguageConfig)
        return BOS_ID if self.config.packing == "packed" else EOS_ID

    @property
    def is_joint(self) -> bool:
        """Return whether one tokenizer has all ids of the model."""
        return len(set(self.tokenizers)) == 1


def open_source(folder: Path) -> Source:
    """Open a model to write it in another form.

    Raises FolderError for a folder that is damaged or holds no model, NoHome for a recurrent
    model.
    """
    stored = open_model_folder(folder)
    config = stored.config
    if config.is_recurrent:
        raise NoHome(
            f"{folder}: the model is recurrent, and no other program has one like it; "
            'train a Transformer (model.kind = "transformer")'
        )
    if isinstance(config, TranslationConfig) and config.marks:
        raise NoHome(
            f"{folder}: the model reads marks before its sources ({', '.join(pieces_of(config.marks))}), which other "
            "programs do not write; train one without tags"
        )
    own = load_task(folder)
    shapes = stored_shapes(_parameters(config), config.weights == "int8")
    arrays = _in_float32(stored.weights(shapes))
    return Source(folder, _computing(own, arrays), own, arrays)


def _parameters(config: FolderConfig) -> Parameters:
    if isinstance(config, TranslationConfig):
        return translation_parameters(config)
    if isinstance(config, LanguageConfig):
        return causal_parameters(config.model, config.vocab_size)
    assert isinstance(config, ClassificationConfig)
    return classifier_parameters(config.model, config.vocab_size, len(config.labels))


def _computing(task: Task[Any, Any], arrays: Arrays) -> Task[Any, Any]:
    """Return a task whose weights are those of an int8 folder in float32; else the task itself."""
    if not isinstance(task, Translation) or task.config.weights != "int8":
        return task
    config = task.config.model_copy(update={"weights": "float32"})
    return replace(task, config=config, weights=weights_of(config, arrays))


def _in_float32(arrays: Arrays) -> dict[str, NDArray[np.float32]]:
    """Multiply the rows of int8 matrices by their scales."""
    found = {}
    for name, array in arrays.items():
        if name.endswith(SCALES):
            continue
        scales = arrays.get(name + SCALES)
        if scales is None:
            found[name] = array
        else:
            found[name] = array.astype(np.float32) * scales[:, None]
    return found
