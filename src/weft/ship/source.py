"""A model that is to leave: its weights in float32, its tokenizers, and what computes it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.config import MarksSection, Section
from weft.data.marks import language_mark, pieces_of
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
    def left_out(self) -> list[str]:
        """Return the marks of a translator that do not leave with it."""
        config = self.own.config
        return pieces_of(config.marks) if isinstance(config, TranslationConfig) else []

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
    if isinstance(config, TranslationConfig) and config.marks.languages:
        marks = ", ".join(map(language_mark, config.marks.languages))
        raise NoHome(
            f"{folder}: the model reads before each source which language to write ({marks}), and other programs "
            "write no such mark; train one of a single direction"
        )
    own = load_task(folder)
    shapes = stored_shapes(_parameters(config), config.weights == "int8")
    arrays = _in_float32(stored.weights(shapes))
    task = _computing(own, arrays)
    if isinstance(task, Translation) and task.config.marks:
        task, arrays = _without_marks(task, arrays)
    return Source(folder, task, own, arrays)


def _without_marks(
    task: Translation, arrays: dict[str, NDArray[np.float32]]
) -> tuple[Translation, dict[str, NDArray[np.float32]]]:
    """Return a model as it translates without a tag: without its marks, which are the last of its
    tokens, and their weights.
    """
    src, tgt = task.tokenizers
    fewer = src.without_marks()
    tokenizers = (fewer, fewer if tgt is src else tgt)
    changed = {
        "marks": MarksSection(),
        "src_vocab_size": fewer.vocab_size,
        "tgt_vocab_size": tokenizers[1].vocab_size,
    }
    config = task.config.model_copy(update=changed)
    cut = {}
    for parameter in translation_parameters(config):
        cut[parameter.name] = arrays[parameter.name][: parameter.shape[0]]
    weights = weights_of(config, cut)
    changed_task = replace(task, config=config, tokenizers=tokenizers, weights=weights)
    return changed_task, cut


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
