"""Repetitions are shortened to what an eye needs, and nothing else is touched."""

import pytest

from weft.run.judging.judgement import DRAFT, Judgement
from weft.run.judging.words import shorten_runs


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("the " * 79 + "the", "the the the … (×80)"),
        ("I see " + "of the " * 40 + "end", "I see of the of the of the … (×40) end"),
        ("a man, a man, a man, a man, a man,", "a man, a man, a man, … (×5)"),
        ("我" + "的" * 80 + "。", "我的的的 … (×80)。"),
        ("ha" * 30, "hahaha … (×30)"),
    ],
)
def test_what_is_said_again_and_again_is_said_thrice(text: str, short: str) -> None:
    assert shorten_runs(text) == short


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no no no no",
        "row, row, row your boat",
        "Well ... 1,000,000!",
        "the cat the cat the dog",
        "aaaa 哈哈哈",
    ],
)
def test_what_a_person_writes_stays(text: str) -> None:
    assert shorten_runs(text) == text


def test_a_verdict_shows_its_examples_shortened_and_keeps_them_whole() -> None:
    found = Judgement(
        DRAFT,
        ["why"],
        examples=[{"source": "A dog.", "translation": "ein" + " ein" * 199}],
    )
    assert found.lines()[-1].endswith("ein ein ein … (×200)")
    assert found.to_json()["examples"][0]["translation"] == "ein" + " ein" * 199
