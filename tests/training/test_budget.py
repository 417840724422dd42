"""A run that ends by the clock: how near it comes, and that it repeats bit for bit, stopped or
without a clock.
"""

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from pushed import of_which
from weft.config import TrainingSection
from weft.data.corpus import from_pairs
from weft.data.documents import from_documents
from weft.data.train_text import TrainText
from weft.errors import Interrupted, UsageError
from weft.folder import durable
from weft.folder.layout import RunFolder
from weft.kernels.machine import machine_for_use
from weft.recipes.file import load_recipe
from weft.run import planning
from weft.run.request import Request
from weft.run.train import train
from weft.tasks.choice import load_trainable
from weft.tasks.trainable_language_modelling import TrainableLanguageModelling
from weft.tasks.trainable_translation import TrainableTranslation
from weft.training.budget import (
    MOST_TIMES,
    Budget,
    Costs,
    TimePlan,
    choose_time_plan,
    more_steps,
    read_time_plan,
    settings_to_go_on,
)
from weft.training.checkpoint import Progress
from weft.training.log import Log
from weft.training.schedule import learning_rate
from weft.training.trainer import OPEN, Plan, Trainer

COSTS = Costs(step=1.0, evaluation=5.0, ending=12.0)


class Clock:
    """Moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def settled(
    path: Path, minutes: float = 20.0, costs: Costs = COSTS, **settings: Any
) -> TimePlan:
    made = choose_time_plan(path, TrainingSection(**settings), 64, costs, minutes, 30.0)
    assert made is not None
    return made


def simulated(
    path: Path, plan: TimePlan, seconds_of: Callable[[int], float], evaluation: float
) -> tuple[float, int]:
    """Train on a clock alone: when the run ends, and after how many steps."""
    clock, settings = Clock(), plan.applied(TrainingSection())
    budget = Budget(path, plan, settings, COSTS, 0.0, True, clock)
    clock.now, step, last = 30.0, 0, OPEN
    budget.begin(0.0, [])
    while step < last:
        step += 1
        clock.now += seconds_of(step)
        if last == OPEN:
            last = budget.decide(step) or OPEN
        if step % plan.eval_every == 0 or step == last:
            clock.now += evaluation
            budget.evaluated(evaluation)
    return clock.now + 2 + 10 * evaluation / COSTS.evaluation, last


@pytest.mark.parametrize(
    ("seconds_of", "evaluation"),
    [
        (lambda step: 1.0, 5.0),
        (lambda step: 2.5, 5.0),  # foreseen wrongly
        (lambda step: 0.2, 9.0),
        (lambda step: 1.0 if step < 300 else 3.0, 5.0),  # another program has come
        (lambda step: 3.0 if step < 200 else 1.0, 5.0),  # or gone
        (lambda step: 1.0 + 0.8 * (step % 7 == 0), 2.0),
    ],
)
def test_a_run_ends_at_its_time(
    tmp_path: Path, seconds_of: Callable[[int], float], evaluation: float
) -> None:
    plan = settled(tmp_path / "plan.json")
    ended, steps = simulated(tmp_path / "plan.json", plan, seconds_of, evaluation)
    assert 0.9 * 1200 <= ended <= 1.1 * 1200
    written = read_time_plan(tmp_path / "plan.json")
    assert written is not None
    assert written.max_steps == steps
    assert written.decisions[-1]["max_steps"] == steps
    assert written.decisions[-1]["decay_begins"] == pytest.approx(0.8 * steps, abs=2)


def test_the_rates_before_the_decay_are_those_of_the_run_without_a_clock(
    tmp_path: Path,
) -> None:
    for fraction in (0.1, 0.2, 1 / 3, 0.7):
        plan = settled(tmp_path / f"{fraction}.json", decay_fraction=fraction)
        settings = plan.applied(
            TrainingSection(decay_fraction=fraction, final_fraction=0.1)
        )
        budget = Budget(tmp_path / "p.json", plan, settings, COSTS, 0.0, True, Clock())
        for step in range(plan.warmup_steps, 400, 7):
            steps = budget._steps_if_now(step)
            ours, its = (
                [learning_rate(settings, 64, s, n) for s in range(1, step + 1)]
                for n in (OPEN, steps)
            )
            assert ours == its
            assert steps - step == pytest.approx(fraction * steps, abs=2)


@pytest.mark.parametrize("task", [TrainableTranslation, TrainableLanguageModelling])
def test_a_slow_first_call_is_not_scaled_up_to_the_whole_text(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: Any
) -> None:
    evaluate, calls = task.evaluate, []

    def loads_first(self: Any, *given: Any, **options: Any) -> Any:
        if not calls:
            time.sleep(1.0)
        calls.append(given)
        return evaluate(self, *given, **options)

    monkeypatch.setattr(task, "evaluate", loads_first)
    folder, text = (
        tiny_folder,
        from_pairs([("a man", "ein Mann")] * 400, "", "en", "de"),
    )
    if task is TrainableLanguageModelling:
        folder = tmp_path / "model"
        lines = tmp_path / "lines.txt"
        lines.write_text("a man reads.\n\n" * 200, "utf-8")
        settings = (
            "task=language-modelling",
            "model.num_decoder_layers=1",
            "model.d_model=16",
            "model.num_heads=2",
            "model.d_ff=16",
            "training.max_steps=2",
        )
        weft.train(out=folder, train=str(lines), settings=settings, quiet=True)
        text = from_documents(["a man reads."] * 400, "")
    seconds = load_trainable(folder, machine_for_use()).scoring_seconds(text, False)
    assert 0 < seconds < 60
    assert len(calls) > 1


def test_evaluations_take_a_modest_share_of_the_time(tmp_path: Path) -> None:
    assert settled(tmp_path / "a").eval_every == pytest.approx(1083 / 15, abs=2)
    dear = settled(tmp_path / "b", costs=Costs(1.0, 80.0, 12.0))
    assert dear.expected_steps / dear.eval_every == pytest.approx(2, abs=0.1)
    short = settled(tmp_path / "c", minutes=3.0, warmup_steps=400)
    assert short.warmup_steps == short.expected_steps // 5 < 30


def test_the_highest_rate_of_another_schedule_is_kept(tmp_path: Path) -> None:
    noam = TrainingSection(schedule="noam", learning_rate=2.0, warmup_steps=100)
    plan = choose_time_plan(tmp_path / "p", noam, 64, COSTS, 20.0, 30.0)
    assert plan is not None
    assert plan.learning_rate == pytest.approx(learning_rate(noam, 64, 100, 1))
    assert plan.applied(noam).schedule == "wsd"


def test_too_little_time_says_what_is_possible(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"--minutes 0.5 is too short: .*; give at least --minutes 1.4",
    ):
        settled(tmp_path / "p", minutes=0.5)
    assert settled(tmp_path / "p", minutes=1.4).expected_steps >= 20


def test_more_time_may_be_given_and_another_number_of_steps_takes_the_place_of_the_clock(
    tmp_path: Path,
) -> None:
    path, steps = tmp_path / "p", TrainingSection(max_steps=900)
    first = choose_time_plan(path, steps, 64, COSTS, 20.0, 30.0)
    assert choose_time_plan(path, steps, 64, COSTS, None, 30.0) == first
    later = choose_time_plan(path, steps, 64, Costs(9.0), 30.0, 90.0)
    assert later is not None
    assert first is not None
    assert (later.minutes, later.eval_every, later.max_steps) == (
        30.0,
        first.eval_every,
        None,
    )
    seventy, usual = TrainingSection(max_steps=70), Plan(70, 17, 7)
    fixed = choose_time_plan(path, seventy, 64, COSTS, None, 30.0, usual)
    assert fixed is not None
    # its steps so far are those of the new length
    assert fixed.plan() == replace(first.plan(), max_steps=70, is_open=False)
    durable.write_json(path, asdict(first) | {"max_steps": 60})
    fixed = choose_time_plan(path, seventy, 64, COSTS, None, 30.0, usual)
    assert fixed is not None
    assert fixed.plan() == usual
    # what repeats the steps before has their evaluations
    assert fixed.as_settings(70)["eval_every"] == first.eval_every
    # resumed at the same length, it keeps what it has; an earlier version kept the clock's
    other = replace(usual, eval_every=9, save_every=9)
    assert choose_time_plan(path, seventy, 64, COSTS, None, 30.0, other) == fixed
    durable.write_json(path, asdict(fixed) | {"later_eval_every": None})
    older = choose_time_plan(path, seventy, 64, COSTS, None, 30.0, other)
    assert older is not None
    assert older.plan().eval_every == first.eval_every
    assert choose_time_plan(tmp_path / "none", steps, 64, COSTS, None, 30.0) is None


@pytest.fixture
def by_clock(
    tmp_path: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """Train a tiny model whose steps last a second by their own clock; the step `stop_at` never
    ends.
    """
    take_step = Trainer._take_step
    monkeypatch.setattr(planning, "_costs", lambda *_: Costs(1.0, 0.05, 5.0))

    def call(
        out: str,
        *settings: str,
        minutes: float | None = 1.0,
        pairs: int = 60,
        stop_at: int = 0,
        recipe: str | None = None,
        tag: str | None = None,
        **more: Any,
    ) -> Any:
        clock = Clock()
        monkeypatch.setattr(planning, "time", SimpleNamespace(monotonic=clock))
        monkeypatch.setattr(planning, "Budget", partial(Budget, clock=clock))

        def step(trainer: Any) -> None:
            if trainer.progress.step + 1 == stop_at:
                raise Interrupted("killed")
            clock.now += 1.0
            take_step(trainer)

        monkeypatch.setattr(Trainer, "_take_step", step)
        own = (*tiny_settings, "model.dropout=0.2", "training.save_every=10")
        # a recipe holds all of them
        values = [*(() if recipe else own), *settings]
        asked = Request(
            load_recipe(recipe, values),
            tmp_path / out,
            (TrainText(write_pairs(pairs), tag=tag),),
            minutes=minutes,
            began=0.0,
            **more,
        )
        return train(asked, Log(RunFolder(tmp_path / out).metrics, quiet=True))

    return call


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a run says, line by line."""
    lines: list[str] = []
    monkeypatch.setattr(Log, "note", lambda log, text: lines.append(text))
    return lines


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "stop_at",
    [
        pytest.param(0, marks=pytest.mark.long),
        25,
        pytest.param(52, marks=pytest.mark.long),
    ],
)
def test_stopped_or_not_it_is_bit_for_bit_the_run_without_a_clock(
    tmp_path: Path,
    by_clock: Callable[..., Any],
    save_recipe: Callable[[Path], Any],
    stop_at: int,
) -> None:
    """Whole; stopped on the plateau; stopped in the decay, whose beginning stands as it was
    written.
    """
    before: Any = None
    if stop_at:
        with pytest.raises(Interrupted):
            by_clock("run", stop_at=stop_at)
        before = read_time_plan(RunFolder(tmp_path / "run").plan)
    verdict = by_clock("run")
    plan = read_time_plan(RunFolder(tmp_path / "run").plan)
    assert plan is not None
    assert verdict.step == plan.max_steps
    assert stop_at < 30 or plan.max_steps == before.max_steps
    assert 40 < verdict.step < 80
    (note,) = [note for note in verdict.notes if "planned by the clock" in note]
    settings = [word for word in shlex.split(note.partition(": ")[2]) if "=" in word]
    assert by_clock("again", *settings, minutes=None).step == verdict.step
    assert weights(tmp_path / "again") == weights(tmp_path / "run")
    recipe, commands = save_recipe(tmp_path / "run")
    assert commands == [[]]
    assert by_clock("card", recipe=recipe, minutes=None).step == verdict.step
    assert weights(tmp_path / "card") == weights(tmp_path / "run")
    assert by_clock("run").step == verdict.step  # has ended
    assert by_clock("run", "training.max_steps=90").step == 90


