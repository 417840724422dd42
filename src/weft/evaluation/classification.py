"""Scores of a classifier: accuracy, precision, recall and F1 of each label, confusion, and
calibration.

All are fractions from 0 to 1. Precision, recall, micro- and macro-averages as in Sebastiani 2002,
"Machine learning in automated text categorization", section 7.1; macro-F1 is the mean of the
labels' F1 (Opitz and Burst 2019, "Macro F1 and Macro F1") over the labels that a text has or was
given; calibration as in Guo et al. 2017, "On calibration of modern neural networks", equation 3.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.errors import DataError

THRESHOLD = 0.5  # of multi-label text: a label is given from here on
_NUM_BINS = 15
_TOLERANCE = 1e-6  # of a probability beyond 0 or 1, from rounding
_LARGEST_MATRIX = 20  # labels whose confusion is printed as a matrix
_NUM_CONFUSIONS = 10  # that are listed where there are more
_WIDEST_LABEL = 30  # columns of a terminal
_WIDEST_MATRIX = 100
_MOST_NAMED = 10  # labels that a note names
_JOINERS = "\u200c\u200d"

Truth = npt.NDArray[np.bool_]
Probabilities = npt.NDArray[np.float64]


class LabelScore(NamedTuple):
    """The scores of one label; `support` is the number of texts that have it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of a test set, fractions from 0 to 1.

    Of multi-label text `accuracy` counts the texts whose labels are all right and none too many; of
    single-label text `micro_f1` is the accuracy. `macro_f1` is the mean over the labels that a text
    has or was given, as scikit-learn has it of single-label text; `num_absent` counts the others.
    `confusion` has a row for each true label and a column for each predicted one, and is empty for
    multi-label text. `notes` are for a person to read.
    """

    accuracy: float
    macro_f1: float
    micro_f1: float
    per_class: list[LabelScore]
    confusion: list[list[int]]
    calibration_error: float
    num_texts: int
    num_absent: int
    notes: tuple[str, ...]

    def summary(self) -> str:
        """Return the scores in one line."""
        of = f" ({self.counted_labels()})" if self.num_absent else ""
        return f"accuracy {self.accuracy:.4f}  macro-F1 {self.macro_f1:.4f}{of}  {self.num_texts:,} texts"

    def counted_labels(self) -> str:
        """Say over how many of the labels macro-F1 is the mean."""
        num_labels = len(self.per_class)
        return f"over {num_labels - self.num_absent:,} of {num_labels:,} labels"

    def lines(self) -> list[str]:
        """Return the scores for a person, in lines."""
        return report_lines(self)

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return asdict(self) | {
            "per_class": [score._asdict() for score in self.per_class]
        }


def classification_scores(
    probabilities: npt.ArrayLike,
    truth: npt.ArrayLike,
    labels: Sequence[str],
    multi_label: bool,
) -> ClassificationScores:
    """Score probabilities of shape (texts, labels) against class numbers, or rows of 0 and 1 of the
    same shape.

    The most probable label counts, the first of equals; of several labels all of at least 0.5. What
    would be divided by zero counts as 0, and a note names the label; one that no text has and none
    was given is left out of macro-F1. Raises DataError where there is nothing to score, or shapes
    or values cannot be right.
    """
    p = _checked(probabilities, len(labels))
    true = _as_hot(truth, len(p), len(labels), multi_label)
    predicted = p >= THRESHOLD if multi_label else _hot(p.argmax(1), len(labels))
    hits, given, support = (both.sum(0) for both in (true & predicted, predicted, true))
    precision, recall, f1 = (
        _ratio(hits, given),
        _ratio(hits, support),
        _ratio(2 * hits, given + support),
    )
    columns = (values.tolist() for values in (precision, recall, f1, support))
    occurs = given + support > 0
    return ClassificationScores(
        accuracy=float((true == predicted).all(1).mean()),
        macro_f1=float(f1.sum() / max(int(occurs.sum()), 1)),
        micro_f1=float(_ratio(2 * hits.sum(), given.sum() + support.sum())),
        per_class=[LabelScore(*row) for row in zip(labels, *columns, strict=True)],
        confusion=[] if multi_label else _confusion(true, predicted),
        calibration_error=_multi_label_error(p, true)
        if multi_label
        else _single_label_error(p, true),
        num_texts=len(p),
        num_absent=int((~occurs).sum()),
        notes=(
            *_note(
                ~occurs,
                labels,
                "no text has the label {}, none was given it: macro-F1 leaves it out",
            ),
            *_note(
                occurs & (support == 0),
                labels,
                "no text has the label {}, but some were given it: recall and F1 count as 0, in macro-F1 too",
            ),
            *_note(
                occurs & (given == 0),
                labels,
                "the model gave no text the label {}: precision and F1 count as 0, in macro-F1 too",
            ),
        ),
    )


def calibration_error(confidence: Probabilities, correct: Truth) -> float:
    """Return the expected calibration error over 15 bins of equal width.

    Bin m holds (m - 1)/15 < confidence <= m/15.

    The sum over bins of |accuracy - mean confidence|, weighted by the bin's share (Guo et al. 2017,
    equation 3).
    """
    edges = np.arange(1, _NUM_BINS) / _NUM_BINS
    bins = np.digitize(confidence, edges, right=True)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=_NUM_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def report_lines(scores: ClassificationScores) -> list[str]:
    """Return the scores as aligned lines for a terminal: a table of the labels, then what was taken
    for what.
    """
    lines = [
        f"accuracy           {scores.accuracy:.4f}",
        f"macro-F1           {scores.macro_f1:.4f}"
        + (f"  {scores.counted_labels()}" if scores.num_absent else ""),
        *([] if scores.confusion else [f"micro-F1           {scores.micro_f1:.4f}"]),
        f"calibration error  {scores.calibration_error:.4f}",
        f"texts              {scores.num_texts:,}",
        "",
        *_table(scores.per_class),
    ]
    if len(scores.confusion) > _LARGEST_MATRIX:
        return [*lines, "", *_largest_confusions(scores)]
    return [*lines, "", *_matrix(scores)] if scores.confusion else lines


def _checked(probabilities: npt.ArrayLike, num_labels: int) -> Probabilities:
    p = np.asarray(probabilities, dtype=np.float64)
    if not p.size:
        raise DataError("there is nothing to score: no texts")
    if p.ndim != 2 or p.shape[1] != num_labels:
        raise DataError(
            f"probabilities of shape {p.shape}: there must be a row for each text, of {num_labels} labels"
        )
    # so put, it finds what is no number as well
    wrong = ~((p >= -_TOLERANCE) & (p <= 1 + _TOLERANCE))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise DataError(
            f"text {row} has {p[row, column]} for label {column}, which is no probability"
        )
    return p.clip(0, 1)


def _as_hot(
    truth: npt.ArrayLike, num_texts: int, num_labels: int, multi_label: bool
) -> Truth:
    """Return a matrix (texts, labels) that is True where a text has a label."""
    given = np.asarray(truth)
    shape = (num_texts, num_labels) if multi_label else (num_texts,)
    if given.shape != shape:
        raise DataError(
            f"true labels of shape {given.shape} for {num_texts:,} texts; it must be {shape}"
        )
    if multi_label:
        return given > 0
    if ((given < 0) | (given >= num_labels)).any():
        raise DataError(
            f"a class number that is not from 0 to {num_labels - 1} among the true labels"
        )
    return _hot(given, num_labels)


def _hot(numbers: npt.NDArray[Any], num_labels: int) -> Truth:
    return numbers[:, None] == np.arange(num_labels)


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Divide a part by the whole; 0 where the whole is 0."""
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _confusion(true: Truth, predicted: Truth) -> list[list[int]]:
    matrix: list[list[int]] = (
        true.T.astype(np.int64) @ predicted.astype(np.int64)
    ).tolist()
    return matrix


