"""Several models that translate together: the mean of their probabilities at every token.

Shapes: R rows of one step, V vocabulary.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from weft.decoding.decoder import Best, Decoder, Engine, Ids, Rows
from weft.engine.batched import best_allowed


class EnsembleEngine:
    """Engines of models with one target vocabulary, as one."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = engines

    def session(self, slots: int, places: int) -> "EnsembleDecoder":
        """Return a session of each."""
        return EnsembleDecoder(
            [engine.session(slots, places) for engine in self.engines]
        )


class EnsembleDecoder:
    """Takes every step with all decoders: the log-probability of a token is the log of its mean
    probability.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        """Join decoders that have equally many slots and places."""
        self.decoders = decoders
        self.slots, self.places = decoders[0].slots, decoders[0].places
        self.begins_together = any(decoder.begins_together for decoder in decoders)

    def read(
        self,
        slots: Sequence[int],
        sentences: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Read the sentences, and their shortlists, with each decoder."""
        for decoder in self.decoders:
            decoder.read(slots, sentences, allowed)

    def step(self, rows: Rows, count: int, *, whole: bool = False) -> Best:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        every = [decoder.step(rows, 1, whole=True) for decoder in self.decoders]
        log_probs = log_mean(
            [
                torch.from_numpy(everything)
                for _, _, everything in every
                if everything is not None
            ]
        )
        best, ids = best_allowed(log_probs, rows, count)
        return (
            best.numpy(),
            ids.numpy().astype(np.int32),
            log_probs.numpy() if whole else None,
        )


def log_mean(log_probs: Sequence[Float[Tensor, "R V"]]) -> Float[Tensor, "R V"]:
    """Compute the log of the mean of the probabilities, in double precision."""
    return (
        torch.stack(list(log_probs)).double().logsumexp(0) - math.log(len(log_probs))
    ).float()
