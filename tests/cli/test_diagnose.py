"""weft diagnose: what it says, as text and as JSON."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.inspection.diagnosis import Cause

Command = Callable[..., Any]


def test_a_sound_model(command: Command, tiny_folder: Path) -> None:
    ended = command("diagnose", tiny_folder)
    assert (ended.code, ended.messages) == (0, [])
    assert ended.lines == [
        "nothing found; give text as well, and the model is tried with it"
    ]
    assert json.loads(command("diagnose", tiny_folder, "--json").out) == []


@pytest.mark.parametrize("word", ["not usable yet", "draft", "usable"])
def test_where_nothing_is_found_the_verdict_of_the_run_is_said(
    command: Command,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    word: str,
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    path = folder / "run" / "verdict.json"
    verdict = json.loads(path.read_text())
    verdict["judgement"] = {
        "verdict": word,
        "says": ["counting words does better", "x"],
        "helps": ["more rows"],
    }
    path.write_text(json.dumps(verdict))
    monkeypatch.setattr("weft.inspection.diagnosis.diagnose", lambda *given: [])
    reason = f"nothing found; by its run it is {word}: counting words does better"
    remedy = "give text as well, and the model is tried with it"
    lines = [f"{reason}; {remedy}", "  what would help: more rows"]
    if word == "usable":
        lines = [f"nothing found; {remedy}"]
    assert command("diagnose", folder).lines == lines


def test_causes_with_evidence_and_remedy(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    causes = [
        Cause("one", "it was seen", "do this"),
        Cause("two", "seen as well", "do that"),
    ]
    monkeypatch.setattr("weft.inspection.diagnosis.diagnose", lambda *given: causes)
    ended = command("diagnose", tiny_folder, write_pairs(20))
    assert ended.code == 0
    assert ended.lines == [
        "one: it was seen",
        "  do this",
        "two: seen as well",
        "  do that",
    ]
    assert json.loads(command("diagnose", tiny_folder, "--json").out)[1] == {
        "code": "two",
        "evidence": "seen as well",
        "remedy": "do that",
    }


def test_few_rows_are_said_to_be_few(
    command: Command, tiny_folder: Path, write_pairs: Callable[[int], str]
) -> None:
    ended = command("diagnose", tiny_folder, write_pairs(3))
    assert (ended.code, ended.messages) == (0, [])
    assert (
        "few-rows-given: the text has 3 pairs: what they show, or do not show, may be chance"
        in ended.lines
    )


def test_what_is_done_is_said_meanwhile(
    command: Command,
    tiny_folder: Path,
    write_pairs: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.console.stages.SLOW", 0.0)
    said = command("diagnose", tiny_folder, data := write_pairs(9)).err.split("\n")
    stages = (
        "loading PyTorch",
        "loading the model",
        f"reading {data}",
        "finding what 9 targets cost",
        "translating 9 pairs",
    )
    found = [
        next((i for i, line in enumerate(said) if line.startswith(stage)), -1)
        for stage in stages
    ]
    assert -1 not in found, said
    assert found == sorted(found)


def test_no_folder(command: Command, tmp_path: Path) -> None:
    ended = command("diagnose", tmp_path / "none")
    assert ended.code == 5
    assert len(ended.messages) == 1
