"""The result of a cleaning."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from weft.data.base import Corpus
from weft.data.check.finding import Finding
from weft.data.clean.record import Record
from weft.data.clean.rules import Choice

C = TypeVar("C", bound=Corpus)


@dataclass
class Cleaned(Generic[C]):
    """The rows that are left, the record of what became of the others, and what the check still
    finds.

    `num_read` counts the rows with those that were dropped.
    """

    text: C
    record: Record
    left: Sequence[Finding]
    num_read: int
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a plain dictionary."""
        return {
            "read": self.num_read,
            "kept": len(self.text),
            "rules": self.record.counts(),
            "left_out_in_reading": dict(self.record.unlisted),
            "still_found": {finding.code: finding.count for finding in self.left},
            "notes": self.notes,
        }


def doomed(findings: Sequence[Finding], choice: Choice) -> dict[int, str]:
    """Return the rows that findings of the check have dropped, each with the first such rule."""
    found = {finding.code: finding for finding in findings}
    rows: dict[int, str] = {}
    for name in choice.actions:
        if choice.does(name, "drop") and name in found:
            for row in found[name].rows:
                rows.setdefault(row, name)
    return rows
