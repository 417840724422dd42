"""The verdict on a classifier: beside the most frequent label and counting words."""

import pytest

from weft.predict.classifier import Classification
from weft.run.judging.classification import judge, with_labels
from weft.run.judging.judgement import DRAFT, NOT_JUDGED, NOT_YET, USABLE, Judgement
from weft.run.judging.linear import LinearAnswers


def answer(label: str) -> Classification:
    return Classification(label, [label], 0.9, {}, False, 1)


def verdict_on(
    rows: list[tuple[str, str, int]],
    by_words: int | None = None,
    improves: bool = False,
) -> Judgement:
    """Of rows of a label, an answer and how many; a linear model gets the first so many right."""
    wanted = [label for label, _, count in rows for _ in range(count)]
    given = [answer(said) for _, said, count in rows for _ in range(count)]
    linear = None
    if by_words is not None:
        labels = [*wanted[:by_words], *["?"] * (len(wanted) - by_words)]
        linear = LinearAnswers(labels, 0.3)
    found = judge(
        ["a text"] * len(wanted), [[label] for label in wanted], given, linear
    )
    return found.with_curve("rises" if improves else "", ["more rows"])


@pytest.mark.parametrize(
    ("rows", "by_words", "verdict", "why"),
    [
        (
            [("a", "a", 60), ("b", "a", 31), ("b", "b", 9)],
            0,
            NOT_YET,
            "hardly better than always giving",
        ),
        (
            [("a", "a", 60), ("b", "a", 20), ("b", "b", 20)],
            0,
            USABLE,
            "20 of 100 answers are wrong",
        ),
        (
            [("a", "a", 60), ("b", "a", 21), ("b", "b", 19)],
            0,
            DRAFT,
            "21 of 100 answers are wrong",
        ),
        (
            [("a", "a", 60), ("b", "b", 30), ("b", "a", 10)],
            91,
            DRAFT,
            "a linear model of its words does better",
        ),
        ([("a", "a", 60), ("b", "b", 30), ("b", "a", 10)], 90, USABLE, "10 of 100"),
        (
            [("a", "a", 60), ("b", "b", 37), ("c", "b", 3)],
            None,
            DRAFT,
            "it never answers c",
        ),
        ([("a", "a", 60), ("b", "b", 38), ("c", "b", 2)], None, USABLE, "2 of 100"),
        ([("a", "a", 19)], None, NOT_JUDGED, "dev has 19 rows"),
    ],
)
def test_the_rules(
    rows: list[tuple[str, str, int]], by_words: int | None, verdict: str, why: str
) -> None:
    found = verdict_on(rows, by_words)
    assert found.verdict == verdict
    assert why in found.says[0]


def test_what_is_said_beside_it() -> None:
    found = verdict_on(
        [("a", "a", 60), ("b", "a", 20), ("b", "b", 20)], 55, improves=True
    )
    assert found.says[0].endswith("; the curve still rises: train it for longer")
    assert found.says[1] == (
        '80 of 100 rows of dev are labelled rightly; always saying "a" gives 60, '
        "a linear model of words and pairs 55 (C = 0.3, chosen by them)"
    )
    assert len(found.examples) == 5
    assert found.low_confidence == 0.9


def test_labels_that_are_alike_and_those_that_dev_lacks_are_said() -> None:
    found = verdict_on([("billing", "billing", 60), ("order", "order", 40)])
    assert (
        with_labels(
            found, {"billing": 60, "order": 40}, {"billing": 60, "order": 40}
        ).says
        == found.says
    )
    counts = {"Billing": 8, "billing": 1200, "order": 300, "or-der": 2, "return": 1}
    said = with_labels(found, counts, {"billing": 60, "order": 40})
    assert [*said.says[: len(found.says)]] == [*found.says]
    alike, absent = said.says[len(found.says) :]
    assert "alone count as different" in alike
    assert "'billing' and 'Billing'; 'order' and 'or-der'; unify them" in alike
    assert absent.startswith(
        "dev has no row of 'Billing', 'or-der', 'return' (3 of 5 labels): "
    )
    assert said.figures["not_in_dev"] == ["Billing", "or-der", "return"]
    assert said.figures["rows"] == counts
    assert said.verdict == found.verdict


@pytest.mark.parametrize(("num_wrong", "shown"), [(0, 0), (1, 1), (40, 2), (100, 5)])
def test_errors_are_shown_in_their_share(num_wrong: int, shown: int) -> None:
    rows = [("a", "a", 50), ("b", "b", 50 - num_wrong), ("b", "a", num_wrong)]
    if num_wrong > 50:
        rows = [("b", "a", 50), ("a", "b", 50)]
    examples = verdict_on(rows).examples
    assert sum(one["answer"] != one["label"] for one in examples) == shown
    assert len(examples) == 5


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"a": 90, "b": 12}, "more rows: it was trained on 102"),
        (
            {"a": 900, "b": 400, "c": 26},
            "more rows of the rare labels ('a' has 900, 'c' 26)",
        ),
    ],
)
def test_what_helps_a_draft_is_told_last(counts: dict[str, int], said: str) -> None:
    found = Judgement(DRAFT, ["a linear model of its words does better"])
    draft = with_labels(found, counts, counts)
    assert draft.with_curve("", []).helps == [said]
    assert draft.with_curve("", ["one", "two"]).helps == ["one", "two"]
    usable = with_labels(Judgement(USABLE, ["for use"]), counts, counts)
    assert usable.with_curve("", []).helps == ()
    alike = with_labels(found, {"a": 9, "A": 9}, {"a": 9})
    assert alike.with_curve("", []).helps == []
