"""The record of a cleaning: the rows that were mended or dropped, where, and by which rules."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from weft.data.clean.rules import BY_NAME
from weft.data.column import Column, Growing

MENDED = "mended"
DROPPED = "dropped"
HEAD = ("done", "rule", "where")  # of the list, before the columns of the text
Row = tuple[str, ...]
Place = tuple[int, int]
"""The number of a file among all, and the line in it: the order of the record."""


class Record:
    """The changes of a cleaning, as lines of their list, which lie on disk where they are many.

    `unlisted` counts by reason what reading left out unseen.
    """

    def __init__(self) -> None:
        """Begin without changes."""
        self.unlisted: Counter[str] = Counter()
        self._lines = Growing(1)
        self._places = array("q")  # two numbers for each change
        self._counts: dict[str, Counter[str]] = {}
        self._num_dropped = 0

    def drop(
        self, place: Place, where: str, rule: str, row: Row, other_half: bool = False
    ) -> None:
        """Note that a row was dropped by a rule.

        Of a row whose sides were left over at two places each has a line, and the second is only
        the `other_half`: it is no row more.
        """
        self._add(place, (DROPPED, rule, where, *row, *("" for _ in row)))
        if not other_half:
            self._num_dropped += 1
            self._count(rule, DROPPED)

    def mend(
        self, place: Place, where: str, rules: Sequence[str], before: Row, after: Row
    ) -> None:
        """Note that a row was mended by rules."""
        self._add(place, (MENDED, " ".join(rules), where, *before, *after))
        for rule in rules:
            self._count(rule, MENDED)

    def counts(self) -> dict[str, dict[str, int]]:
        """Count the rows that each rule mended and dropped, in the order of the rules.

        A row is dropped once; it may have been mended before, by several rules.
        """
        counts = {}
        for rule in BY_NAME:
            if rule in self._counts:
                done = self._counts[rule]
                counts[rule] = {way: done[way] for way in (MENDED, DROPPED)}
        return counts

    @property
    def num_changes(self) -> int:
        """Count the lines of the list."""
        return self._lines.length

    @property
    def num_dropped(self) -> int:
        """Count the rows that were dropped, with those that reading left out."""
        return self._num_dropped + self.unlisted.total()

    def lines(self, columns: Sequence[str]) -> Iterator[str]:
        """Yield the record as lines of a table: what was done, by which rules, where, and the texts
        before and after.

        They stand in the order of the text, those of one row as they were made. After that no
        change can be noted.
        """
        head = [*HEAD, *columns]
        head.extend(f"new {name}" for name in columns)
        yield _line(head)
        yield from self._in_order

    @cached_property
    def _in_order(self) -> Sequence[str]:
        (lines,) = self._lines.done()
        files, rows = np.array(self._places, np.int64).reshape(-1, 2).T
        order = np.lexsort((rows, files))
        if isinstance(lines, Column):
            return lines.at(order)
        return [lines[i] for i in order]

    def _add(self, place: Place, cells: Sequence[str]) -> None:
        self._lines.append(_line(cells))
        self._places.extend(place)

    def _count(self, rule: str, way: str) -> None:
        self._counts.setdefault(rule, Counter())[way] += 1


def _line(cells: Sequence[str]) -> str:
    return "\t".join(map(_in_a_cell, cells)) + "\n"


def _in_a_cell(text: str) -> str:
    r"""Return a text without TAB and line ends, which are written \t, \n and \r."""
    shown = text.replace("\t", "\\t")
    shown = shown.replace("\n", "\\n")
    return shown.replace("\r", "\\r")
