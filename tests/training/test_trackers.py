"""What TensorBoard is given: lines, names, and what becomes of steps that are done again."""

import subprocess
import sys
from pathlib import Path

import pytest

from weft.training import trackers
from weft.training.trackers import (
    TensorBoard,
    find_trackers,
    scalars,
)

STEP = {"step": 50, "epoch": 1, "loss": 2.5, "grad_norm": 1.0}
SCORES = {"step": 50, "epoch": 1, "dev_bleu": 12.5}


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
        "assert not [m for m in sys.modules if m.split('.')[0] == 'tensorboard']\n"
        f"TensorBoard(Path({str(tmp_path / 'board')!r})).line({{'step': 1, 'loss': 2.0}})\n"
        "assert 'tensorboard' in sys.modules and 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_package_nothing_is_tracked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    assert find_trackers(tmp_path) == []
