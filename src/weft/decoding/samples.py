"""Ancestral sampling beside beams: every hypothesis is drawn independently of the others.

A sample keeps its index in the beam, so that a sentence is encoded once for all of its samples.

Shapes: R rows of one step, N of them drawn; V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.decoder import Floats, Indices, StepInput, Tokens
from weft.decoding.draws import Draws
from weft.decoding.sampling import Doubles, Sampling, draw_ids, filtered_log_probs
from weft.decoding.sentences import SampleSettings


@dataclass(frozen=True)
class Drawing:
    """The distribution that the samples of one sentence are drawn from, and their random numbers,
    one `Draws` a sample.
    """

    sampling: Sampling
    draws: Sequence[Draws]

    @property
    def takes_best(self) -> bool:
        """Return whether nothing is drawn: every token is the most probable one."""
        return self.sampling.temperature == 0

    @classmethod
    def of(cls, ids: Sequence[int], settings: SampleSettings) -> "Drawing":
        """Return that of a source."""
        samples = range(settings.beam_size)
        draws = [Draws(settings.seed, ids, sample) for sample in samples]
        return cls(settings.sampling, draws)


def draw_tokens(
    log_probs: Floats, inputs: StepInput, rows: Indices, drawings: Sequence[Drawing]
) -> tuple[Floats, Tokens]:
    """Draw the next token of some rows of a step (N); return its log-probabilities and ids.

    `log_probs` (R, V) are those of all rows, `drawings` (N) those of the rows' sentences. NaN where
    nothing can be drawn.
    """
    some = log_probs[rows]
    unbanned = _without_banned(some, inputs, rows)
    filtered = _filtered(unbanned, drawings)
    uniforms = _uniforms(inputs, rows, drawings)
    drawn = draw_ids(filtered, uniforms)
    each = np.arange(len(rows))
    chances = filtered[each, drawn]
    is_possible = np.isfinite(chances)
    own = some[each, drawn]
    found = np.where(is_possible, own, np.nan)
    return found.astype(np.float32), drawn.astype(np.int32)


def _without_banned(some: Floats, inputs: StepInput, rows: Indices) -> Doubles:
    """Return these rows (N, V) in double precision, -inf where a token is banned."""
    logits = some.astype(np.float64)
    if inputs.ban_ends is None:
        return logits
    place = np.full(len(inputs), -1)
    place[rows] = np.arange(len(rows))
    counts = np.diff(inputs.ban_ends, prepend=0)
    places = np.repeat(place, counts)
    is_here = places >= 0
    places = places[is_here]
    banned = inputs.banned[is_here]
    logits[places, banned] = -np.inf
    return logits


def _filtered(logits: Doubles, drawings: Sequence[Drawing]) -> Doubles:
    """Return what each row is drawn from; the rows of equal settings are filtered together."""
    alike: dict[Sampling, list[int]] = {}
    for row, drawing in enumerate(drawings):
        alike.setdefault(drawing.sampling, []).append(row)
    if len(alike) == 1:
        return filtered_log_probs(logits, drawings[0].sampling)
    filtered = np.empty_like(logits)
    for sampling, rows in alike.items():
        part = logits[rows]
        filtered[rows] = filtered_log_probs(part, sampling)
    return filtered


def _uniforms(
    inputs: StepInput, rows: Indices, drawings: Sequence[Drawing]
) -> NDArray[np.float64]:
    """Look up the random number of each row, by its sentence, sample and position."""
    samples = inputs.beams[rows].tolist()
    places = inputs.positions[rows].tolist()
    uniforms = []
    for drawing, sample, place in zip(drawings, samples, places, strict=True):
        draws = drawing.draws[sample]
        uniforms.append(draws.at(place))
    return np.array(uniforms)
