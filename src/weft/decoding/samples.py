"""Samples in the place of a search: every hypothesis of a sentence is drawn for itself.

They stand in the places of a slot and never leave them, so that the sentence is read once for all
of them.

Shapes: those of `weft.decoding.search`, m = 1.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.decoder import Best, Decoder, Hypothesis, Rows
from weft.decoding.sampling import Sampling, draw_ids, filtered_log_probs
from weft.decoding.search import NO_NUMBERS, Beams, Search, Sentence
from weft.errors import DivergedError


@dataclass(frozen=True)
class Samples(Beams):
    """How to draw: `beam_size` samples of each sentence, in the order of their numbers, each of
    them given.

    A sample depends on the seed, the ids of its source, its own number and the position alone,
    neither on the sentences beside it nor on how many samples there are. Scores are those of a
    search.
    """

    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 1

    def search(self, decoder: Decoder, budget: int) -> "_Sampler":
        """Samples, none of them begun."""
        return _Sampler(decoder, self, budget)


class _Sampler(Search):
    """The state: each place has a sample of its own, which goes on until its end."""

    beams: Samples

    def __init__(self, decoder: Decoder, beams: Samples, budget: int) -> None:
        super().__init__(decoder, beams, budget)
        # by place and time
        self.uniforms: list[NDArray[np.float64]] = [np.empty((0, 0))] * decoder.slots
        self.ended: list[dict[int, Hypothesis]] = [{} for _ in range(decoder.slots)]

    def _start(self, slot: int, sentence: Sentence) -> None:
        super()._start(slot, sentence)
        self.log_probs[slot], self.newest[slot], self.ended[slot] = (
            0.0,
            self.beams.bos_id,
            {},
        )
        numbers = range(self.beams.beam_size)
        self.uniforms[slot] = np.stack(
            [_uniforms(self.beams.seed, sentence, number) for number in numbers]
        )

    def _step(self, rows: Rows, whole: bool) -> Best:
        """One token of each row, drawn; and all log-probabilities."""
        _, _, everything = super()._step(rows, whole=True)
        assert everything is not None
        assert rows.ban_ends is not None
        numbers = np.arange(len(rows))
        logits = torch.from_numpy(everything).double()
        logits[
            np.repeat(numbers, np.diff(rows.ban_ends, prepend=0)), rows.banned
        ] = -torch.inf
        at = zip(
            rows.slots.tolist(), rows.places.tolist(), rows.times.tolist(), strict=True
        )
        uniforms = torch.tensor(
            [self.uniforms[slot][place, time] for slot, place, time in at]
        )
        filtered = filtered_log_probs(logits, self.beams.sampling)
        drawn = draw_ids(filtered, uniforms).numpy()
        possible = np.isfinite(filtered.numpy()[numbers, drawn])
        log_probs = np.where(possible, everything[numbers, drawn], np.nan).astype(
            np.float32
        )
        return log_probs[:, None], drawn[:, None].astype(np.int32), everything

    def _choose(
        self, used: NDArray[np.int64], best: NDArray[np.float32], ids: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
        """What each place has drawn goes on in that place."""
        is_live = self.log_probs[used] > -np.inf
        if not np.isfinite(best[is_live]).all():
            raise DivergedError(NO_NUMBERS)
        self.log_probs[used] += best[:, :, 0]
        parents = np.tile(np.arange(self.beams.beam_size), (len(used), 1))
        return parents, best[:, :, 0], ids[:, :, 0]

    def _into_pools(
        self,
        used: NDArray[np.int64],
        ended: NDArray[np.bool_],
        scores: NDArray[np.float32],
    ) -> None:
        for i, place in np.argwhere(ended).tolist():
            slot = int(used[i])
            length = int(self.times[slot]) + 1
            self.ended[slot][place] = self._hypothesis(
                slot, place, length, scores[i, place], True
            )

    def _finish(
        self, slot: int, scores: NDArray[np.float32]
    ) -> tuple[int, list[Hypothesis]]:
        """All of the slot's samples by their numbers, those cut at the limit among them."""
        length, found = int(self.times[slot]), self.ended[slot]
        for place in np.flatnonzero(scores > -np.inf).tolist():
            found[place] = self._hypothesis(slot, place, length, scores[place], False)
        number = int(self.numbers[slot])
        self.numbers[slot] = -1
        return number, [found[place] for place in sorted(found)]


def _uniforms(seed: int, sentence: Sentence, number: int) -> NDArray[np.float64]:
    """Numbers from [0, 1), one for each token that the sample of this number may have."""
    return np.random.Generator(np.random.PCG64([seed, number, *sentence.ids])).random(
        sentence.max_len
    )
