"""What the quality of a translation is estimated by, each feature by hand; phrases said twice."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from weft.data.tokenizer import EOS_ID
from weft.predict.doubling import doubled_phrase
from weft.predict.evidence import (
    OMISSION_FEATURES,
    SENTENCE_FEATURES,
    WORD_FEATURES,
    Evidence,
)
from weft.predict.quality import Logistic, Quality


def evidence(
    words: str,
    source: str,
    probs: Sequence[float],
    support: Sequence[Sequence[float]],
    is_ended: bool = True,
) -> Evidence:
    """Make evidence of words of one token each; ids count from 10, the end's is last."""
    tgt, src = words.split(), source.split()
    ends = [EOS_ID] if is_ended else []
    return Evidence(
        src,
        tgt,
        range(len(src)),
        range(len(tgt)),
        [*range(10, 10 + len(src)), EOS_ID],
        [*range(10, 10 + len(tgt)), *ends],
        [math.log(prob) for prob in probs],
        np.array(support, np.float32),
    )


def named(one: Evidence, word: int) -> dict[str, float]:
    return dict(zip(WORD_FEATURES, one.word_features()[word].tolist(), strict=True))


def test_features_of_words() -> None:
    support = [[2, 0, 0, 0.5], [0.25, 0, 0.75, -1], [0, 0, 0, 0], [0, 0, 0, 3]]
    one = evidence("a b c", "x y z", [0.5, 0.25, 1.0, 0.8], support)
    first, second, third = (named(one, word) for word in range(3))
    assert first["probability"] == pytest.approx(0.5)
    assert first["log_odds"] == pytest.approx(0)
    assert second["log_odds"] == pytest.approx(math.log(1 / 3))
    assert [first["probability_before"], first["mean_before"]] == [1, 1]
    assert third["probability_before"] == pytest.approx(0.25)
    assert third["mean_before"] == pytest.approx(0.375)
    assert first["probability_behind"] == pytest.approx(0.25)
    assert first["mean_behind"] == pytest.approx(0.625)
    assert third["probability_behind"] == pytest.approx(0.8)  # of the end
    assert third["mean_behind"] == 1
    assert second["rareness"] == pytest.approx(math.log(11))
    assert second["rareness_of_source"] == pytest.approx(math.log(12))
    assert second["support"] == pytest.approx(math.log(1), abs=1e-4)
    assert (first["support_of_end"], second["support_of_end"]) == (0.5, 0)
    assert first["displacement"] == pytest.approx(0)
    assert second["displacement"] == pytest.approx(1 / 3)
    # nothing supports the third: it has no source, and the first of equals is counted
    assert (third["rareness_of_source"], third["displacement"]) == (0, 0)
    assert (first["fertility"], second["fertility"]) == (2, 1)
    assert second["place"] == pytest.approx(1 / 30)
    assert [one["is_last"] for one in (first, second, third)] == [0, 0, 1]


def test_a_translation_that_was_cut_has_no_end() -> None:
    cut = evidence("a b", "x", [0.5, 0.5], [[1, 0], [1, 0]], is_ended=False)
    assert named(cut, 1)["probability_behind"] == 1
    nothing = evidence("", "", [0.5], [[1]])
    assert nothing.word_features().shape == (0, len(WORD_FEATURES))


def test_a_word_of_several_tokens_has_their_product_and_all_their_support() -> None:
    one = Evidence(
        ["xy", "z"],
        ["ab", "c"],
        [0, 0, 1],
        [0, 0, 1],
        [20, 30, 10, EOS_ID],
        [40, 15, 50, EOS_ID],
        [math.log(0.5)] * 4,
        np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32),
    )
    first = named(one, 0)
    assert first["probability"] == pytest.approx(0.25)
    assert first["support"] == pytest.approx(math.log(3), abs=1e-4)
    assert first["rareness"] == pytest.approx(math.log(40))
    assert first["rareness_of_source"] == pytest.approx(math.log(30))


def gapped(idle: Sequence[int], num_words: int = 8) -> Evidence:
    """Translate word by word, but nothing of the idle words."""
    places = [place for place in range(num_words) if place not in idle]
    support = np.zeros((len(places) + 1, num_words + 1))
    for row, place in enumerate(places):
        support[row, place] = 2
    support[-1, -1] = 2
    words = " ".join(chr(97 + place) for place in places)
    source = " ".join(chr(65 + place) for place in range(num_words))
    return evidence(words, source, [0.5] * (len(places) + 1), support.tolist())


