"""A PyTorch model's own pass, where PyTorch decodes: recurrent models, GPUs, `kernels="torch"`.

Shapes: N rows, L new tokens of each, V vocabulary.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from weft.engine.torch_steps import (
    TorchCache,
    TorchClassifier,
    TorchWriter,
    TranslationModule,
    calling,
    steps_of,
)
from weft.inspection.reference import Decoder, Floats, Indices, Reference, Writing
from weft.tasks.task import Task
from weft.tasks.trainable import TrainableTask
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class TorchTranslation:
    """An encoder-decoder of PyTorch as a decoder, on its device."""

    model: TranslationModule
    device: torch.device | str = "cpu"

    def start(self, sources: Sequence[Sequence[int]]) -> TorchCache:
        return steps_of(self.model, self.device).prefill(sources)

    def decode(self, ids: Indices, cache: TorchCache) -> tuple[Floats, TorchCache]:
        rows = torch.from_numpy(ids).to(self.device)
        with calling(self.model):
            states, longer = self.model.decode(rows, cache.cache)
            logits = self.model.output(states).cpu().numpy()
        return logits, TorchCache(longer, self.device)


def torch_reference_of(task: Task[Any, Any]) -> Reference:
    """Return the pass of the model that PyTorch computes for a task."""
    assert isinstance(task, TrainableTask)
    broken = _broken(task.model)
    device = task.machine.device
    if isinstance(task, TrainableClassification):
        classifier = TorchClassifier(task.model, device)
        return Reference(broken, classifier=classifier)
    if isinstance(task, TrainableLanguageModelling):
        writer = task.model
        return Reference(
            broken,
            decoder=Writing(TorchWriter(writer, device)),
            exact=lambda: Writing(TorchWriter(_in_float64(writer))),
        )
    assert isinstance(task, TrainableTranslation)
    translator: Any = task.model  # of two kinds
    decoder: Decoder = TorchTranslation(translator, device)
    return Reference(
        broken,
        decoder=decoder,
        exact=lambda: TorchTranslation(_in_float64(translator)),
    )


def _in_float64(model: M) -> M:
    return copy.deepcopy(model).cpu().double()


def _broken(model: nn.Module) -> list[str]:
    """Return the names of weights that are not all numbers."""
    named = model.named_parameters()
    return [name for name, weight in named if not weight.isfinite().all()]
