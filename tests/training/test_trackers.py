"""What TensorBoard and trackio are given: lines, names, and what becomes of steps that are done
again.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.errors import UsageError
from weft.training import trackers
from weft.training.trackers import (
    TensorBoard,
    Trackio,
    find_trackers,
    refuse_missing,
    scalars,
)

STEP = {"step": 50, "epoch": 1, "loss": 2.5, "grad_norm": 1.0}
SCORES = {"step": 50, "epoch": 1, "dev_bleu": 12.5}


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    found = trackers.find_spec
    monkeypatch.setattr(
        trackers, "find_spec", lambda name: None if name == package else found(name)
    )


def read_events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by name, as TensorBoard shows them."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    events = accumulator.EventAccumulator(str(folder)).Reload()
    names = events.Tags()["scalars"]
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in names
    }


def test_the_names_of_numbers() -> None:
    assert scalars(STEP) == {
        "training/epoch": 1,
        "training/loss": 2.5,
        "training/grad_norm": 1.0,
    }
    assert scalars(SCORES) == {"dev/epoch": 1, "dev/bleu": 12.5}
    assert scalars({"step": 1, "loss": 1.0, "word": "x"}) == {"training/loss": 1.0}


def test_tensorboard_shows_what_was_logged(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    board = TensorBoard(tmp_path / "run" / "board")
    board.rewind(0)
    for line in (STEP, SCORES, {**STEP, "step": 100, "loss": 1.25}):
        board.line(line)
    board.close()
    shown = read_events(tmp_path / "run" / "board")
    assert shown["training/loss"] == [(50, 2.5), (100, 1.25)]
    assert shown["dev/bleu"] == [(50, 12.5)]


def test_what_is_done_again_takes_the_place_of_what_was(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    first = TensorBoard(tmp_path)
    for step in (1, 2, 3, 4):
        first.line({"step": step, "loss": float(step)})
    (file,) = tmp_path.iterdir()
    # what a kill leaves; `first` is never closed
    file.write_bytes(file.read_bytes()[:-5])
    again = TensorBoard(tmp_path)
    again.rewind(2)
    assert len([*tmp_path.iterdir()]) == 1  # nothing new to say, nothing changed
    for step in (3, 4, 5):
        again.line({"step": step, "loss": step + 0.5})
    again.close()
    first.close()
    assert read_events(tmp_path)["training/loss"] == [
        (1, 1),
        (2, 2),
        (3, 3.5),
        (4, 4.5),
        (5, 5.5),
    ]


def test_tensorflow_is_never_imported(tmp_path: Path) -> None:
    """Where it is installed, TensorBoard's own way of opening files would; here, a trap stands in
    for it.
    """
    pytest.importorskip("tensorboard")
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('imported')")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pathlib import Path\nfrom weft.training.trackers import TensorBoard\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('tensorboard', 'trackio')]\n"
        f"TensorBoard(Path({str(tmp_path / 'board')!r})).line({{'step': 1, 'loss': 2.0}})\n"
        "assert 'tensorboard' in sys.modules and 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_packages_nothing_is_tracked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "tensorboard")
    assert find_trackers(tmp_path, None, "run") == []
    refuse_missing(None)


def test_a_missing_trackio_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "trackio")
    with pytest.raises(
        UsageError, match=r"training\.trackio needs .* pip install '\.\[track\]'"
    ):
        refuse_missing("essays")


class FakeRun(SimpleNamespace):
    def log(self, metrics: dict[str, float], step: int) -> None:
        self.told.append((step, metrics))


def test_trackio_gets_a_named_local_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []
    run = FakeRun(told=[])

    def init(**arguments: Any) -> FakeRun:
        print("* Trackio project initialized")
        asked.append(arguments)
        return run

    def finish() -> None:
        print("* Run finished.")
        run.told.append("finished")

    monkeypatch.setitem(
        sys.modules, "trackio", SimpleNamespace(init=init, finish=finish)
    )
    tracker = Trackio("my essays", "essays-1234")
    assert (
        tracker.describe()
        == "trackio: trackio show --project 'my essays' (run essays-1234)"
    )
    tracker.rewind(10)
    assert asked == []
    tracker.line(STEP)
    tracker.line(SCORES)
    tracker.close()
    tracker.close()
    (arguments,) = asked
    assert (arguments["project"], arguments["name"], arguments["resume"]) == (
        "my essays",
        "essays-1234",
        "allow",
    )
    assert run.told == [(50, scalars(STEP)), (50, scalars(SCORES)), "finished"]
    assert capsys.readouterr().out == ""


def test_trackio_itself_keeps_the_lines(tmp_path: Path) -> None:
    """In a process of its own, for it reads where to write when it is imported; twice, as a resumed
    run does.
    """
    pytest.importorskip("trackio")
    script = (
        "from weft.training.trackers import Trackio\n"
        "import sys\n"
        "tracker = Trackio('essays', 'essays-1234')\n"
        "tracker.line({'step': int(sys.argv[1]), 'loss': 2.0})\n"
        "tracker.close()\n"
        "from trackio.sqlite_storage import SQLiteStorage as storage\n"
        "print([row['step'] for row in storage.get_logs('essays', 'essays-1234')])\n"
    )
    environment = {
        "PATH": "",
        "HOME": str(tmp_path),
        "TRACKIO_DIR": str(tmp_path),
        "HF_HUB_OFFLINE": "1",
    }
    environment |= {"PYTHONPATH": str(Path(trackers.__file__).parents[2])}
    said = [
        subprocess.run(
            [sys.executable, "-c", script, str(step)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for step in (50, 100)
    ]
    assert said == ["[50]\n", "[50, 100]\n"]
