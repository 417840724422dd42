"""Orders of hypotheses other than that of the search: by coverage, by minimum Bayes risk."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.decoding.decoder import Hypothesis
from weft.decoding.risk import Utility, rank_by_utility
from weft.predict.alignment import Floats, coverage
from weft.predict.settings import DecodingSettings


def by_coverage(
    hypotheses: list[Hypothesis],
    attention: Sequence[Floats],
    requested: DecodingSettings,
) -> list[Hypothesis]:
    """Return the `n_best` by score and coverage; those that were cut come after all others."""
    scored: list[Hypothesis] = []
    for hypothesis, part in zip(hypotheses, attention, strict=True):
        bonus = requested.coverage_penalty * coverage(part)
        scored.append(replace(hypothesis, score=hypothesis.score + bonus))
    scored.sort(key=lambda other: (not other.finished, -other.score))
    return scored[: requested.n_best]


def least_risk(
    samples: list[Hypothesis],
    text_of: Callable[[Hypothesis], str],
    utility: Utility,
    n_best: int,
) -> list[Hypothesis]:
    """Return the samples most like the others, with their mean utility as their score."""
    texts = [text_of(sample) for sample in samples]
    log_probs = [sample.log_prob for sample in samples]
    ranked = rank_by_utility(texts, log_probs, utility)
    return [replace(samples[number], score=mean) for number, mean in ranked[:n_best]]
