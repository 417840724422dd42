"""weft translate --glossary: the terms are used, and what became of them is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft import DEMO

Command = Callable[..., Any]
TEXT = "My brother bought a new bicycle yesterday."


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text(
        "source\ttarget\tavoid\nbicycle\t单车\nbrother\t弟弟\t哥哥\n", "utf-8"
    )
    return path


def test_lines_have_the_terms(command: Command, terms: Path) -> None:
    plain = command("translate", DEMO, TEXT)
    assert "单车" not in plain.lines[0]
    ended = command("translate", DEMO, TEXT, "--glossary", terms)
    assert ended.code == 0
    assert "单车" in ended.lines[0]
    assert "弟弟" in ended.lines[0]
    assert "哥哥" not in ended.lines[0]
    assert "glossary: 2 terms in the source: " in ended.err


def test_a_glossary_that_has_nothing_of_the_text_is_said(
    command: Command, terms: Path, tmp_path: Path
) -> None:
    ended = command("translate", DEMO, "We drink tea.", "--glossary", terms)
    assert "glossary: none of its terms is in the source" in ended.err
    page = tmp_path / "page.html"
    page.write_text("<p>We drink tea.</p>", "utf-8")
    ended = command("translate", DEMO, page, "--glossary", terms)
    assert "glossary: none of its terms is in the source" in ended.err
    assert "glossary" not in command("translate", DEMO, "We drink tea.").err


def test_a_glossary_of_the_other_direction_is_told(
    command: Command, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("茶\ttea\n", "utf-8")
    said = "words of its other side are: exchange its columns"
    assert said in command("translate", DEMO, "We drink tea.", "--glossary", terms).err
    page = tmp_path / "page.html"
    page.write_text("<p>We drink tea.</p>", "utf-8")
    assert said in command("translate", DEMO, page, "--glossary", terms).err
    other = command("translate", DEMO, "We drink milk.", "--glossary", terms).err
    assert "none of its terms" in other
    assert said not in other


def test_two_rows_of_one_source_are_told_as_alternatives(
    command: Command, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("tea\t茶\nmilk\t奶\nTea\t茶水\nmilk\t牛奶\n", "utf-8")
    ended = command("translate", DEMO, "We drink tea.", "--glossary", terms)
    said = f"{terms}:3: Tea stands in {terms}:1, too: either of 茶, 茶水 is taken"
    assert f"weft: glossary: {said}; 1 more such term" in ended.messages


def test_semicolons_in_a_tsv_are_read_and_told(
    command: Command, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("tea;茶水\nbook;书籍\n", "utf-8")
    ended = command("translate", DEMO, "We drink tea.", "--glossary", terms)
    assert "茶水" in ended.lines[0]
    said = "its rows have semicolons in the place of TABs, and are read so"
    assert f"weft: {terms}: {said}" in ended.messages
    terms.write_text("tea\nbook\n", "utf-8")
    ended = command("translate", DEMO, "We drink tea.", "--glossary", terms)
    assert (
        f"weft: {terms}: no row has a target: each of its terms stays as it is"
        in ended.messages
    )


def test_an_option_of_one_value_that_is_given_twice_is_refused(
    command: Command, terms: Path, tmp_path: Path
) -> None:
    twice = ("--output", tmp_path / "a.txt", "--out", tmp_path / "b.txt")
    ended = command("translate", DEMO, TEXT, *twice)
    said = "weft: --output is given twice and takes one value; leave one out"
    assert (ended.code, ended.messages) == (2, [said])
    # flags and what is repeatable may stand twice, and what follows -- is text
    both = ("--glossary", terms, "--glossary", terms, "--json", "--json")
    assert command("translate", DEMO, *both, "--", "--seed").code == 0


def test_each_line_of_json_says_what_became_of_its_terms(
    command: Command, terms: Path
) -> None:
    ended = command("translate", DEMO, TEXT, "--glossary", terms, "--json")
    uses = json.loads(ended.lines[0])["terms"]
    assert [(use["source"], use["used"]) for use in uses] == [
        ("brother", "弟弟"),
        ("bicycle", "单车"),
    ]
    assert uses[1]["where"] == f"{terms}:2"
    assert TEXT[uses[1]["start"] : uses[1]["end"]] == "bicycle"


def test_a_document_has_the_terms_around_its_tags(
    command: Command, terms: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    head = '<meta charset="utf-8">'
    page.write_text(
        f"{head}<p>{TEXT.replace('bicycle', '<b>bicycle</b>')}</p>", "utf-8"
    )
    ended = command("translate", DEMO, page, "--glossary", terms, "--json")
    assert ended.code == 0
    written = (tmp_path / "page.zh.html").read_text("utf-8")
    assert written.count("单车") == 1
    assert "<b>" in written
    (line,) = ended.lines
    assert [use["used"] for use in json.loads(line)["terms"]] == ["弟弟", "单车"]


@pytest.mark.parametrize(
    ("content", "said", "code"),
    [
        (None, "--glossary", 2),
        ("", "there is no term in it", 3),
        ("source\ttarget\tcase\na\tb\tperhaps\n", ":2: case is 'perhaps'", 3),
    ],
)
def test_what_is_no_glossary_is_one_line(
    command: Command, tmp_path: Path, content: str | None, said: str, code: int
) -> None:
    path = tmp_path / "terms.tsv"
    if content is not None:
        path.write_text(content, "utf-8")
    ended = command("translate", DEMO, TEXT, "--glossary", path)
    assert (ended.code, ended.lines) == (code, [])
    assert said in ended.err
    assert len(ended.err.strip().split("\n")) == 1


def test_samples_are_refused(command: Command, terms: Path) -> None:
    ended = command("translate", DEMO, TEXT, "--glossary", terms, "--temperature", "1")
    assert ended.code == 2
    assert "a glossary is for a beam" in ended.err


def test_several_glossaries_are_one(
    command: Command, terms: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.csv"
    more.write_text("English;Chinese;Bereich\nyesterday;昨日;Zeit\n", "utf-8")
    both = ("--glossary", terms, "--glossary", more)
    ended = command("translate", DEMO, TEXT, *both)
    assert (ended.code, "单车" in ended.lines[0], "昨日" in ended.lines[0]) == (
        0,
        True,
        True,
    )
    assert (
        f"weft: {more}: not read: bereich; the columns of a glossary are" in ended.err
    )
    assert "glossary: 3 terms in the source: " in ended.err
    missing = command(
        "translate", DEMO, TEXT, *both, "--glossary", tmp_path / "mor.csv"
    )
    assert (missing.code, missing.messages) == (
        2,
        [
            f"weft: --glossary {tmp_path / 'mor.csv'}: no such file; did you mean {more}?"
        ],
    )
