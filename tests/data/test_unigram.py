"""The unigram learner beside brute force on words small enough to cut in every way."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from weft.data import unigram
from weft.data.pipeline import BYTE_LETTERS, SMALLEST, SPECIALS
from weft.data.unigram import learn_unigram, unigram_vocabulary

PIECES = ["a", "b", "c", "ab", "bc", "abc", "ca"]
SCORES = np.log(np.array([0.2, 0.1, 0.15, 0.25, 0.1, 0.05, 0.15]))
WORDS = {"abc": 3.0, "cabca": 2.0, "b": 5.0, "aabbcc": 1.0}


def _cuts(word: str) -> list[list[str]]:
    """All ways to cut a word into known pieces."""
    if not word:
        return [[]]
    starts = [piece for piece in PIECES if word.startswith(piece)]
    return [[piece, *rest] for piece in starts for rest in _cuts(word[len(piece) :])]


def _score(cut: list[str]) -> float:
    return float(sum(SCORES[PIECES.index(piece)] for piece in cut))


def test_expected_counts_are_those_of_all_cuts() -> None:
    expected: Counter[str] = Counter()
    for word, count in WORDS.items():
        total = sum(math.exp(_score(cut)) for cut in _cuts(word))
        for cut in _cuts(word):
            for piece in cut:
                expected[piece] += count * math.exp(_score(cut)) / total
    lattice = unigram._lattice(
        list(WORDS), {piece: i for i, piece in enumerate(PIECES)}
    )
    computed = unigram._expected_counts(lattice, np.array(list(WORDS.values())), SCORES)
    np.testing.assert_allclose(
        computed, [expected[piece] for piece in PIECES], rtol=1e-12
    )
    alive = np.array([piece != "ab" for piece in PIECES])
    without = unigram._expected_counts(
        lattice.only(alive), np.array(list(WORDS.values())), SCORES
    )
    assert without[PIECES.index("ab")] == 0
    assert without.sum() != pytest.approx(computed.sum())


def test_best_scores_are_those_of_the_best_cut() -> None:
    number = {piece: i for i, piece in enumerate(PIECES)}
    computed = unigram._best_scores(unigram._lattice(list(WORDS), number), SCORES)
    np.testing.assert_allclose(
        computed, [max(map(_score, _cuts(word))) for word in WORDS], rtol=1e-12
    )
    inner = unigram._best_scores(
        unigram._lattice(["abc"], number, allow_whole=False), SCORES
    )
    np.testing.assert_allclose(
        inner, [max(_score(cut) for cut in _cuts("abc") if len(cut) > 1)], rtol=1e-12
    )


def test_digamma_has_its_known_values() -> None:
    euler = 0.5772156649015329
    values = unigram._digamma(np.array([0.5, 1.0, 2.0, 10.0]))
    known = [
        -euler - 2 * math.log(2),
        -euler,
        1 - euler,
        sum(1 / i for i in range(1, 10)) - euler,
    ]
    np.testing.assert_allclose(values, known, rtol=1e-8)


def test_pieces_that_nothing_needs_are_dropped() -> None:
    learned = [
        piece for piece, _ in learn_unigram(["abc", "d"], np.array([1000, 3]), room=100)
    ]
    assert learned[0] == "abc"
    assert set(learned) == {"abc", "a", "b", "c", "d"}


def test_the_room_is_filled_by_the_pieces_that_the_text_needs_most() -> None:
    stems, ends = ("walk", "talk", "look", "jump", "play"), ("", "s", "ed", "ing")
    words = [f" {stem}{end}" for stem in stems for end in ends]
    counts = np.arange(200, 200 - len(words), -1)
    learned = learn_unigram(words, counts, room=6)
    longer = {piece for piece, _ in learned if len(piece) > 1}
    assert longer == {" walk", " talk", " look", " jump", " play", "ing"}
    plenty = {
        piece for piece, _ in learn_unigram(words, counts, room=60) if len(piece) > 1
    }
    assert set(words) <= plenty
    assert " j" not in plenty  # never the better choice
    scores = [score for _, score in learned]
    assert all(a >= b for a, b in pairwise(scores))
    assert max(scores) < 0


def test_wide_characters_take_no_more_than_half_of_the_room_that_words_need() -> None:
    words = ["学习汉字", "学习", "汉字", "的", "了", "是", "在", "我"]
    counts = np.array([50, 40, 30, 9, 8, 7, 6, 5])
    learned = [piece for piece, _ in learn_unigram(words, counts, room=4)]
    assert sorted(map(len, learned)) == [1, 1, 2, 2] or max(map(len, learned)) > 2
    assert len(learned) == 4
    everything = {piece for piece, _ in learn_unigram(words, counts, room=100)}
    assert set("学习汉字的了是在我") <= everything


def test_rare_substrings_are_no_pieces() -> None:
    learned = {
        piece
        for piece, _ in learn_unigram(
            ["abab", "cdcd"], np.array([5, 1]), room=100, min_frequency=3
        )
    }
    assert "ab" in learned or "abab" in learned
    assert not any("c" in piece and len(piece) > 1 for piece in learned)


def test_long_words_and_long_lists_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = unigram._cut(["x" * 100, "y"], np.array([2, 1]))
    assert parts == {"x" * 48: 4, "x" * 4: 2, "y": 1}
    monkeypatch.setattr(unigram, "_MOST_TEXT", 5)
    assert unigram._cut(["abc", "de", "f"], np.array([3, 2, 1])) == {"abc": 3, "de": 2}


def test_the_vocabulary_has_specials_then_all_bytes_then_pieces() -> None:
    vocabulary = unigram_vocabulary([("the", -1.0), ("a", -2.0), ("语", -3.0)])
    assert [piece for piece, _ in vocabulary[: len(SPECIALS)]] == list(SPECIALS)
    assert [piece for piece, _ in vocabulary[len(SPECIALS) : SMALLEST]] == list(
        BYTE_LETTERS
    )
    assert vocabulary[SMALLEST:] == [["the", -1.0], ["è¯Ń", -3.0]]
    scores = {str(piece): score for piece, score in vocabulary}
    assert scores["a"] == -2.0
    assert scores["b"] == scores["Ġ"] == -4.0
