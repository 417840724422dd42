"""Models of PyTorch as an inspection reads them: the weights of a Transformer, and a recurrent
model's own pass.

Shapes: S source and T target tokens, V vocabulary.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from weft.engine.batched import Steps
from weft.engine.from_model import (
    causal_weights_of,
    classifier_weights_of,
    weights_of,
)
from weft.engine.plain import softmax
from weft.engine.stream import lens_of
from weft.engine.torch_steps import TorchCache, calling, steps_of
from weft.engine.weights import ClassifierWeights, Floats, Weights
from weft.folder.arrays import Arrays
from weft.inspection.insides import Insides, choices_of
from weft.inspection.model_map import ModelMap
from weft.inspection.recurrent import array_of, map_of_recurrent, recurrent_pass
from weft.inspection.tokens import Limits, Vectors, stacked
from weft.inspection.views import Family, Maps, PlainView, TranslationView
from weft.model.recurrent import DotAttention, Seq2SeqRecurrent
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.trainable import fill
from weft.tasks.trainable_classification import TrainableClassification
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation
from weft.tasks.translation import Translation


@dataclass(frozen=True)
class RecurrentView:
    """A recurrent encoder-decoder, which PyTorch alone computes."""

    model: Seq2SeqRecurrent
    device: torch.device | str

    @property
    def family(self) -> Family:
        return "dot" if isinstance(self.model.attention, DotAttention) else "additive"

    @property
    def steps(self) -> Steps[TorchCache]:
        return steps_of(self.model, self.device)

    @property
    def tables(self) -> tuple[Floats, Floats]:
        model = self.model
        return array_of(model.src_embedding.weight), array_of(
            model.tgt_embedding.weight
        )

    def drawn(self, task: Translation) -> ModelMap:
        return map_of_recurrent(self.model)

    def look(self, src: Sequence[int], tgt: Sequence[int], limits: Limits) -> Maps:
        passed = recurrent_pass(self.model, src, tgt, self.device)
        logits = passed.logits[-1]
        insides = Insides(
            lens_of(passed.logits, passed.rows, tgt),
            None,
            choices_of(logits, limits.choices),
            {},
            {"encoder": passed.memory, "decoder": passed.hidden},
        )
        nothing = stacked([])
        maps = stacked([passed.weights])
        return Maps(nothing, nothing, maps, softmax(logits), insides)

    def vectors(
        self, src: Sequence[int], tgt_in: Sequence[int], limits: Limits
    ) -> tuple[Vectors, Vectors]:
        model = self.model
        return (
            self._embedded(model.src_embedding, src, limits),
            self._embedded(model.tgt_embedding, tgt_in, limits),
        )

    def _embedded(
        self, table: nn.Module, ids: Sequence[int], limits: Limits
    ) -> Vectors:
        with calling(self.model):
            row = torch.tensor(ids, device=self.device)
            scaled = table(row) * self.model.scale
        return Vectors(array_of(scaled), None, dimensions=limits.dimensions)


def view_of(task: Translation) -> TranslationView:
    """Return the model of a translator of PyTorch."""
    assert isinstance(task, TrainableTranslation)
    model = task.model
    if isinstance(model, Seq2SeqRecurrent):
        return RecurrentView(model, task.machine.device)
    return PlainView(weights_of(model))


def language_weights_of(task: LanguageModelling) -> Weights:
    """Return the weights of a language model of PyTorch."""
    assert isinstance(task, TrainableLanguageModelling)
    return causal_weights_of(task.model)


def classifier_weights_in(task: Classification) -> ClassifierWeights:
    """Return the weights of a classifier of PyTorch."""
    assert isinstance(task, TrainableClassification)
    return classifier_weights_of(task.model)


def filled(task: Task[Any, Any], arrays: Arrays) -> Task[Any, Any]:
    """Return the same task of PyTorch with a model of other weights."""
    trained: Any = task  # each is a dataclass
    model = deepcopy(trained.model)
    fill(model, arrays)
    changed: Task[Any, Any] = replace(trained, model=model)
    return changed
