"""The comparison of two commits sees what differs, and takes nothing that failed for equal."""

from pathlib import Path

import pytest

import same
from weft.cli.examples import GROUPS


def test_equal_results_have_no_difference() -> None:
    results = {
        "demo, native: losses": [{"step": 2, "loss": 6.5}],
        "demo, native: weights": {"a": "01"},
    }
    assert same.differences(results, dict(results)) == []


def test_each_difference_is_named_with_its_place() -> None:
    there = {
        "losses": [{"loss": 6.5}],
        "evaluate": {"code": 0, "output": "BLEU 21"},
        "old": 1,
    }
    here = {
        "losses": [{"loss": 6.25}],
        "evaluate": {"code": 0, "output": "BLEU 31"},
        "new": 1,
    }
    assert same.differences(there, here) == [
        "evaluate: output from character 5: '21' there, '31' here",
        "losses: 0 loss 6.5 there, 6.25 here",
        "new: only here",
        "old: only there",
    ]


def test_a_command_that_fails_alike_shows_nothing() -> None:
    failed = {"translate": {"code": 2, "output": ""}}
    assert same.differences(failed, failed) == ["translate: exit code 2 here"]


def test_a_renamed_file_is_found_by_either_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(same.RENAMED_FILES, "run/new.jsonl", "run/old.jsonl")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old.jsonl").touch()
    assert same.file_of(tmp_path, "run/new.jsonl").name == "old.jsonl"
    (tmp_path / "run" / "new.jsonl").touch()
    assert same.file_of(tmp_path, "run/new.jsonl").name == "new.jsonl"


def test_every_verb_that_uses_a_model_is_compared() -> None:
    compared = {verb[0] for rows in same.VERBS.values() for verb in rows}
    assert set(GROUPS["Use a model"]) - {"serve"} <= compared