@pytest.mark.parametrize("stop_at", [0, 23, 45])
def test_mixtures_by_the_clock_are_those_of_the_run_without(
    tmp_path: Path,
    by_clock: Callable[..., Any],
    save_recipe: Callable[[Path], Any],
    stop_at: int,
) -> None:
    """Whole; killed behind the first border; killed behind the last one."""
    mixtures = "[{until=0.37, weights={a=0.5}}, {until=0.83, weights={a=1.5}}]"
    setting = f"data.mixtures={mixtures}"
    decided: list[int] = []
    path = RunFolder(tmp_path / "run").plan
    if stop_at:
        with pytest.raises(Interrupted):
            by_clock("run", setting, stop_at=stop_at, tag="a")
        before = read_time_plan(path)
        assert before is not None
        decided = before.borders
        assert decided
    steps = by_clock("run", setting, tag="a").step
    plan = read_time_plan(path)
    assert plan is not None
    assert plan.borders[: len(decided)] == decided
    shares = [border / steps for border in plan.borders]
    if not stop_at:  # else the clock of the second start has seen nothing of the first
        assert abs(shares[0] - 0.37) < 0.08
        assert abs(shares[1] - 0.83) < 0.08
    recipe, commands = save_recipe(tmp_path / "run")
    assert commands == [[]]
    assert by_clock("card", recipe=recipe, minutes=None, tag="a").step == steps
    assert weights(tmp_path / "card") == weights(tmp_path / "run")


