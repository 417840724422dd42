"""What the verdict of a run says would help, by its curve and the figures of its run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from weft.config import SideSection
from weft.data.tokenizer import build_tokenizer
from weft.folder.layout import FINISHED_EARLY
from weft.folder.model_folder import RunFolder
from weft.inspection.diagnosis import Cause, Run
from weft.kernels.machine import Machine
from weft.recipes.file import build_recipe
from weft.run.begun import read_record, texts_again
from weft.run.judging.judgement import NOT_YET, USABLE, Judgement
from weft.run.judging.verdict import (
    _by_unknown_words,
    _of_few_steps,
    _settings_of_new_run,
    judge_run,
)
from weft.tasks.choice import load_trainable
from weft.training.budget import TimePlan

PLAIN = Machine("cpu", "float32", 1, "tests are small")


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A run whose loss fell to its end, and whose model knows little."""
    copy = tmp_path / "model"
    shutil.copytree(tiny_folder, copy)
    return copy


def judged(folder: Path, monkeypatch: pytest.MonkeyPatch, improves: bool) -> Judgement:
    """The verdict on a model that is not usable yet, whose curve improves or is flat."""
    monkeypatch.setattr("weft.run.judging.verdict.has_room", lambda *curve: improves)
    monkeypatch.setattr(
        "weft.run.judging.verdict.judge_translator",
        lambda *given: Judgement(NOT_YET, ["half of the translations repeat"]),
    )
    origin = read_record(RunFolder(folder))
    texts, _ = texts_again(origin, build_recipe(origin["recipe"], "recipe"))
    return judge_run(folder, load_trainable(folder, PLAIN), texts, {})


def test_a_curve_that_rises_says_by_itself_that_longer_helps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(folder, monkeypatch, improves=True)
    assert found.still_improves
    assert not any("max_steps" in one for one in found.helps)


def test_a_warm_up_that_is_too_long_is_told_beside_a_curve_that_rises(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = RunFolder(folder)
    record = json.loads(files.recipe.read_bytes())
    record["recipe"]["training"]["warmup_steps"] = 100
    files.recipe.write_text(json.dumps(record))
    found = judged(folder, monkeypatch, improves=True)
    assert (
        sum("--fresh --set training.max_steps=240" in one for one in found.helps) == 1
    )


def test_what_would_help_and_what_to_try_next_are_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are those of the gravest cause that is told, however the curve goes."""
    slow = Cause("not-learning", "it is at guessing", "x", {"training.a": 0.01})
    short = Cause("too-few-steps", "it fell", "y", {"training.b": 2})
    monkeypatch.setattr(
        "weft.run.judging.verdict.explain_run", lambda *given: [short, slow]
    )
    assert judged(folder, monkeypatch, improves=False).anew == {"training.b": 2}
    assert judged(folder, monkeypatch, improves=True).anew == {"training.a": 0.01}
    monkeypatch.setattr("weft.run.judging.verdict.explain_run", lambda *given: [slow])
    found = judged(folder, monkeypatch, improves=False)
    assert found.anew == {"training.a": 0.01}
    assert "anew" not in found.to_json()
    assert _settings_of_new_run([slow, short], Judgement(USABLE, [])) == short.settings


def test_scores_that_do_not_rise_after_too_few_steps_are_not_called_flat(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a longer run is proposed, as the figures of the run ask for one."""
    monkeypatch.setattr("weft.run.judging.verdict.FEWEST", 0)
    found = judged(folder, monkeypatch, improves=False)
    assert any("--set training.max_steps=240" in one for one in found.helps)
    assert not found.is_flat
    monkeypatch.setattr("weft.run.judging.verdict.explain_run", lambda *given: [])
    assert judged(folder, monkeypatch, improves=False).is_flat


@pytest.mark.parametrize(
    ("steps", "recipe_steps", "is_said"),
    [(37, 660, True), (200, 660, False), (37, None, False)],
)
def test_a_run_of_far_fewer_steps_than_its_recipe_has_says_so(
    steps: int, recipe_steps: int | None, is_said: bool
) -> None:
    found = Judgement(USABLE, ["for text like the training text"])
    plan = TimePlan(1.5, recipe_steps, 10, 10, 5, 0.01, steps)
    run = Run({"step": steps}, None, None, None, plan)
    few = "the clock left the run 37 steps; without a time limit it would have 660: train it for longer"
    said = [*found.says, few]
    assert _of_few_steps(found, run).says == (said if is_said else found.says)
    stopped = replace(run, verdict={"step": steps, "outcome": FINISHED_EARLY})
    assert _of_few_steps(found, stopped) == found
    without = Run({"step": steps}, None, None, None)
    assert _of_few_steps(found, without) == found


@pytest.mark.parametrize(
    ("texts", "by_words", "is_said"),
    [
        (["unforeseen strangeness everywhere"] * 3, 9, True),
        (["unforeseen strangeness everywhere"] * 3, 8, False),
        (["a dog was here"] * 3, 9, False),
        (["unforeseen strangeness everywhere"] * 3, None, False),
    ],
)
def test_where_counting_words_wins_subwords_are_named_first_if_many_are_unknown(
    texts: list[str], by_words: int | None, is_said: bool
) -> None:
    settings = SideSection(kind="word", vocab_size=400)
    tokenizer = build_tokenizer(settings, ["a dog was here", "a cat was there"] * 9)
    figures = {"right": 8, "by_words": by_words}
    found = Judgement(NOT_YET, ["x"], figures, helps=["more rows"])
    first = _by_unknown_words(found, tokenizer, texts).helps[0]
    assert ("a new run with --set tokenizer.kind=bpe" in first) == is_said
