"""What diagnose says of labels that are found too seldom, or named too often, over all weights that
a run may have had.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import pytest

from weft.inspection.diagnosis import Cause, Run
from weft.inspection.diagnosis.evidence import Evidence
from weft.inspection.diagnosis.labelling import LabelCount
from weft.inspection.diagnosis.model import (
    for_one_label,
    labels_missed,
    labels_missed_in_run,
    labels_out_of_balance,
    weighing_of,
)
from weft.inspection.diagnosis.weights import BETWEEN, LESS, TABLE

SKEWED = {"world": 865, "sport": 672, "economy": 192, "science": 43}
EVEN = {"world": 150, "sport": 150, "economy": 150, "science": 150}
NEAR = {"world": 240, "sport": 230, "economy": 190, "science": 160}
WITHOUT = "train without training.class_weights"


def table(rows: Mapping[str, int], power: float) -> dict[str, float]:
    """The inverses of a power of the rows: 1/2 is as balanced, 1 plain inverses."""
    most = max(rows.values())
    return {label: round((most / count) ** power, 3) for label, count in rows.items()}


def evidence_of(
    counts: Sequence[LabelCount],
    weights: Any,
    rows: Mapping[str, int] | None,
    smoothing: float = 0.0,
    multi_label: bool = False,
) -> Evidence:
    """A run that wrote down its `rows`, or did not, and a text that was given `counts`."""
    num_rows = sum(count.wanted for count in counts)
    figures = {} if rows is None else {"rows": dict(rows)}
    training = {"class_weights": weights, "label_smoothing": smoothing}
    run = Run({"judgement": {"figures": figures}}, {"training": training}, None, None)
    labelling = SimpleNamespace(counts=list(counts), rows=range(num_rows))
    task = SimpleNamespace(config=SimpleNamespace(multi_label=multi_label))
    return cast(Evidence, SimpleNamespace(run=run, labelling=labelling, task=task))


def outcomes(labels: Sequence[str]) -> Iterator[list[LabelCount]]:
    """Each label named too often, or none, and up to two others missed or named too seldom."""
    for over in (None, *labels):
        others = [label for label in labels if label != over]
        for number in range(3):
            for few in combinations(others, number):
                for is_missed in (True, False):
                    yield [_count(label, over, few, is_missed) for label in labels]


def _count(
    label: str, over: str | None, few: Sequence[str], is_missed: bool
) -> LabelCount:
    if label == over:
        return LabelCount(label, 100, 220, 95)
    if label in few and is_missed:
        return LabelCount(label, 100 if over else 9, 0, 0)
    return LabelCount(label, 100, 60 if label in few else 100, 55)


def remedies(evidence: Evidence) -> list[str]:
    """Those of all causes that speak of weights; where two are told at once they are one."""
    causes = [labels_out_of_balance(evidence), labels_missed(evidence)]
    told = [cause.remedy for cause in causes if cause is not None]
    assert len({*told}) <= 1
    assert evidence.labelling is not None
    counts = evidence.labelling.counts
    most = max(counts, key=lambda count: count.given)
    return [*told, for_one_label(most.label, weighing_of(evidence, counts))]


def followed(remedy: str, weights: Any, rows: Mapping[str, int]) -> Iterator[Any]:
    """The weights of the runs that a remedy asks for; none where it asks for rows, say."""
    if "training.class_weights=balanced" in remedy:
        yield "balanced"
    if "the inverse of its rows" in remedy and "if one of them is far" not in remedy:
        yield table(rows, 1.0)
    if BETWEEN in remedy:
        yield table(rows, 0.75)
    if WITHOUT in remedy:
        yield None
    if f"{LESS} than balanced" in remedy:
        yield table(rows, 0.25)
    if f"{LESS} than now" in remedy:
        yield {label: round(weight**0.25, 2) for label, weight in weights.items()}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("rows", [SKEWED, EVEN, NEAR], ids=["skewed", "even", "near"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_no_chain_of_advice_returns_to_weights_that_a_run_had(
    rows: Mapping[str, int], is_known: bool, smoothing: float
) -> None:
    """Whatever is found after each run; and the findings of one run give the same advice."""
    known = rows if is_known else None
    following: dict[str, dict[str, Any]] = {}

    def walk(weights: Any, path: tuple[str, ...]) -> None:
        name = repr(weights)
        assert name not in path, (*path, name)
        if name in following and not following[name]:
            return
        if name not in following:
            following[name] = {
                repr(after): after
                for counts in outcomes([*rows])
                for remedy in remedies(evidence_of(counts, weights, known, smoothing))
                for after in followed(remedy, weights, rows)
            }
        for after in following[name].values():
            walk(after, (*path, name))

    walk(None, ())
    walk("balanced", ())
    for power in (0.25, 0.5, 0.75, 1.0, 1.5, 3.0, -1.0):
        walk(table(rows, power), ())
    walk({**dict.fromkeys(rows, 1.0), "world": 80.0}, ())
    # the walk went somewhere
    if rows is SKEWED and is_known:
        assert [*following["None"]] == [repr("balanced"), repr(table(rows, 1.0))]


def missing(label: str, over: str = "", rows: Mapping[str, int] = SKEWED) -> Any:
    return [_count(one, over or None, [label], True) for one in rows]


@pytest.mark.parametrize(
    ("weights", "remedy"),
    [
        (None, "train with training.class_weights=balanced; where that is too mild,"),
        ("balanced", f"train with {TABLE}: balanced is too mild here; or train on"),
        (table(SKEWED, 0.4), f"train with {TABLE}: those of now are too mild; or"),
        (table(SKEWED, 1.0), 'train on more rows with the label "science"'),
        (table(SKEWED, 2.0), 'train on more rows with the label "science"'),
    ],
    ids=["none", "balanced", "mild", "inverse", "strong"],
)
@pytest.mark.parametrize("over", ["", "economy", "world"])
def test_a_rare_label_that_is_missed_gets_more_weight_and_then_more_rows(
    weights: Any, remedy: str, over: str
) -> None:
    """The label that its rows are given instead may have only a few times as many."""
    evidence = evidence_of(missing("science", over), weights, SKEWED)
    cause = labels_missed(evidence)
    assert cause is not None
    assert cause.remedy.startswith(remedy)
    assert cause.evidence.endswith('; rows in training: "science" 43, "world" 865')
    other = labels_out_of_balance(evidence)
    assert (other is not None) == bool(over)
    if other is not None:
        assert other.remedy == cause.remedy


def test_the_rows_of_training_decide_and_not_those_of_a_test_text() -> None:
    """As where a test text was given in which all labels are equally frequent."""
    per_class = [
        {"label": label, "recall": 0.0 if label == "science" else 0.9, "support": 200}
        for label in SKEWED
    ]
    test = {"per_class": per_class}
    task = SimpleNamespace(config=SimpleNamespace(multi_label=False))

    def cause_by(figures: Mapping[str, Any]) -> Cause:
        run = Run({"test": test, "judgement": {"figures": figures}}, None, None, None)
        evidence = SimpleNamespace(run=run, labelling=None, task=task)
        cause = labels_missed_in_run(cast(Evidence, evidence))
        assert cause is not None
        return cause

    cause = cause_by({"rows": SKEWED})
    assert cause.evidence.endswith(
        '"science" (0 of 200 rows right); rows in training: "science" 43, "world" 865'
    )
    assert cause.remedy.startswith("train with training.class_weights=balanced")
    # a run that did not write them down
    unknown = cause_by({})
    assert "rows in training" not in unknown.evidence
    assert unknown.remedy.startswith("if others have far more rows in the training")
    even = cause_by({"rows": EVEN})
    assert even.remedy.startswith("others do not have far more rows")
