"""Text with masked spans, for a model that learns to restore it.

This is span corruption (Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section
3.1.4), but that the whole text is to be written.
"""

from itertools import pairwise

import numpy as np

from weft.data.nearness import are_spaceless, numbered

MASK = "▒"  # stands for a span; a text that has one keeps it
SHARE = 0.3  # of the words of a text
MEAN = 3  # words in a span
_HALF = 0.5  # of the characters, from which on a script has no spaces
_FEWEST = 4  # words, or letters of a script without spaces


def masked(text: str, rng: np.random.Generator) -> str:
    """Return a text with about a third of its words masked, in spans; of a script without
    spaces, of its characters. A text of fewer than four stays whole.
    """
    words = text.split()
    joiner = " "
    if text and are_spaceless(numbered(text)).mean() > _HALF:
        words = list(text)
        joiner = ""
    if len(words) < _FEWEST:
        return text
    hidden = max(round(SHARE * len(words)), 1)
    spans = max(round(hidden / MEAN), 1)
    gaps = len(words) - hidden
    lengths = _parts(hidden, spans, rng)
    # whole words before each span, and after the last
    between = _parts(gaps + 2, spans + 1, rng)
    between[0] -= 1
    between[-1] -= 1
    kept: list[str] = []
    place = 0
    for before, length in zip(between, [*lengths, 0], strict=True):
        kept += words[place : place + before]
        place += before + length
        if length:
            kept.append(MASK)
    return joiner.join(kept)


def _parts(whole: int, count: int, rng: np.random.Generator) -> list[int]:
    """Divide a number into so many parts of at least 1, all ways alike."""
    count = min(count, whole)
    cuts = np.sort(rng.choice(whole - 1, count - 1, replace=False)) + 1
    edges = [0, *cuts.tolist(), whole]
    return [b - a for a, b in pairwise(edges)]
