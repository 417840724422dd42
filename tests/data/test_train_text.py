"""A text on the command line: its file, its weight and its tag."""

import math
from pathlib import Path

import pytest

from weft.data.train_text import TrainText, Worth, parse_texts
from weft.errors import FolderError, UsageError


@pytest.fixture
def news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in ("news.tsv", "me@home.tsv", "odd@2", "a.en", "a.de"):
        (tmp_path / name).write_text("a\tb\n", "utf-8")
    return "news.tsv"


@pytest.mark.usefixtures("news")
def test_weight_and_tag_stand_behind_the_file(subtests: pytest.Subtests) -> None:
    for written, text in (
        ("news.tsv", TrainText("news.tsv")),
        ("news.tsv@2", TrainText("news.tsv", 2.0)),
        ("news.tsv@0.5:bible", TrainText("news.tsv", 0.5, "bible")),
        ("news.tsv@.5:bible", TrainText("news.tsv", 0.5, "bible")),
        ("news.tsv@:新闻", TrainText("news.tsv", 1.0, "新闻")),
        ("news.tsv@3:", TrainText("news.tsv", 3.0)),
        ("a.en,a.de@2:x-1.b", TrainText("a.en,a.de", 2.0, "x-1.b")),
        # files that are there, whatever their names look like
        ("odd@2", TrainText("odd@2")),
        ("odd@2@3", TrainText("odd@2", 3.0)),
        ("me@home.tsv", TrainText("me@home.tsv")),
        ("me@home.tsv@2", TrainText("me@home.tsv", 2.0)),
        # files that are missing, which whoever reads them says
        ("you@home.tsv", TrainText("you@home.tsv")),
        ("gone.tsv:bible", TrainText("gone.tsv:bible")),
        ("gone.tsv@2", TrainText("gone.tsv", 2.0)),
    ):
        with subtests.test(written):
            assert TrainText.parse(written) == text


@pytest.mark.usefixtures("news")
def test_what_is_neither_weight_nor_tag_is_refused(subtests: pytest.Subtests) -> None:
    for written, message in (
        ("news.tsv@two", "write FILE@WEIGHT:TAG"),
        ("news.tsv@", "write FILE@WEIGHT:TAG"),
        ("news.tsv@1e3", "write FILE@WEIGHT:TAG"),
        ("news.tsv@0", "not above 0"),
        ("news.tsv@5000", "at most 1000"),
        ("news.tsv@1e9", "a weight above 0 and at most 1000"),
        ("news.tsv:bible", "a tag stands behind @: news.tsv@:bible"),
        ("a.en,a.de:bible", "a tag stands behind @: a.en,a.de@:bible"),
        ("news.tsv@1:two words", "the tag 'two words'"),
        ("news.tsv@1:<x>", "the tag '<x>'"),
    ):
        with subtests.test(written), pytest.raises(UsageError, match=message):
            TrainText.parse(written)
    for weight in (math.nan, math.inf, -1.0):
        with subtests.test(weight=weight), pytest.raises(UsageError):
            TrainText("news.tsv", weight)


def test_a_run_keeps_what_it_was_given() -> None:
    texts = (
        TrainText("a@b.tsv"),
        TrainText("a.tsv", 2.0),
        TrainText("b.tsv", 1.0, "b"),
        TrainText("c.tsv", made=True),
    )
    kept = [text.to_json() for text in texts]
    assert kept[0] == "a@b.tsv"  # as runs of earlier versions have it
    assert tuple(map(TrainText.from_json, kept)) == texts
    for damaged in (7, {"weight": 2.0}, {"data": "a", "price": 3}):
        with pytest.raises(FolderError):
            TrainText.from_json(damaged)


def test_names_and_values_may_be_mixed() -> None:
    made = TrainText("b.tsv", made=True)
    assert parse_texts("a.tsv@2") == (TrainText("a.tsv", 2.0),)
    assert parse_texts(made) == (made,)
    assert parse_texts(["a.tsv", made]) == (TrainText("a.tsv"), made)


def test_worth_is_said_in_words() -> None:
    assert Worth().describe() == ""
    every = Worth(0.5, "bible", made=True)
    assert every.describe() == "weight 0.5, tag bible, sources made by a machine"
