"""Words and pairs of texts as sparse features."""

import numpy as np
import pytest

from weft.data.tf_idf import SparseRows, WordsAndPairs


def dense(rows: SparseRows) -> list[list[float]]:
    found = np.zeros((len(rows), rows.num_features))
    ends = [*rows.begins[1:], len(rows.features)]
    for row, (begin, end) in enumerate(zip(rows.begins, ends, strict=True)):
        assert np.all(np.diff(rows.features[begin:end]) > 0)
        found[row, rows.features[begin:end]] = rows.values[begin:end]
    return found.round(4).tolist()


def test_values_are_those_of_scikit_learn() -> None:
    """TfidfVectorizer 1.9.1 with ngram_range=(1, 2), sublinear_tf and token_pattern=r"\\w+"; its
    columns here in the order in which words are met. The last one is 1 in every text.
    """
    words = WordsAndPairs.of(["a b a", "B, c!"])
    # a, a b, b, b a, b c, c
    assert dense(words.rows(["a b a", "b c"])) == [
        [0.7304, 0.4314, 0.307, 0.4314, 0, 0, 1],
        [0, 0, 0.4494, 0, 0.6317, 0.6317, 1],
    ]
    # d is not known
    assert dense(words.rows(["b b a d c"])) == [[0.474, 0, 0.571, 0.474, 0, 0.474, 1]]


def test_a_text_of_which_nothing_is_known_has_the_last_feature_alone() -> None:
    words = WordsAndPairs.of(["a b", "c"])
    assert dense(words.rows(["", "x y", "c"])) == [
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 1],
    ]
    empty = WordsAndPairs.of(["", "."])
    assert dense(empty.rows(["a", ""])) == [[1], [1]]


def test_numbers_are_words_too() -> None:
    assert len(WordsAndPairs.of(["7 of 9"]).words) == 3


@pytest.mark.parametrize("text", ["你好", "สวัสดี"])
def test_letters_of_scripts_without_spaces_are_words(text: str) -> None:
    assert len(WordsAndPairs.of([text]).words) > 1
