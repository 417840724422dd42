"""The record of a cleaning: the rows that were mended or dropped, where, and by which rules."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.data.clean.rules import BY_NAME

MENDED = "mended"
DROPPED = "dropped"
HEAD = ("done", "rule", "where")  # of the list, before the columns of the text
Row = tuple[str, ...]
Place = tuple[int, int]
"""The number of a file among all, and the line in it: the order of the record."""


class Change(NamedTuple):
    """A row that was mended or dropped; `after` is None for one that was dropped.

    Of a row whose sides were left over at two places each has an entry, and the second is only the
    `other_half`: it is no row more.
    """

    place: Place
    where: str
    rules: tuple[str, ...]
    before: Row
    after: Row | None
    other_half: bool = False

    @property
    def done(self) -> str:
        """Return what was done with the row."""
        return DROPPED if self.after is None else MENDED


@dataclass
class Record:
    """The changes of a cleaning; `unlisted` counts by reason what reading left out unseen."""

    changes: list[Change] = field(default_factory=list)
    unlisted: Counter[str] = field(default_factory=Counter)

    def drop(
        self, place: Place, where: str, rule: str, row: Row, other_half: bool = False
    ) -> None:
        """Note that a row, or the other half of one, was dropped by a rule."""
        self.changes.append(Change(place, where, (rule,), row, None, other_half))

    def mend(
        self, place: Place, where: str, rules: Sequence[str], before: Row, after: Row
    ) -> None:
        """Note that a row was mended by rules."""
        self.changes.append(Change(place, where, tuple(rules), before, after))

    def in_order(self) -> list[Change]:
        """Return the changes in the order of the text; those of one row as they were made."""
        return sorted(self.changes, key=lambda change: change.place)

    def counts(self) -> dict[str, dict[str, int]]:
        """Count the rows that each rule mended and dropped, in the order of the rules.

        A row is dropped once; it may have been mended before, by several rules.
        """
        done: dict[str, Counter[str]] = {}
        for change in self.changes:
            for rule in () if change.other_half else change.rules:
                counter = done.setdefault(rule, Counter())
                counter[change.done] += 1
        counts = {}
        for rule in BY_NAME:
            if rule in done:
                counts[rule] = {way: done[rule][way] for way in (MENDED, DROPPED)}
        return counts

    @property
    def num_dropped(self) -> int:
        """Count the rows that were dropped, with those that reading left out."""
        done = [change.done for change in self.changes if not change.other_half]
        return done.count(DROPPED) + self.unlisted.total()

    def lines(self, columns: Sequence[str]) -> Iterator[str]:
        """Yield the record as lines of a table: what was done, by which rules, where, and the texts
        before and after.
        """
        head = [*HEAD, *columns]
        head.extend(f"new {name}" for name in columns)
        yield _line(head)
        nothing = ("",) * len(columns)
        for change in self.in_order():
            rules = " ".join(change.rules)
            after = change.after or nothing
            cells = (change.done, rules, change.where, *change.before, *after)
            yield _line(cells)


def _line(cells: Sequence[str]) -> str:
    return "\t".join(map(_in_a_cell, cells)) + "\n"


def _in_a_cell(text: str) -> str:
    r"""Return a text without TAB and line ends, which are written \t, \n and \r."""
    shown = text.replace("\t", "\\t")
    shown = shown.replace("\n", "\\n")
    return shown.replace("\r", "\\r")
