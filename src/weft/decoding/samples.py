"""Ancestral sampling in the place of a beam: every hypothesis is drawn independently of the others.

A sample keeps its index in the beam, so that a sentence is encoded once for all of its samples.

Shapes: those of `weft.decoding.search`, m = 1; V vocabulary.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import (
    Decoder,
    Floats,
    Hypothesis,
    Indices,
    StepInput,
    Tokens,
    TopK,
)
from weft.decoding.draws import Draws
from weft.decoding.sampling import Sampling, draw_ids, filtered_log_probs
from weft.decoding.search import NO_NUMBERS, BeamSettings, Extensions, Search, Sentence
from weft.errors import DivergedError


@dataclass(frozen=True)
class SampleSettings(BeamSettings):
    """The settings of sampling: `beam_size` samples of each sentence, all given, in the order of
    their numbers.

    A sample depends on the seed, the ids of its source, its own number and the position alone,
    neither on the sentences beside it nor on how many samples there are. Scores are those of a beam
    search.
    """

    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 1

    def search(self, decoder: Decoder, budget: int) -> "_Sampler":
        """Create a sampler with these settings."""
        return _Sampler(decoder, self, budget)


class _Sampler(Search):
    """The state of sampling: a beam holds a sentence's samples, each until its end."""

    settings: SampleSettings

    def __init__(self, decoder: Decoder, settings: SampleSettings, budget: int) -> None:
        super().__init__(decoder, settings, budget)
        num_sentences = decoder.num_sentences
        # of each sentence, by sample
        self.draws: list[list[Draws]] = [[] for _ in range(num_sentences)]
        # of each sentence, by sample
        self.ended: list[dict[int, Hypothesis]] = [{} for _ in range(num_sentences)]

    def _start(self, index: int, sentence: Sentence) -> None:
        """Begin a sentence with all of its samples, each bos alone."""
        super()._start(index, sentence)
        self.log_probs[index] = 0.0
        self.newest_tokens[index] = self.settings.bos_id
        self.ended[index] = {}
        seed = self.settings.seed
        samples = range(self.settings.beam_size)
        self.draws[index] = [Draws(seed, sentence.ids, sample) for sample in samples]

    def _step(self, inputs: StepInput, all_log_probs: bool) -> TopK:
        """Draw one token of each row, its only candidate; return all log-probabilities too."""
        _, _, log_probs = super()._step(inputs, all_log_probs=True)
        assert log_probs is not None
        assert inputs.ban_ends is not None
        rows = np.arange(len(inputs))
        logits = log_probs.astype(np.float64)
        ban_counts = np.diff(inputs.ban_ends, prepend=0)
        banned_rows = np.repeat(rows, ban_counts)
        logits[banned_rows, inputs.banned] = -np.inf
        filtered = filtered_log_probs(logits, self.settings.sampling)
        uniforms = self._uniforms_of(inputs)
        drawn = draw_ids(filtered, uniforms)
        chances = filtered[rows, drawn]
        is_possible = np.isfinite(chances)
        drawn_log_probs = log_probs[rows, drawn]
        drawn_log_probs = np.where(is_possible, drawn_log_probs, np.nan)
        top_log_probs = drawn_log_probs.astype(np.float32)
        top_ids = drawn.astype(np.int32)
        return top_log_probs[:, None], top_ids[:, None], log_probs

    def _uniforms_of(self, inputs: StepInput) -> NDArray[np.float64]:
        """Look up the random number of each row, by its sentence, sample and position."""
        sentences = inputs.sentences.tolist()
        samples = inputs.beams.tolist()
        positions = inputs.positions.tolist()
        rows = zip(sentences, samples, positions, strict=True)
        return np.array(
            [self.draws[index][sample].at(place) for index, sample, place in rows]
        )

    def _choose(
        self,
        active: Indices,
        top_log_probs: Floats,
        top_ids: Tokens,
    ) -> Extensions:
        """Extend each sample by the token that it drew."""
        is_live = self.log_probs[active] > -np.inf
        has_token = np.isfinite(top_log_probs[is_live])
        if not has_token.all():
            raise DivergedError(NO_NUMBERS)
        token_log_probs = top_log_probs[:, :, 0]
        self.log_probs[active] += token_log_probs
        samples = np.arange(self.settings.beam_size)
        parents = np.tile(samples, (len(active), 1))
        tokens = top_ids[:, :, 0]
        return Extensions(parents, token_log_probs, tokens)

    def _finish_hypotheses(
        self,
        active: Indices,
        ended: NDArray[np.bool_],
        scores: Floats,
    ) -> None:
        """Keep every sample that ended with eos."""
        for i, sample in np.argwhere(ended).tolist():
            index = int(active[i])
            length = int(self.lengths[index]) + 1
            score = scores[i, sample]
            hypothesis = self._hypothesis(index, sample, length, score, True)
            self.ended[index][sample] = hypothesis

    def _finish(self, index: int, scores: Floats) -> tuple[int, list[Hypothesis]]:
        """Return a sentence's number and all samples by their numbers, and free its index.

        Those that were cut at the limit are among them.
        """
        length = int(self.lengths[index])
        samples = self.ended[index]
        for sample in np.flatnonzero(scores > -np.inf).tolist():
            score = scores[sample]
            samples[sample] = self._hypothesis(index, sample, length, score, False)
        number = int(self.numbers[index])
        self.numbers[index] = -1
        return number, [samples[sample] for sample in sorted(samples)]
