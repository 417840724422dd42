"""What a card says repeats its run: done as it says, it gives the same weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import Interrupted
from weft.folder import durable
from weft.folder.model_folder import RunFolder
from weft.run.record import Verdict
from weft.run.repetition import repetition_of
from weft.training.checkpoint import SINCE, Progress
from weft.training.trainer import Trainer

Train = Callable[..., Any]
Save = Callable[[Path], tuple[str, list[list[str]]]]
# the schedule and the evaluations follow the length
OPEN_LENGTH = ("training.schedule=cosine", "training.save_every=5", "data.test_size=0")
LONGER = "training.max_steps=24"


@pytest.fixture
def train(
    tmp_path: Path,
    tiny_settings: tuple[str, ...],
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Train:
    """Train in a folder of that name; the step `stop_at` never ends."""
    text = write_pairs(216)
    take_step = Trainer._take_step

    def call(
        out: str, *settings: str, recipe: str | None = None, stop_at: int = 0
    ) -> Any:
        def step(trainer: Any) -> None:
            if trainer.progress.step + 1 == stop_at:
                raise Interrupted("killed")
            take_step(trainer)

        monkeypatch.setattr(Trainer, "_take_step", step)
        own = (*tiny_settings, *OPEN_LENGTH)
        # a recipe holds all of them
        values = [*(() if recipe else own), *settings]
        folder = tmp_path / out
        return weft.train(
            out=folder, train=text, recipe=recipe, settings=values, quiet=True
        )

    return call


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def section_of(folder: Path) -> str:
    """What the card says of the recipe."""
    _, _, rest = (folder / "README.md").read_text("utf-8").partition("## Recipe\n")
    return rest.partition("## Scores on dev")[0]


def lengths_of(folder: Path) -> list[dict[str, Any]]:
    verdict = json.loads(RunFolder(folder).verdict.read_bytes())
    return [*verdict["lengths"]]


def test_a_lengthened_run_is_repeated_by_the_commands_of_its_card(
    tmp_path: Path, train: Train, save_recipe: Save
) -> None:
    train("run", "training.max_steps=15")
    assert "lengthened" not in section_of(tmp_path / "run")
    ended = train("run", LONGER)
    note = (
        "lengthened: 15 steps, then 24; to repeat it: first --set training.max_steps=15, "
        f"then the same command with --set {LONGER}"
    )
    assert note in ended.notes
    assert lengths_of(tmp_path / "run") == [
        {"after": 0, "max_steps": 15, "eval_every": 5, "patience": None},
        {"after": 15, "max_steps": 24, "eval_every": 5, "patience": None},
    ]
    assert "The run was lengthened: 15 steps, then 24." in section_of(tmp_path / "run")
    recipe, commands = save_recipe(tmp_path / "run")
    assert commands == [[], [LONGER]]
    for command in commands:
        train("card", *command, recipe=recipe)
    assert weights(tmp_path / "card") == weights(tmp_path / "run")
    train("one", LONGER)
    assert weights(tmp_path / "one") != weights(tmp_path / "run")


@pytest.mark.long
def test_a_run_whose_recipe_left_its_first_length_open_is_repeated_too(
    tmp_path: Path, train: Train, save_recipe: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.run.planning.FEWEST_STEPS", 10)
    monkeypatch.setattr("weft.run.planning.EPOCHS", 1)
    first = train("run").step
    longer = f"training.max_steps={first + 6}"
    train("run", longer)
    # others may count otherwise
    monkeypatch.setattr("weft.run.planning.FEWEST_STEPS", 12)
    recipe, commands = save_recipe(tmp_path / "run")
    assert commands == [[], [longer]]
    for command in commands:
        train("card", *command, recipe=recipe)
    assert weights(tmp_path / "card") == weights(tmp_path / "run")


@pytest.mark.long
def test_a_run_that_was_left_before_its_length_changed_says_where(
    tmp_path: Path, train: Train, save_recipe: Save
) -> None:
    """It is left after a saved step; its new length may also be a shorter one."""
    for name in ("run", "card"):
        with pytest.raises(Interrupted):
            train(name, LONGER, stop_at=11)
        train(name, "training.max_steps=14")
    said = section_of(tmp_path / "run")
    assert "was shortened: 24 steps (left after step 10), then 14." in said
    assert "1. as it is, for 24 steps, left after step 10\n" in said
    recipe, commands = save_recipe(tmp_path / "run")
    with pytest.raises(Interrupted):
        train("again", *commands[0], recipe=recipe, stop_at=11)
    train("again", *commands[1], recipe=recipe)
    assert weights(tmp_path / "again") == weights(tmp_path / "run")


@pytest.mark.parametrize("lost", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_run_that_was_only_interrupted_has_the_card_of_a_whole_one(
    tmp_path: Path, train: Train, lost: bool
) -> None:
    """Also where another length was begun, and no step of it is left."""
    train("whole", LONGER)
    with pytest.raises(Interrupted):
        train("run", LONGER, stop_at=12)
    if lost:
        with pytest.raises(Interrupted):
            train("run", "training.max_steps=30", stop_at=13)
    ended = train("run", LONGER)
    assert [length["max_steps"] for length in ended.lengths] == [24]
    assert section_of(tmp_path / "run") == section_of(tmp_path / "whole")
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def as_older(folder: Path) -> None:
    """Make the checkpoints and the verdict those of a version that knew no lengths."""
    for path in RunFolder(folder).checkpoints.glob("step-*"):
        progress = json.loads((path / "progress.json").read_bytes())
        del progress["lengths"], progress["mixture"]
        durable.write_json(path / "progress.json", progress)
        manifest = json.loads((path / "manifest.json").read_bytes())
        listed = manifest.pop("files")
        manifest["format"] = SINCE["lengths"] - 1
        durable.write_manifest(path, listed, manifest)
    verdict = json.loads(RunFolder(folder).verdict.read_bytes())
    del verdict["lengths"]
    durable.write_json(RunFolder(folder).verdict, verdict)


@pytest.mark.long
def test_an_older_run_that_is_lengthened_has_the_length_of_its_verdict(
    tmp_path: Path, train: Train, save_recipe: Save
) -> None:
    train("run", "training.max_steps=15")
    shutil.copytree(tmp_path / "run", tmp_path / "same")
    as_older(tmp_path / "run")
    for name in ("run", "same"):
        train(name, LONGER)
    assert section_of(tmp_path / "run") == section_of(tmp_path / "same")
    assert weights(tmp_path / "run") == weights(tmp_path / "same")


@pytest.mark.long
def test_an_older_run_that_was_interrupted_is_continued_as_it_was(
    tmp_path: Path, train: Train
) -> None:
    train("whole", LONGER)
    with pytest.raises(Interrupted):
        train("run", LONGER, stop_at=12)
    as_older(tmp_path / "run")
    weft.finish(tmp_path / "run", quiet=True)
    assert section_of(tmp_path / "run") == section_of(tmp_path / "whole")
    train("run", LONGER)
    assert section_of(tmp_path / "run") == section_of(tmp_path / "whole")
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")


def test_the_patience_of_each_length_is_said_where_it_changed(
    tmp_path: Path, train: Train
) -> None:
    """It may have ended the first."""
    train("run", LONGER)
    progress = Progress()
    progress.begin_length(15, 5, 2)
    progress.step = 10
    progress.begin_length(15, 5, 3)  # the same length with more patience
    progress.begin_length(24, 5, 4)
    verdict = Verdict(step=24, max_steps=24, lengths=progress.lengths)
    repeated = repetition_of(RunFolder(tmp_path / "run"), verdict)
    assert repeated is not None
    assert repeated.recipe.training.patience == 3
    assert repeated.note() == (
        "lengthened: 15 steps (left after step 10), then 24; to repeat it: "
        "first --set training.max_steps=15 --set training.patience=3, "
        "then the same command with --set training.max_steps=24 --set training.patience=4"
    )
