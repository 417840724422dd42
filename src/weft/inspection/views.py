"""A translator's model as an inspection reads it; that of a Transformer is the plain NumPy pass.

Shapes: S source and T target tokens, V vocabulary, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from weft.config import Seq2SeqSection
from weft.data.tokenizer import BOS_ID
from weft.engine.batched import Steps
from weft.engine.plain import PlainTransformer, softmax
from weft.engine.plain_steps import steps_of
from weft.engine.stream import translation_pass
from weft.engine.weights import Floats, Weights
from weft.inspection.insides import Insides, insides_of
from weft.inspection.model_map import ModelMap, map_of_translator
from weft.inspection.tokens import Limits, Vectors, embedded, stacked
from weft.tasks.translation import Translation

Family: TypeAlias = Literal["transformer", "additive", "dot"]


@dataclass(frozen=True, eq=False)
class Maps:
    """The attention of every layer and head: encoder (layers, H, S, S), decoder (layers, H, T, T)
    and cross (layers, H, T, S); the probabilities at each target token (T, V); and all else that is
    inside.
    """

    encoder: Floats
    decoder: Floats
    cross: Floats
    probabilities: Floats
    insides: Insides


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

    @property
    def tables(self) -> tuple[Floats, Floats]:
        """Return the token vectors of source and target (V, D)."""
        ...

    def drawn(self, task: Translation) -> ModelMap:
        """Return the model's map."""
        ...

    def look(self, src: Sequence[int], tgt: Sequence[int], limits: Limits) -> Maps:
        """Run the model once over source and translation, and record its insides.

        The source ends with eos, the translation does not begin with bos.
        """
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

    @property
    def tables(self) -> tuple[Floats, Floats]:
        weights = self.weights
        assert weights.src is not None
        assert weights.tgt is not None
        return weights.src.tokens, weights.tgt.tokens

    def drawn(self, task: Translation) -> ModelMap:
        shape = task.config.model
        assert isinstance(shape, Seq2SeqSection)
        joint = task.tokenizers[0] is task.tokenizers[1]
        return map_of_translator(shape, self.weights, shape.tie_embeddings, joint)

    def look(self, src: Sequence[int], tgt: Sequence[int], limits: Limits) -> Maps:
        passed = translation_pass(self.weights, src, [BOS_ID, *tgt[:-1]])
        record = passed.record
        return Maps(
            stacked(record.encoder),
            stacked(record.decoder),
            stacked(record.cross),
            softmax(passed.logits),
            insides_of(passed, tgt, limits),
        )

    def vectors(
        self, src: Sequence[int], tgt_in: Sequence[int], limits: Limits
    ) -> tuple[Vectors, Vectors]:
        weights = self.weights
        return (
            embedded(weights, weights.src, src, limits),
            embedded(weights, weights.tgt, tgt_in, limits),
        )
