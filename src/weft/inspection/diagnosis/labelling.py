"""A classifier tried with some labelled texts: the labels that it gives, and those it should."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.console import stages
from weft.data.check.finding import Finding, counted
from weft.data.check.rows import unknown_labels
from weft.data.labelled import LabelledText
from weft.inspection.diagnosis.sampling import MOST_ROWS
from weft.predict.classifier import Classification as Answer
from weft.tasks.classification import Classification

# of what a classifier could win over always naming the most frequent label
POOR_GAIN = 0.25


@dataclass(frozen=True)
class Labelling:
    """A classifier's answers to labelled texts, given when they are first asked for.

    It is tried on the rows whose labels it knows.
    """

    task: Classification
    text: LabelledText

    @cached_property
    def unknown(self) -> list[Finding]:
        """List the labels of the text that the model does not know, each with its rows."""
        return list(unknown_labels(self.task.config.labels, self.text, "the text"))

    @cached_property
    def rows(self) -> LabelledText:
        """Return the rows that it is tried on; none where it knows no label of the text."""
        strange = {i for finding in self.unknown for i in finding.rows}
        known = [i for i in range(len(self.text)) if i not in strange]
        return self.text.select(known).sample(MOST_ROWS)

    @cached_property
    def answers(self) -> Sequence[Answer]:
        """Return the model's answer to each row."""
        if not len(self.rows):
            return []
        stages.enter(f"classifying {counted(len(self.rows), 'texts')}")
        return self.task.predictor().classify(self.rows.texts)

    @property
    def given(self) -> list[list[str]]:
        """Return the labels that the model gives each row."""
        return [list(answer.labels) for answer in self.answers]

    @property
    def wanted(self) -> Sequence[Sequence[str]]:
        """Return the labels that each row has."""
        return self.rows.labels

    @property
    def accuracy(self) -> float:
        """Return the share of rows that get exactly their labels."""
        pairs = zip(self.answers, self.wanted, strict=True)
        right = sum(set(answer.labels) == set(labels) for answer, labels in pairs)
        return right / len(self.rows)

    @property
    def most_frequent(self) -> int:
        """Count the rows with the most frequent label, or labels."""
        counts = Counter(", ".join(labels) for labels in self.wanted)
        return counts.most_common(1)[0][1]

    @property
    def is_poor(self) -> bool:
        """Return whether the model is hardly better than always naming the most frequent label."""
        if not len(self.rows):
            return False
        blind = self.most_frequent / len(self.rows)
        return self.accuracy - blind < POOR_GAIN * (1 - blind)
