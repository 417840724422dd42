"""Checkpoints: written whole, rotated with care, and never silently replaced by a new beginning."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from weft.errors import FolderError
from weft.folder import durable
from weft.training import checkpoint
from weft.training.checkpoint import Checkpoints, Progress, State, load_state

FILES = ("model.safetensors", "optimizer.safetensors", "progress.json")
FACTS = {"format": checkpoint.FORMAT}


def state(step: int, best: int | None = None) -> State:
    """A state of which every part names its step; the best step is the one before, unless told
    otherwise.
    """
    part = {"w": torch.full((3, 2), float(step)), "b": torch.arange(2.0) + step}
    progress = Progress(
        step=step,
        epoch=2,
        position=3,
        tokens=4 * step,
        seconds=0.5,
        best_step=step - 1 if best is None else best,
        best_scores={"dev_bleu": 1.5},
        evaluations_since_best=1,
    )
    return State(part, {"0.exp_avg": part["w"] + 1}, progress)


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def assert_same(a: State, b: State) -> None:
    for ours, theirs in ((a.model, b.model), (a.optimizer, b.optimizer)):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert a.progress == b.progress


def saved(
    folder: Path, *steps: int, keep: int = 9, best: int | None = None
) -> Checkpoints:
    """Save states whose best step is `best`, once it is reached; until then none is."""
    checkpoints = Checkpoints(folder, keep)
    for step in steps:
        checkpoints.save(state(step, best if best and best <= step else 0))
    return checkpoints


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("written", range(checkpoint.OLDEST_FORMAT, checkpoint.FORMAT))
def test_a_checkpoint_of_an_older_format_is_read(tmp_path: Path, written: int) -> None:
    """What its format did not have yet is as at the beginning of a run."""
    saved(tmp_path, 7)
    path = tmp_path / "step-7"
    progress = json.loads((path / "progress.json").read_text())
    kept = {
        name: value
        for name, value in progress.items()
        if checkpoint.SINCE.get(name, 0) <= written
    }
    assert kept.keys() < progress.keys()
    (path / "progress.json").write_text(json.dumps(kept))
    durable.write_manifest(path, FILES, {"format": written, "step": 7})
    loaded = Checkpoints(tmp_path, 2).load_latest()
    assert loaded is not None
    assert_same(loaded, state(7, best=0))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 7)
    loaded = Checkpoints(tmp_path, 2).load_latest()
    assert loaded is not None
    assert_same(loaded, state(7, best=0))
    assert names(tmp_path) == {"step-7", "latest"}
    assert names(tmp_path / "step-7") == {*FILES, "manifest.json"}
    assert checkpoints.notes == []


def test_an_empty_or_missing_folder_has_no_state(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path, 2).load_latest() is None
    assert Checkpoints(tmp_path / "none", 2).load_latest() is None
    assert Checkpoints(tmp_path / "none", 2).load_best(3) is None


def test_facts_stand_in_the_manifest(tmp_path: Path) -> None:
    Checkpoints(tmp_path, 2, {"texts": "abc"}).save(state(3))
    manifest = json.loads((tmp_path / "step-3" / "manifest.json").read_bytes())
    assert (manifest["step"], manifest["texts"]) == (3, "abc")


def test_the_newest_are_kept_and_the_best(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10, 20, 30, 40, 50, keep=2, best=20)
    assert names(tmp_path) == {"step-20", "step-40", "step-50", "latest"}
    best = checkpoints.load_best(20)
    assert best is not None
    assert best.progress.step == 20
    checkpoints.save(state(60, best=60))
    assert names(tmp_path) == {"step-50", "step-60", "latest"}


def test_keep_one(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3, keep=1)
    assert names(tmp_path) == {"step-3", "latest"}


def test_without_scores_the_newest_is_the_best(tmp_path: Path) -> None:
    newest = saved(tmp_path, 1, 2).load_best(0)
    assert newest is not None
    assert newest.progress.step == 2


def test_order_is_that_of_numbers(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 900, 10_000, 1000)
    (tmp_path / "step-99999-copy").mkdir()
    (tmp_path / "step-").mkdir()
    (tmp_path / "step-77777").write_text("a file")
    loaded = checkpoints.load_latest()
    assert loaded is not None
    assert loaded.progress.step == 10_000
    Checkpoints(tmp_path, 2).save(state(9000))
    assert {"step-10000", "step-9000"} <= names(tmp_path)
    assert not {"step-900", "step-1000"} & names(tmp_path)


def test_rotation_goes_on_where_an_old_one_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(path)

    monkeypatch.setattr(checkpoint.shutil, "rmtree", refuse)
    assert saved(tmp_path, 1, 2, keep=1).load_latest() is not None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "remove"])
def test_a_damaged_one_is_set_aside_and_the_one_before_used(
    tmp_path: Path, name: str, damage: str
) -> None:
    saved(tmp_path, 1, 2)
    path = tmp_path / "step-2" / name
    if damage == "flip":
        flip_bit(path)
    elif damage == "remove":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if damage == "truncate" else b"")
    checkpoints = Checkpoints(tmp_path, 2)
    loaded = checkpoints.load_latest()
    assert loaded is not None
    assert_same(loaded, state(1, best=0))
    assert names(tmp_path) == {"step-1", "damaged-step-2", "latest"}
    assert len(checkpoints.notes) == 1
    assert name in checkpoints.notes[0]
    assert "damaged-step-2" in checkpoints.notes[0]


def test_a_lost_manifest_is_damage(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    (tmp_path / "step-2" / "manifest.json").unlink()
    loaded = Checkpoints(tmp_path, 2).load_latest()
    assert loaded is not None
    assert loaded.progress.step == 1


@pytest.mark.parametrize("name", FILES)
def test_a_kind_of_state_that_is_missing_is_an_error(tmp_path: Path, name: str) -> None:
    """Even where the manifest does not list it."""
    path = saved(tmp_path, 1).folder / "step-1"
    (path / name).unlink()
    durable.write_manifest(path, [n for n in FILES if n != name], FACTS)
    with pytest.raises(FolderError, match=f"lacks {name}"):
        load_state(path)


def test_progress_of_another_version_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path, 1).folder / "step-1"
    for content in ({"steps": 1}, [1]):
        durable.write_json(path / "progress.json", content)
        durable.write_manifest(path, FILES, FACTS)
        with pytest.raises(FolderError, match="not this version's progress"):
            load_state(path)


def test_a_checkpoint_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="step-5"):
        load_state(tmp_path / "step-5")


def test_nothing_begins_anew_where_every_checkpoint_is_damaged(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    for step in (1, 2):
        flip_bit(tmp_path / f"step-{step}" / "model.safetensors")
    for _ in range(2):  # the second start finds them set aside already
        with pytest.raises(FolderError, match="no sound checkpoint is left") as caught:
            Checkpoints(tmp_path, 2).load_latest()
        assert "\n" not in str(caught.value)
    assert names(tmp_path) >= {"damaged-step-1", "damaged-step-2"}


def test_the_same_step_damaged_twice(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    for _ in range(2):
        flip_bit(tmp_path / "step-2" / "model.safetensors")
        loaded = checkpoints.load_latest()
        assert loaded is not None
        assert loaded.progress.step == 1
        checkpoints.save(state(2))


def test_leftovers_are_removed_and_a_pointer_to_nothing_is_ignored(
    tmp_path: Path,
) -> None:
    checkpoints = saved(tmp_path, 1)
    (tmp_path / ".weft-tmp-abc").mkdir()
    (tmp_path / ".weft-tmp-abc" / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".weft-tmp-def").write_bytes(b"half")
    (tmp_path / "latest").write_text("step-99")
    loaded = checkpoints.load_latest()
    assert loaded is not None
    assert loaded.progress.step == 1
    assert names(tmp_path) == {"step-1", "latest"}


SAVE_WITHIN = """
import resource, sys
from pathlib import Path
import torch
from weft.errors import FolderError
from weft.training.checkpoint import Checkpoints, Progress, State
checkpoints = Checkpoints(Path(sys.argv[1]), 1)
big = {"w": torch.zeros(50_000)}
checkpoints.save(State(big, big, Progress(step=1)))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoints.save(State(big, big, Progress(step=2)))
except FolderError as error:
    print(error)
"""


def test_a_disk_that_takes_no_more_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAVE_WITHIN, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    assert "step-2" in done.stdout
    assert "cannot be written" in done.stdout
    assert done.stdout.count("\n") == 1
    assert names(tmp_path) == {"step-1", "latest"}
    assert load_state(tmp_path / "step-1").progress.step == 1


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 16, b"\xff" * 8 + b"{}", b"not tensors at all"]
)
def test_a_malformed_tensor_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(FolderError, match="not a sound safetensors file"):
        checkpoint.read_tensors(path)
