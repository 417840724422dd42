"""A classifier at work on a text: its vectors, the attention of all layers and heads, and what each
token adds.

Shapes: L tokens, H heads.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.data.tokenizer import BOS_ID
from weft.engine.labels import label_lens, label_pass, label_shares
from weft.engine.weights import ClassifierWeights, Floats
from weft.inspection.insides import LabelInsides
from weft.inspection.model_map import ModelMap, map_of_classifier
from weft.inspection.own_pass import classifier_weights
from weft.inspection.packing import plain
from weft.inspection.reasons import Numbers, Reasons
from weft.inspection.tokens import (
    HEAD,
    USUAL,
    Limits,
    Vectors,
    embedded,
    some_text,
    stacked,
    unknown_notes,
    unknown_words,
)
from weft.inspection.vocabulary import Lexicon, Shelf, lexicon_of
from weft.predict.text import one_line
from weft.tasks.classification import Classification

PARTS = ("left_out", "gradient")
"""What can be asked for alone of the contributions, by their names there."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """The amounts that the tokens of a text add to the log-probability of a label.

    `gradient` is the sum of gradient times vector over the token's numbers, wherever its vector
    enters; that of an n-gram is shared by its tokens (Simonyan et al. 2013, "Deep Inside
    Convolutional Networks"; Denil et al. 2014, "Extraction of Salient Sentences"). `left_out` is by
    how much the log-probability falls where the token is not there; `agreement` is the correlation
    of the two, None where it is not defined. Of a symbol at the beginning, which cannot be left
    out, `left_out` is 0.
    """

    label: str
    gradient: list[float]
    left_out: list[float]
    agreement: float | None

    def to_data(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class ClassificationInspection:
    """A text and its label.

    `labels` and `probabilities` are all of them, the most probable first; `contributions` are those
    of the first ones. `encoder` has the maps, of shape (layers, H, L, L), none for a model that is
    a bag of n-grams alone. `insides` has all that the model did on the way,
    `model` is its map, `lexicon` names tokens.
    """

    text: str
    lang: str
    ids: list[int]
    pieces: list[str]
    labels: list[str]
    probabilities: list[float]
    contributions: list[Contributions]
    encoder: Floats
    vectors: Vectors
    max_len: int
    cut: bool
    insides: LabelInsides
    model: ModelMap
    lexicon: Lexicon
    # the tokens of the longest n-grams that have vectors of their own; 1 for none
    ngrams: int = 1
    # words that training never had; None where its words are not kept
    unknown_words: list[str] | None = None

    @property
    def notes(self) -> list[str]:
        """Say what a reader must know beside it."""
        alone = f"the text was cut after {self.max_len} tokens; what is shown, the label too, is of these alone"
        notes = [alone] if self.cut else []
        follows = "the model answers by the other words"
        return notes + unknown_notes(self.unknown_words, follows)

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary; numbers are rounded to four decimals."""
        found: dict[str, Any] = plain(self.to_data())
        return found

    def to_data(self) -> dict[str, Any]:
        """Return the same as a dictionary with arrays, which `weft.inspection.packing` writes."""
        return {
            **HEAD,
            "task": "classification",
            "text": self.text,
            "unknown_words": self.unknown_words,
            "lang": self.lang,
            "cut": self.cut,
            "max_len": self.max_len,
            "ngrams": self.ngrams,
            "tokens": {
                "pieces": self.pieces,
                "ids": self.ids,
                "vectors": self.vectors.to_data(),
            },
            "labels": [
                {"label": label, "probability": p}
                for label, p in zip(self.labels, self.probabilities, strict=True)
            ],
            "contributions": [c.to_data() for c in self.contributions],
            "attention": {"encoder": self.encoder},
            "model": self.model.to_data(),
            **self.insides.to_data(),
            **self.lexicon.to_data(),
        }


def inspect_classification(
    task: Classification, text: str, limits: Limits = USUAL
) -> ClassificationInspection:
    """Classify a text and look at the model meanwhile.

    A text of more than `limits.tokens` tokens is cut there, or where the model's own limit comes
    first. Raises UsageError for a text with nothing in it.
    """
    (tokenizer,) = task.tokenizers
    config = task.config
    weights = classifier_weights(task)
    read = _read(task, weights, text, limits)
    reasons = read.reasons
    row = read.row
    order = np.argsort(-reasons.log_probs, kind="stable").tolist()
    probabilities = np.exp(reasons.log_probs)
    most = order[: limits.labels]
    left_out = reasons.left_out(read.fixed)
    gradient = reasons.gradient()
    passed = label_pass(weights, row, config.multi_label)
    table = _table(weights)
    shelf = Shelf(tokenizer, table, row)
    return ClassificationInspection(
        text=read.line,
        lang=config.lang,
        ids=row,
        pieces=tokenizer.pieces(row),
        labels=[config.labels[i] for i in order],
        probabilities=probabilities[order].tolist(),
        contributions=[
            Contributions(
                config.labels[i],
                gradient[:, i].tolist(),
                left_out[:, i].tolist(),
                _agreement(gradient[:, i], left_out[:, i]),
            )
            for i in most
        ],
        encoder=stacked(passed.record.encoder),
        vectors=_vectors(weights, row, limits),
        max_len=read.limit,
        cut=read.is_cut,
        insides=LabelInsides(
            label_lens(passed, order), label_shares(passed, most), passed.record.looks
        ),
        model=map_of_classifier(config.model, weights, len(table)),
        lexicon=lexicon_of({"text": shelf}, limits.nearest),
        ngrams=1 if weights.bag is None else config.model.ngrams,
        unknown_words=unknown_words(task.known, read.line),
    )


@dataclass(frozen=True)
class _Read:
    """A text as a classifier reads it: a line, the ids of a `row` that has at most `limit` of its
    tokens behind the `fixed` ones that every text has, and what gives the reasons.
    """

    line: str
    row: list[int]
    fixed: int
    limit: int
    is_cut: bool
    reasons: Reasons


def _read(
    task: Classification, weights: ClassifierWeights, text: str, limits: Limits
) -> _Read:
    """Read a text. Raises UsageError for one with nothing in it."""
    (tokenizer,) = task.tokenizers
    line, ids = some_text(one_line(text), tokenizer)
    classifier = task.predictor()
    first = [BOS_ID] if classifier.first_token else []
    limit = min(limits.tokens, task.config.max_len)
    row = [*first, *ids[:limit]]
    reasons = Reasons(weights, classifier.model, task.config.multi_label, row)
    return _Read(line, row, len(first), limit, len(ids) > limit, reasons)


def reasons_data(
    task: Classification, text: str, parts: Sequence[str], limits: Limits = USUAL
) -> dict[str, Any]:
    """Return some `parts` of the contributions alone, by their names of `PARTS`, as
    `inspect_classification` gives them; nothing else is computed.

    Raises UsageError for a text with nothing in it.
    """
    (tokenizer,) = task.tokenizers
    labels = task.config.labels
    read = _read(task, classifier_weights(task), text, limits)
    found: dict[str, Numbers] = {}
    if "left_out" in parts:
        found["left_out"] = read.reasons.left_out(read.fixed)
    if "gradient" in parts:
        found["gradient"] = read.reasons.gradient()
    log_probs = read.reasons.quick_log_probs()
    order = np.argsort(-log_probs, kind="stable").tolist()
    return {
        **HEAD,
        "task": "classification",
        "text": read.line,
        "lang": task.config.lang,
        "cut": read.is_cut,
        "max_len": read.limit,
        "tokens": {"pieces": tokenizer.pieces(read.row), "ids": read.row},
        "labels": [
            {"label": labels[i], "probability": math.exp(log_probs[i])} for i in order
        ],
        "contributions": [
            {"label": labels[i], **_of_label(found, i)} for i in order[: limits.labels]
        ],
    }


def _of_label(found: Mapping[str, Numbers], label: int) -> dict[str, list[float]]:
    return {name: numbers[:, label].tolist() for name, numbers in found.items()}


def _table(weights: ClassifierWeights) -> Floats:
    """Return the token vectors: those of the layers, or of a bag alone."""
    if weights.encoder is not None:
        assert weights.encoder.src is not None
        return weights.encoder.src.tokens
    assert weights.bag is not None
    return weights.bag.tokens


def _vectors(weights: ClassifierWeights, row: list[int], limits: Limits) -> Vectors:
    encoder = weights.encoder
    if encoder is not None:
        return embedded(encoder, encoder.src, row, limits)
    assert weights.bag is not None
    return Vectors(weights.bag.tokens[row], None, dimensions=limits.dimensions)


def _agreement(a: Numbers, b: Numbers) -> float | None:
    """Compute Pearson's correlation; None where it is not defined, or of too few tokens."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])