def evaluations(folder: Path) -> list[int]:
    lines = RunFolder(folder).metrics.read_text("utf-8").splitlines()
    return [line["step"] for line in map(json.loads, lines) if "dev_loss" in line]


HELD = ("data.dev_size=24", "data.test_size=0")


@pytest.mark.parametrize(
    "settings",
    [
        (),
        pytest.param(
            ("training.schedule=noam", "training.warmup_steps=40"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            (
                "training.precision=auto",
                "training.kernels=auto",
                "training.threads=none",
            ),
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_card_repeats_a_run_by_the_clock_that_was_lengthened(
    tmp_path: Path,
    by_clock: Callable[..., Any],
    save_recipe: Callable[[Path], Any],
    said: list[str],
    settings: tuple[str, ...],
) -> None:
    """Also one whose warm-up and learning rate the plan has changed, or one that left open what the
    machine then chose.
    """
    settings = (*HELD, *settings)
    steps = by_clock("run", *settings, pairs=216).step
    longer = "training.max_steps=90"
    ended = by_clock("run", *settings, longer, pairs=216, minutes=None)
    (note,) = [line for line in ended.notes if "planned by the clock" in line]
    assert note in (line.removeprefix("note: ") for line in said)
    assert note.startswith(
        f"planned by the clock, then lengthened: {steps} steps, then 90; to repeat it without the clock: "
        "first --set training.schedule=wsd "
    )
    # evaluations follow the new length: as often as in a run of 90 steps without a clock
    by_clock("whole", *settings, longer, pairs=216, minutes=None)
    evaluated = evaluations(tmp_path / "whole")
    rhythm = f"training.eval_every={evaluated[0]}"
    later = [step for step in evaluations(tmp_path / "run") if step > steps]
    assert later == [step for step in evaluated if step > steps]
    then = f"--set {longer} --set {rhythm}"
    assert note.endswith(f", then the same command with {then}")
    recipe, commands = save_recipe(tmp_path / "run")
    assert commands == [[], [longer, rhythm]]
    chosen = load_recipe(recipe).training
    assert not {chosen.precision, chosen.kernels, chosen.threads} & {"auto", None}
    for command in commands:
        by_clock("card", *command, pairs=216, recipe=recipe, minutes=None)
    assert weights(tmp_path / "card") == weights(tmp_path / "run")
    assert evaluations(tmp_path / "card") == evaluations(tmp_path / "run")
    by_clock("one", longer, pairs=216, recipe=recipe, minutes=None)
    assert weights(tmp_path / "one") != weights(tmp_path / "run")


@pytest.mark.parametrize(("steps", "repeats"), [(70, True), (22, False)])
def test_a_number_of_steps_given_on_the_plateau_repeats_the_run_where_it_has_that_plateau(
    tmp_path: Path,
    by_clock: Callable[..., Any],
    save_recipe: Callable[[Path], Any],
    steps: int,
    repeats: bool,
) -> None:
    """Of 22 steps, the decay would have begun before step 20, which is the last that is saved."""
    with pytest.raises(Interrupted):
        by_clock("run", stop_at=25)
    ended = by_clock("run", f"training.max_steps={steps}", minutes=None)
    assert any("planned by the clock" in note for note in ended.notes) == repeats
    recipe, _ = save_recipe(tmp_path / "run")
    by_clock("card", f"training.max_steps={steps}", recipe=recipe, minutes=None)
    assert (weights(tmp_path / "card") == weights(tmp_path / "run")) == repeats
    card = (tmp_path / "run" / "README.md").read_text("utf-8")
    assert ("They do not repeat it" in card) != repeats


def test_a_run_begun_without_a_clock_is_not_ended_by_one(
    by_clock: Callable[..., Any],
) -> None:
    with pytest.raises(Interrupted):
        by_clock("run", "training.max_steps=60", minutes=None, stop_at=15)
    with pytest.raises(UsageError, match="was started without --minutes"):
        by_clock("run", "training.max_steps=60")


@pytest.mark.parametrize("minutes", of_which([1.0, 2.0], 1.0))
def test_a_run_stopped_before_its_first_step_begins_again(
    by_clock: Callable[..., Any],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    minutes: float,
) -> None:
    def stop(*_: object) -> None:
        raise Interrupted("while the kernels compile")

    with monkeypatch.context() as patch:
        patch.setattr(planning, "_costs", stop)
        with pytest.raises(Interrupted):
            by_clock("run")
    assert by_clock("run", minutes=minutes).step > 20
    assert [line for line in said if "has saved no step: it begins again" in line]
    assert not [line for line in said if "continuing" in line]


def test_after_a_run_that_is_flat_no_more_steps_are_proposed(
    by_clock: Callable[..., Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do the figures of the run ask for any."""
    monkeypatch.setattr("weft.run.judging.verdict.has_room", lambda *curve: False)
    monkeypatch.setattr("weft.run.judging.verdict.explain_run", lambda *run: [])
    held = ("data.dev_size=24", "data.test_size=0")
    by_clock(
        "run", *held, pairs=216, command="weft train text --minutes 1 --output run"
    )
    assert [line for line in said if line.startswith("verdict: not usable yet")]
    assert not [line for line in said if line.startswith("try next")]


@pytest.mark.long
def test_what_is_proposed_after_a_run_by_the_clock_works_as_printed(
    by_clock: Callable[..., Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.run.judging.verdict.has_room", lambda *curve: True)
    text: Any = {"pairs": 216}
    held = ("data.dev_size=24", "data.test_size=0")
    ended = by_clock(
        "run", *held, **text, command="weft train text --minutes 1 --output run"
    )
    (place,) = [i for i, line in enumerate(said) if line.startswith("try next, ")]
    usual = planning.FEWEST_STEPS
    assert 2 * ended.step < usual < MOST_TIMES * ended.step
    assert said[place].endswith(" more:")
    assert (
        said[place + 1]
        == f"  weft train text --output run --set training.max_steps={usual}"
    )
    said.clear()
    longer = by_clock("run", *held, f"training.max_steps={usual}", **text, minutes=None)
    assert longer.step == usual
    notes = [note for note in longer.notes if "its schedule" in note]
    assert notes == [
        f"training.max_steps = {longer.step} ends the run; its schedule stays wsd"
    ]
    assert not [
        line for line in said if "left out" in line or "the same without it" in line
    ]


def test_a_number_of_steps_beside_minutes_says_which_of_them_counts(
    by_clock: Callable[..., Any],
) -> None:
    ended = by_clock("run")
    longer = by_clock("run", "training.max_steps=90", minutes=1.0)
    assert longer.step == 90 > ended.step
    assert [note for note in longer.notes if "its schedule" in note] == [
        "training.max_steps = 90 ends the run, and --minutes no longer counts; its schedule stays wsd"
    ]


def test_other_minutes_in_the_decay_are_said_not_to_count(
    tmp_path: Path, by_clock: Callable[..., Any]
) -> None:
    with pytest.raises(Interrupted):
        by_clock("run", stop_at=52)
    steps = by_clock("run", minutes=3.0).step
    plan = read_time_plan(RunFolder(tmp_path / "run").plan)
    assert plan is not None
    assert (plan.minutes, plan.max_steps) == (1.0, steps)
    notes = json.loads(RunFolder(tmp_path / "run").verdict.read_bytes())["notes"]
    said = f"the run has {steps} steps in all, and --minutes no longer counts"
    assert f"the learning rate is falling already: {said}" in notes
    # once it is lengthened, its rate falls no more, and minutes count as little
    with pytest.raises(Interrupted):
        by_clock("run", "training.max_steps=900", minutes=None, stop_at=steps + 2)
    with pytest.raises(Interrupted):
        by_clock("run", minutes=3.0, stop_at=steps + 4)
    notes = json.loads(RunFolder(tmp_path / "run").verdict.read_bytes())["notes"]
    assert "the run has 900 steps in all, and --minutes no longer counts" in notes


def test_what_is_out_of_patience_gets_patience_and_what_has_no_step_left_gets_steps() -> (
    None
):
    plan = TimePlan(1.0, 80, 10, 10, 5, 0.01, 40)
    decided = replace(plan, max_steps=40)
    steps, patience = {"training.max_steps": 81}, {"training.patience": 6}
    assert settings_to_go_on(decided, 40, 40, 3, None) == steps
    assert settings_to_go_on(decided, 40, 40, 3, 4) == steps
    assert settings_to_go_on(decided, 30, 40, 3, 3) == patience
    # it stopped at the last step: either setting alone would end it there
    assert settings_to_go_on(decided, 40, 40, 3, 3) == steps | patience
    # the clock has not decided, and goes on to
    assert settings_to_go_on(plan, 40, 38, 3, 3) == patience


def test_minutes_for_a_finished_run_are_said_not_to_lengthen_it(
    by_clock: Callable[..., Any], said: list[str]
) -> None:
    steps = by_clock("run").step
    said.clear()
    by_clock("run", minutes=4.0)
    (line,) = said
    assert (
        f"is finished (done after {steps} steps), and --minutes does not lengthen a finished run; "
        in line
    )
    assert line.endswith(
        f"the same command with --set training.max_steps={planning.FEWEST_STEPS} in place of --minutes"
    )


def test_more_steps_are_never_those_that_leave_it_to_the_clock(tmp_path: Path) -> None:
    plan = settled(tmp_path / "p", max_steps=80)
    assert [more_steps(plan, 40), more_steps(plan, 41), more_steps(None, 40)] == [
        81,
        82,
        80,
    ]


def test_a_run_that_the_clock_ended_early_is_to_have_the_usual_steps(
    tmp_path: Path,
) -> None:
    """Twice 25 steps would be as useless; but nobody who asked for 2 minutes waits for days."""
    plan = replace(settled(tmp_path / "p", max_steps=None), usual_steps=500)
    assert [more_steps(plan, steps) for steps in (20, 25, 30, 240, 260)] == [
        *(400, 500, 500, 500, 520),
    ]
    plan = settled(tmp_path / "q", max_steps=700)
    assert [more_steps(plan, 113), more_steps(plan, 30)] == [701, 600]


def test_the_steps_of_a_run_without_a_clock_are_kept_in_the_plan(
    tmp_path: Path, by_clock: Callable[..., Any]
) -> None:
    by_clock("run")
    plan = read_time_plan(RunFolder(tmp_path / "run").plan)
    assert plan is not None
    assert plan.usual_steps is not None
    assert plan.usual_steps >= planning.FEWEST_STEPS


def test_another_time_announces_other_steps(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    costs = Costs(0.1)
    settings = TrainingSection()
    plan = choose_time_plan(path, settings, 64, costs, 4.0, 0.0)
    assert plan is not None
    again = choose_time_plan(path, settings, 64, costs, 1.0, 0.0)
    assert again is not None
    assert again.plan().max_steps == round(plan.plan().max_steps / 4)
    slower = replace(again, decisions=[{"step": 9, "expected_steps": 100}])
    path.write_text(json.dumps(asdict(slower)))
    again = choose_time_plan(path, settings, 64, costs, 2.0, 0.0)
    assert again is not None
    assert again.plan().max_steps == 200


@pytest.mark.parametrize(
    ("costs", "named", "unnamed"),
    [
        (Costs(0.01, 30.0, 30.0), "less text for dev and test", "smaller"),
        (Costs(9.0), "batches.tokens_per_batch or a smaller model", "dev and test,"),
    ],
)
def test_a_time_too_short_names_what_takes_it(
    tmp_path: Path, costs: Costs, named: str, unnamed: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_time_plan(tmp_path / "p", TrainingSection(), 64, costs, 0.1, 5.0)
    _, remedy = str(caught.value).split("; give ")
    assert remedy.startswith("at least --minutes ")
    assert named in remedy
    assert unnamed not in remedy


@pytest.mark.parametrize(
    ("settings", "text", "dev", "named"),
    [
        pytest.param(
            ("task=language-modelling",),
            "text.txt",
            None,
            "less text for dev and test (data.dev_share), or a smaller batches.batch_size or batches.window_len",
            marks=pytest.mark.long,
        ),
        pytest.param(
            ("task=language-modelling", "data.test_share=0.1"),
            "text.txt",
            None,
            "dev and test (data.dev_share, data.test_share), or",
            marks=pytest.mark.long,
        ),
        (
            ("batches.batch_size=8", "data.test_size=4"),
            "pairs.en-de.tsv",
            "dev.en-de.tsv",
            "dev and test (data.test_size), or a smaller batches.batch_size or a smaller model",
        ),
    ],
)
def test_a_time_too_short_names_keys_that_the_recipe_has(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: tuple[str, ...],
    text: str,
    dev: str | None,
    named: str,
) -> None:
    monkeypatch.setattr(planning, "_costs", lambda *_: Costs(9.0, 90.0, 90.0))
    lines = [f"a line {n} of the {n * n}\tzeile {n}\n" for n in range(300)]
    (tmp_path / text).write_text("".join(lines[9:]), "utf-8")
    if dev:
        (tmp_path / dev).write_text("".join(lines[:9]), "utf-8")
    small = ("model.d_model=16", "model.d_ff=24", "model.num_heads=2")
    with pytest.raises(UsageError) as caught:
        weft.train(
            train=str(tmp_path / text),
            dev=dev and str(tmp_path / dev),
            out=tmp_path / "run",
            settings=(*settings, *small),
            minutes=0.1,
            allow_bad_data=True,
            quiet=True,
        )
    assert named in str(caught.value)


def test_the_log_says_when_the_decay_begins_and_how_long_the_run_is(
    tmp_path: Path, by_clock: Callable[..., Any], said: list[str]
) -> None:
    by_clock("run")
    plan = read_time_plan(RunFolder(tmp_path / "run").plan)
    assert plan is not None
    at = plan.decisions[-1]["step"]
    assert (
        said.count(
            f"step {at}: the learning rate begins to fall; {plan.max_steps} steps in all"
        )
        == 1
    )


def test_another_number_of_steps_that_is_foreseen_is_said_where_it_differs_by_a_tenth(
    said: list[str],
) -> None:
    log = Log(quiet=True)
    with log.running(Progress(), 1000):
        log.expected(100, 905)
        assert said == []
        log.expected(200, 895)
        log.expected(300, 890)
    assert said == ["step 200: by the speed so far about 895 steps in all, not 1,000"]
