"""What a source can become: learned from pairs, by hand and at random."""

from collections import defaultdict

import numpy as np
import pytest

from weft.decoding.shortlist import learn_shortlist

# "das haus", "das buch", "ein buch" and "the house", "the book", "a book" (Knight 1999, "A
# Statistical MT Tutorial Workbook", has two of them): das 4, haus 5, buch 6, ein 7; the 10, house
# 11, book 12, a 13.
PAIRS = [([4, 5], [10, 11]), ([4, 6], [10, 12]), ([7, 6], [13, 12])]


def test_each_word_becomes_what_it_stands_beside_most() -> None:
    found = learn_shortlist(PAIRS, 8, 17, num_frequent=0, num_likely=1, rounds=20)
    assert {i: found.of([i]).tolist() for i in range(4, 8)} == {
        4: [10],
        5: [11],
        6: [12],
        7: [13],
    }
    assert found.of([4, 6, 4]).tolist() == [10, 12]
    assert found.of([3]).tolist() == [], (
        "what never stood in the text becomes nothing by itself"
    )


def test_it_learns_what_model_1_learns_step_by_step() -> None:
    draw = np.random.default_rng(5)
    pairs = [
        (
            draw.integers(0, 7, draw.integers(1, 6)).tolist(),
            draw.integers(0, 11, draw.integers(1, 5)).tolist(),
        )
        for _ in range(23)
    ]
    null, table = 7, defaultdict(lambda: 1.0)
    for _ in range(3):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for src, tgt in pairs:
            for t in tgt:
                whole = sum(table[s, t] for s in [*src, null])
                for s in [*src, null]:
                    counts[s, t] += table[s, t] / whole
        totals: dict[int, float] = defaultdict(float)
        for (s, _), count in counts.items():
            totals[s] += count
        table = defaultdict(
            float, {(s, t): count / totals[s] for (s, t), count in counts.items()}
        )
    found = learn_shortlist(pairs, 7, 11, num_frequent=0, num_likely=2, rounds=3)
    for s in range(7):
        best = sorted((-p, t) for (source, t), p in table.items() if source == s)[:2]
        assert found.of([s]).tolist() == sorted(t for _, t in best)


def test_frequent_ones_and_those_always_allowed_are_in_every_list() -> None:
    found = learn_shortlist(PAIRS, 8, 17, always=[3, 1], num_frequent=2, num_likely=1)
    assert found.always.tolist() == [1, 3, 10, 12]
    assert found.of([]).tolist() == [1, 3, 10, 12]
    assert found.of([5]).tolist() == [1, 3, 10, 11, 12]


@pytest.mark.parametrize("pairs", [[], [([], [4])], [([4], [])]])
def test_without_text_only_what_is_always_allowed_is_left(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    found = learn_shortlist(pairs, 5, 5, always=[1])
    assert found.of([4]).tolist() == [1]
