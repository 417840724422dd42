"""K1 to K10: what is on disk survives any end of the process, and damage there is named and got
over.
"""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from weft.folder import durable
from weft.kernels import native
from weft.run.card import without_folders
from weft.training.checkpoint import Checkpoints, Progress, State

from .conftest import Forks, Run, Undisturbed, differences, verdict

Write = Callable[[int], str]


def flip_bit(path: Path, bit: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[bit] ^= 1
    path.write_bytes(content)


def kind_of(event: str) -> str:
    """An operation without what is drawn by chance or counts up."""
    # TensorBoard's names have clock and host
    operation, path = event.partition(".tfevents.")[0].split(" ", 1)
    parts = [
        ".tmp" if part.startswith(durable.TEMPORARY) else part.rstrip("0123456789")
        for part in path.split("/")
    ]
    return f"{operation} {'/'.join(parts)}"


def one_of_each(events: list[str]) -> list[int]:
    """The last operation of every kind."""
    last = {kind_of(event): number for number, event in enumerate(events)}
    return sorted(last.values())


def killed_at(
    number: int, out: Path, tiny_run: Run, undisturbed: Undisturbed, **asked: str
) -> list[str]:
    """Kill a run before an operation, give the same command again, and say in what the two ends
    differ.
    """
    events = str(out.with_name(f"{out.name}-events"))
    ended = tiny_run(out, kill_at=number, events=events, **asked)
    assert ended.code == -signal.SIGKILL, ended.said
    assert len(ended.events) == number + 1, "the kill did not land"
    assert kind_of(ended.events[number]) == kind_of(undisturbed.events[number]) or asked
    if not (out / "manifest.json").is_file():
        assert (
            not (out / "run" / "verdict.json").is_file()
            or verdict(out)["outcome"] == "running"
        )
    again = tiny_run(out, **asked)
    if again.code != 0:
        return [again.said]
    assert verdict(out)["outcome"] == "done"
    return differences(out, undisturbed.out)


# each once here; the long tests take every single operation
PHASES = (
    "half",
    "os.rename run/checkpoints/latest",
    "os.rename run/checkpoints/step-",
    "rmtree",
    "between",
)


def test_K1_killed_in_any_phase_the_same_command_ends_the_same(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """Weights, optimizer, losses, samples, tokenizers: all bit for bit, and nothing is left
    over.
    """
    numbers = [
        next(
            n for n in one_of_each(undisturbed.events) if phase in undisturbed.events[n]
        )
        for phase in PHASES
    ]
    bad = {
        undisturbed.events[n]: killed_at(n, tmp_path / str(n), tiny_run, undisturbed)
        for n in numbers
    }
    assert {event: found for event, found in bad.items() if found} == {}


@pytest.mark.long
def test_K1_killed_at_the_border_of_a_mixture_the_same_command_ends_the_same(
    tmp_path: Path, tiny_run: Run, write_pairs: Callable[[int], str]
) -> None:
    """Mixtures end after steps 3 and 5 of 8: a kill before, at and behind each border."""
    text = f"{write_pairs(210)}@2.5:a"
    mixtures = (
        "data.mixtures=[{until=0.38, weights={a=0.5}}, {until=0.63, weights={a=1}}]"
    )
    whole, events = tmp_path / "whole", str(tmp_path / "events")
    done = tiny_run(whole, mixtures, train=text, events=events)
    assert done.code == 0, done.said
    progress = whole / "run" / "checkpoints" / "step-8" / "progress.json"
    assert json.loads(progress.read_bytes())["mixture"] == 2
    saved = [
        n
        for n, event in enumerate(done.events)
        if "os.rename run/checkpoints/step-" in event
    ]
    for number in saved[:3]:
        out = tmp_path / str(number)
        killed = tiny_run(
            out, mixtures, train=text, events=f"{out}-events", kill_at=number + 1
        )
        assert killed.code == -signal.SIGKILL, killed.said
        again = tiny_run(out, mixtures, train=text)
        assert again.code == 0, again.said
        assert differences(out, whole) == []


@pytest.mark.long
def test_K1_killed_at_every_single_operation(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    for number in range(len(undisturbed.events)):
        assert killed_at(number, tmp_path / str(number), tiny_run, undisturbed) == []


@pytest.mark.long
@pytest.mark.parametrize("when", ["operations", "times"])
def test_K1_killed_again_and_again_by_chance(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, when: str
) -> None:
    """At least 100 kills over many runs; a run is killed until it comes to its end between two of
    them.
    """
    draw, kills, seconds = random.Random(20), 0, timed(tiny_run, tmp_path / "timed")
    for number in range(1000):
        out = tmp_path / str(number)
        while True:
            chance = draw.expovariate(1)
            places = {
                "operations": {"kill_at": int(60 * chance)},
                "times": {"kill_after": 0.4 * seconds * chance},
            }
            ended = tiny_run(out, **places[when])
            if ended.code == 0:
                break
            assert ended.code == -signal.SIGKILL, ended.said
            kills += 1
        assert differences(out, undisturbed.out) == []
        if kills >= 100:
            return
    raise AssertionError(f"{kills} kills only")


def timed(tiny_run: Run, out: Path) -> float:
    """How long a run takes that nobody disturbs."""
    started = time.monotonic()
    assert tiny_run(out).code == 0
    return time.monotonic() - started


@pytest.mark.long
def test_K1_without_the_careful_save_some_kill_loses_the_run(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """What the test above stands on: with checkpoints written in place, a kill within a save is not
    got over.
    """
    broken = {"break": "save in place"}
    events = str(tmp_path / "events")
    ended = tiny_run(tmp_path / "whole", events=events, **broken)
    assert ended.code == 0, ended.said
    halves = [n for n, event in enumerate(ended.events) if event.startswith("half")]
    lost = [
        killed_at(n, tmp_path / str(n), tiny_run, undisturbed, **broken)
        for n in halves[2:]
    ]
    assert any("no sound checkpoint is left" in found[0] for found in lost if found)


@pytest.mark.parametrize(
    "stops",
    [(2,), (3,), (2, 5), pytest.param((1, 2, 3, 4, 6), marks=pytest.mark.long)],
    ids=["mid-epoch", "at the edge of an epoch", "twice", "again and again"],
)
def test_K2_stopped_and_resumed_equals_uninterrupted(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, stops: tuple[int, ...]
) -> None:
    """Ctrl-C within a step, between its two micro-batches: no step is lost, none is done twice."""
    out, start = tmp_path / "out", 0
    steps = undisturbed.numbers("^between")
    assert len(steps) == 16
    for stop in stops:
        events = str(tmp_path / "events")
        within = (
            number_of_step(tiny_run, out, stop - start, tmp_path)
            if start
            else steps[2 * (stop - 1)]
        )
        ended = tiny_run(out, signal_at={within: int(signal.SIGINT)}, events=events)
        assert ended.code == 75, ended.said
        assert verdict(out)["step"] == stop
        start = stop
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def number_of_step(tiny_run: Run, out: Path, ahead: int, scratch: Path) -> int:
    """Which operation is the first micro-batch of the step so many ahead; found out on a copy of
    the run.
    """
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    if out.exists():
        shutil.copytree(out, copy)
    events = tiny_run(copy, events=str(scratch / "copy-events")).events
    return [n for n, event in enumerate(events) if event.startswith("between")][
        2 * (ahead - 1)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(("training.precision=bfloat16",), marks=pytest.mark.long),
        pytest.param(("training.kernels=native",), marks=pytest.mark.long),
        ("training.precision=bfloat16", "training.kernels=native"),
    ],
)
def test_K2_a_run_in_bfloat16_or_with_native_kernels_resumes_bit_for_bit_too(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, settings: tuple[str, ...]
) -> None:
    """On one machine: products in bfloat16 differ between processors, not between two runs on the
    same.
    """
    if "training.kernels=native" in settings:
        need_native_kernels()
    # how much faster native kernels are, is never twice the same
    measured = {"run/machine.json"}
    whole, killed, out = tmp_path / "whole", tmp_path / "killed", tmp_path / "out"
    assert tiny_run(whole, *settings).code == 0
    assert "model.safetensors" in differences(whole, undisturbed.out), (
        "it was computed as the plain run is"
    )
    within = undisturbed.numbers("^between")[6]
    assert tiny_run(out, *settings, signal_at={within: int(signal.SIGINT)}).code == 75
    assert tiny_run(out, *settings).code == 0
    assert set(differences(out, whole)) <= measured
    assert (
        tiny_run(killed, *settings, signal_at={within: int(signal.SIGKILL)}).code
        == -signal.SIGKILL
    )
    assert tiny_run(killed, *settings).code == 0
    assert set(differences(killed, whole)) <= measured


def need_native_kernels() -> None:
    try:
        native.load()
    except native.UnavailableError as error:
        pytest.skip(f"no native kernels here: {error}")


@pytest.mark.long
def test_K2_without_its_own_random_numbers_a_resumed_run_differs(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    broken = {"break": "draw on"}
    out, whole = tmp_path / "out", tmp_path / "whole"
    within = undisturbed.numbers("^between")[6]
    assert tiny_run(whole, **broken).code == 0
    assert tiny_run(out, signal_at={within: int(signal.SIGINT)}, **broken).code == 75
    assert tiny_run(out, **broken).code == 0
    assert "model.safetensors" in differences(out, whole)


@pytest.fixture(scope="session")
def stopped(
    tmp_path_factory: pytest.TempPathFactory, tiny_run: Run, undisturbed: Undisturbed
) -> Path:
    """A run that was stopped in step 7: the checkpoints of steps 5 (the best) and 7 are there."""
    out = tmp_path_factory.mktemp("stopped") / "out"
    within = undisturbed.numbers("^between")[12]
    ended = tiny_run(
        out, "training.keep_checkpoints=2", signal_at={within: int(signal.SIGINT)}
    )
    assert ended.code == 75, ended.said
    assert {p.name for p in (out / "run" / "checkpoints").iterdir()} >= {
        "step-5",
        "step-6",
        "step-7",
    }
    return out


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "one bit flipped": flip_bit,
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
}
FILES = ("model.safetensors", "optimizer.safetensors", "progress.json", "manifest.json")


def damaged(name: str, damage: str) -> Any:
    """A case: each file and each damage is pushed once, all pairs of them take long."""
    is_pushed = FILES.index(name) == list(DAMAGE).index(damage)
    return pytest.param(name, damage, marks=[] if is_pushed else [pytest.mark.long])


@pytest.mark.parametrize(
    ("name", "damage"), [damaged(name, damage) for name in FILES for damage in DAMAGE]
)
def test_K3_a_damaged_newest_checkpoint_is_set_aside_and_the_one_before_used(
    tmp_path: Path,
    tiny_run: Run,
    undisturbed: Undisturbed,
    stopped: Path,
    name: str,
    damage: str,
) -> None:
    """It is said, and the run ends as if nothing had happened."""
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    DAMAGE[damage](out / "run" / "checkpoints" / "step-7" / name)
    ended = tiny_run(out, "training.keep_checkpoints=2")
    assert ended.code == 0, ended.said
    (note,) = (
        note for note in verdict(out)["notes"] if "set aside as damaged-step-7" in note
    )
    assert name in note
    assert without_folders(note) in (out / "README.md").read_text()
    ours, whole = (
        (folder / "model.safetensors").read_bytes() for folder in (out, undisturbed.out)
    )
    assert ours == whole


def test_K3_with_every_checkpoint_damaged_nothing_begins_anew(
    tmp_path: Path, tiny_run: Run, stopped: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    for path in (out / "run" / "checkpoints").glob("step-*"):
        flip_bit(path / "model.safetensors")
    for _ in range(2):
        ended = tiny_run(out, "training.keep_checkpoints=2")
        assert ended.code == 5
        assert "no sound checkpoint is left" in ended.said
        assert "start over with --fresh" in ended.said
        assert ended.said.count("\n") == 1
        assert not (out / "manifest.json").exists()
    assert verdict(out)["exit_code"] == 5


def test_K3_fresh_begins_anew_and_loses_nothing(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, stopped: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    before = sorted(p.name for p in (out / "run" / "checkpoints").iterdir())
    ended = tiny_run(out, fresh=True)
    assert ended.code == 0, ended.said
    aside = tmp_path / "out.before-1"
    assert sorted(p.name for p in (aside / "run" / "checkpoints").iterdir()) == before
    assert f"--fresh: an earlier run was set aside as {aside}" in verdict(out)["notes"]
    assert differences(out, undisturbed.out) == []


def test_K3_a_checkpoint_of_another_run_is_not_taken_for_ones_own(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, stopped: Path
) -> None:
    """Of the same shape, and sound by itself."""
    out, other = tmp_path / "out", tmp_path / "other"
    shutil.copytree(stopped, out)
    ended = tiny_run(other, "training.seed=2", "training.keep_checkpoints=9")
    assert ended.code == 0, ended.said
    shutil.rmtree(out / "run" / "checkpoints" / "step-7")
    shutil.copytree(
        other / "run" / "checkpoints" / "step-8", out / "run" / "checkpoints" / "step-8"
    )
    assert tiny_run(out, "training.keep_checkpoints=2").code == 0
    assert any(
        "is a checkpoint of another run" in note for note in verdict(out)["notes"]
    )
    ours, whole = (
        (folder / "model.safetensors").read_bytes() for folder in (out, undisturbed.out)
    )
    assert ours == whole


def test_K4_leftovers_and_lost_pointers_mean_nothing(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, stopped: Path
) -> None:
    """A save is never in flight when a process ends: it writes before it goes on."""
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    checkpoints = out / "run" / "checkpoints"
    for folder in (out, out / "run", checkpoints, out / "run" / "stores"):
        (folder / f"{durable.TEMPORARY}a").mkdir()
        (folder / f"{durable.TEMPORARY}a" / "model.safetensors").write_bytes(b"half")
        (folder / f"{durable.TEMPORARY}b").write_bytes(b"half")
    (checkpoints / "latest").write_text("step-99")
    assert tiny_run(out, "training.keep_checkpoints=2").code == 0
    assert not list(out.rglob(f"{durable.TEMPORARY}*"))
    ours, whole = (
        (folder / "run/metrics.jsonl").read_text().count("\n")
        for folder in (out, undisturbed.out)
    )
    assert ours == whole


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.long)])
def test_K5_a_disk_that_is_full_at_any_moment(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed, each: int
) -> None:
    """One line and exit code 5 wherever it happens; with room again, the same command ends the
    same.
    """
    numbers = [
        n
        for n in one_of_each(undisturbed.events)
        if undisturbed.events[n].startswith(("open", "half"))
    ]
    assert len(numbers) > 15
    for number in numbers[::each]:
        out = tmp_path / str(number)
        ended = tiny_run(out, fail_at=number)
        assert (ended.code, ended.said.count("\n")) == (5, 1), (
            undisturbed.events[number],
            ended.said,
        )
        assert "No space left on device" in ended.said
        assert not list(out.rglob(f"{durable.TEMPORARY}*"))
        assert tiny_run(out).code == 0
        assert differences(out, undisturbed.out) == [], undisturbed.events[number]


def test_K5_a_folder_that_may_not_be_written(
    tmp_path: Path, tiny_run: Run, stopped: Path
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    (out / "run").chmod(0o500)
    assert tiny_run(out).code == 5


def test_K6_rotation_never_takes_the_best_or_the_last_sound_one(
    undisturbed: Undisturbed,
) -> None:
    """keep_checkpoints = 1; the best is of step 5 or 8, the newest of step 8."""
    checkpoints, best = (
        undisturbed.out / "run" / "checkpoints",
        verdict(undisturbed.out)["best_step"],
    )
    assert {p.name for p in checkpoints.glob("step-*")} == {"step-8", f"step-{best}"}
    for path in checkpoints.glob("step-*"):
        durable.read_manifest(path)


def test_K6_weights_that_are_not_finite_are_never_saved(
    tmp_path: Path, tiny_run: Run
) -> None:
    """An optimizer's step can overflow though loss and gradient are finite: the good checkpoint
    stays.
    """
    out = tmp_path / "out"
    ended = tiny_run(out, **{"break": "overflow in step 5"})
    assert ended.code == 4, ended.said
    assert "holds numbers that are not finite, which were not saved" in ended.said
    (kept,) = (out / "run" / "checkpoints").glob("step-*")
    assert kept.name == "step-3"
    assert all(
        tensor.isfinite().all()
        for tensor in load_file(kept / "model.safetensors").values()
    )


def test_K6_a_damaged_best_checkpoint_gives_way_to_the_newest(
    tmp_path: Path, tiny_run: Run, stopped: Path
) -> None:
    """What is published says of itself that it is not the best."""
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    checkpoints = out / "run" / "checkpoints"
    flip_bit(checkpoints / "step-5" / "model.safetensors")
    progress = json.loads((checkpoints / "step-7" / "progress.json").read_bytes())
    progress |= {
        "best_step": 5,
        "best_scores": {"dev_bleu": 99.0, "dev_loss": 0.1, "dev_perplexity": 1.1},
    }
    durable.write_json(checkpoints / "step-7" / "progress.json", progress)
    manifest = json.loads((checkpoints / "step-7" / "manifest.json").read_bytes())
    listed = manifest.pop("files")
    durable.write_manifest(checkpoints / "step-7", listed, manifest)
    ended = tiny_run(out, "training.keep_checkpoints=2")
    assert ended.code == 0, ended.said
    assert any("set aside as damaged-step-5" in note for note in verdict(out)["notes"])
    ours = (out / "model.safetensors").read_bytes()
    assert ours == (checkpoints / "step-8" / "model.safetensors").read_bytes()


def test_K7_the_newest_is_told_by_the_step_that_it_holds(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, 9)
    for step in (900, 10_000, 1000):
        part = {"w": torch.full((2,), float(step))}
        checkpoints.save(State(part, part, Progress(step=step)))
    (tmp_path / "step-900").rename(tmp_path / "step-99999")
    (tmp_path / "step-77777").write_text("a stray file")
    (tmp_path / "step-88888-copy").mkdir()
    loaded = checkpoints.load_latest()
    assert loaded is not None
    assert loaded.progress.step == 10_000
    assert checkpoints.notes == []


PARTS = (
    "model",
    "optimizer",
    "epoch",
    "position",
    "step",
    "tokens",
    "best_step",
    "best_scores",
    "evaluations_since_best",
    "evaluation_due",
)
# so that the best step, the first, is never chosen again
RIGGED = {"break": "falling scores"}


@pytest.fixture(scope="session")
def rigged(tmp_path_factory: pytest.TempPathFactory, tiny_run: Run) -> Undisturbed:
    folder = tmp_path_factory.mktemp("rigged")
    ended = tiny_run(
        folder / "out", "training.eval_every=2", events=str(folder / "events"), **RIGGED
    )
    assert ended.code == 0, ended.said
    assert (
        verdict(folder / "out")["best_step"],
        verdict(folder / "out")["evaluations_since_best"],
    ) == (2, 3)
    return Undisturbed(folder / "out", ended.events)


@pytest.fixture(scope="session")
def rigged_until(
    tmp_path_factory: pytest.TempPathFactory, tiny_run: Run
) -> Callable[[int], Path]:
    """Give the folder of such a run that was stopped at an operation; tests copy it."""

    @cache
    def stopped_at(number: int) -> Path:
        out = tmp_path_factory.mktemp("rigged-until") / "out"
        asked: dict[str, Any] = {"signal_at": {number: int(signal.SIGINT)}, **RIGGED}
        assert tiny_run(out, "training.eval_every=2", **asked).code == 75
        return out

    return stopped_at


def pushed(*parts: str) -> list[Any]:
    """All parts; those that are not named take long."""
    marks = {part: [] if part in parts else [pytest.mark.long] for part in PARTS}
    return [pytest.param(part, marks=marks[part]) for part in PARTS]


@pytest.mark.parametrize("part", [None, *pushed("optimizer", "position", "best_step")])
def test_K9_each_item_of_the_state_is_needed(
    tmp_path: Path,
    tiny_run: Run,
    rigged: Undisturbed,
    rigged_until: Callable[[int], Path],
    part: str | None,
) -> None:
    """As it was when the run began, it leads to another end; with none of them touched, the end is
    the same.
    """
    out, stops = tmp_path / "out", {"evaluation_due": rigged.numbers("^evaluate")[2]}
    number = stops.get(str(part), rigged.numbers("^between")[12])
    shutil.copytree(rigged_until(number), out)
    newest = max((out / "run" / "checkpoints").glob("step-*"))
    assert newest.name == ("step-6" if part == "evaluation_due" else "step-7")
    if part is not None:
        set_back(newest, part)
    ended = tiny_run(out, "training.eval_every=2", **RIGGED)
    assert (ended.code != 0 or differences(out, rigged.out) != []) == (part is not None)


@pytest.mark.parametrize("part", pushed("model", "position"))
def test_K9_a_checkpoint_that_lacks_an_item_is_refused(
    tmp_path: Path, tiny_run: Run, stopped: Path, part: str
) -> None:
    out = tmp_path / "out"
    shutil.copytree(stopped, out)
    newest = out / "run" / "checkpoints" / "step-7"
    if part in ("model", "optimizer"):
        tensors = load_file(newest / f"{part}.safetensors")
        tensors.pop(sorted(tensors)[0])
        save_file(tensors, newest / f"{part}.safetensors")
    else:
        facts = json.loads((newest / "progress.json").read_bytes())
        del facts[part]
        durable.write_json(newest / "progress.json", facts)
    list_anew(newest)
    ended = tiny_run(out, "training.keep_checkpoints=2")
    if part in ("model", "optimizer"):
        assert ended.code == 5, ended.said
    else:
        assert any(
            "damaged-step-7" in note and part in note for note in verdict(out)["notes"]
        )


def set_back(path: Path, part: str) -> None:
    """Put an item as it was when the run began, and list it as if that were right."""
    if part in ("model", "optimizer"):
        tensors = load_file(path / f"{part}.safetensors")
        save_file(
            {name: torch.zeros_like(t) for name, t in tensors.items()},
            path / f"{part}.safetensors",
        )
    else:
        facts = json.loads((path / "progress.json").read_bytes())
        start = vars(Progress())[part]
        assert facts[part] != start, "nothing to set back"
        durable.write_json(path / "progress.json", {**facts, part: start})
    list_anew(path)


def list_anew(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_bytes())
    listed = manifest.pop("files")
    durable.write_manifest(path, listed, manifest)


def test_K10_a_second_run_in_one_folder_is_refused(
    tmp_path: Path, forks: Forks, tiny_run: Run
) -> None:
    """By a lock that names the process; once that one is dead, killed or not, the folder is
    free.
    """
    out = tmp_path / "out"
    (out / "run").mkdir(parents=True)
    lock = out / "run" / "lock"
    child = os.fork()
    if child == 0:
        with durable.held(lock, out):
            time.sleep(600)
        os._exit(0)
    try:
        while not lock.is_file() or not lock.read_text():
            time.sleep(0.01)
        ended = tiny_run(out)
        assert (ended.code, ended.said.count("\n")) == (2, 1), ended.said
        assert f"is in use by process {child} on {os.uname().nodename}" in ended.said
        assert sorted(p.name for p in (out / "run").iterdir()) == ["lock"]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert tiny_run(out).code == 0


def test_K10_odd_paths(tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed) -> None:
    out = tmp_path / "with spaces" / "größer 中文" / "quo'te\"s" / "out"
    number = undisturbed.numbers("^between")[6]
    assert tiny_run(out, signal_at={number: int(signal.SIGINT)}).code == 75
    assert tiny_run(out).code == 0
    assert differences(out, undisturbed.out) == []


def test_K10_a_link_to_a_folder_on_another_device(
    tmp_path: Path, tiny_run: Run, undisturbed: Undisturbed
) -> None:
    """Temporary names stand beside their targets, so nothing is ever renamed from one device to
    another.
    """
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system at hand")
    real = elsewhere / f"weft-{os.getpid()}"
    real.mkdir()
    try:
        (tmp_path / "out").symlink_to(real)
        assert tiny_run(tmp_path / "out").code == 0
        assert differences(tmp_path / "out", undisturbed.out) == []
    finally:
        shutil.rmtree(real)
