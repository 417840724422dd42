"""A decoder for the search made of a model's own prefill and step.

It serves where no native engine does: on a GPU, for recurrent models, without native libraries, and
with `kernels="torch"`.
Shapes: R rows of one step, M of the cache before it, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from weft.decoding.best import LogSoftmax, best_allowed
from weft.decoding.decoder import Cache, Floats, Ids, Indices, Step, StepInput, TopK

PAD_ID = 0

C = TypeVar("C", bound=Cache)
Prefill: TypeAlias = Callable[[Sequence[Sequence[int]]], C]
"""Makes the cache of one row for each source."""


class BatchedDecoder(Generic[C]):
    """Sentences that begin together: every row of the cache has seen equally many positions.

    A hypothesis is a row of the cache, found by the index of its sentence and its own in the beam.
    """

    begins_together = True

    def __init__(
        self,
        prefill: Prefill[C],
        step: Step[C],
        num_sentences: int,
        beam_size: int,
    ) -> None:
        self.num_sentences = num_sentences
        self.beam_size = beam_size
        self._prefill = prefill
        self._step = step
        self._cache: C | None = None
        # of the cache, by sentence and beam index
        self._rows: dict[tuple[int, int], int] = {}
        # by sentence, where not everything is
        self._allowed: dict[int, Ids] = {}

    def read(
        self,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Begin with these sentences, each at an index of its own; those before them are gone."""
        self._cache = self._prefill(sources)
        self._rows = {}
        for row, index in enumerate(indices):
            self._rows[index, 0] = row
        self._allowed = {}
        for index, ids in zip(indices, allowed, strict=False):
            if len(ids):
                self._allowed[index] = ids

    def step(self, inputs: StepInput, k: int, *, all_log_probs: bool = False) -> TopK:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        assert self._cache is not None
        sentences = inputs.sentences.tolist()
        beams = inputs.beams.tolist()
        parents = self._parents(inputs, sentences)
        if parents != list(range(len(self._rows))):
            self._cache = self._cache.select(np.array(parents))
        tokens = inputs.tokens.astype(np.int64)
        logits, self._cache = self._step(tokens, self._cache)
        keys = zip(sentences, beams, strict=True)
        self._rows = {}
        for row, key in enumerate(keys):
            self._rows[key] = row
        allowed = self._allowed_alone(logits, sentences)
        log_softmax = LogSoftmax.of(allowed)
        best, ids = best_allowed(allowed, inputs, k)
        every = log_softmax.log_probs(allowed) if all_log_probs else None
        return log_softmax.log_probs(best), ids, every

    def _parents(self, inputs: StepInput, sentences: Sequence[int]) -> list[int]:
        """Return for each hypothesis the row of the cache that it goes on from."""
        positions = inputs.positions
        last = np.maximum(positions - 1, 0)
        rows = np.arange(len(inputs))
        ancestors = inputs.ancestors[rows, last]
        beams = np.where(positions > 0, ancestors, 0)
        keys = zip(sentences, beams.tolist(), strict=True)
        return [self._rows[key] for key in keys]

    def _allowed_alone(self, logits: Floats, sentences: Sequence[int]) -> Floats:
        """Mask the logits of all tokens that a row's sentence does not allow."""
        if not self._allowed:
            return logits
        masked = np.full_like(logits, -np.inf)
        for row, index in enumerate(sentences):
            ids = self._allowed.get(index, slice(None))
            masked[row, ids] = logits[row, ids]
        return masked


@dataclass(frozen=True)
class Steps(Generic[C]):
    """A model's own steps: `prefill` reads sources, `step` takes one more token for each row.

    A model without an engine is decoded by them: `session` makes it serve as an `Engine`.
    """

    prefill: Prefill[C]
    step: Step[C]

    def session(self, num_sentences: int, beam_size: int) -> BatchedDecoder[C]:
        """Start a session of so many sentences with so many hypotheses each."""
        return BatchedDecoder(self.prefill, self.step, num_sentences, beam_size)


def padded(rows: Sequence[Sequence[int]]) -> Indices:
    """Return rows of ids as one array (B, L) of at least one column, shorter rows filled on the
    right.
    """
    width = max(1, *map(len, rows))
    filled = [[*row, *[PAD_ID] * (width - len(row))] for row in rows]
    return np.array(filled, np.int64)
