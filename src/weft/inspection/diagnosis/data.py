"""Causes that lie in the text that the model was trained on and judged by."""

from collections.abc import Sequence
from typing import Any

from weft.data.check.finding import counted
from weft.data.check.rows import alike_in_words, alike_labels
from weft.data.labelled import named
from weft.inspection.diagnosis.cause import Cause
from weft.inspection.diagnosis.evidence import Evidence
from weft.tasks.trainable import TrainableTask


def label_variants(evidence: Evidence) -> Cause | None:
    """Find labels of a classifier that are most likely one."""
    alike = alike_labels(dict.fromkeys(evidence.task.labels, 1))
    if not alike:
        return None
    return Cause(
        "label-variants",
        "the model has labels that differ in case, spaces or marks alone, and takes them for different: "
        f"{alike_in_words(alike)}",
        "unify them in the text (weft check names the rows) and train again",
    )


def labels_not_in_dev(evidence: Evidence) -> Cause | None:
    """Find labels that the run's dev text had no row of; not asked where another text is given."""
    if evidence.given is not None:
        return None
    figures = ((evidence.run.verdict or {}).get("judgement") or {}).get("figures")
    absent = (figures or {}).get("not_in_dev")
    if not absent:
        return None
    remedy = "train with rows of each label in dev: with more of them in the text, or by --dev"
    return labels_not_judged(absent, evidence.task, "the run's dev text", remedy)


def labels_with_few_rows(evidence: Evidence) -> Cause | None:
    """Find labels that the run's training text had only a few rows of."""
    figures = ((evidence.run.verdict or {}).get("judgement") or {}).get("figures")
    few = (figures or {}).get("few_rows")
    if not few:
        return None
    rarest = sorted(few, key=lambda label: (few[label], label))
    label = rarest[0]
    fewest = counted(few[label], "rows")
    return Cause(
        "labels-with-few-rows",
        f"few rows were trained on of {named(rarest)}: {fewest} of the first",
        "train on more rows with these labels",
    )


def labels_not_judged(
    absent: Sequence[str], task: TrainableTask[Any, Any, Any], where: str, remedy: str
) -> Cause:
    """Say that a text has no row of some of the model's labels."""
    share = f"{len(absent):,} of {counted(len(task.labels), 'labels')}"
    evidence = f"{where} has no row of {named(absent)} ({share}): how well such texts are labelled is not known"
    return Cause("labels-not-judged", evidence, remedy)


def too_little_text(evidence: Evidence) -> Cause | None:
    """Find that the model was trained on few rows; of documents, one may be enough."""
    task = evidence.task
    num_rows = evidence.run.num_rows
    if num_rows is None or num_rows >= task.few_rows:
        return None
    return Cause(
        "too-little-text",
        f"{num_rows:,} different {task.unit} were trained on",
        f"find more; from fewer than {task.few_rows:,} {task.unit} a model learns little that helps with other text",
    )
