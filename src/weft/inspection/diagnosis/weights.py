"""The advice on labels that are given too seldom, or too often: the same for all causes of it.

The advice climbs from no weights over `balanced` to plain inverses and from there only to more
rows; what differs too much is told to differ less. Who follows it never returns to weights that a
run before had, whatever is found next.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.data.check.rows import alike_in_words, alike_labels

# labels that are named
MOST_NAMED = 5
TABLE = (
    "a table of training.class_weights in which each label has the inverse of its rows"
)
LESS = "a table of training.class_weights that differ less"
BETWEEN = "a table of training.class_weights between those of balanced and the inverses of the rows"
# times the rows of a rare label
FAR_MORE = 2
# the power of a label's rows that its weight is the inverse of: balanced and plain inverses
BALANCED, INVERSE = 0.5, 1.0
# a table written by hand has rounded numbers
ROUNDING = 0.1


@dataclass(frozen=True)
class Weighing:
    """The weights of a run's labels, and their rows.

    `rows` are those of training, or where these are not known (`is_known`) of other text. `weights`
    are None, "balanced" or a table, as in a recipe.
    """

    rows: Mapping[str, int]
    is_known: bool
    weights: Any
    multi_label: bool = False

    @property
    def most_frequent(self) -> str:
        """Return the label with the most rows; "" where there is none."""
        return max(self.rows, key=self.rows.__getitem__, default="")

    def is_rare(self, label: str) -> bool:
        """Return whether another label has far more rows."""
        most = self.rows.get(self.most_frequent, 0)
        return most > 0 and FAR_MORE * self.rows.get(label, 0) <= most

    def rows_in_words(self, labels: Sequence[str]) -> str:
        """Say how many rows of some labels were trained on, to follow them; "" if not known."""
        if not self.is_known:
            return ""
        named = dict.fromkeys([*labels[:MOST_NAMED], self.most_frequent])
        counts = [f'"{label}" {self.rows.get(label, 0):,}' for label in named]
        return f"; rows in training: {', '.join(counts)}"

    def advice(self, lacking: Sequence[str], over: str = "") -> str:
        """Say what to do about labels that rows get too seldom, and one that they get too often.

        Returns "" where neither their rows nor their weights explain it.
        """
        labels = [*lacking, over] if over else [*lacking]
        alike = alike_labels(dict.fromkeys([*self.rows, *labels], 1))
        if any(set(labels) & set(group) for group in alike):
            return f"first unify labels that mean the same: {alike_in_words(alike)}"
        more = more_rows(lacking)
        if self.multi_label:
            return f"{more}, or for longer"
        rare = [label for label in lacking if self._needs_weight(label, over)]
        if self.weights is None:
            mild = (
                f"training.class_weights=balanced; where that is too mild, with {TABLE}"
            )
            return f"train with {mild}; or {more_rows(rare)}" if rare else ""
        heavy = over
        if not rare and not over:
            heavy = max(self.rows, key=self._weight, default="")
        weight = self._weight(heavy) if heavy else 0.0
        if all(weight > self._weight(label) for label in lacking):
            return self._less(heavy, lacking) or more
        if rare:
            return self._more(rare)
        return more if over and self.is_known else ""

    def unexplained(self) -> str:
        """Say what to do where no label is known to have far more rows, and weights are not why."""
        otherwise = (
            "are equal texts labelled otherwise (weft check finds them)? else train for longer, or on more "
            "such rows"
        )
        if self.is_known:
            return f"others do not have far more rows: {otherwise}"
        if isinstance(self.weights, Mapping):
            return otherwise
        heavier = "training.class_weights=balanced" if self.weights is None else TABLE
        return (
            f"if others have far more rows in the training text (weft check says it), train with {heavier}; if "
            f"not, {otherwise}"
        )

    def _more(self, rare: Sequence[str]) -> str:
        """Say what to do about rare labels that their weights do not help enough."""
        more = more_rows(rare)
        if self.weights == "balanced":
            return f"train with {TABLE}: balanced is too mild here; or {more}"
        # by rows that are a guess plain inverses may look too mild
        if not self.is_known:
            return more
        least = min(self._power(label, self.most_frequent) for label in rare)
        if least <= BALANCED:
            return f"train with {TABLE}: those of now are too mild; or {more}"
        return more

    def _less(self, heavy: str, lacking: Sequence[str]) -> str:
        """Say how much less weights are to differ; "" where they are mild."""
        is_balanced = self.weights == "balanced"
        now = "balanced" if is_balanced else "a table"
        if self.is_known and not any(map(self.is_rare, self.rows)):
            return f"train without training.class_weights ({now} now)"
        if is_balanced:
            return f"train with {LESS} than balanced"
        power = max(self._power(heavy, label) for label in lacking)
        if power <= INVERSE - ROUNDING:
            return ""
        if not self.is_known:
            return f"train with {LESS} than now"
        if power > INVERSE + ROUNDING:
            return f'train with {TABLE}: that of "{heavy}" is larger now'
        return f"train with {BETWEEN}"

    def _needs_weight(self, label: str, over: str) -> bool:
        """Return whether a label is rare, and not named too seldom in favour of a rarer one."""
        is_rarer = bool(over) and self.rows.get(over, 0) < self.rows.get(label, 0)
        return self.is_rare(label) and not is_rarer

    def _weight(self, label: str) -> float:
        """Return a label's weight; only their ratios have a meaning."""
        if self.weights == "balanced":
            return float(max(self.rows.get(label, 0), 1) ** -BALANCED)
        return float(self.weights.get(label, 1.0))

    def _power(self, label: str, other: str) -> float:
        """Return the power of their rows that two labels' weights are the inverse of.

        Returns infinity where a label with no fewer rows than the other has the larger weight.
        """
        weights = self._weight(label) / self._weight(other)
        rows = max(self.rows.get(other, 0), 1) / max(self.rows.get(label, 0), 1)
        if rows > 1:
            return math.log(weights) / math.log(rows)
        return math.inf if weights > 1 else 0.0


def more_rows(labels: Sequence[str]) -> str:
    """Say to train on more rows with some labels."""
    names = ", ".join(f'"{label}"' for label in labels[:MOST_NAMED])
    left = f" and {len(labels) - MOST_NAMED:,} more" if len(labels) > MOST_NAMED else ""
    noun = "label" if len(labels) == 1 else "labels"
    return f"train on more rows with the {noun} {names}{left}"
