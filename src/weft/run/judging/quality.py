"""A translator learns to judge itself, from dev: which of its own words are right, and how it
looks when a part of a translation is missing.

The estimates are logistic regressions. What they say of their own worth is by halves: each half of
dev is judged by what the other has taught.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.corpus import ParallelText
from weft.data.tokenizer import EOS_ID
from weft.evaluation.tags import area_under_curve, right_words
from weft.predict.evidence import (
    WORD_FEATURES,
    Doubles,
    Evidence,
    sentence_features,
)
from weft.predict.quality import Logistic, Quality
from weft.predict.translator import Translator

MOST_LEARNED = 500  # pairs of dev that are read
LEAST_LEARNED = 100
LEAST_WRONG = 50  # words, right ones and wrong ones, that say how to tell them
LEAST_GAIN = (
    0.05  # of the area under the curve, for which more than the probability is kept
)
# of the untouched references of dev; of others, fewer than one in twenty are flagged
FALSE_ALARMS = 0.02
LEAST_FOUND = 0.3  # of the references with a gap, for which omissions are told at all

_PHRASES = (3, 3, 3, 4, 5)  # lengths of what is taken out
_RIDGE_OF_WORDS = 3.0
_RIDGE = 1.0
_STEPS = 25


@dataclass(frozen=True)
class Learned:
    """Estimates of quality, and their worth on dev: the areas under the curve of "is this word
    wrong", learned and by the word's probability alone, and the shares of references with a gap and
    without that are flagged.
    """

    quality: Quality
    word_auc: float
    plain_auc: float
    omissions_found: float = 0.0
    false_alarms: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the worth, for the verdict."""
        return {
            "word_auc": round(self.word_auc, 4),
            "plain_word_auc": round(self.plain_auc, 4),
            "omissions_found": round(self.omissions_found, 4),
            "omissions_false": round(self.false_alarms, 4),
        }


def learn_quality(translator: Translator, dev: ParallelText) -> Learned | None:
    """Return what a translator learns of itself from dev; None where dev is too small for it, or
    nothing is known of the source words that its words come from.
    """
    if not translator.can_align or len(dev) < LEAST_LEARNED:
        return None
    dev = dev.sample(MOST_LEARNED)
    pairs = _encoded(translator, dev.src, dev.tgt)
    found = translator.hypotheses(dev.src)
    written = [
        (src, (*found[src].ids, EOS_ID))
        for src, _ in pairs
        if src in found and found[src].finished and found[src].ids
    ]
    references = dict(pairs)
    own = translator.evidence(written)
    wanted = translator.evidence([(src, references[src]) for src, _ in written])
    are_right = [
        np.array(right_words(one.tgt_words, other.tgt_words), np.bool_)
        for one, other in zip(own, wanted, strict=True)
    ]
    learned = _learn_words(own, are_right)
    if learned is None:
        return None
    omission = _learn_omissions(translator, wanted)
    if omission is None:
        return learned
    model, least, share, false = omission
    words, sentences = learned.quality.words, learned.quality.sentences
    quality = Quality(words, sentences, model, least)
    return Learned(quality, learned.word_auc, learned.plain_auc, share, false)


