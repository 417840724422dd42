import json
import math
import unicodedata

import numpy as np
import pytest

from weft.errors import DataError
from weft.evaluation.classification import (
    calibration_error,
    classification_scores,
    report_lines,
)

LABELS = ["cat", "dog", "eel"]
# Seven texts; the most probable labels are cat, cat, dog, dog, eel, cat, dog.
PROBABILITIES = [
    [0.8, 0.1, 0.1],
    [0.6, 0.4, 0.0],
    [0.2, 0.5, 0.3],
    [0.1, 0.9, 0.0],
    [0.3, 0.3, 0.4],
    [0.7, 0.2, 0.1],
    [0.0, 0.9, 0.1],
]
TRUTH = [0, 1, 1, 1, 2, 2, 0]
SEVERAL = [
    [0.9, 0.5, 0.1],
    [0.2, 0.6, 0.4],
    [0.7, 0.3, 0.2],
    [0.1, 0.2, 0.3],
    [0.6, 0.8, 0.7],
]
SEVERAL_TRUTH = [[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]]


def scores_of(
    truth=TRUTH, probabilities=PROBABILITIES, labels=LABELS, multi_label=False
):
    return classification_scores(np.array(probabilities), truth, labels, multi_label)


def width(text):
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c)
        for c in text
    )


def test_by_hand():
    scores = scores_of()
    assert scores.accuracy == scores.micro_f1 == pytest.approx(4 / 7)
    assert scores.confusion == [[1, 1, 0], [1, 2, 0], [1, 0, 1]]
    assert [score.label for score in scores.per_class] == LABELS
    assert [score.support for score in scores.per_class] == [2, 3, 2]
    precision, recall, f1 = zip(
        *(score[1:4] for score in scores.per_class), strict=True
    )
    assert precision == pytest.approx((1 / 3, 2 / 3, 1))
    assert recall == pytest.approx((1 / 2, 2 / 3, 1 / 2))
    assert f1 == pytest.approx((2 / 5, 2 / 3, 2 / 3))
    assert scores.macro_f1 == pytest.approx((2 / 5 + 2 / 3 + 2 / 3) / 3)
    # Bins of a fifteenth: 0.4 and 0.5, 0.6, 0.7, 0.8 and 0.9 stand in bins 6, 8, 9, 11, 12 and 14.
    gaps = [1 - 0.4, 1 - 0.5, 0 - 0.6, 0 - 0.7, 1 - 0.8, (1 - 0.9) + (0 - 0.9)]
    assert scores.calibration_error == pytest.approx(sum(map(abs, gaps)) / 7)
    assert (scores.num_texts, scores.notes) == (7, ())


def test_several_labels_by_hand():
    scores = scores_of(SEVERAL_TRUTH, SEVERAL, multi_label=True)
    # From 0.5 on a label is given: cat dog; dog; cat; none; all three.
    assert scores.accuracy == pytest.approx(3 / 5)
    assert [score.support for score in scores.per_class] == [2, 3, 2]
    precision, recall, f1 = zip(
        *(score[1:4] for score in scores.per_class), strict=True
    )
    assert precision == pytest.approx((2 / 3, 1, 1))
    assert recall == pytest.approx((1, 1, 1 / 2))
    assert f1 == pytest.approx((4 / 5, 1, 2 / 3))
    assert scores.macro_f1 == pytest.approx((4 / 5 + 1 + 2 / 3) / 3)
    assert scores.micro_f1 == pytest.approx(2 * 6 / (7 + 7))
    assert scores.confusion == []
    # Confidence 0.5 and 0.6 in bins 8 and 9, 0.7 in 11, 0.8 in 12, 0.9 in 14; wrong are 0.6 and
    # 0.7.
    gaps = [
        1 - 0.5,
        2 * (1 - 0.6) - 0.6,
        3 * (1 - 0.7) - 0.7,
        4 * (1 - 0.8),
        3 * (1 - 0.9),
    ]
    assert scores.calibration_error == pytest.approx(sum(map(abs, gaps)) / 15)


def test_the_order_of_texts_changes_nothing():
    order = [4, 2, 6, 0, 1, 5, 3]
    turned = scores_of([TRUTH[i] for i in order], [PROBABILITIES[i] for i in order])
    assert json.dumps(turned.to_json()) != ""
    assert (turned.accuracy, turned.confusion, turned.per_class) == (
        scores_of().accuracy,
        scores_of().confusion,
        scores_of().per_class,
    )
    assert turned.calibration_error == pytest.approx(scores_of().calibration_error)


