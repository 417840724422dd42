"""Labels that a slip of the hand made two of, and the other checks of rows; more stand in
test_labelled.py.
"""

import pytest

from weft.data.check.finding import Finding
from weft.data.check.rows import look_over_labelled
from weft.data.labelled import LabelledText, from_rows


def made(*labels: str, counts: int = 200) -> LabelledText:
    """So many rows of the first two labels each, one of each further one."""
    first = [label for label in labels[:2] for _ in range(counts)]
    return from_rows(
        [
            (f"a text about matter {i}", [label])
            for i, label in enumerate([*first, *labels[2:]])
        ],
        "r",
    )


def found(text: LabelledText) -> dict[str, Finding]:
    return {finding.code: finding for finding in look_over_labelled(text)}


@pytest.mark.parametrize(
    ("labels", "slip"),
    [
        (("positive", "negative", "Positive"), "Positive"),
        (("positive", "negative", "postive"), "postive"),
        (("positive", "negative", "negatives"), "negatives"),
        (("not spam", "spam", "not-spam"), "not-spam"),
        (("1", "0", "1.0"), "1.0"),
        (("yes", "no", "ＹＥＳ"), "ＹＥＳ"),
    ],
)
def test_variants_of_a_label(labels: tuple[str, ...], slip: str) -> None:
    finding = found(made(*labels))["label-variants"]
    assert (finding.severity, finding.rows, finding.count) == ("warning", (400,), 1)
    assert repr(slip) in finding.message
    assert finding.message.startswith("r:401: ")


@pytest.mark.parametrize(
    "labels",
    [
        ("a", "b", "c"),
        ("C", "C++", "C#"),
        ("class1", "class2", "class3"),
        ("sport", "politics", "science"),
        ("disappointment", "joy", "disappointment|fear"),
    ],
)
def test_different_labels_are_no_variants(labels: tuple[str, ...]) -> None:
    assert "label-variants" not in found(made(*labels))


def test_two_common_labels_alike_in_spelling_are_let_be() -> None:
    assert "label-variants" not in found(made("affect", "effect"))


def test_a_label_for_each_row_is_fatal() -> None:
    rows = [(f"a text about matter {i}", [f"name {i}"]) for i in range(300)]
    finding = found(from_rows(rows, "r"))["labels-are-texts"]
    assert (finding.severity, finding.count) == ("fatal", 300)
    assert "data.label_column" in finding.remedy


def test_repeats_with_the_same_label_and_with_another() -> None:
    base = [
        (f"a text about matter {i} and some more words", ["x" if i % 2 else "y"])
        for i in range(300)
    ]
    again = found(from_rows([*base, base[4]], "r"))
    assert again["duplicates"].rows == (300,)
    assert "contradictions" not in again
    other = found(from_rows([*base, (base[4][0], ["x"])], "r"))
    assert other["contradictions"].rows == (300,)
    assert "duplicates" not in other


def test_markup_and_misread_text() -> None:
    base = [(f"a text about matter {i}", ["x" if i % 2 else "y"]) for i in range(300)]
    base[3] = ("a good film<br /><br />but long", ["x"])
    base[8] = ("we met in a cafÃ© near here", ["y"])
    codes = found(from_rows(base, "r"))
    assert codes["markup"].rows == (3,)
    assert codes["misread-encoding"].rows == (8,)


def test_several_labels_in_a_cell() -> None:
    cells = ("sport, art", "art, food", "food, sport", "a, b")
    seen = found(made("sport", "art", "food", *cells))
    finding = seen["joined-labels"]
    assert (finding.severity, finding.rows, finding.count) == (
        "warning",
        (401, 402, 403),
        3,
    )
    assert "r:402: 3 labels look like several in one cell" in finding.message
    assert finding.remedy.endswith('--set "data.label_separator=,"')
    assert seen["rare-labels"].count == 2, "food and 'a, b'"


@pytest.mark.parametrize(
    "labels",
    [
        ("a, b", "c, d", "e, f"),
        ("and/or", "either/or", "or"),
        ("C++", "C", "C+"),
        ("Trento, Italy", "Rome, Italy", "Paris, France"),
    ],
)
def test_a_comma_in_a_label_is_no_separator(labels: tuple[str, ...]) -> None:
    assert "joined-labels" not in found(made(*labels))
