"""How a finding is worded, and when it is grave."""

import pytest

from weft.data.check.finding import Finding, Rows, excerpt, excerpts, gravest_first


@pytest.mark.parametrize(
    ("found", "severity"), [(1, "note"), (10, "note"), (11, "warning"), (50, "warning"), (51, "fatal")]
)
def test_the_share_decides(found: int, severity: str) -> None:
    rows = Rows(100, "rows", lambda i: f"t.tsv:{i + 1}", lambda i: (f"text {i}",))
    (finding,) = rows.shares(range(found), "odd", "something odd", "look", 0.1, 0.5)
    assert (finding.severity, finding.count, len(finding.rows)) == (severity, found, found)
    rows_said = "1 row" if found == 1 else f"{found} rows"
    assert finding.message == f"t.tsv:1: something odd ({rows_said}, {found}.0 %; the first is named)"
    assert [example.where for example in finding.examples] == [f"t.tsv:{i + 1}" for i in range(min(found, 5))]
    assert "rows" not in finding.to_json()


def test_nothing_found_is_nothing_said() -> None:
    assert list(Rows(100, "rows", str, lambda i: ()).shares([], "odd", "something odd", "look", 0.1)) == []


def test_the_gravest_come_first_and_else_the_order_is_kept() -> None:
    findings = [
        Finding(s, c, "", "", 1) for s, c in (("note", "a"), ("fatal", "b"), ("warning", "c"), ("fatal", "d"))
    ]
    assert [finding.code for finding in gravest_first(findings)] == ["b", "d", "c", "a"]


def test_an_excerpt_shows_what_cannot_be_seen_and_stays_short() -> None:
    assert excerpt("a\tb\x07c\r\u200b") == "a b[U+0007]c[U+000D][U+200B]"
    assert excerpt("x" * 500) == "x" * 160 + "…"
    assert excerpt("x" * 500, around=300) == f"…{'x' * 160}…"
    assert excerpt("x" * 500 + "y", around=499) == f"…{'x' * 159}y", "all the room is used at the end"


def test_a_row_is_shown_with_a_part_of_each_column() -> None:
    assert excerpts(["x" * 500, "y" * 500]) == f"{'x' * 80}…  |  {'y' * 80}…"
    assert excerpts(["x" * 500, "yes"]) == f"{'x' * 157}…  |  yes", "what one does not need the other gets"
    assert excerpts(["no", "y" * 500], (0, 499)) == f"no  |  …{'y' * 158}"
    assert excerpts([]) == ""


def test_the_worst_are_named_and_shown_where_some_are_worse() -> None:
    rows = Rows(100, "rows", lambda i: f"t.tsv:{i + 1}", lambda i: (f"text {i}",))
    (finding,) = rows.shares([3, 4, 5], "odd", "something odd", "look", 0.1, worst=[5, 3, 4])
    assert finding.message == "t.tsv:6: something odd (3 rows, 3.0 %; the worst is named)"
    assert finding.rows == (3, 4, 5)
    assert [example.where for example in finding.examples] == ["t.tsv:6", "t.tsv:4", "t.tsv:5"]
