"""The linear model that a classifier is held against."""

from weft.data.labelled import LabelledText
from weft.run.judging.linear import COSTS, linear_answers

CHARACTERS = [("on no", "a"), ("no on", "a"), ("noon", "b"), ("Noon noon", "b")]


def labelled(rows: list[tuple[str, str]]) -> LabelledText:
    return LabelledText(
        texts=[text for text, _ in rows],
        labels=[(label,) for _, label in rows],
        lines=[*range(1, len(rows) + 1)],
        files=["rows.tsv"],
        file_of=[0] * len(rows),
        dropped={},
    )


def test_words_decide_whatever_the_models_tokens_are() -> None:
    """The texts share their characters; only whole words tell the labels apart."""
    train = labelled([*CHARACTERS, ("on!", "a")])
    dev = labelled([("NO", "a"), ("noon, no noon", "b"), ("on", "a")])
    assert linear_answers(["a", "b"], train, dev).labels == ["a", "b", "a"]


def test_pairs_of_words_decide() -> None:
    """Each word stands in texts of both labels as often."""
    pairs = ["red dog", "blue cat"], ["red cat", "blue dog"]
    rows = [(text, "ab"[side]) for side in (0, 1) for text in pairs[side]]
    train = labelled(rows * 4)
    found = linear_answers(["a", "b"], train, labelled(rows))
    assert found.labels == ["a", "a", "b", "b"]


def test_the_first_of_the_best_costs_is_chosen() -> None:
    """All are right about words that one label alone has."""
    train = labelled([*CHARACTERS, ("on!", "a")])
    assert linear_answers(["a", "b"], train, train).cost == COSTS[0]


def test_dev_may_have_a_label_that_is_not_known() -> None:
    train = labelled(CHARACTERS)
    found = linear_answers(["a", "b"], train, labelled([("noon", "c"), ("", "c")]))
    assert found.labels[0] == "b"
    assert len(found.labels) == 2
