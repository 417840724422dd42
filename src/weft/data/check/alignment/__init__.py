"""Judges without knowing the languages whether the two sides of parallel text belong together, line
by line.

Translations agree in what any two languages share: length, up to a constant factor (Gale and Church
1993, "A program for aligning sentences in bilingual corpora"), how they end, numbers and names; and
in words that keep each other company all through this very text. How much each agreement counts is
learned from the text: how often it is seen in pairs as they stand, and how often in lines put
together at random. The sum of the logarithms of these ratios is a pair's score in nats; below zero
the lines look like strangers. Lines that score better beside a neighbour's translation than beside
their own are out of step.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from weft.data.check.alignment.company import SLICE, Company
from weft.data.check.alignment.lengths import Floats, Lengths
from weft.data.check.alignment.names import Names
from weft.data.check.alignment.shifts import (
    SHORTEST,
    Shift,
    join_shifts,
    largest_sum,
)
from weft.data.check.alignment.side import NUM_ENDINGS, Codes, Side
from weft.data.check.words import Ids, Words

__all__ = ["Alignment", "Shift"]

# codes of how lines agree in one respect, and how many different codes there are
Agreement = tuple[Codes, int]

MAX_SHIFT = 3
MAX_RUNS = 20  # shifted stretches that are told apart
# nats; a prior of one wrong pair in a thousand (-7), and some for what is counted twice
STRANGERS = -8.5
_DRIFT = 0.5  # nats; a gain below this on average is chance: neighbours may be alike
# nats; so much lines at the top of a file may lose in a run that begins with it
_LITTLE = 5.0
_FIRST_LOOK = 0.6  # of what a run must gain: at first nothing is learned from it yet
# by which all lines must fit better elsewhere, of several that a line alone varies by
_PLAINLY = 0.25
# nats, and 2 more for each e-fold of lines, since the best of many runs is a large one
_LEAST_GAIN = 15.0
_NO_CONTRAST = 0.25  # nats a pair; sides that go together have several
# of lengths, in squared spreads: where all are alike they tell nothing
_LEAST_VARIATION = 0.5
_PRIOR = 20.0  # pairs' worth of belief that an agreement says nothing
_LENGTH_EDGES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0)


class Alignment:
    """Both sides of a corpus, measured once. They are equally long, not empty, and share a
    vocabulary.

    `scores` are how much more each pair looks like a translation than lines put together at random,
    in nats.
    """

    def __init__(self, src: Words, tgt: Words) -> None:
        self._src = Side(src)
        self._tgt = Side(tgt)
        self._size = len(src.texts)
        self.lengths = Lengths(self._src.length, self._tgt.length)
        self._names = Names(self._src, self._tgt)
        # a line that each might meet by chance
        rng = np.random.default_rng(0)
        self._elsewhere = rng.permutation(self._size)
        # for each source line the target line that it seems to belong to
        self._partner = self._first_partners()
        self._learn()

    def find_shifts(self) -> list[Shift]:
        """Find stretches of lines that fit better `by` lines further on, for |by| up to MAX_SHIFT;
        in their order.

        It learns from the stretches that it finds at first, so that a text of which much is out of
        step still shows what being in step is like; then it searches again. `scores` are those of
        the second search.
        """
        log_size = float(np.log(self._size))
        threshold = _LEAST_GAIN + 2 * log_size
        guessed = self._runs(_FIRST_LOOK * threshold)
        if not guessed:
            return []
        for shift in guessed:
            lines = np.arange(shift.first, shift.last + 1)
            self._partner[lines] = lines + shift.by
        self._learn()
        return self._runs(threshold)

    def seems_unrelated(self) -> bool:
        """Return whether lines fit their partners no better than any others (one side shuffled, or
        foreign).
        """
        rows = np.arange(self._size)
        misfit = self.lengths.misfit(rows, self._elsewhere)
        if float(np.mean(misfit)) <= _LEAST_VARIATION:
            return False
        return float(np.mean(self.scores)) < _NO_CONTRAST

    def score(self, src: Ids, tgt: Ids) -> Floats:
        """Score source lines beside target lines, as `scores` are those of the pairs."""
        parts = list(map(self._sum, self._sliced(src, tgt)))
        return np.concatenate(parts) if parts else np.zeros(0)

    def strangers(self) -> list[int]:
        """Find the pairs whose lines look much more like strangers than like translations."""
        is_strange = self.scores < STRANGERS
        return np.flatnonzero(is_strange).tolist()

    def numbers_differ(self) -> list[int]:
        """Find the pairs that have numbers on both sides, and not the same."""
        differs = self._has_numbers & (self._src.numbers != self._tgt.numbers)
        return np.flatnonzero(differs).tolist()

    @property
    def num_with_numbers(self) -> int:
        """Count the pairs that have numbers on both sides."""
        return int(self._has_numbers.sum())

    @property
    def _has_numbers(self) -> npt.NDArray[np.bool_]:
        return (self._src.numbers != 0) & (self._tgt.numbers != 0)

    def _first_partners(self) -> Ids:
        """Guess the target line of each source line: its own, unless all lines fit plainly better
        some lines further on.
        """
        misfit = {0: self._misfit(0)}
        for by in self._shifts():
            misfit[by] = self._misfit(by) + _PLAINLY
        best = min(misfit, key=misfit.__getitem__)
        partner = np.arange(self._size) + best
        is_there = (partner >= 0) & (partner < self._size)
        return np.where(is_there, partner, -1)

    def _shifts(self) -> list[int]:
        """List the shifts that the text is long enough for, the smallest first; 0 is none."""
        most = min(MAX_SHIFT, self._size - 1)
        shifts = []
        for by in range(1, most + 1):
            shifts += [-by, by]
        return shifts

    def _misfit(self, by: int) -> float:
        """Measure how badly lengths, questions and numbers agree `by` lines further on, weighed by
        rule of thumb.
        """
        src, tgt = _beside(self._size, by)
        src_asks = self._src.ending[src] == 1
        tgt_asks = self._tgt.ending[tgt] == 1
        asks = src_asks != tgt_asks
        src_numbers = self._src.numbers[src]
        tgt_numbers = self._tgt.numbers[tgt]
        numbers = src_numbers != tgt_numbers
        lengths = self.lengths.misfit(src, tgt)
        misfit = lengths + 2.0 * asks + 2.0 * numbers
        return float(np.mean(misfit))

    def _learn(self) -> None:
        """Learn from lines that seem to be partners which words keep company, and how much each
        agreement weighs.
        """
        rows = np.arange(self._size)
        has_partner = self._partner >= 0
        partner = self._partner
        self._company = Company(self._src, self._tgt, partner)
        partners = self._counts(rows[has_partner], partner[has_partner])
        random = self._counts(rows, self._elsewhere)
        self._weights = list(map(_weigh, partners, random))
        self.scores = self._scores(0)

    def _runs(self, threshold: float) -> list[Shift]:
        """Find stretches that gain more than `threshold` some lines further on.

        The run with the largest sum of gains is found for each shift, as CUSUM charts do (Page
        1954); by chance that sum grows with the logarithm of the number of lines. The lines of the
        best run are taken out, and so on.
        """
        gains = {by: self._gains(by) for by in self._shifts()}
        runs: list[Shift] = []
        while gains and len(runs) < MAX_RUNS:
            best = {by: largest_sum(gain) for by, gain in gains.items()}
            by = max(best, key=lambda by: best[by][0])
            gain, first, last = best[by]
            if gain < threshold or last - first + 1 < SHORTEST:
                break
            true_first = self._first_stranger(gains[by], first, by)
            runs.append(Shift(true_first, last, by))
            for other in gains.values():
                explained = other[first : last + 1]
                np.minimum(explained, -threshold, out=explained)
        runs.sort(key=lambda run: run.first)
        return join_shifts(runs)

    def _counts(self, src: Ids, tgt: Ids) -> list[Floats]:
        """Count how often each code of each agreement occurs."""
        totals: list[Floats] = []
        for agreements in self._sliced(src, tgt):
            for number, (codes, size) in enumerate(agreements):
                counts = np.bincount(codes, minlength=size)
                if number == len(totals):
                    totals.append(np.zeros(size))
                totals[number] += counts
        return totals

    def _sliced(self, src: Ids, tgt: Ids) -> Iterator[list[Agreement]]:
        for start in range(0, len(src), SLICE):
            part = slice(start, start + SLICE)
            agreements = self._agreements(src[part], tgt[part])
            yield list(agreements)

    def _agreements(self, src: Ids, tgt: Ids) -> Iterator[Agreement]:
        """Yield the codes of each agreement of source with target lines, and how many different
        codes it has.
        """
        deviation = np.abs(self.lengths.deviations(src, tgt))
        length = np.digitize(deviation, _LENGTH_EDGES)
        yield length, len(_LENGTH_EDGES) + 1
        src_ending = self._src.ending[src]
        tgt_ending = self._tgt.ending[tgt]
        yield src_ending * NUM_ENDINGS + tgt_ending, NUM_ENDINGS**2
        src_numbers = self._src.numbers[src]
        tgt_numbers = self._tgt.numbers[tgt]
        yield _number_codes(src_numbers, tgt_numbers), 4
        yield self._names.shared(src, tgt), Names.size
        for codes in self._company.shared(src, tgt):
            yield codes, Company.size

    def _scores(self, by: int) -> Floats:
        """Score each source line beside the target `by` lines further on; 0 where there is none."""
        src, tgt = _beside(self._size, by)
        scores = np.zeros(self._size)
        scores[src] = self.score(src, tgt)
        return scores

    def _sum(self, agreements: list[Agreement]) -> Floats:
        """Sum the weights of the codes of all agreements."""
        (codes, _), *_ = agreements
        total = np.zeros(len(codes))
        for weights, (codes, _) in zip(self._weights, agreements, strict=True):
            total += weights[codes]
        return total

    def _gains(self, by: int) -> Floats:
        """Return what each source line gains `by` lines further on; far below 0 where no line is
        there.
        """
        src, _ = _beside(self._size, by)
        gains = np.full(self._size, -_LEAST_GAIN)
        gained = self._scores(by) - self.scores - _DRIFT
        gains[src] = gained[src]
        return gains

    def _first_stranger(self, gains: Floats, first: int, by: int) -> int:
        """Find where a run truly begins.

        It begins with the file if little speaks against that (say, a heading on one side). Source
        lines before it whose own target was lost belong to it too.
        """
        top = max(0, -by)
        before = gains[top:first]
        if float(before.sum()) > -_LITTLE:
            first = top
        for _ in range(max(0, -by)):
            if first and self.scores[first - 1] < 0:
                first -= 1
        return first


def _number_codes(src: Ids, tgt: Ids) -> Codes:
    """Compare the numbers of lines: 0 none on either side, 1 the same, 2 on one alone, 3 unlike."""
    in_src = src != 0
    unlike = 2 + (in_src & (tgt != 0))
    codes = np.where(src == tgt, in_src, unlike)
    return codes.astype(np.int64)


def _weigh(partners: Floats, random: Floats) -> Floats:
    """Compute the weight of each code of an agreement, in nats.

    It is the log ratio of its shares among partners and among lines put together at random.
    `_PRIOR` pairs of either, in which it says nothing, are added to both.
    """
    partner_share = partners / partners.sum()
    random_share = random / random.sum()
    mean_share = (partner_share + random_share) / 2
    prior = _PRIOR * mean_share
    likely = partners + prior
    likely /= partners.sum() + _PRIOR
    chance = random + prior
    chance /= random.sum() + _PRIOR
    occurs = mean_share > 0
    ratio = likely[occurs] / chance[occurs]
    weights = np.zeros(len(partners))
    weights[occurs] = np.log(ratio)
    return weights


def _beside(size: int, by: int) -> tuple[Ids, Ids]:
    """Return source lines, and the target lines `by` further on, as far as there are any."""
    first = max(0, -by)
    end = size - max(0, by)
    src = np.arange(first, end)
    return src, src + by