def _single_label_error(p: Probabilities, true: Truth) -> float:
    """Compute the calibration error of the most probable label of each text."""
    return calibration_error(p.max(1), true[np.arange(len(p)), p.argmax(1)])


def _multi_label_error(p: Probabilities, true: Truth) -> float:
    """Compute the calibration error of every decision for or against a label."""
    return calibration_error(
        np.maximum(p, 1 - p).ravel(), ((p >= THRESHOLD) == true).ravel()
    )


def _note(chosen: Truth, labels: Sequence[str], what: str) -> list[str]:
    """Return a note on the chosen labels, if there are any; of many it names the first."""
    found = [
        repr(label) for label, is_meant in zip(labels, chosen, strict=True) if is_meant
    ]
    more = f" or {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    return [what.format(" or ".join(found[:_MOST_NAMED]) + more)] if found else []


def _table(scores: Sequence[LabelScore]) -> list[str]:
    names = _aligned(["label", *(score.label for score in scores)])
    rows = [
        f"{s.precision:9.4f}  {s.recall:9.4f}  {s.f1:9.4f}  {s.support:9,}"
        for s in scores
    ]
    head = "  ".join(f"{name:>9}" for name in ("precision", "recall", "F1", "texts"))
    return [f"{name}  {row}" for name, row in zip(names, [head, *rows], strict=True)]


