"""The nearest training text, by hand and against the plain form; and how many words apart two texts
are.
"""

import math
import random

import pytest

from weft.run.judging.memory import Memory
from weft.run.judging.words import edits, words_of


@pytest.mark.parametrize(
    ("row", "nearest"),
    [([7, 8], 1), ([5], 0), ([9, 5], 0), ([99], 0), ([], 0), ([3, 3, 3], 2)],
)
def test_by_hand(row: list[int], nearest: int) -> None:
    assert Memory([[5, 1], [7, 8, 1], [3, 1]]).nearest(row) == nearest


def test_it_is_the_cosine_of_weighted_sets() -> None:
    draw = random.Random(1)
    rows = [
        [draw.randrange(30) for _ in range(draw.randrange(1, 9))] for _ in range(60)
    ]
    weight = {
        i: math.log((len(rows) + 1) / sum(i in row for row in rows)) ** 2
        for i in {i for r in rows for i in r}
    }

    def likeness(one: list[int], other: list[int]) -> float:
        common = sum(weight[i] for i in set(one) & set(other) if i in weight)
        return common / math.sqrt(sum(weight[i] for i in set(other)))

    memory = Memory(rows)
    for _ in range(50):
        row = [draw.randrange(33) for _ in range(5)]
        best = max(likeness(row, other) for other in rows)
        assert likeness(row, rows[memory.nearest(row)]) == pytest.approx(best)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a c", 1),
        ("a b", "b a", 2),
        ("", "a b", 2),
        ("a b c d", "x b y d z", 3),
    ],
)
def test_edits(one: str, other: str, expected: int) -> None:
    assert (
        edits(one.split(), other.split())
        == expected
        == edits(other.split(), one.split())
    )


def test_words_are_without_case_and_marks_stand_alone() -> None:
    assert words_of("The dog's here.", "en") == ["the", "dog", "'", "s", "here", "."]
    assert words_of("我 喜欢。", "zh") == ["我", "喜", "欢", "。"]
