"""Verbs with a model of several directions: each is told the language to write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.inspection.diagnosis import Cause

Command = Callable[..., Any]
TEXT = "Katze sieht Hund."


def test_translate_is_told_the_language(command: Command, both_ways: Path) -> None:
    wanted = weft.load(both_ways).translate(TEXT, to="en")[0].text
    assert command("translate", both_ways, TEXT, "--to", "en").lines == [wanted]
    unsaid = command("translate", both_ways, TEXT)
    assert unsaid.code == 2
    assert unsaid.messages == ["weft: the model writes de, en; say which by --to"]
    unknown = command("translate", both_ways, TEXT, "--to", "fr")
    assert unknown.code == 2
    assert "--to fr: the model does not translate so" in unknown.err
    directions = "its directions are en to de, de to en"
    assert directions in unknown.err


def test_evaluate_scores_every_direction_or_one(
    command: Command, both_ways: Path
) -> None:
    whole = command("evaluate", both_ways).lines
    assert "mean of 2 directions" in whole[0]
    assert any(line.startswith("en to de: BLEU") for line in whole)
    one = command("evaluate", both_ways, "--to", "en").lines
    (own,) = (line for line in whole if line.startswith("de to en: BLEU"))
    assert own == f"de to en: {one[0]}"


def test_inspect_names_the_mark_and_aligns_without_it(
    command: Command, both_ways: Path, tmp_path: Path
) -> None:
    path = tmp_path / "inside.json"
    asked = ("--to", "en", "--output", path)
    assert command("inspect", both_ways, TEXT, *asked).code == 0
    found = json.loads(path.read_bytes())
    assert found["source"]["pieces"][0] == "<to en>"
    assert found["alignment"]["source"] == ["Katze", "sieht", "Hund", "."]


def test_compare_takes_one_direction(
    command: Command, both_ways: Path, tiny_folder: Path
) -> None:
    asked = ("compare", tiny_folder, both_ways, "--samples", "10", "--json")
    found = command(*asked, "--to", "de")
    assert found.code == 0, found.err
    assert json.loads(found.out)["figures"]
    assert (
        f"the model in {both_ways} writes de, en; say which by --to"
        in command(*asked).err
    )


def test_diagnose_looks_at_each_direction_of_the_text(
    command: Command, both_ways: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def causes(evidence: Any) -> list[Cause]:
        config = evidence.task.config
        own = f"{len(evidence.given)} pairs into {config.tgt_lang}"
        return [Cause("own", own, "x"), Cause("of the run", "as ever", "x")]

    monkeypatch.setattr("weft.inspection.diagnosis.find_causes", causes)
    there = tmp_path / "there.en-de.tsv"
    back = tmp_path / "back.de-en.tsv"
    there.write_text("cat sees dog.\tKatze sieht Hund.\n", "utf-8")
    back.write_text("Hund hört Katze.\tdog hears cat.\n" * 2, "utf-8")
    assert command("diagnose", both_ways, there, back).lines[::2] == [
        "own: en to de: 1 pairs into de",
        "own: de to en: 2 pairs into en",
        "of the run: as ever",
    ]
    assert command("diagnose", both_ways, back).lines[::2] == [
        "own: 2 pairs into en",
        "of the run: as ever",
    ]


@pytest.mark.parametrize("verb", ["selfcheck", "diagnose"])
def test_checks_of_a_model_hold(command: Command, both_ways: Path, verb: str) -> None:
    found = command(verb, both_ways)
    assert found.code == 0, found.err
