"""Do the two sides of parallel text belong together, line by line? Judged without knowing the languages.

Translations agree in what any two languages share: length, up to a constant factor (Gale and Church 1993, "A
program for aligning sentences in bilingual corpora"), question marks, and numbers. A pair costs little where
these agree. Lines that cost less beside a neighbour's translation than beside their own are out of step.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_SHIFT = 3
_DRIFT = 0.25  # a gain below this on average is chance: neighbours may be alike
_SHORTEST = 10
_UNRELATED_GAIN = 0.25
_LEAST_CONTRAST = 0.5
_NUMBER = re.compile(r"\d{1,18}")
_QUESTION = re.compile(r"[?？؟⁇]")


@dataclass(frozen=True)
class Shift:
    """Pairs `first` to `last` (indices) whose source fits the target `by` lines further on better than its own."""

    first: int
    last: int
    by: int


@dataclass(frozen=True)
class _Side:
    """One side as numbers, one entry a line: log length, has a question mark, which numbers (0: none)."""

    length: Floats
    question: npt.NDArray[np.bool_]
    numbers: npt.NDArray[np.int64]

    def part(self, start: int, stop: int) -> "_Side":
        return _Side(self.length[start:stop], self.question[start:stop], self.numbers[start:stop])

    def rotated(self, by: int) -> "_Side":
        return _Side(np.roll(self.length, by), np.roll(self.question, by), np.roll(self.numbers, by))


class Alignment:
    """Both sides of a corpus, measured once. `src` and `tgt` are equally long and not empty."""

    def __init__(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        self._src, self._tgt = _measure(src), _measure(tgt)
        ratio = self._src.length - self._tgt.length
        self._centre = float(np.median(ratio))
        self.log_ratio = ratio - self._centre  # 0 where a pair's length ratio is the corpus's own
        self._spread = max(1.4826 * float(np.median(np.abs(self.log_ratio))), 0.1)
        self._own = self._cost(self._src, self._tgt)

    def find_shift(self) -> Shift | None:
        """The first run of lines that fit better `by` lines further on, for |by| up to MAX_SHIFT; None if in step.

        The run with the largest sum of gains is found for each shift, as CUSUM charts do (Page 1954); by chance
        that sum grows with the logarithm of the number of lines.
        """
        runs = [self._best_run(by) for by in range(-MAX_SHIFT, MAX_SHIFT + 1) if by and abs(by) < len(self._own)]
        threshold = max(10 + 5 * float(np.log(len(self._own))), 0.5 * max((gain for gain, _ in runs), default=0.0))
        found = [run for gain, run in runs if gain >= threshold and run.last - run.first >= _SHORTEST]
        return min(found, key=lambda run: (run.first, abs(run.by)), default=None)

    def seems_unrelated(self) -> bool:
        """Whether lines fit their partners no better than lines far away (one side shuffled, or foreign)."""
        size = len(self._own)
        far = [self._cost(self._src, self._tgt.rotated(size * part // 5)) for part in (1, 2, 3, 4)]
        chance = float(np.mean(far))
        return chance > _LEAST_CONTRAST and chance - float(np.mean(self._own)) < _UNRELATED_GAIN

    def _cost(self, src: _Side, tgt: _Side) -> Floats:
        ratio = (src.length - tgt.length - self._centre) / self._spread
        cost = np.minimum(ratio * ratio, 9.0)
        cost += 2.0 * (src.question != tgt.question)
        both = (src.numbers != 0) & (tgt.numbers != 0)
        cost += np.where(src.numbers == tgt.numbers, 0.0, np.where(both, 3.0, 1.5))
        return cost

    def _best_run(self, by: int) -> tuple[float, Shift]:
        size, skip = len(self._own), max(0, -by)
        src = self._src.part(skip, size - max(0, by))
        tgt = self._tgt.part(max(0, by), size - skip)
        gains = self._own[skip : size - max(0, by)] - self._cost(src, tgt) - _DRIFT
        gain, first, last = _largest_sum(gains)
        return gain, Shift(first + skip, last + skip, by)


def _measure(side: Sequence[str]) -> _Side:
    count = len(side)
    length = np.log1p(np.fromiter(map(len, side), np.float64, count))
    question = np.fromiter((_QUESTION.search(text) is not None for text in side), np.bool_, count)
    return _Side(length, question, np.fromiter(map(_numbers, side), np.int64, count))


def _numbers(text: str) -> int:
    """The numbers in a text, in any order and any script's digits, as one integer; 0 if there are none."""
    found = _NUMBER.findall(text)
    return hash(tuple(sorted(map(int, found)))) or 1 if found else 0


def _largest_sum(values: Floats) -> tuple[float, int, int]:
    """The consecutive run with the largest sum: the sum, its first and its last index."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    lowest = np.minimum.accumulate(total)
    last = int(np.argmax(total - lowest))
    first = int(np.argmin(total[: last + 1]))
    return float(total[last] - total[first]), first, max(first, last - 1)