@pytest.mark.parametrize("multi_label", [False, True])
def test_the_order_of_labels_permutes_the_labels_scores(multi_label):
    truth, probabilities = (
        (SEVERAL_TRUTH, SEVERAL) if multi_label else (TRUTH, PROBABILITIES)
    )
    order = [2, 0, 1]
    scores = scores_of(truth, probabilities, multi_label=multi_label)
    turned_truth = (
        np.array(truth)[:, order]
        if multi_label
        else [order.index(number) for number in truth]
    )
    turned = scores_of(
        turned_truth,
        np.array(probabilities)[:, order],
        [LABELS[i] for i in order],
        multi_label,
    )
    assert turned.per_class == [scores.per_class[i] for i in order]
    assert turned.accuracy == scores.accuracy
    assert turned.macro_f1 == pytest.approx(scores.macro_f1)
    if not multi_label:
        assert turned.confusion == [
            [scores.confusion[i][j] for j in order] for i in order
        ]


def test_perfect_and_perfectly_wrong():
    right = scores_of([0, 1, 2], np.eye(3))
    assert (right.accuracy, right.macro_f1, right.calibration_error) == (1, 1, 0)
    wrong = scores_of([1, 2, 0], np.eye(3))
    assert (
        wrong.accuracy,
        wrong.macro_f1,
        wrong.micro_f1,
        wrong.calibration_error,
    ) == (0, 0, 0, 1)


def test_what_would_be_divided_by_zero_is_zero_and_said():
    scores = scores_of([0, 1], [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]])
    assert scores.per_class[2][1:] == (0, 0, 0, 0)
    assert scores.per_class[1][1:] == (0, 0, 0, 1)
    missing, never = scores.notes
    assert missing.startswith(
        "no text has the label 'eel', none was given it: macro-F1 leaves it out"
    )
    assert never.startswith(
        "the model gave no text the label 'dog': precision and F1 count as 0"
    )
    nothing = scores_of([[0, 0]], [[0.1, 0.1]], ["a", "b"], multi_label=True)
    assert (
        nothing.accuracy,
        nothing.micro_f1,
        nothing.macro_f1,
        len(nothing.notes),
    ) == (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("truth", "predicted", "macro_f1", "num_absent"),
    [
        ([0, 1], [0, 0], (2 / 3) / 2, 2),
        ([0, 1], [0, 3], 1 / 3, 1),
        ([0, 1, 0], [0, 1, 0], 1.0, 2),
    ],
)
def test_macro_f1_is_the_mean_over_labels_that_occur(
    truth, predicted, macro_f1, num_absent
):
    """As scikit-learn 1.5.2 gives it: a label counts that a text has or was given."""
    scores = scores_of(truth, np.eye(4)[predicted], [*LABELS, "fox"])
    assert scores.macro_f1 == pytest.approx(macro_f1)
    assert scores.num_absent == num_absent
    said = f"over {4 - num_absent} of 4 labels"
    assert said in scores.summary()
    assert report_lines(scores)[1].endswith(said)


def test_macro_f1_of_several_labels_leaves_out_those_that_do_not_occur():
    hot = np.array([[1, 0, 0], [0, 1, 0]])
    scores = scores_of(hot, hot * 0.8, multi_label=True)
    assert (scores.macro_f1, scores.num_absent) == (1.0, 1)


def test_a_note_names_the_first_of_many_labels():
    labels = [f"l{i}" for i in range(40)]
    (note,) = scores_of([0], np.eye(40)[[0]], labels).notes
    assert "'l10' or 29 more, none was given it" in note
    assert "'l11'" not in note


def test_of_equally_probable_labels_the_first_counts():
    assert scores_of([0], [[0.4, 0.4, 0.2]]).accuracy == 1


def test_a_confidence_on_the_edge_of_two_bins_belongs_to_the_lower():
    correct = np.array([True, False])
    for edge in range(1, 15):
        # Together in one bin the two would cancel out: one right, one wrong, both sure by about one
        # half.
        below, above = edge / 15, np.nextafter(edge / 15, 1)
        apart = calibration_error(np.array([below, above]), correct)
        assert apart == pytest.approx((abs(1 - below) + abs(0 - above)) / 2)
    assert calibration_error(np.array([0.0, 1 / 15]), correct) == pytest.approx(
        abs(1 - 1 / 15) / 2
    )
    assert calibration_error(np.array([14.5 / 15, 1.0]), correct) == pytest.approx(
        abs(1 - 14.5 / 15 - 1) / 2
    )


