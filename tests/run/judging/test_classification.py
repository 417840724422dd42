"""The verdict on a classifier: beside the most frequent label and counting words."""

from pathlib import Path

import pytest

from weft.data.labelled import read_labelled
from weft.predict.classifier import Classification
from weft.run.judging.classification import (
    _by_words,
    judge,
    naive_bayes,
    with_labels,
)
from weft.run.judging.judgement import DRAFT, NOT_JUDGED, NOT_YET, USABLE, Judgement


def answer(label: str) -> Classification:
    return Classification(label, [label], 0.9, {}, False, 1)


def verdict_on(
    rows: list[tuple[str, str, int]],
    by_words: int | None = None,
    improves: bool = False,
) -> Judgement:
    """Of rows of a label, an answer and how many; counting words gets the first so many right."""
    wanted = [label for label, _, count in rows for _ in range(count)]
    given = [answer(said) for _, said, count in rows for _ in range(count)]
    words = (
        None
        if by_words is None
        else [*wanted[:by_words], *["?"] * (len(wanted) - by_words)]
    )
    found = judge(["a text"] * len(wanted), [[label] for label in wanted], given, words)
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
            "counting words does better",
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
        '80 of 100 rows of dev are labelled rightly; always saying "a" gives 60, counting words (naive Bayes) 55'
    )
    assert len(found.examples) == 5
    assert found.low_confidence == 0.9


def test_counting_words_by_hand() -> None:
    """Two texts of label 0 with token 1, one of label 1 with token 2; each counts once more."""
    tokens, prior = naive_bayes(
        [[1], [1, 1], [2]], [0, 0, 1], num_labels=2, vocab_size=3
    )
    # ln of 1/5, 3/5, 1/5
    assert tokens[:, 0].tolist() == pytest.approx([-1.6094, -0.5108, -1.6094], abs=1e-4)
    # ln of 1/4, 1/4, 2/4
    assert tokens[:, 1].tolist() == pytest.approx([-1.3863, -1.3863, -0.6931], abs=1e-4)
    # ln of 3/5, 2/5
    assert prior.tolist() == pytest.approx([-0.5108, -0.9163], abs=1e-4)


def test_words_are_counted_whatever_the_models_tokens_are(tmp_path: Path) -> None:
    """The texts share their characters; only whole words tell the labels apart."""
    rows = ["on no,a", "no on,a", "no no,a", "noon,b", "Noon noon,b", "on!,a", "7,b"]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["text,label", *rows]))
    text = read_labelled([file])
    answers = _by_words(["a", "b"], text, text)
    # what has no known word gets the most frequent label
    assert answers == ["a", "a", "a", "b", "b", "a", "a"]


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
    found = Judgement(DRAFT, ["counting words does better"])
    draft = with_labels(found, counts, counts)
    assert draft.with_curve("", []).helps == [said]
    assert draft.with_curve("", ["one", "two"]).helps == ["one", "two"]
    usable = with_labels(Judgement(USABLE, ["for use"]), counts, counts)
    assert usable.with_curve("", []).helps == ()
    alike = with_labels(found, {"a": 9, "A": 9}, {"a": 9})
    assert alike.with_curve("", []).helps == []
