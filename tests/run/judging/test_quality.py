"""What a translator learns of itself: a fit that is known, and a model whose faults are plain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from weft.data.corpus import ParallelText, from_pairs
from weft.data.tokenizer import EOS_ID
from weft.predict.evidence import WORD_FEATURES, Evidence
from weft.run.judging.quality import (
    FALSE_ALARMS,
    LEAST_LEARNED,
    _learn_words,
    fit,
    learn_quality,
)


def test_a_fit_finds_the_weights_that_made_the_labels() -> None:
    draw = np.random.default_rng(1)
    features = np.stack([draw.normal(3, 2, 20_000), draw.normal(0, 1, 20_000)], axis=1)
    features = np.concatenate([features, np.full((20_000, 1), 7.0)], axis=1)
    chances = 1 / (1 + np.exp(-(features @ [0.5, -1.0, 0.0] - 1)))
    labels = (draw.random(20_000) < chances).astype(np.float64)
    found = fit(features, labels, 1.0)
    assert found.weights == pytest.approx([0.5, -1.0, 0.0], abs=0.06)
    assert found.bias == pytest.approx(-1.0, abs=0.1)
    assert found.weights[2] == 0  # always the same
    # where all the labels are alike, the weights stay within bounds
    assert np.isfinite(fit(features, np.ones(20_000), 1.0).weights).all()


def test_probabilities_that_were_fitted_are_calibrated() -> None:
    draw = np.random.default_rng(2)
    features = draw.normal(size=(30_000, 1))
    labels = draw.random(30_000) < 1 / (1 + np.exp(-2 * features[:, 0]))
    said = fit(features, labels.astype(np.float64), 1.0).probability(features)
    for least in (0.2, 0.5, 0.8):
        near = (said > least - 0.05) & (said < least + 0.05)
        assert labels[near].mean() == pytest.approx(least, abs=0.04)


NUM_IDS = 60
LONG = 12


@dataclass
class Letters:
    """A tokenizer of single words: id 10 is `w10`."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(word[1:]) for word in text.split()] for text in texts]


@dataclass
class Row:
    ids: tuple[int, ...]


@dataclass
class Hypothesis:
    ids: list[int]
    finished: bool = True


class Planted:
    """A translator that is right where the source's id is small; its probability says nothing of
    that. What it reads, it aligns word by word, as far as the ids are the same.
    """

    can_align = True
    max_len = 100

    def __init__(self, says_itself: bool = False) -> None:
        self.tgt_tokenizer = Letters()
        self.says_itself = says_itself
        self.draw = np.random.default_rng(3)

    def rows(self, text: str) -> list[Row]:
        (ids,) = self.tgt_tokenizer.encode_batch([text])
        return [Row((*ids, EOS_ID))]

    def hypotheses(self, texts: Sequence[str]) -> dict[tuple[int, ...], Hypothesis]:
        found = {}
        for text in texts:
            (row,) = self.rows(text)
            ids = [one if one < 40 else one + 100 for one in row.ids[:-1]]
            found[row.ids] = Hypothesis(ids)
        return found

    def evidence(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[Evidence]:
        return [self._read(src, tgt) for src, tgt in pairs]

    def _read(self, src: Sequence[int], tgt: Sequence[int]) -> Evidence:
        support = np.zeros((len(tgt), len(src)), np.float32)
        for t, one in enumerate(tgt):
            support[t] = [other in (one, one - 100) for other in src]
        log_probs = np.log(self.draw.uniform(0.3, 0.9, len(tgt)))
        if self.says_itself:
            log_probs = np.where(np.array(tgt) > 100, -3.0, -0.1)
        words = [f"w{one}" for one in src[:-1]], [f"w{one}" for one in tgt[:-1]]
        places = range(len(src) - 1), range(len(tgt) - 1)
        return Evidence(*words, *places, src, tgt, log_probs.tolist(), support)


def dev(count: int) -> ParallelText:
    draw = np.random.default_rng(4)
    rows = [draw.permutation(np.arange(10, NUM_IDS))[:LONG] for _ in range(count)]
    texts = [" ".join(f"w{one}" for one in row) for row in rows]
    return from_pairs([(text, text) for text in texts], "made", "en", "de")


def test_words_that_look_alike_are_told_apart_by_what_dev_has_shown() -> None:
    learned = learn_quality(Planted(), dev(200))
    assert learned is not None
    assert learned.plain_auc == pytest.approx(0.5, abs=0.1)
    assert learned.word_auc > 0.95
    weights = learned.quality.words.named(WORD_FEATURES)
    assert weights["rareness_of_source"] < 0
    assert learned.omissions_found > 0.95
    assert learned.false_alarms <= FALSE_ALARMS + 0.01
    assert learned.quality.omission is not None
    assert 0 < learned.quality.least_omission < 1
    figures = learned.figures()
    assert figures["word_auc"] == round(learned.word_auc, 4)
    # a gap is told, the whole is not
    (row,) = Planted().rows(dev(1).src[0])
    whole = Planted().evidence([(row.ids, row.ids)])[0]
    less = Planted().evidence([(row.ids, (*row.ids[:4], *row.ids[7:]))])[0]
    assert learned.quality.omitted(whole) == []
    assert learned.quality.omitted(less) == [4, 5, 6]


def test_the_probability_is_kept_where_nothing_tells_more() -> None:
    learned = learn_quality(Planted(says_itself=True), dev(200))
    assert learned is not None
    assert learned.word_auc == learned.plain_auc > 0.95
    assert list(learned.quality.words.named(WORD_FEATURES)) == ["log_odds"]


def test_a_small_dev_teaches_nothing() -> None:
    assert learn_quality(Planted(), dev(LEAST_LEARNED - 1)) is None
    blind = Planted()
    blind.can_align = False
    assert learn_quality(blind, dev(200)) is None


def test_nothing_is_learned_where_no_translation_came_to_its_end() -> None:
    assert _learn_words([], []) is None
