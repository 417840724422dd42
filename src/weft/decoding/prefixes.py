"""Prefixes of outputs, each read at once: several positions of a hypothesis in one step.

Shapes: R rows of the step, P of one prefix.
"""

from collections.abc import Sequence

import numpy as np

from weft.decoding.decoder import StepInput
from weft.decoding.sentences import BeamSettings, Sentence

# rows of one step, unless a single prefix has more
MOST_ROWS = 1024


def prefix_len_ahead(sentence: Sentence, settings: BeamSettings) -> int:
    """Return how many tokens of a prefix can be read before the search goes on.

    The token at the output limit is left to the search, and so is eos: both end the sentence.
    """
    prefix = sentence.prefix
    most = min(len(prefix), sentence.max_len - 1)
    for place, token in enumerate(prefix[:most]):
        if token == settings.eos_id:
            return place
    return most


def prefix_rows(
    indices: Sequence[int], begun: Sequence[tuple[Sentence, BeamSettings]]
) -> tuple[StepInput, list[int]]:
    """Return the step that reads the prefixes of sentences at these indices, and the rows of each.

    Every row stands at beam index 0, and the token that it forces is the next of the prefix.
    """
    sentences: list[int] = []
    positions: list[int] = []
    tokens: list[int] = []
    forced: list[int] = []
    counts = []
    for index, (sentence, settings) in zip(indices, begun, strict=True):
        count = prefix_len_ahead(sentence, settings)
        prefix = list(sentence.prefix[:count])
        sentences += [index] * count
        positions += range(count)
        tokens += [settings.bos_id, *prefix[:-1]]
        forced += prefix
        counts.append(count)
    # all ancestors stand at beam index 0: one row serves for all
    ancestors = np.zeros((1, max(counts)), np.int32)
    inputs = StepInput(
        np.array(sentences, np.int64),
        np.zeros(len(sentences), np.int64),
        np.array(positions, np.int64),
        np.array(tokens, np.int32),
        np.broadcast_to(ancestors, (len(sentences), max(counts))),
        forced=np.array(forced, np.int32),
    )
    return inputs, counts
