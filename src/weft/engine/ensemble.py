"""Several models that translate together: the mean of their probabilities at every token.

Shapes: R rows of one step, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from weft.decoding.best import best_allowed
from weft.decoding.decoder import Decoder, Engine, Floats, Ids, StepInput, TopK


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
        log_probs = log_mean([all_of for _, _, all_of in every if all_of is not None])
        best, ids = best_allowed(log_probs, inputs, k)
        return best, ids, log_probs if all_log_probs else None


def log_mean(log_probs: Sequence[Floats]) -> Floats:
    """Compute the log of the mean of the probabilities (R, V), in double precision."""
    largest = np.maximum.reduce(list(log_probs)).astype(np.float64)
    # what no model gives a chance stays -inf; taking it away would make it NaN
    base = np.where(largest == -np.inf, 0.0, largest)
    total = np.zeros(base.shape)
    for part in log_probs:
        total += np.exp(part - base)
    mean = total / len(log_probs)
    with np.errstate(divide="ignore"):
        log_of_mean = base + np.log(mean)
    return log_of_mean.astype(np.float32)