def _matrix(scores: ClassificationScores) -> list[str]:
    """Return the confusion matrix in lines; columns are headed by the labels, where those are too
    wide for a line by the numbers of the rows.
    """
    labels = [score.label for score in scores.per_class]
    counts = [list(map("{:,}".format, row)) for row in scores.confusion]
    lines = _headed(labels, labels, counts)
    if _width(lines[0]) <= _WIDEST_MATRIX:
        return lines
    numbers = [f"{i}" for i in range(1, len(labels) + 1)]
    rows = [f"{i} {label}" for i, label in zip(numbers, labels, strict=True)]
    return _headed(rows, numbers, counts)


def _headed(
    rows: Sequence[str], columns: Sequence[str], counts: Sequence[Sequence[str]]
) -> list[str]:
    """Return a matrix in lines, with names at its rows and columns."""
    names = _aligned(["true \\ predicted", *rows])
    cells = [list(map(_cut, columns)), *counts]
    width = max(_width(cell) for row in cells for cell in row)
    return [
        "  ".join([name, *(" " * (width - _width(cell)) + cell for cell in row)])
        for name, row in zip(names, cells, strict=True)
    ]


def _largest_confusions(scores: ClassificationScores) -> list[str]:
    labels = [score.label for score in scores.per_class]
    wrong = [
        (count, labels[true], labels[predicted])
        for true, row in enumerate(scores.confusion)
        for predicted, count in enumerate(row)
        if count and true != predicted
    ]
    wrong.sort(key=lambda found: -found[0])
    shown = wrong[:_NUM_CONFUSIONS]
    true_names = _aligned(["true", *(true for _, true, _ in shown)])
    names = _aligned(["predicted", *(predicted for _, _, predicted in shown)])
    counts = ["    texts", *(f"{count:9,}" for count, _, _ in shown)]
    return ["  ".join(row) for row in zip(true_names, names, counts, strict=True)]


def _aligned(names: Sequence[str]) -> list[str]:
    """Cut and pad names to one width in columns of a terminal, where a wide character takes two."""
    shown = [_cut(name) for name in names]
    widths = list(map(_width, shown))
    return [
        name + " " * (max(widths) - width)
        for name, width in zip(shown, widths, strict=True)
    ]


def _visible(character: str) -> str:
    is_seen = character.isprintable() or character in _JOINERS
    return character if is_seen else "\ufffd"


def _cut(name: str) -> str:
    visible = "".join(map(_visible, name))
    ends = list(accumulate(map(_columns, visible)))
    if not ends or ends[-1] <= _WIDEST_LABEL:
        return visible
    return visible[: bisect_right(ends, _WIDEST_LABEL - 1)] + "…"


def _width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    """Return how many columns of a terminal a character takes (Unicode Standard Annex 11).

    0 for what joins its neighbours, 2 for wide ones, else 1.
    """
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
