"""Minimum Bayes risk: of several samples, the one that is most like the others.

Sources: Kumar and Byrne 2004, "Minimum Bayes-Risk Decoding for Statistical Machine Translation";
Eikema and Aziz 2020, "Is MAP Decoding All You Need?", section 6: samples are both the candidates
and what they are compared with.

Shapes: N samples, M different texts among them.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Utility: TypeAlias = Callable[[Sequence[str]], NDArray[np.float64]]
"""How good each text (a row of the answer) is where each text (a column) is right."""


def rank_by_utility(
    texts: Sequence[str], log_probs: Sequence[float], utility: Utility
) -> list[tuple[int, float]]:
    """Return the samples of different texts, best first: their numbers, and their mean utilities
    against the others.

    Of equal texts the most probable sample stands for all, and the others speak for it as much as
    for any text. Of equal utilities the more probable comes first, then the earlier.
    """
    by_probability = sorted(range(len(texts)), key=lambda i: (-log_probs[i], i))
    counts = Counter(texts)
    # the last to be written is the most probable
    numbers = {texts[i]: i for i in reversed(by_probability)}
    different = list(counts)
    gains = utility(different)  # M M
    means = {
        numbers[text]: _mean_against_others(
            gains[i].tolist(), i, [counts[other] for other in different]
        )
        for i, text in enumerate(different)
    }
    return sorted(
        means.items(), key=lambda pair: (-pair[1], -log_probs[pair[0]], pair[0])
    )


def _mean_against_others(gains: list[float], own: int, counts: list[int]) -> float:
    """Average a text's utility against all samples but itself.

    The sum is rounded once, so that equals stay equal.
    """
    total = math.fsum(
        [
            *(gain * count for gain, count in zip(gains, counts, strict=True)),
            -gains[own],
        ]
    )
    return total / max(sum(counts) - 1, 1)
