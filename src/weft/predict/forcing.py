"""Given translations, read by a model: the log-probability of each of their tokens.

Shapes: B rows, T target tokens.
"""

from collections.abc import Sequence

import numpy as np

from weft.data.tokenizer import BOS_ID, EOS_ID
from weft.decoding.decoder import Decoder, Engine, StepInput


def forced_log_probs(
    engine: Engine, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return the log-probabilities of the tokens of each target, given its source and all tokens
    before. No target is empty. Raises MemoryError.
    """
    decoder = engine.session(len(sources), 1)
    decoder.read(range(len(sources)), sources, ())
    if decoder.begins_together:
        return _position_by_position(decoder, targets)
    inputs = _all_at_once(targets)
    best, _, _ = decoder.step(inputs, 1)
    ends = np.cumsum([len(target) for target in targets])
    parts: list[list[float]] = [
        part.tolist() for part in np.split(best[:, 0], ends[:-1])
    ]
    return parts


def _all_at_once(targets: Sequence[Sequence[int]]) -> StepInput:
    """Return a step that reads every token of the targets, each alone in its beam."""
    lengths = [len(target) for target in targets]
    sentences = np.repeat(np.arange(len(targets)), lengths)
    positions = np.concatenate([np.arange(length) for length in lengths])
    tokens = [token for target in targets for token in (BOS_ID, *target[:-1])]
    forced = [token for target in targets for token in target]
    # all ancestors stand at beam index 0: one row serves for all
    ancestors = np.zeros((1, max(lengths)), np.int32)
    return StepInput(
        sentences,
        np.zeros_like(sentences),
        positions,
        np.array(tokens, np.int32),
        np.broadcast_to(ancestors, (len(tokens), max(lengths))),
        forced=np.array(forced, np.int32),
    )


def _position_by_position(
    decoder: Decoder, targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Read the targets side by side; what is read behind the end of one is not looked at."""
    longest = max(map(len, targets))
    filled = [[*target, *[EOS_ID] * (longest - len(target))] for target in targets]
    ids = np.array(filled, np.int32)
    newest = np.full(len(targets), BOS_ID, np.int32)
    rows = np.arange(len(targets))
    columns = []
    for position in range(longest):
        inputs = StepInput(
            rows,
            np.zeros_like(rows),
            np.full_like(rows, position),
            newest,
            np.zeros((len(rows), position + 1), np.int32),
            forced=ids[:, position],
        )
        best, _, _ = decoder.step(inputs, 1)
        columns.append(best[:, 0])
        newest = ids[:, position]
    log_probs: list[list[float]] = np.stack(columns, axis=1).tolist()
    return [row[: len(target)] for row, target in zip(log_probs, targets, strict=True)]
