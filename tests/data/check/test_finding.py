"""How a finding is worded, and when it is grave."""

import re
from pathlib import Path
from typing import Any

import pytest

from weft.data.check.documents import look_over_documents
from weft.data.check.finding import (
    MOST_PLACES,
    Example,
    Finding,
    Rows,
    excerpt,
    excerpts,
    gravest_first,
    marked_excerpts,
)
from weft.data.check.pairs import WRONG_SHARE, look_over
from weft.data.check.rows import look_over_labelled
from weft.data.corpus import from_pairs
from weft.data.documents import from_documents
from weft.data.labelled import from_rows

CHECKING = Path(__file__).parents[3] / "docs" / "checking.md"


@pytest.mark.parametrize(
    ("found", "severity"),
    [(1, "note"), (10, "note"), (11, "warning"), (50, "warning"), (51, "fatal")],
)
def test_the_share_decides(found: int, severity: str) -> None:
    rows = Rows(100, "rows", lambda i: f"t.tsv:{i + 1}", lambda i: (f"text {i}",))
    (finding,) = rows.shares(range(found), "odd", "something odd", "look", 0.1, 0.5)
    assert (finding.severity, finding.count, len(finding.rows)) == (
        severity,
        found,
        found,
    )
    rows_said = "1 row" if found == 1 else f"{found} rows"
    assert (
        finding.message
        == f"t.tsv:1: something odd ({rows_said}, {found}.0 %; the first is shown)"
    )
    assert [example.where for example in finding.examples] == [
        f"t.tsv:{i + 1}" for i in range(min(found, 5))
    ]
    assert "rows" not in finding.to_json()


def test_all_rows_are_listed_up_to_some_thousands() -> None:
    rows = Rows(9000, "rows", lambda i: f"a:{i + 1}", lambda i: ("text",))
    (few,) = rows.shares(range(4000, 4700), "code", "what", "remedy", 0.5)
    assert few.to_json()["lines"] == {"a": list(range(4001, 4701))}
    (many,) = rows.shares(range(9000), "code", "what", "remedy", 0.5)
    assert many.lines() == {"a": list(range(1, MOST_PLACES + 1))}


def test_of_a_document_each_line_is_listed() -> None:
    text = "".join(f"line {i}\x07\n" if i % 3 else f"line {i}\n" for i in range(9))
    findings = look_over_documents(from_documents([text], "book"))
    (found,) = [finding for finding in findings if finding.code == "control-characters"]
    assert list(found.lines().values()) == [[2, 3, 5, 6, 8, 9]]


def test_nothing_found_is_nothing_said() -> None:
    assert (
        list(
            Rows(100, "rows", str, lambda i: ()).shares(
                [], "odd", "something odd", "look", 0.1
            )
        )
        == []
    )


def test_the_gravest_come_first_and_else_the_order_is_kept() -> None:
    findings = [
        Finding(s, c, "", "", 1)
        for s, c in (("note", "a"), ("fatal", "b"), ("warning", "c"), ("fatal", "d"))
    ]
    assert [finding.code for finding in gravest_first(findings)] == ["b", "d", "c", "a"]


def test_an_excerpt_shows_what_cannot_be_seen_and_stays_short() -> None:
    assert excerpt("a\tb\x07c\r\u200b") == "a b[U+0007]c[U+000D][U+200B]"
    assert excerpt("x" * 500) == "x" * 160 + "…"
    assert excerpt("x" * 500, around=300) == f"…{'x' * 160}…"
    assert excerpt("x" * 500 + "y", around=499) == f"…{'x' * 159}y", (
        "all the room is used at the end"
    )


def test_a_row_is_shown_with_a_part_of_each_column() -> None:
    assert excerpts(["x" * 500, "y" * 500]) == f"{'x' * 80}…  |  {'y' * 80}…"
    assert excerpts(["x" * 500, "yes"]) == f"{'x' * 157}…  |  yes", (
        "what one does not need the other gets"
    )
    assert excerpts(["no", "y" * 500], (0, 499)) == f"no  |  …{'y' * 158}"
    assert excerpts([]) == ""


def test_what_is_meant_is_marked_in_each_column() -> None:
    text, marked = marked_excerpts(["a\x07b", "y" * 500 + "zz"], (1, 500), (1, 2))
    shown = Example("", text, marked=marked).with_marks("<", ">")
    assert shown == f"a<[U+0007]>b  |  …{'y' * 155}<zz>"
    # only as much of it as is shown
    text, marked = marked_excerpts(["y" * 100 + "z" * 500], (100,), (500,))
    shown = Example("", text, marked=marked).with_marks("<", ">")
    assert shown == f"…{'y' * 80}<{'z' * 80}>…"
    assert marked_excerpts(["abc", "d"], (1, 0)) == ("abc  |  d", ())


def test_the_worst_are_named_and_shown_where_some_are_worse() -> None:
    rows = Rows(100, "rows", lambda i: f"t.tsv:{i + 1}", lambda i: (f"text {i}",))
    (finding,) = rows.shares(
        [3, 4, 5],
        "odd",
        "something odd",
        "look",
        0.1,
        badness={3: 2.0, 4: 1.0, 5: 3.0}.__getitem__,
    )
    assert (
        finding.message == "t.tsv:6: something odd (3 rows, 3.0 %; the worst is shown)"
    )
    assert finding.rows == (3, 4, 5)
    assert [example.where for example in finding.examples] == [
        "t.tsv:6",
        "t.tsv:4",
        "t.tsv:5",
    ]


def in_words(share: float) -> str:
    return "never" if share >= 1 else f"{100 * share:g} %"


def test_the_page_says_from_which_share_on_a_finding_is_grave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {}
    for line in CHECKING.read_text("utf-8").split("\n"):
        if re.match(r"\| `[a-z-]+`", line):
            codes, _, *grave = (cell.strip() for cell in line.strip("|").split("|"))
            said |= dict.fromkeys(
                re.findall(r"`([a-z-]+)`", codes),
                tuple(cell.split(";")[0] for cell in grave),
            )
    known = {"shifted-lines": ("always", in_words(WRONG_SHARE))}

    def spy(
        rows: Rows,
        found: Any,
        code: str,
        what: str,
        remedy: str,
        warn: float,
        fatal: float = 2.0,
        *_: Any,
        **__: Any,
    ) -> list[Finding]:
        known[code] = (in_words(warn), in_words(fatal))
        return []

    monkeypatch.setattr(Rows, "shares", spy)
    look_over(
        from_pairs(
            [(f"say {i}", "the same") for i in range(50)], "made.tsv", "en", "de"
        )
    )
    look_over_documents(from_documents(["one", "two"], "made.txt"))
    look_over_labelled(from_rows([("one", ["a"]), ("two", ["b"])], "made"))
    assert len(known) == 16
    assert {code: said.get(code) for code in known} == known
