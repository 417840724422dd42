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
# rows of a label from which on it counts that none of any label is given it; as in the verdict
NEVER = 3
# rows of a label that is given to others from which on it counts that hardly one of them gets it
SELDOM = 5
SELDOM_RIGHT = 0.1


@dataclass(frozen=True)
class LabelCount:
    """Numbers of a label: of the rows that have it, are given it, and are given it rightly."""

    label: str
    wanted: int
    given: int
    right: int

    @property
    def is_missed(self) -> bool:
        """Return whether its rows never get it, or hardly ever."""
        if not self.given:
            return self.wanted >= NEVER
        return self.wanted >= SELDOM and self.right <= SELDOM_RIGHT * self.wanted

    @property
    def f1(self) -> float:
        """Return its F1; of a label without a row that was not given, 0."""
        return 2 * self.right / max(self.wanted + self.given, 1)


def count_labels(
    given: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]
) -> list[LabelCount]:
    """Count the labels that rows are given and those that they have."""
    true = Counter(label for labels in wanted for label in labels)
    answered = Counter(label for labels in given for label in labels)
    right: Counter[str] = Counter()
    for labels, own in zip(given, wanted, strict=True):
        right.update(set(labels) & set(own))
    return [
        LabelCount(label, true[label], answered[label], right[label])
        for label in sorted(true | answered)
    ]


def is_poor_macro_f1(macro_f1: float, num_labels: int) -> bool:
    """Return whether a macro-F1 is hardly better than what always naming one label can reach.

    That is at most 1 over the number of labels.
    """
    blind = 1 / num_labels
    return macro_f1 - blind < POOR_GAIN * (1 - blind)


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
    def counts(self) -> list[LabelCount]:
        """Count the labels that the rows have or are given."""
        return count_labels(self.given, self.wanted)

    @property
    def is_poor(self) -> bool:
        """Return whether the model is hardly better than always naming the most frequent label.

        By accuracy, or by macro-F1, which rare labels count in as much as frequent ones.
        """
        if not len(self.rows):
            return False
        blind = self.most_frequent / len(self.rows)
        if self.accuracy - blind < POOR_GAIN * (1 - blind):
            return True
        scores = [count.f1 for count in self.counts]
        return is_poor_macro_f1(sum(scores) / len(scores), len(scores))
