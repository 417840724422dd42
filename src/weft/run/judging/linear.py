"""The linear model that a classifier is held against: a support vector machine on the words of a
text and their pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.labelled import LabelledText
from weft.data.tf_idf import SparseRows, WordsAndPairs
from weft.model.linear import Sparse, support_vector_machines

COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of an error; the best on dev is kept


@dataclass(frozen=True)
class LinearAnswers:
    """The labels that a linear model gives to dev, and what an error cost it in training."""

    labels: Sequence[str]
    cost: float


def linear_answers(
    labels: Sequence[str], train: LabelledText, dev: LabelledText
) -> LinearAnswers:
    """Train a linear model for each of the costs, and return the answers of the one that is best on
    dev. Texts have one label each, of `labels`.
    """
    words = WordsAndPairs.of(train.texts)
    features = _sparse(words.rows(train.texts))
    of_dev = _sparse(words.rows(dev.texts))
    number = {label: i for i, label in enumerate(labels)}
    wanted = np.array([number.get(label, -1) for (label,) in dev.labels])
    has = torch.zeros(len(train), len(labels), dtype=torch.bool)
    has[range(len(train)), [number[label] for (label,) in train.labels]] = True
    best = LinearAnswers((), 0.0)
    most = -1
    weights = None
    for cost in COSTS:
        weights = support_vector_machines(features, has, cost, weights)
        answers: NDArray[np.int64] = of_dev.times(weights).argmax(1).numpy()
        right = int((answers == wanted).sum())
        if right > most:
            most = right
            best = LinearAnswers([labels[i] for i in answers], cost)
    return best


def _sparse(rows: SparseRows) -> Sparse:
    return Sparse(
        torch.from_numpy(rows.begins),
        torch.from_numpy(rows.features),
        torch.from_numpy(rows.values),
        rows.num_features,
    )
