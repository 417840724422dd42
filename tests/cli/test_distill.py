"""weft distill at the command line: what it says, the exit codes, and the folder that other verbs
take.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.kernels import torch_machine

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each command measures anew how many threads are worth while."""
    monkeypatch.setattr(torch_machine, "_useful_threads", lambda device: 1)


def test_a_student_from_the_command_line(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
) -> None:
    out, values = tmp_path / "out", (*tiny_settings, "training.max_steps=3")
    arguments = [
        "distill",
        tiny_folder,
        write_pairs(60),
        "--out",
        out,
        "--beam-size",
        "1",
    ]
    arguments += [part for value in values for part in ("--set", value)]
    ended = command(*arguments)
    assert (ended.code, ended.out) == (0, b""), ended.err
    assert f"{tiny_folder} translates 60 sentences" in ended.messages
    assert ended.messages[-2:] == [
        f"done after 3 steps; the model is in {out}; try:",
        f'  weft translate {out} "..."',
    ]
    assert (out / "README.md").read_text().count("    weft distill ") == 1
    assert command("translate", out, "cat sees dog.").code == 0
    again = command(*arguments)
    assert (again.code, again.out) == (0, b"")
    assert "is finished" in again.messages[0]
    arguments[arguments.index("--beam-size") + 1] = "2"
    ended = command(*arguments)
    assert (ended.code, len(ended.messages)) == (2, 1)
    assert "the beam size was 1, is 2" in ended.err


def test_usage_errors(command: Command, tiny_folder: Path, tmp_path: Path) -> None:
    for arguments in (
        [tiny_folder],
        [tiny_folder, "a.tsv"],
        [tiny_folder, "a.tsv", "--beam-size", "0"],
    ):
        ended = command("distill", *arguments)
        assert (ended.code, len(ended.messages)) == (2, 1)
    ended = command("distill", tmp_path / "none", "a.tsv", "--out", tmp_path / "out")
    assert (ended.code, len(ended.messages)) == (5, 1)
    assert not (tmp_path / "out").exists()
