"""A translator's model as an inspection reads it; that of a Transformer is the plain NumPy pass.

Shapes: S source and T target tokens, V vocabulary, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from weft.engine.batched import Steps
from weft.engine.plain import PlainTransformer, softmax
from weft.engine.plain_steps import steps_of
from weft.engine.record import Record
from weft.engine.weights import Floats, Weights
from weft.inspection.tokens import Limits, Vectors, embedded, stacked

Family: TypeAlias = Literal["transformer", "additive", "dot"]


@dataclass(frozen=True, eq=False)
class Maps:
    """The attention of every layer and head: encoder (layers, H, S, S), decoder (layers, H, T, T)
    and cross (layers, H, T, S); and the probabilities at each target token (T, V).
    """

    encoder: Floats
    decoder: Floats
    cross: Floats
    probabilities: Floats


class TranslationView(Protocol):
    """A translator's model."""

    @property
    def family(self) -> Family:
        """Name the kind of model."""
        ...

    @property
    def steps(self) -> Steps[Any]:
        """Return the model's own steps."""
        ...

    def look(self, src: Sequence[int], tgt_in: Sequence[int]) -> Maps:
        """Run the model once over source and translation, and record its attention."""
        ...

    def vectors(
        self, src: Sequence[int], tgt_in: Sequence[int], limits: Limits
    ) -> tuple[Vectors, Vectors]:
        """Return the vectors of both sides."""
        ...


@dataclass(frozen=True)
class PlainView:
    """A Transformer by its weights."""

    weights: Weights
    family: Family = "transformer"

    @property
    def steps(self) -> Steps[Any]:
        return steps_of(PlainTransformer(self.weights))

    def look(self, src: Sequence[int], tgt_in: Sequence[int]) -> Maps:
        record = Record()
        model = PlainTransformer(self.weights)
        cache = model.prefill(np.array([src]), record)
        states, _ = model.decode(np.array([tgt_in]), cache, record=record)
        probabilities = softmax(model.output(states[0]))
        return Maps(
            stacked(record.encoder),
            stacked(record.decoder),
            stacked(record.cross),
            probabilities,
        )

    def vectors(
        self, src: Sequence[int], tgt_in: Sequence[int], limits: Limits
    ) -> tuple[Vectors, Vectors]:
        weights = self.weights
        assert weights.src is not None
        assert weights.tgt is not None
        scale = weights.embedding_scale
        return (
            embedded(weights.src, scale, src, limits),
            embedded(weights.tgt, scale, tgt_in, limits),
        )