def test_source_words_that_nothing_was_written_from_are_found() -> None:
    assert gapped([2, 3, 4]).omitted() == [2, 3, 4]
    assert gapped([1, 2, 3, 4]).omitted() == [1, 2, 3, 4]
    whole = dict(zip(OMISSION_FEATURES, gapped([]).omission_features(), strict=True))
    less = dict(
        zip(OMISSION_FEATURES, gapped([2, 3, 4]).omission_features(), strict=True)
    )
    assert whole["log_ratio"] == 0
    assert less["log_ratio"] == pytest.approx(math.log(6 / 9))
    assert (whole["idle"], less["idle"]) == (0, 3 / 8)
    assert whole["least_support"] == pytest.approx(math.log(2))
    assert less["least_support"] == pytest.approx(math.log(0.01))
    assert whole["least_share"] == pytest.approx(3, abs=1e-4)
    assert less["least_share"] == less["least_shares_in_all"] == 0
    assert less["end_probability"] == pytest.approx(0.5)


def test_omissions_are_told_from_a_number_on_and_where_both_sides_are_long_enough() -> (
    None
):
    weights = Logistic.of(OMISSION_FEATURES, -1.0, {"idle": 8.0})
    nothing = Logistic.of(WORD_FEATURES, 0.0, {})
    quality = Quality(nothing, nothing, weights, least_omission=0.8)
    assert quality.omitted(gapped([])) == []
    assert quality.omitted(gapped([3])) == []
    assert quality.omitted(gapped([3, 4, 5], 9)) == [3, 4, 5]
    assert quality.omitted(gapped([2, 3, 4], 7)) == []  # four words are too few
    assert Quality(nothing, nothing).omitted(gapped([2, 3, 4, 5], 10)) == []


def test_a_sentence_has_the_quality_of_its_mean_probability() -> None:
    sentences = Logistic.of(SENTENCE_FEATURES, -1.0, {"mean_probability": 2.0})
    quality = Quality(sentences, sentences)
    assert quality.of_sentence([math.log(0.25), math.log(0.75)]) == pytest.approx(0.5)
    assert quality.of_sentence([]) is None


def test_weights_are_known_by_name() -> None:
    model = Logistic.of(WORD_FEATURES, 0.5, {"is_last": 2.0, "support": -1.0})
    assert model.named(WORD_FEATURES) == {"support": -1.0, "is_last": 2.0}
    with pytest.raises(ValueError, match="'colour' is no feature"):
        Logistic.of(WORD_FEATURES, 0.0, {"colour": 1.0})
    features = np.zeros((1, len(WORD_FEATURES)))
    assert model.probability(features)[0] == pytest.approx(1 / (1 + math.exp(-0.5)))


@pytest.mark.parametrize(
    ("words", "source", "found"),
    [
        ("in the house in the house , he sat", "im Haus sass er", "in the house"),
        ("he sat In the the house", "er sass", ""),  # a single word
        ("he sat sat there", "er sass", ""),
        ("on and on and so", "und so weiter", "on and"),
        ("on and on and so", "immer immer weiter", ""),  # the source does so too
        ("a big dog and a big dog ran", "ein Hund lief", "a big dog"),
        ("a big dog and a big dog ran", "ein Hund und ein Hund", ""),
        ("a big dog and a big dog", "ein großer Hund und ein großer Hund", ""),
        ("a b a b a", "x y", "a b"),
        (". . . . . .", "x", ""),
        ("标准 库 标准 库 的", "the library", "标准库"),
        ("标准库标 准库 的", "the library", "标准库"),  # cut otherwise
        ("研究 研究 它", "study it", ""),  # two characters
        ("在 Python 中 在 Python 中", "in it", "在 Python中"),
        ("我 喜欢 标准 库 模块 , 标准 库 模块 好", "I like it", ""),  # five, apart
        ("我 喜欢 标准 库 模块 的 , 标准 库 模块 的 好", "I like it", "标准库模块的"),
        ("", "", ""),
    ],
)
def test_a_phrase_said_twice(words: str, source: str, found: str) -> None:
    assert doubled_phrase(words.split(), source.split()) == found