def test_a_calibrated_model_has_a_small_error():
    generator = np.random.default_rng(1)
    confidence = generator.uniform(0.5, 1, 100_000)
    assert (
        calibration_error(confidence, generator.uniform(size=100_000) < confidence)
        < 0.01
    )
    assert calibration_error(
        confidence, generator.uniform(size=100_000) < confidence - 0.2
    ) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("truth", "probabilities", "multi_label", "message"),
    [
        ([], np.empty((0, 3)), False, "nothing to score"),
        ([0], [[0.5, 0.5]], False, "of 3 labels"),
        ([0], [0.5, 0.3, 0.2], False, "of 3 labels"),
        ([0, 1], [[0.5, 0.3, 0.2]], False, "true labels of shape"),
        ([3], [[0.5, 0.3, 0.2]], False, "not from 0 to 2"),
        ([-1], [[0.5, 0.3, 0.2]], False, "not from 0 to 2"),
        ([0], [[0.5, 0.3, 0.2]], True, "true labels of shape"),
        ([0], [[0.5, math.nan, 0.2]], False, "text 0 has nan for label 1"),
        ([0], [[1.5, -0.5, 0.0]], False, "text 0 has 1.5 for label 0"),
    ],
)
def test_what_cannot_be_right_is_refused(truth, probabilities, multi_label, message):
    with pytest.raises(DataError, match=message):
        scores_of(truth, probabilities, multi_label=multi_label)


def test_rounding_beyond_one_is_forgiven():
    assert scores_of([0], [[1 + 1e-12, -1e-12, 0.0]]).calibration_error == 0


def test_the_report_is_aligned_with_wide_and_long_and_odd_labels():
    labels = ["正面的评论", "neg", "x" * 50, "e\u0301\x1b[31m"]
    p = np.eye(4)[[0, 1, 2, 3, 3]]
    lines = report_lines(classification_scores(p, [0, 1, 2, 3, 1], labels, False))
    table = lines[lines.index("") + 1 :]
    table = table[: table.index("")]
    assert len({width(line) for line in table}) == 1
    assert table[2].split() == ["neg", "1.0000", "0.5000", "0.6667", "2"]
    assert any("…" in line for line in table)
    assert not any("\x1b" in line for line in lines)
    matrix = lines[-5:]
    assert len({width(line) for line in matrix}) == 1
    assert matrix[0].split() == ["true", "\\", "predicted", "1", "2", "3", "4"]
    assert matrix[2].split() == ["2", "neg", "0", "1", "0", "1"]


def test_labels_that_are_numbers_are_not_mixed_with_those_of_rows():
    p = np.eye(2)[[0, 1, 1]]
    lines = report_lines(classification_scores(p, [0, 0, 1], ["0", "1"], False))
    assert [line.split() for line in lines[-3:]] == [
        ["true", "\\", "predicted", "0", "1"],
        ["0", "1", "1"],
        ["1", "0", "1"],
    ]


def test_the_columns_of_a_matrix_have_wide_labels_above_them():
    labels = ["正面", "neg"]
    p = np.eye(2)[[0, 1, 1]]
    lines = report_lines(classification_scores(p, [0, 0, 1], labels, False))[-3:]
    assert lines[0].split()[3:] == labels
    assert len({width(line) for line in lines}) == 1


def test_of_many_labels_the_largest_confusions_are_listed():
    labels = [f"l{i}" for i in range(21)]
    truth = [*range(21), 4, 5, 5]
    predicted = [*range(21), 7, 8, 8]
    lines = report_lines(
        classification_scores(np.eye(21)[predicted], truth, labels, False)
    )
    assert [line.split() for line in lines[-3:]] == [
        ["true", "predicted", "texts"],
        ["l5", "l8", "2"],
        ["l4", "l7", "1"],
    ]


def test_scores_of_several_labels_are_reported_without_confusion():
    lines = report_lines(scores_of(SEVERAL_TRUTH, SEVERAL, multi_label=True))
    assert any(line.startswith("micro-F1") for line in lines)
    assert lines[-1].startswith("eel")


def test_the_scores_as_one_line_and_as_json():
    scores = scores_of()
    assert scores.summary() == "accuracy 0.5714  macro-F1 0.5778  7 texts"
    assert scores.lines() == report_lines(scores)
    found = json.loads(json.dumps(scores.to_json()))
    assert found["per_class"][1]["label"] == "dog"
    assert found["confusion"][2] == [1, 0, 1]
    assert set(found) >= {
        "accuracy",
        "macro_f1",
        "micro_f1",
        "calibration_error",
        "num_texts",
        "notes",
    }
