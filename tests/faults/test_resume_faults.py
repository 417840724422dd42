"""C2 and X3: a run goes on only from what it was begun with, and from the step where it failed."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.data.overlap import TextHashes

from .conftest import Run, Undisturbed, differences, verdict

Write = Callable[[int], str]


@pytest.fixture(scope="session")
def begun(
    tmp_path_factory: pytest.TempPathFactory, tiny_run: Run, undisturbed: Undisturbed
) -> Path:
    """A run that was stopped in step 4."""
    out = tmp_path_factory.mktemp("begun") / "out"
    assert (
        tiny_run(
            out, signal_at={undisturbed.numbers("^between")[6]: int(signal.SIGINT)}
        ).code
        == 75
    )
    return out


def copied(begun: Path, tmp_path: Path) -> Path:
    shutil.copytree(begun, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("model.d_model=32", "model.d_model was 16, is 32"),
        ("tokenizer.src.kind=character", "tokenizer.src.kind was word, is character"),
        *(
            pytest.param(setting, shown, marks=pytest.mark.long)
            for setting, shown in (
                (
                    "training.precision=bfloat16",
                    "training.precision was float32, is bfloat16",
                ),
                (
                    "batches.tokens_per_batch=300",
                    "batches.tokens_per_batch was 400, is 300",
                ),
                (
                    "training.grad_accum_steps=3",
                    "training.grad_accum_steps was 2, is 3",
                ),
                ("training.seed=2", "training.seed was 1, is 2"),
            )
        ),
    ],
)
def test_C2_another_recipe_is_refused_with_the_difference(
    tmp_path: Path, tiny_run: Run, begun: Path, setting: str, shown: str
) -> None:
    out = copied(begun, tmp_path)
    ended = tiny_run(out, setting)
    assert (ended.code, ended.said.count("\n")) == (2, 1), ended.said
    assert shown in ended.said
    assert differences(out, begun) == []


def test_C2_other_text_is_refused_unless_it_is_allowed_and_then_on_record(
    tmp_path: Path, tiny_run: Run, begun: Path, write_pairs: Write
) -> None:
    """Tokenizers and dev stay those of the run; both texts count as trained on."""
    out, other = copied(begun, tmp_path), tmp_path / "other.en-de.tsv"
    lines = Path(write_pairs(216)).read_text().split("\n")
    other.write_text("\n".join(lines[6:]))
    ended = tiny_run(out, train=str(other))
    assert (ended.code, ended.said.count("\n")) == (2, 1), ended.said
    assert "the train text was" in ended.said
    assert "--allow-data-change" in ended.said
    assert differences(out, begun) == []
    ended = tiny_run(out, train=str(other), allow_data_change=True)
    assert ended.code == 0, ended.said
    (note,) = (
        note
        for note in verdict(out)["notes"]
        if note.startswith("--allow-data-change: the ")
    )
    assert "at step 4" in note
    assert note in (out / "README.md").read_text()
    assert (out / "tokenizer.src.json").read_bytes() == (
        begun / "run" / "tokenizers" / "0.json"
    ).read_bytes()
    before, after = (
        TextHashes.load(folder / "run" / "train-hashes.npy") for folder in (begun, out)
    )
    assert set(before.rows) < set(after.rows)
    # from here on it is the run's own text
    assert tiny_run(out, train=str(other)).code == 0


def test_C2_settings_of_a_start_that_never_saved_a_step_bind_nobody(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    ended = tiny_run(
        out,
        "model.d_model=32",
        "training.seed=3",
        **{"break": "no memory for encoding"},
    )
    assert ended.code == 6
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_C2_a_finished_model_whose_checkpoints_are_gone_is_not_begun_anew(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    shutil.copytree(undisturbed.out, out)
    shutil.rmtree(out / "run" / "checkpoints")
    before = differences(out, undisturbed.out)
    for settings, code in ((["training.max_steps=20"], 5), (["training.seed=2"], 2)):
        ended = tiny_run(out, *settings)
        assert ended.code == code, ended.said
    assert tiny_run(out).code == 0  # finished, and said so
    assert differences(out, undisturbed.out) == before


def test_C2_a_run_whose_checkpoints_are_gone_is_not_begun_anew(
    tmp_path: Path, tiny_run: Run, begun: Path
) -> None:
    out = copied(begun, tmp_path)
    assert verdict(out)["saved_step"] == 4
    shutil.rmtree(out / "run" / "checkpoints")
    for _ in range(2):
        ended = tiny_run(out)
        assert (ended.code, ended.said.count("\n")) == (5, 1), ended.said
        assert (
            "its checkpoints are gone; restore them, start over with --fresh"
            in ended.said
        )


def test_C2_a_killed_run_tells_its_checkpoints_and_is_not_begun_anew_without_them(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    assert (
        tiny_run(out, kill_at=undisturbed.numbers("^between")[12]).code
        == -signal.SIGKILL
    )
    assert (
        verdict(out)["outcome"],
        verdict(out)["step"],
        verdict(out)["saved_step"],
    ) == ("running", 6, 6)
    shutil.rmtree(out / "run" / "checkpoints")
    ended = tiny_run(out)
    assert (ended.code, ended.said.count("\n")) == (5, 1), ended.said
    assert "its checkpoints are gone" in ended.said


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(Path.unlink, marks=pytest.mark.long, id="gone"),
        pytest.param(lambda path: path.write_bytes(b"no hashes"), id="cut"),
    ],
)
def test_C2_lost_hashes_of_the_training_text_are_made_anew(
    tmp_path: Path,
    tiny_run: Run,
    begun: Path,
    undisturbed: Undisturbed,
    damage: Callable[[Path], object],
) -> None:
    out = copied(begun, tmp_path)
    damage(out / "run" / "train-hashes.npy")
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_C2_a_finished_model_that_is_damaged_is_published_again(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """Its checkpoint is there: nothing says "finished" of a folder that cannot be used."""
    out = tmp_path / "out"
    for name in ("model.safetensors", "tokenizer.src.json"):
        shutil.copytree(undisturbed.out, out, dirs_exist_ok=True)
        (out / name).write_bytes((out / name).read_bytes()[:-9])
        assert tiny_run(out).code == 0
        assert differences(out, undisturbed.out) == []


STAGES = {
    "preparing": "^os.rename run/machine.json",
    "learning the tokenizers": "^os.rename run/tokenizers",
    "encoding the text": "^os.mkdir run/stores",
    "training": "^os.rename run/checkpoints/latest",
    "publishing": "^os.rename model.safetensors",
}


@pytest.mark.parametrize(
    "stage",
    [
        "publishing",
        *(
            pytest.param(stage, marks=pytest.mark.long)
            for stage in STAGES
            if stage != "publishing"
        ),
    ],
)
def test_X3_a_failed_step_is_named_and_the_next_start_goes_on_there(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, stage: str
) -> None:
    """Killed, terminated, or out of disk: never 0, never "done", and verdict.json names the
    step.
    """
    number = undisturbed.numbers(STAGES[stage])[0]
    faults = (
        {"kill_at": number},
        {"fail_at": number},
        {"signal_at": {number: int(signal.SIGTERM)}},
    )
    for count, fault in enumerate(faults):
        out, events = tmp_path / f"{stage}-{count}", str(tmp_path / "events")
        ended = tiny_run(out, **fault)
        assert ended.code in (-signal.SIGKILL, 5, 75), ended.said
        said = verdict(out)
        assert said["outcome"] in ("running", "failed", "interrupted")
        assert said["stage"] == stage
        # with a full disk, the one before stands
        assert said["exit_code"] == (75 if ended.code == 75 else 1)
        assert not (out / "manifest.json").exists()
        again = tiny_run(out, events=events)
        assert again.code == 0
        assert differences(out, undisturbed.out) == []
        if stage == "publishing":
            assert not [event for event in again.events if event.startswith("step")], (
                "trained again"
            )


def test_X3_a_full_disk_spoils_no_verdict(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """Where not even the verdict can be written, the old one says "running", which is no
    success.
    """
    out, number = (
        tmp_path / "out",
        undisturbed.numbers("^os.rename run/checkpoints/latest")[1],
    )
    assert tiny_run(out, fail_at=number).code == 5
    assert (
        json.loads((out / "run" / "verdict.json").read_bytes())["outcome"] == "running"
    )