def _encoded(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the ids of the pairs that are read as one row each; of equal sources the first."""
    pairs: dict[tuple[int, ...], tuple[int, ...]] = {}
    most = translator.max_len - 1
    encoded = translator.tgt_tokenizer.encode_batch(list(targets))
    for source, ids in zip(sources, encoded, strict=True):
        rows = translator.rows(source)
        if len(rows) == 1 and 0 < len(ids) < most:
            pairs.setdefault(rows[0].ids, (*ids, EOS_ID))
    return list(pairs.items())


def _learn_words(
    own: Sequence[Evidence], are_right: Sequence[NDArray[np.bool_]]
) -> Learned | None:
    """Return the estimates of words and sentences; None where too few words tell."""
    # no translation of dev came to its end
    if not own:
        return None
    features = np.concatenate([one.word_features() for one in own])
    right = np.concatenate(are_right)
    if min(right.sum(), len(right) - right.sum()) < LEAST_WRONG:
        return None
    numbers = np.repeat(np.arange(len(own)), [len(part) for part in are_right])
    plain = _alone(features, "log_odds")
    scores = _by_halves(features, right, numbers, _RIDGE_OF_WORDS)
    word_auc = area_under_curve(-scores, ~right)
    plain_auc = area_under_curve(-features[:, 0], ~right)
    if word_auc - plain_auc < LEAST_GAIN:
        features = plain
        word_auc = plain_auc
    words = fit(features, right.astype(np.float64), _RIDGE_OF_WORDS)
    means = np.stack([sentence_features(one.log_probs) for one in own])
    shares = np.array([part.mean() for part in are_right])
    sentences = fit(means, shares, _RIDGE)
    return Learned(Quality(words, sentences), word_auc, plain_auc)


def _alone(features: Doubles, name: str) -> Doubles:
    """Return the features with all but one of them 0."""
    alone = np.zeros_like(features)
    place = WORD_FEATURES.index(name)
    alone[:, place] = features[:, place]
    return alone


def _learn_omissions(
    translator: Translator, references: Sequence[Evidence]
) -> tuple[Logistic, float, float, float] | None:
    """Return the estimate of omissions, the least that is flagged, and the shares that this flags
    of references with a gap and without; None where it finds too few.
    """
    whole = [one for one in references if one.can_tell_omissions]
    gaps = translator.evidence(_with_gaps(whole))
    told = [
        (one, other)
        for one, other in zip(whole, gaps, strict=True)
        if other.can_tell_omissions
    ]
    if len(told) < LEAST_LEARNED:
        return None
    features = np.stack([one.omission_features() for pair in told for one in pair])
    has_gap = np.tile([False, True], len(told))
    numbers = np.repeat(np.arange(len(told)), 2)
    scores = _by_halves(features, has_gap, numbers, _RIDGE)
    least = float(np.quantile(scores[~has_gap], 1 - FALSE_ALARMS))
    share = float((scores[has_gap] >= least).mean())
    false = float((scores[~has_gap] >= least).mean())
    if share < LEAST_FOUND:
        return None
    return fit(features, has_gap.astype(np.float64), _RIDGE), least, share, false


def _with_gaps(
    references: Sequence[Evidence],
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return the references as ids, each with a phrase taken out that is not its end."""
    draw = random.Random(1)
    pairs: list[tuple[Sequence[int], Sequence[int]]] = []
    for one in references:
        num_words = len(one.tgt_words)
        length = min(draw.choice(_PHRASES), num_words - 2)
        begin = draw.randrange(num_words - length)
        places = range(begin, begin + length)
        kept = [
            token
            for token, number in zip(one.tgt_ids, one.tgt_of, strict=False)
            if number not in places
        ]
        pairs.append((one.src_ids, (*kept, EOS_ID)))
    return pairs


def _by_halves(
    features: Doubles,
    labels: NDArray[np.bool_],
    numbers: NDArray[np.int64],
    ridge: float,
) -> Doubles:
    """Return the probability of each row, by what the rows of other numbers teach."""
    scores = np.zeros(len(labels))
    wanted = labels.astype(np.float64)
    is_even = numbers % 2 == 0
    for taught in (is_even, ~is_even):
        model = fit(features[taught], wanted[taught], ridge)
        scores[~taught] = model.probability(features[~taught])
    return scores


def fit(features: Doubles, wanted: Doubles, ridge: float) -> Logistic:
    """Learn a logistic regression by Newton's method, each feature brought to mean 0 and deviation
    1, in which the squares of the weights cost `ridge` / 2 each. A feature that is always the same
    has no weight.
    """
    mean = features.mean(0)
    deviation = features.std(0)
    is_used = deviation > 1e-9
    scaled = (features[:, is_used] - mean[is_used]) / deviation[is_used]
    rows = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
    weights = np.zeros(rows.shape[1])
    costs = np.full(len(weights), ridge)
    costs[-1] = 1e-6
    for _ in range(_STEPS):
        logits = np.clip(rows @ weights, -30, 30)
        probs = 1 / (1 + np.exp(-logits))
        grad = rows.T @ (probs - wanted) + costs * weights
        curvature = rows.T * (probs * (1 - probs)) @ rows + np.diag(costs)
        step = np.linalg.solve(curvature, grad)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    unscaled = np.zeros(features.shape[1])
    unscaled[is_used] = weights[:-1] / deviation[is_used]
    bias = float(weights[-1] - unscaled @ mean)
    return Logistic(bias, unscaled)
