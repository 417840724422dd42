"""The model as Weft computes it: logits by the plain pass, searches as they are used.

Ids are Weft's own. Shapes: T target ids, L ids, V vocabulary, C labels.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.search import search_all
from weft.decoding.sentences import BeamSettings, Sentence
from weft.engine.plain import PlainTransformer
from weft.engine.plain_models import PlainClassifier, PlainWriter
from weft.engine.weights import Weights
from weft.predict.settings import BANNED
from weft.ship.opened import Floats, Row, Wanted
from weft.ship.written import NEVER
from weft.tasks.classification import Classification
from weft.tasks.language_modelling import LanguageModelling
from weft.tasks.task import Task
from weft.tasks.translation import Translation


class Reference(ABC):
    """The model as Weft computes it."""

    @abstractmethod
    def logits(self, row: Row) -> Floats:
        """Compute the logits as `Opened.logits` gives them."""

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        """Search as `Opened.search` does."""
        raise NotImplementedError


class TranslatorReference(Reference):
    """A translator: its searches are those of `weft translate`.

    With `bans_first` ids that are never written have no share in the softmax.
    """

    def __init__(self, task: Translation, bans_first: bool = False) -> None:
        assert task.weights is not None
        self.model = PlainTransformer(task.weights)
        if bans_first:
            task = replace(task, weights=_without_banned(task.weights))
        self.searcher = task.predictor().searcher

    def logits(self, row: Row) -> Floats:
        src = np.array([row.ids])
        tgt_in = np.array([row.tgt_in])
        cache = self.model.prefill(src)
        states, _ = self.model.decode(tgt_in, cache)
        (logits,) = self.model.output(states)
        return logits

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        sentences = [
            Sentence(number, row.ids, row.limit) for number, row in enumerate(rows)
        ]
        settings = BeamSettings(BOS_ID, EOS_ID, beam_size, banned_ids=BANNED)
        found = search_all(self.searcher, sentences, settings)
        return [list(found[number][0].ids) for number in range(len(rows))]


class WriterReference(Reference):
    """A language model."""

    def __init__(self, task: LanguageModelling) -> None:
        assert task.weights is not None
        self.model = PlainWriter(task.weights)
        self.used: Any = task.predictor().model

    def logits(self, row: Row) -> Floats:
        ids = np.array([row.ids])
        start = self.model.prefill(ids[:, :0])
        (logits,), _ = self.model.decode(ids, start)
        return logits

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        assert beam_size == 1, "Weft samples from language models, without beams"
        return [self._greedy(row) for row in rows]

    def _greedy(self, row: Wanted) -> list[int]:
        *before, newest = row.ids
        prompt = np.array([before], np.int64)
        cache = self.used.prefill(prompt)
        found: list[int] = []
        while len(found) < row.limit:
            ids = np.array([[newest]])
            logits, cache = self.used.decode(ids, cache)
            newest = _most_probable(logits[0, -1])
            if newest == EOS_ID:
                break
            found.append(newest)
        return found


class ClassifierReference(Reference):
    """A classifier."""

    def __init__(self, task: Classification) -> None:
        assert task.weights is not None
        self.model = PlainClassifier(task.weights)

    def logits(self, row: Row) -> Floats:
        ids = np.array([row.ids])
        (logits,) = self.model.logits(ids)
        return logits


def reference_of(task: Task[Any, Any], bans_first: bool = False) -> Reference:
    """Return the model of a task as Weft computes it; `bans_first` as `Opened` has it."""
    if isinstance(task, Translation):
        return TranslatorReference(task, bans_first)
    if isinstance(task, LanguageModelling):
        return WriterReference(task)
    assert isinstance(task, Classification)
    return ClassifierReference(task)


def _without_banned(weights: Weights) -> Weights:
    """Return the same model with logits that leave ids that are never written no probability."""
    projection = weights.projection
    assert projection is not None
    size = len(projection.stored)
    bias = np.zeros(size, np.float32)
    if projection.bias is not None:
        bias = projection.bias.copy()
    bias[list(BANNED)] = NEVER
    return replace(weights, projection=replace(projection, bias=bias))


def _most_probable(logits: NDArray[Any]) -> int:
    allowed = logits.astype(np.float64)
    allowed[list(BANNED)] = -np.inf
    return int(allowed.argmax())
