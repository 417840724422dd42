"""Learning rates computed by hand at the first step, at the end of the warm-up, and far out."""

import pytest

from weft.config import TrainingSection
from weft.training.schedule import (
    SMALL_FACTOR,
    about_small_factor,
    as_options,
    learning_rate,
    peak_rate,
    shorter_warmup,
)


def rate(
    step: int, max_steps: int = 1100, d_model: int = 64, **settings: object
) -> float:
    section = TrainingSection.model_validate(
        {"learning_rate": 2.0, "warmup_steps": 100, **settings}
    )
    return learning_rate(section, d_model, step, max_steps)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 2 / 8 * 0.001),  # 64^-0.5 = 1/8; 100^-1.5 = 0.001
        (50, 2 / 8 * 0.05),
        (100, 2 / 8 * 0.1),  # both branches: 100^-0.5 = 100 * 0.001
        (400, 2 / 8 * 0.05),
        (1_000_000, 2 / 8 * 0.001),
    ],
)
def test_noam(step: int, expected: float) -> None:
    assert rate(step, schedule="noam") == pytest.approx(expected, rel=1e-12)


def test_noam_without_warm_up_falls_from_the_first_step() -> None:
    assert rate(1, schedule="noam", warmup_steps=0) == pytest.approx(2 / 8)
    assert rate(4, schedule="noam", warmup_steps=0) == pytest.approx(2 / 16)


@pytest.mark.parametrize("schedule", ["cosine", "step", "constant", "wsd"])
def test_the_warm_up_is_a_straight_line(schedule: str) -> None:
    found = [rate(step, schedule=schedule) for step in (1, 50, 100)]
    assert found == pytest.approx([0.02, 1.0, 2.0], rel=1e-12)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (100, 2.0),
        (350, 0.02 + 1.98 * (2 + 2**0.5) / 4),
        (600, 1.01),
        (1100, 0.02),
        (5000, 0.02),
    ],
)
def test_cosine_falls_to_its_final_fraction(step: int, expected: float) -> None:
    """From 2 to 0.01 times 2 over the 1,000 steps after the warm-up; at a quarter, (1 + cos 45°) /
    2.
    """
    assert rate(step, schedule="cosine", final_fraction=0.01) == pytest.approx(
        expected, rel=1e-12
    )


def test_cosine_where_the_run_is_all_warm_up() -> None:
    found = [
        rate(step, max_steps=100, schedule="cosine", final_fraction=0.0)
        for step in (99, 100, 101)
    ]
    assert found == pytest.approx([1.98, 2.0, 0.0])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (100, 2.0),
        (550, 2.0),
        (825, 2.0),
        (894, 2 - 1.98 / 2),
        (1100, 0.02),
        (5000, 0.02),
    ],
)
def test_wsd_stays_until_its_last_quarter_and_falls_as_one_minus_a_root(
    step: int, expected: float
) -> None:
    """A quarter of 1,100 steps are 275; a quarter of these on, at 893.75, half of the way down is
    done.
    """
    found = rate(step, schedule="wsd", decay_fraction=0.25, final_fraction=0.01)
    assert found == pytest.approx(expected, rel=2e-3 if step == 894 else 1e-12)


def test_wsd_where_the_decay_is_longer_than_what_the_warm_up_leaves() -> None:
    found = [
        rate(step, max_steps=200, schedule="wsd", decay_fraction=1.0)
        for step in (100, 101, 125, 200)
    ]
    assert found == pytest.approx([2.0, 2 - 1.96 * 0.1, 2 - 1.96 * 0.5, 0.04])


@pytest.mark.parametrize(
    ("step", "expected"),
    [(100, 2.0), (109, 2.0), (110, 1.0), (119, 1.0), (120, 0.5), (1100, 2 * 0.5**100)],
)
def test_step_is_multiplied_every_so_many_steps(step: int, expected: float) -> None:
    settings = {"schedule": "step", "decay_every": 10, "decay_factor": 0.5}
    assert rate(step, **settings) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("step", [101, 1100, 10**9])
def test_constant_stays(step: int) -> None:
    assert rate(step, schedule="constant") == 2.0


@pytest.mark.parametrize("schedule", ["cosine", "step", "constant", "wsd"])
def test_without_warm_up_the_first_step_has_the_whole_rate(schedule: str) -> None:
    assert rate(1, max_steps=10**9, schedule=schedule, warmup_steps=0) == pytest.approx(
        2.0
    )


@pytest.mark.parametrize("schedule", ["noam", "cosine", "step", "constant", "wsd"])
def test_every_rate_of_a_run_is_positive(schedule: str) -> None:
    assert all(rate(step, schedule=schedule) > 0 for step in range(1, 1101))


def section(**settings: object) -> TrainingSection:
    return TrainingSection.model_validate(settings)


@pytest.mark.parametrize(("steps", "warmup"), [(100, 10), (4, 0)])
def test_a_shorter_warm_up_keeps_the_peak_of_noam(steps: int, warmup: int) -> None:
    """A warm-up of 10 in place of 4,000 would raise it by sqrt(400) = 20."""
    paper = section(schedule="noam", learning_rate=1.0, warmup_steps=4000)
    assert peak_rate(paper, 512) == pytest.approx(0.000699, rel=1e-3)
    shorter = shorter_warmup(paper, steps)
    assert shorter["training.warmup_steps"] == warmup
    changes = {key.removeprefix("training."): value for key, value in shorter.items()}
    found = peak_rate(paper.model_copy(update=changes), 512)
    assert found == pytest.approx(peak_rate(paper, 512), rel=0.005)
    rates = [
        learning_rate(paper.model_copy(update=changes), 512, step, steps)
        for step in range(1, steps + 1)
    ]
    assert max(rates) == pytest.approx(found)


def test_a_shorter_warm_up_of_other_schedules_leaves_the_rate() -> None:
    for schedule in ("cosine", "step", "constant", "wsd"):
        found = shorter_warmup(section(schedule=schedule, warmup_steps=400), 100)
        assert found == {"training.warmup_steps": 10}


def test_a_factor_that_is_a_rate_is_told_and_replaced_by_the_papers() -> None:
    small = section(schedule="noam")  # 0.001
    assert "0.001 makes every rate 0.001 of the paper's" in about_small_factor(small)
    found = shorter_warmup(small, 100)
    assert as_options(found) == (
        "--set training.warmup_steps=10 --set training.learning_rate=0.158"
    )
    assert about_small_factor(section()) == ""
    assert about_small_factor(section(schedule="noam", learning_rate=1.0)) == ""
    # nor does the advice for the paper's warm-up, in runs of ten steps and more
    for steps in range(10, 8000, 10):
        paper = section(schedule="noam", learning_rate=1.0, warmup_steps=4000)
        shorter = shorter_warmup(paper, steps)
        assert shorter["training.learning_rate"] > SMALL_FACTOR
