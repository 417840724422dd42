"""The share of the source in what a translator wrote: evidence for what it repeats or makes up.

The share of the source in a token is what all looks at the source wrote into its logit, above the
mean of the vocabulary (`weft.engine.stream`).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.inspection.probe import Probe
from weft.predict.alignment import LEAST_SHARE, Floats
from weft.predict.prediction import repeated

MOST_TEXTS = 50  # translations that are looked at

Flags = NDArray[np.bool_]
Marks = Callable[[Sequence[int], Floats], Flags]
"""Says of each token (T) of some ids, with its shares (T, S), whether it is one of those meant."""


def share_of_repeats(probe: Probe) -> str:
    """Compare what the source wrote of tokens that repeat with that of the others."""
    texts = [
        text
        for text, prediction in zip(probe.text.src, probe.predictions, strict=True)
        if prediction.repetition
    ]
    found = _compared(probe, texts, _are_repeated)
    if found is None:
        return ""
    _, of_these, of_others = found
    return f"the source wrote {of_these:.2f} nats of a token that repeats, {of_others:.2f} of another"


def share_of_unsupported(probe: Probe) -> str:
    """Compare what the source wrote of tokens that no source word supports with that of the
    others.
    """
    found = _compared(probe, probe.text.src, _are_unsupported)
    if found is None:
        return ""
    share, of_these, of_others = found
    return (
        f"no source word supports {share:.0%} of the tokens: the source wrote {of_these:.2f} nats of these, "
        f"{of_others:.2f} of the others"
    )


def _compared(
    probe: Probe, texts: Sequence[str], marks: Marks
) -> tuple[float, float, float] | None:
    """Return the share of the tokens meant, and the mean of what the source wrote of these and of
    the others; None where the model has no shares, or one of the two no token.
    """
    found = probe.task.predictor().source_shares(texts[:MOST_TEXTS])
    meant: list[Flags] = []
    from_source: list[Floats] = []
    for hypothesis, shares in found or []:
        of_words = shares[: len(hypothesis.ids)]
        meant.append(marks(hypothesis.ids, of_words))
        from_source.append(of_words.sum(1))
    if not meant:
        return None
    flags = np.concatenate(meant)
    values = np.concatenate(from_source)
    if not flags.any() or flags.all():
        return None
    these = float(values[flags].mean())
    return float(flags.mean()), these, float(values[~flags].mean())


def _are_repeated(ids: Sequence[int], shares: Floats) -> Flags:
    places = repeated(ids)
    return np.array([place in places for place in range(len(ids))], np.bool_)


def _are_unsupported(ids: Sequence[int], shares: Floats) -> Flags:
    flags: Flags = shares[:, :-1].max(1, initial=0.0) < LEAST_SHARE
    return flags
