"""Given translations, read by a model: the log-probability of each of their tokens."""

from collections.abc import Sequence
from itertools import islice

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
    found = iter(best[:, 0].tolist())
    log_probs = []
    for target in targets:
        part = islice(found, len(target))
        log_probs.append(list(part))
    return log_probs


def _all_at_once(targets: Sequence[Sequence[int]]) -> StepInput:
    """Return a step that reads every token of the targets, each alone in its beam."""
    sentences: list[int] = []
    positions: list[int] = []
    tokens: list[int] = []
    forced: list[int] = []
    for number, target in enumerate(targets):
        sentences += [number] * len(target)
        positions += range(len(target))
        tokens += (BOS_ID, *target[:-1])
        forced += target
    # all ancestors stand at beam index 0: one row serves for all
    longest = max(map(len, targets))
    shape = len(tokens), longest
    ancestors = np.zeros((1, longest), np.int32)
    return StepInput(
        np.array(sentences),
        np.zeros_like(sentences),
        np.array(positions),
        np.array(tokens, np.int32),
        np.broadcast_to(ancestors, shape),
        forced=np.array(forced, np.int32),
    )


def _position_by_position(
    decoder: Decoder, targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Read the targets side by side; what is read behind the end of one is not looked at."""
    count = len(targets)
    longest = max(map(len, targets))
    ids = np.full((count, longest), EOS_ID, np.int32)
    for row, target in zip(ids, targets, strict=True):
        row[: len(target)] = target
    newest = np.full(count, BOS_ID, np.int32)
    rows = np.arange(count)
    log_probs: list[list[float]] = [[] for _ in targets]
    for position in range(longest):
        wanted = ids[:, position]
        inputs = StepInput(
            rows,
            np.zeros_like(rows),
            np.full_like(rows, position),
            newest,
            np.zeros((count, position + 1), np.int32),
            forced=wanted,
        )
        best, _, _ = decoder.step(inputs, 1)
        for found, log_prob in zip(log_probs, best[:, 0].tolist(), strict=True):
            found.append(log_prob)
        newest = wanted
    for found, target in zip(log_probs, targets, strict=True):
        del found[len(target) :]
    return log_probs
