"""The insides of a model at work on a text, as data: lens, shares, looks, choices.

`weft.engine.stream` and `weft.engine.labels` compute them. Data are dictionaries with arrays in
them, which `weft.inspection.packing` writes.

Shapes: L positions of a tower, T of them where a token is written; V vocabulary; N choices; K
labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weft.engine.labels import LabelLens, LabelShares
from weft.engine.record import Look
from weft.engine.stream import (
    Ids,
    Lens,
    Numbers,
    Pass,
    Row,
    Shares,
    lens,
    log_sum_exp,
    shares,
)
from weft.engine.weights import Floats
from weft.inspection.tokens import Limits
from weft.inspection.vocabulary import largest

Data: TypeAlias = dict[str, Any]

# of the softmax at which what is not shown is summed up
TEMPERATURES = (0.25, 0.354, 0.5, 0.707, 1.0, 1.414, 2.0, 2.828, 4.0)


@dataclass(frozen=True, eq=False)
class Choices:
    """The tokens that were most probable at each place, `ids` and `logits` (T, N), of `count` in
    all; and the logarithm of the sum of the others' exponentials at each temperature, `rests`
    (T, temperatures).
    """

    ids: Ids
    logits: Floats
    rests: Numbers
    count: int

    def to_data(self) -> Data:
        """Return the same as a dictionary; `rest` is that of temperature 1."""
        return {
            "ids": self.ids,
            "logits": self.logits,
            "rest": self.rests[:, TEMPERATURES.index(1.0)],
            "temperatures": list(TEMPERATURES),
            "rests": self.rests,
            "count": self.count,
        }


def choices_of(logits: Floats, most: int) -> Choices:
    """Return the most probable tokens by logits (T, V); one at least is left for the rest."""
    count = logits.shape[1]
    kept = min(most, count - 1)
    ids = largest(logits, kept)
    top = np.take_along_axis(logits, ids, axis=-1)
    others = logits.copy()
    np.put_along_axis(others, ids, -np.inf, axis=-1)
    rests = [log_sum_exp(np.divide(others, t)) for t in TEMPERATURES]
    return Choices(ids, top, np.stack(rests, axis=-1), count)


@dataclass(frozen=True, eq=False)
class Insides:
    """A model's insides while it wrote the tokens that it wrote.

    `shares` are None, and there are no `looks`, where recurrent layers computed it: what passes a
    gate is multiplied, not added. They have `states` instead, by tower.
    """

    lens: Lens
    shares: Shares | None
    choices: Choices
    looks: Mapping[str, Sequence[Look]]
    states: Mapping[str, Floats]

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        found: Data = {
            "lens": lens_data(self.lens),
            "shares": self.shares and shares_data(self.shares),
            "looks": looks_data(self.looks),
            "choices": self.choices.to_data(),
        }
        if self.states:
            found["states"] = dict(self.states)
        return found


def insides_of(passed: Pass, written: Sequence[int], limits: Limits) -> Insides:
    """Return the insides of a Transformer, which wrote these tokens (T)."""
    choices = choices_of(passed.logits, limits.choices)
    return Insides(
        lens(passed, written),
        shares(passed, written),
        choices,
        passed.record.looks,
        {},
    )


def row_data(row: Row) -> Data:
    """Return a row's name."""
    named: Data = {"part": row.part, "layer": row.layer}
    return named if row.n is None else {**named, "n": row.n}


def lens_data(found: Lens) -> Data:
    """Return a lens as a dictionary."""
    return {
        "rows": [row_data(row) for row in found.rows],
        "ids": found.ids,
        "probabilities": found.probabilities,
        "written": found.written,
    }


def shares_data(found: Shares) -> Data:
    """Return shares as a dictionary."""
    return {
        "rows": [row_data(row) for row in found.rows],
        "values": found.values,
        "logit": found.logit,
        "error": found.error,
        "source": found.source,
        "tokens": found.tokens,
        "written": dict(found.carried),
        "left_out": [],
    }


@dataclass(frozen=True, eq=False)
class LabelInsides:
    """A classifier's insides: the labels after each part, the most probable first, what each part
    has added to the logits of the first ones, and the `looks` of its layers.
    """

    lens: LabelLens
    shares: LabelShares
    looks: Mapping[str, Sequence[Look]]

    def to_data(self) -> Data:
        """Return the same as a dictionary."""
        return {
            "lens": label_lens_data(self.lens),
            "shares": label_shares_data(self.shares),
            "looks": looks_data(self.looks),
        }


def label_lens_data(found: LabelLens) -> Data:
    """Return a classifier's lens as a dictionary."""
    return {
        "rows": [row_data(row) for row in found.rows],
        "probabilities": found.probabilities,
    }


def label_shares_data(found: LabelShares) -> Data:
    """Return a classifier's shares as a dictionary."""
    by_length = dict(found.ngrams)
    tokens = by_length.pop(1, None)
    written = {} if found.carried is None else {"encoder": found.carried}
    return {
        "rows": [row_data(row) for row in found.rows],
        "values": found.values,
        "logit": found.logit,
        "above": found.above,
        "error": found.error,
        "places": found.places,
        "tokens": tokens,
        "ngrams": _ngrams_data(by_length) if by_length else None,
        "written": written,
        "left_out": [],
    }


def _ngrams_data(by_length: Mapping[int, Numbers]) -> Data:
    """List all n-grams, shorter ones first: how long they are, where they begin, and their shares
    (K, n-grams).
    """
    counts = {n: values.shape[1] for n, values in by_length.items()}
    return {
        "n": np.repeat(list(counts), list(counts.values())),
        "start": np.concatenate([np.arange(count) for count in counts.values()]),
        "values": np.concatenate(list(by_length.values()), axis=1),
    }


def looks_data(looks: Mapping[str, Sequence[Look]]) -> Data:
    """Return the queries, keys and values of each kind of attention (layers, L, H, d)."""
    found: Data = {}
    for kind, layers in looks.items():
        found[kind] = {
            name: np.stack([getattr(look, name)[0].swapaxes(0, 1) for look in layers])
            for name in ("query", "key", "value")
        }
    return {**found, "left_out": []}
