"""weft average: what it says, and where it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_checkpoints_of_a_run(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("average", tiny_folder, "--output", tmp_path / "out")
    assert ended.code == 0
    assert [Path(line).name for line in ended.lines] == ["step-120", "step-108"]
    assert ended.messages == [
        f"weft: wrote {tmp_path / 'out'}, the mean of these; weft compare tells whether it is better"
    ]
    assert command("translate", tmp_path / "out", "cat sees dog.").code == 0


def test_more_than_there_are(
    command: Command, tiny_folder: Path, tmp_path: Path
) -> None:
    ended = command("average", tiny_folder, "--last", 9, "--output", tmp_path / "out")
    assert ended.code == 2
    assert len(ended.messages) == 1
    assert "holds 2 checkpoints of a run, and 9 are needed" in ended.err
    for remedy in ("training.keep_checkpoints=9", "a training.save_every that"):
        assert remedy in ended.err
