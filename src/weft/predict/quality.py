"""The quality of a translation, as far as its translator can tell it: the probability that a word
is right, and that something of the source is left out. What it is computed from was learned on dev.

A word is right that an alignment of the least edits with a reference leaves as it is: the tags OK
and BAD of the word-level task of WMT. The estimate is "glass-box" (Fomicheva et al. 2020,
"Unsupervised Quality Estimation for Neural Machine Translation"): logistic regression on what the
search itself has at hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.predict.evidence import Doubles, Evidence, sentence_features

DOUBTFUL = 0.5
"""The quality below which a word is rather wrong than right."""


@dataclass(frozen=True)
class Logistic:
    """Logistic regression: a bias, and a weight for each feature."""

    bias: float
    weights: Doubles

    @classmethod
    def of(
        cls, names: Sequence[str], bias: float, weights: Mapping[str, float]
    ) -> "Logistic":
        """Put weights by name in order; a feature without one has none. Raises ValueError for a
        name that is not among `names`.
        """
        if unknown := sorted(weights.keys() - set(names)):
            raise ValueError(f"{unknown[0]!r} is no feature of this version")
        return cls(bias, np.array([weights.get(name, 0.0) for name in names]))

    def probability(self, features: Doubles) -> Doubles:
        """Return the probability for each row of features."""
        logits = features @ self.weights + self.bias
        probability: Doubles = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        return probability

    def named(self, names: Sequence[str]) -> dict[str, float]:
        """Return the weights by name, those that are not 0."""
        rounded = [round(float(weight), 5) for weight in self.weights]
        return {name: w for name, w in zip(names, rounded, strict=True) if w}


@dataclass(frozen=True)
class Quality:
    """The estimates of a model: of words, of sentences and of omissions.

    An omission is suspected from `least_omission` on; None where dev did not show how to tell.
    """

    words: Logistic
    sentences: Logistic
    omission: Logistic | None = None
    least_omission: float = 1.0

    def of_words(self, evidence: Evidence) -> list[float]:
        """Return for each word of a translation the probability that it is right."""
        qualities: list[float] = self.words.probability(
            evidence.word_features()
        ).tolist()
        return qualities

    def of_sentence(self, log_probs: Sequence[float]) -> float | None:
        """Return the share of words that is expected to be right; None for no tokens."""
        if not log_probs:
            return None
        return float(self.sentences.probability(sentence_features(log_probs)))

    def omitted(self, evidence: Evidence) -> list[int]:
        """Return the source words that the translation is suspected to have left out."""
        if self.omission is None or not evidence.can_tell_omissions:
            return []
        found = self.omission.probability(evidence.omission_features())
        return evidence.omitted() if found >= self.least_omission else []
