"""Several models that translate together: the mean of their probabilities at every token.

Shapes: R rows of one step, V vocabulary.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from weft.decoding.decoder import Decoder, Engine, Ids, StepInput, TopK
from weft.engine.batched import best_allowed


class EnsembleEngine:
    """Engines of models with one target vocabulary, as one."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = engines

    def session(self, num_sentences: int, beam_size: int) -> "EnsembleDecoder":
        """Return a session of each."""
        return EnsembleDecoder(
            [engine.session(num_sentences, beam_size) for engine in self.engines]
        )


class EnsembleDecoder:
    """Takes every step with all decoders: the log-probability of a token is the log of its mean
    probability.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        """Join decoders of equally many sentences and hypotheses of each."""
        self.decoders = decoders
        self.num_sentences = decoders[0].num_sentences
        self.beam_size = decoders[0].beam_size
        self.begins_together = any(decoder.begins_together for decoder in decoders)

    def read(
        self,
        indices: Sequence[int],
        sources: Sequence[Sequence[int]],
        allowed: Sequence[Ids] = (),
    ) -> None:
        """Read the sentences, and their shortlists, with each decoder."""
        for decoder in self.decoders:
            decoder.read(indices, sources, allowed)

    def step(self, inputs: StepInput, k: int, *, all_log_probs: bool = False) -> TopK:
        """Step once for each row, as `weft.engine.bindings.Session.step`."""
        every = [
            decoder.step(inputs, 1, all_log_probs=True) for decoder in self.decoders
        ]
        log_probs = log_mean(
            [
                torch.from_numpy(everything)
                for _, _, everything in every
                if everything is not None
            ]
        )
        best, ids = best_allowed(log_probs, inputs, k)
        return (
            best.numpy(),
            ids.numpy().astype(np.int32),
            log_probs.numpy() if all_log_probs else None,
        )


def log_mean(log_probs: Sequence[Float[Tensor, "R V"]]) -> Float[Tensor, "R V"]:
    """Compute the log of the mean of the probabilities, in double precision."""
    return (
        torch.stack(list(log_probs)).double().logsumexp(0) - math.log(len(log_probs))
    ).float()
