"""Right words by the least edits, and the area under a curve, by hand and by counting pairs."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.evaluation.tags import area_under_curve, right_words
from weft.run.judging.words import edits

WORDS = st.text("abc", max_size=7).map(list)


@pytest.mark.parametrize(
    ("words", "reference", "right"),
    [
        ("a b c", "a b c", "111"),
        ("a x c", "a b c", "101"),
        ("a b c", "b c", "011"),
        ("b c", "a b c", "11"),
        ("c a b", "a b c", "011"),  # nothing is shifted
        ("a a", "a", "01"),
        ("x y", "a b c", "00"),
        ("", "a b", ""),
        ("a b", "", "00"),
    ],
)
def test_words_are_right_that_the_least_edits_leave(
    words: str, reference: str, right: str
) -> None:
    found = right_words(words.split(), reference.split())
    assert "".join("01"[one] for one in found) == right


@given(WORDS, WORDS)
def test_as_many_words_are_right_as_the_least_edits_can_leave(
    words: list[str], reference: list[str]
) -> None:
    found = right_words(words, reference)
    assert len(found) == len(words)
    kept = [word for word, is_right in zip(words, found, strict=True) if is_right]
    rest = iter(reference)
    assert all(word in rest for word in kept)  # in their order
    distance = edits(words, reference)
    assert distance >= max(len(words), len(reference)) - len(kept)
    if words == reference:
        assert all(found)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12))
def test_the_area_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    pairs = [
        (wrong > right) + 0.5 * (wrong == right)
        for (wrong, is_wrong), (right, is_other) in product(rows, rows)
        if is_wrong and not is_other
    ]
    wanted = sum(pairs) / len(pairs) if pairs else 0.5
    found = area_under_curve([score for score, _ in rows], [one for _, one in rows])
    assert found == pytest.approx(wanted)
