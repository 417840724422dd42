"""Whether a curve still gets better at its end, and whether a model learns by heart."""

import pytest

from weft.run.judging.curve import (
    LEAST_BLEU,
    before_decay,
    deciding,
    has_room,
    learned_by_heart,
    still_improves,
)
from weft.training import scores


@pytest.mark.parametrize(
    ("scores", "is_loss", "expected"),
    [
        ([1.0, 5.0, 9.0], False, True),
        ([1.0, 9.0, 9.1], False, False),
        ([1.0, 9.0, 9.2], False, True),
        ([9.0, 5.0, 1.0], True, True),
        ([9.0, 1.0, 0.99], True, False),
        ([9.0, 1.0, 0.97], True, True),
        ([9.0, 1.0, 2.0], True, False),
        ([1.0, 2.0, 3.0, 9.0, 8.0, 8.0], False, False),
        ([1.0, 9.0], False, False),
        ([], False, False),
    ],
)
def test_the_last_third_beats_what_was_before(
    scores: list[float], is_loss: bool, expected: bool
) -> None:
    assert still_improves(scores, is_loss) == expected


def test_a_cosine_is_judged_by_its_last_third() -> None:
    """Only one logged step has the highest rate, so it did not stay there."""
    losses = [6.36, 5.59, 5.23, 5.06, 4.97, 4.93, 4.91, 4.903, 4.902]
    lines = [{"step": 14 * i, "dev_loss": x} for i, x in enumerate(losses, start=1)]
    falling = [(50, 0.0008), (100, 0.0001), (126, 0.00002)]
    assert not has_room(lines, falling)
    stayed = [(14, 0.0008), (50, 0.0008), (100, 0.0001), (126, 0.00002)]
    assert has_room(lines, stayed)


def test_a_gain_of_fewer_rows_than_two_is_chance() -> None:
    """Of 50 rows of dev, 30 right, then 31: more by 3 %."""
    assert still_improves([0.5, 0.6, 0.62], is_loss=False)
    assert not still_improves([0.5, 0.6, 0.62], is_loss=False, least=2 / 50)
    assert still_improves([0.5, 0.6, 0.66], is_loss=False, least=2 / 50)
    lines = [{"step": i, "dev_accuracy": a} for i, a in enumerate([0.5, 0.6, 0.62])]
    assert has_room(lines, [])
    assert not has_room(lines, [], 2 / 50)


@pytest.mark.parametrize(
    ("dev", "train", "expected"),
    [
        ([3.0, 2.0, 2.2], [4.0, 1.0], True),
        ([3.0, 2.0, 2.05], [4.0, 1.0], False),
        ([3.0, 2.0, 2.2], [4.0, 1.8], False),
        ([2.0, 2.2], [1.0], False),
        ([3.0, 2.0, 2.2], [], False),
    ],
)
def test_by_heart_is_a_dev_loss_that_rose_while_training_fell(
    dev: list[float], train: list[float], expected: bool
) -> None:
    assert learned_by_heart(dev, train) == expected


def test_the_first_score_decides_but_not_a_bleu_that_is_chance() -> None:
    lines = [
        {"step": 5, "dev_bleu": 0.1, "dev_loss": 4.0},
        {"step": 9, "dev_bleu": 0.3, "dev_loss": 3.0},
    ]
    assert deciding(lines) == ([4.0, 3.0], True)
    assert deciding([*lines, {"step": 12, "dev_bleu": 4.9, "dev_loss": 2.0}])[1]
    assert deciding([*lines, {"step": 12, "dev_bleu": 5.0, "dev_loss": 2.0}]) == (
        [0.1, 0.3, 5.0],
        False,
    )
    assert scores.LEAST["dev_bleu"] == LEAST_BLEU
    assert deciding([{"step": 1, "dev_accuracy": 0.5, "dev_loss": 1.0}]) == (
        [0.5],
        False,
    )
    assert deciding([{"step": 1, "dev_bleu": 0.5}]) == ([0.5], False)
    assert deciding([]) == ([], False)


def test_while_the_rate_falls_every_curve_gets_better() -> None:
    """So the evaluations before it decide, where there are enough of them."""
    scores = [5.0, 9.0, 9.0, 9.0, 9.0, 12.0]
    lines = [
        {"step": 10 * n, "dev_bleu": score} for n, score in enumerate(scores, start=1)
    ]
    stays = [(5, 0.1), (10, 0.2), (30, 0.2), (50, 0.2), (55, 0.1), (60, 0.01)]
    falls = [(5, 0.1), (10, 0.2), (30, 0.15), (50, 0.1), (60, 0.01)]
    assert still_improves(*deciding(before_decay(lines, falls)))
    assert not still_improves(*deciding(before_decay(lines, stays)))
    assert before_decay(lines, []) == lines


def test_a_curve_that_rose_while_the_rate_fell_has_no_room() -> None:
    """Of a language model on 300 kB: dev loss by evaluation; the rate falls behind the ninth."""
    losses = [5.9, 5.5, 5.3, 5.2, 5.1, 5.0, 4.95, 4.845, 4.82, 4.8564, 4.8397, 4.8451]
    steps = range(12, 156, 12)
    lines = [{"step": n, "dev_loss": v} for n, v in zip(steps, losses, strict=True)]
    rates = [(n, 0.1 if n <= 108 else 0.05) for n in steps]
    assert still_improves(losses[:9], is_loss=True)
    assert not has_room(lines, rates)
    lines[-1]["dev_loss"] = 4.7
    assert has_room(lines, rates)
    assert has_room(lines[:9], rates)
    scores = [{"step": n, "dev_bleu": float(n)} for n in steps]
    assert has_room(scores, rates)
    assert not has_room(
        [*scores[:9], *({**line, "dev_bleu": 50.0} for line in scores[9:])], rates
    )
