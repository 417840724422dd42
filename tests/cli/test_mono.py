"""weft train --mono at the command line: what it says before and after each step, and refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.kernels import torch_machine

Command = Callable[..., Any]


@pytest.mark.long
def test_the_steps_and_their_gains_are_said(
    command: Command,
    write_pairs: Callable[[int], str],
    tiny_settings: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch_machine, "_useful_threads", lambda device: 1)
    text = tmp_path / "news.txt"
    text.write_text("Katze hört Hund heute.\nHund mag Katze.\n", "utf-8")
    out, values = tmp_path / "out", (*tiny_settings, "training.max_steps=4")
    arguments = ["train", write_pairs(216), "--mono", f"de={text}", "--output", out]
    arguments += [part for value in values for part in ("--set", value)]
    ended = command(*arguments)
    assert (ended.code, ended.out) == (0, b""), ended.err
    said = "\n".join(ended.messages)
    for line in (
        "5 steps, each model learns in 4 training steps (training.max_steps):",
        "  2. reverse: de to en, from the 176 pairs alone",
        "step 3 of 5, forward-again-1: the de to en model translates the targets of the 176 pairs",
        "step 4 of 5, forward-made-1: the de to en model translates 1 sentence of the text in de",
        " chrF beside pairs",
        "left out: 1 line of the text in de (",
        f"the model is in {out}",
        "verdict: not usable yet: ",
        f"{out / 'run'} holds the checkpoints and your training text: do not hand that on",
    ):
        assert line in said
    assert "try next" not in said
    assert command("evaluate", out).code == 0
    again = command(*arguments)
    assert again.code == 0
    assert "  5. forward-1: en to de, from the pairs and what was made: done" in (
        again.messages
    )
    fresh = command(*arguments, "--minutes", "1")
    assert fresh.code == 2
    assert "begun with something else: --minutes; continue" in fresh.messages[-1]


def test_usage_errors(
    command: Command, write_pairs: Callable[[int], str], tmp_path: Path
) -> None:
    pairs, out = write_pairs(216), tmp_path / "out"
    for options, said in (
        (["--rounds", "2"], "give --mono, too"),
        (["--denoise"], "give --mono, too"),
        (["--mono", "news.txt"], "such as yo=news.txt"),
        (["--mono", "de="], "the file is missing; write"),
        (["--mono", f"de={pairs}@2"], f"give {pairs} alone"),
        (["--mono", "de=none.txt"], "none.txt: no such file"),
        (["--mono", f"fr={pairs}"], "the pairs are en to de"),
    ):
        ended = command("train", pairs, "--output", out, *options)
        assert ended.code in (2, 3)
        assert said in ended.messages[-1]
    assert not out.exists()
