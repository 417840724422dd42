"""A model's own pass, which `weft selfcheck` holds its engine to: here the plain one in NumPy.

Shapes: N rows, L new tokens of each, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.engine.batched import padded
from weft.engine.plain import Cache, PlainTransformer
from weft.engine.plain_models import PlainClassifier, PlainWriter
from weft.engine.weights import Weights, in_float64, named_arrays
from weft.predict.classifier import ClassifierModel
from weft.predict.language_model import CausalModel
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation

Indices = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


class Decoder(Protocol):
    """A model that writes, as the proofs use it."""

    def start(self, sources: Sequence[Sequence[int]]) -> Any:
        """Return the cache of rows of which nothing is written; a language model's sources are
        empty.
        """
        ...

    def decode(self, ids: Indices, cache: Any) -> tuple[Floats, Any]:
        """Read new tokens (N, L); return the logits of what follows each (N, L, V), and the longer
        cache.
        """
        ...


@dataclass(frozen=True)
class Reference:
    """A model's own pass.

    `broken` names the weights that are not all numbers. A translator and a language model have a
    `decoder`, which `exact` makes again with all numbers in float64; a classifier has a
    `classifier`.
    """

    broken: list[str]
    decoder: Decoder | None = None
    exact: Callable[[], Decoder] | None = None
    classifier: ClassifierModel | None = None


@dataclass(frozen=True)
class Writing:
    """A language model as a decoder."""

    model: CausalModel[Any]

    def start(self, sources: Sequence[Sequence[int]]) -> Any:
        shape = len(sources), 0
        return self.model.prefill(np.zeros(shape, np.int64))

    def decode(self, ids: Indices, cache: Any) -> tuple[Floats, Any]:
        return self.model.decode(ids, cache)


@dataclass(frozen=True)
class PlainTranslation:
    """An encoder-decoder as a decoder, in plain NumPy."""

    model: PlainTransformer

    def start(self, sources: Sequence[Sequence[int]]) -> Cache:
        return self.model.prefill(padded(sources))

    def decode(self, ids: Indices, cache: Cache) -> tuple[Floats, Cache]:
        states, longer = self.model.decode(ids, cache)
        return self.model.output(states), longer


def plain_reference_of(task: Task[Any, Any]) -> Reference:
    """Return the plain pass of a task that has its weights."""
    if isinstance(task, Translation):
        assert task.weights is not None
        return _of_decoder(task.weights, _plain_translation)
    if isinstance(task, LanguageModelling):
        assert task.weights is not None
        return _of_decoder(task.weights, _plain_writing)
    assert isinstance(task, Classification)
    assert task.weights is not None
    classifier = PlainClassifier(task.weights)
    return Reference(_broken(task.weights), classifier=classifier)


def _of_decoder(weights: Weights, build: Callable[[Weights], Decoder]) -> Reference:
    return Reference(
        _broken(weights),
        decoder=build(weights),
        exact=lambda: build(in_float64(weights)),
    )


def _plain_translation(weights: Weights) -> Decoder:
    return PlainTranslation(PlainTransformer(weights))


def _plain_writing(weights: Weights) -> Decoder:
    return Writing(PlainWriter(weights))


def _broken(weights: object) -> list[str]:
    """Return the names of arrays that are not all numbers."""
    arrays = named_arrays(weights)
    return [name for name, array in arrays if not np.isfinite(array).all()]
