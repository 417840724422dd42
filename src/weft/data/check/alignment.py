"""Do the two sides of parallel text belong together, line by line? Judged without knowing the
languages.

Translations agree in what any two languages share: length, up to a constant factor (Gale and Church
1993, "A program for aligning sentences in bilingual corpora"), how they end, numbers and names; and
in words that keep each other company all through this very text. How much each agreement counts is
learned from the text: how often it is seen in pairs as they stand, and how often in lines put
together at random. The sum of the logarithms of these ratios is a pair's score in nats; below zero
the lines look like strangers. Lines that score better beside a neighbour's translation than beside
their own are out of step.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from weft.data.check.words import Ids, Words, mixed

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MAX_SHIFT = 3
MAX_RUNS = 20  # shifted stretches that are told apart
# nats; a prior of one wrong pair in a thousand (-7), and some for what is counted twice
STRANGERS = -8.5
_DRIFT = 0.5  # nats; a gain below this on average is chance: neighbours may be alike
_SHORTEST = 4  # lines
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
_BANDS = 8  # of length, each with a spread of its own: short lines vary more
_NUM_CONTENT = 8  # words of a line that are looked at, the rarest
# words keep company that meet this many times as often as by chance, and twice
_CHANCE, _LEAST_TOGETHER = 4.0, 2
_CLOSE = 8.0  # and this many times more often still where they are close
# a word of fewer lines teaches nothing, one of more than a fifth says nothing
_RARE, _COMMON_SHARE = 3, 0.2
_NAME_SHARE = 0.01
_SLICE = 1 << 15  # lines that are scored together
_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d{1,18}")
_ENDINGS = {
    letter: kind
    for kind, some in enumerate(
        ("?？؟⁇", "!！", ".。．", ":：", ",，、;；", "\"'”’»」』)）"), 1
    )
    for letter in some
}
_NUM_ENDINGS = 7


@dataclass(frozen=True)
class Shift:
    """Pairs `first` to `last` (indices) whose source fits the target `by` lines further on better
    than its own.
    """

    first: int
    last: int
    by: int


class _Side:
    """One side as numbers, one entry a line: log length, how it ends, which numbers (0: none),
    rarest words.
    """

    def __init__(self, words: Words) -> None:
        texts, size = words.texts, len(words.texts)
        self.words, self.ids = words, words.ids
        self.length = np.log1p(np.fromiter(map(len, texts), np.float64, size))
        self.ending = np.fromiter(
            (_ENDINGS.get(text[-1:], 0) for text in texts), np.int64, size
        )
        self.numbers = np.fromiter(map(_numbers, texts), np.int64, size)

    @cached_property
    def frequency(self) -> Ids:
        """In how many lines each word of either side occurs, near enough: its occurrences on this
        one.
        """
        return np.bincount(self.ids, minlength=self.words.num_ids)

    @cached_property
    def content(self) -> Ids:
        """The rarest words of each line that can be learned, as (lines, 8); -1 where there are
        fewer.
        """
        words, size = self.words, len(self.length)
        often = self.frequency[self.ids]
        useful = np.flatnonzero(
            (often >= _RARE) & (often <= max(_COMMON_SHARE * size, _RARE))
        )
        line = words.text_of[useful]
        order = useful[np.lexsort((often[useful], line))]
        line = words.text_of[order]
        rank = np.arange(len(order)) - np.searchsorted(line, line)
        kept = rank < _NUM_CONTENT
        found = np.full((size, _NUM_CONTENT), -1, np.int64)
        found[line[kept], rank[kept]] = self.ids[order[kept]]
        return found


class Alignment:
    """Both sides of a corpus, measured once. They are equally long, not empty, and share a
    vocabulary.

    `log_ratio` is 0 where a pair's length ratio is the corpus's own; `deviation` is the same in
    spreads of it. `scores` are how much more each pair looks like a translation than lines put
    together at random, in nats.
    """

    def __init__(self, src: Words, tgt: Words) -> None:
        self._src, self._tgt = _Side(src), _Side(tgt)
        self._size = len(src.texts)
        ratio = self._src.length - self._tgt.length
        self._centre = float(np.median(ratio))
        self.log_ratio = ratio - self._centre
        self._band, self._spread = _spreads(self._src.length, self.log_ratio)
        self.deviation = self.log_ratio / self._spread[self._band]
        self._names = _Names(self._src, self._tgt)
        # a line that each might meet by chance
        self._elsewhere = np.random.default_rng(0).permutation(self._size)
        # for each source line the target line that it seems to belong to
        self._partner = self._first_partners()
        self._learn()

    def find_shifts(self) -> list[Shift]:
        """Stretches of lines that fit better `by` lines further on, for |by| up to MAX_SHIFT, in
        their order.

        What a first look finds is learned from, so that a text of which much is out of step still
        shows what being in step is like; then it is looked at again. `scores` are those of this
        second look.
        """
        threshold = _LEAST_GAIN + 2 * float(np.log(self._size))
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
        variation = float(
            np.mean(np.minimum(self._deviation(rows, self._elsewhere) ** 2, 9.0))
        )
        return (
            variation > _LEAST_VARIATION and float(np.mean(self.scores)) < _NO_CONTRAST
        )

    def strangers(self) -> list[int]:
        """Pairs whose lines look much more like strangers than like translations."""
        return np.flatnonzero(self.scores < STRANGERS).tolist()

    def numbers_differ(self) -> list[int]:
        """Pairs that have numbers on both sides, and not the same."""
        src, tgt = self._src.numbers, self._tgt.numbers
        return np.flatnonzero((src != 0) & (tgt != 0) & (src != tgt)).tolist()

    def _first_partners(self) -> Ids:
        """Each line's own, but where all lines are plainly better off some lines further on."""
        rows = np.arange(self._size)
        misfit = {
            by: self._misfit(by)
            for by in range(-MAX_SHIFT, MAX_SHIFT + 1)
            if abs(by) < self._size
        }
        best = min(misfit, key=lambda by: (misfit[by] + _PLAINLY * (by != 0), abs(by)))
        return np.where(
            (rows + best >= 0) & (rows + best < self._size), rows + best, -1
        )

    def _misfit(self, by: int) -> float:
        """How badly lengths, questions and numbers agree `by` lines further on; weighed by rule of
        thumb.
        """
        src, tgt = _beside(self._size, by)
        asks = (self._src.ending == 1)[src] != (self._tgt.ending == 1)[tgt]
        numbers = self._src.numbers[src] != self._tgt.numbers[tgt]
        return float(
            np.mean(
                np.minimum(self._deviation(src, tgt) ** 2, 9.0)
                + 2.0 * asks
                + 2.0 * numbers
            )
        )

    def _learn(self) -> None:
        """Which words keep company, and how much each agreement weighs, from lines that seem to be
        partners.
        """
        rows = np.arange(self._size)
        kept = self._partner >= 0
        self._company = _Company(self._src, self._tgt, self._partner)
        self._weights = self._weigh(
            (rows[kept], self._partner[kept]), (rows, self._elsewhere)
        )
        self.scores = self._scores(0)

    def _runs(self, threshold: float) -> list[Shift]:
        """Stretches that gain more than `threshold` some lines further on.

        The run with the largest sum of gains is found for each shift, as CUSUM charts do (Page
        1954); by chance that sum grows with the logarithm of the number of lines. What a run
        explains is taken out, and so on.
        """
        gains = {
            by: self._gains(by)
            for by in range(-MAX_SHIFT, MAX_SHIFT + 1)
            if by and abs(by) < self._size
        }
        found: list[Shift] = []
        while gains and len(found) < MAX_RUNS:
            runs = [(*_largest_sum(gain), by) for by, gain in gains.items()]
            gain, first, last, by = max(runs, key=lambda run: (run[0], -abs(run[3])))
            if gain < threshold or last - first + 1 < _SHORTEST:
                break
            found.append(Shift(self._first_stranger(gains[by], first, by), last, by))
            for other in gains.values():
                other[first : last + 1] = np.minimum(
                    other[first : last + 1], -threshold
                )
        return _joined(sorted(found, key=lambda shift: shift.first))

    def _weigh(self, near: tuple[Ids, Ids], far: tuple[Ids, Ids]) -> list[Floats]:
        """Return the weight of each code of each agreement, in nats."""
        weights = []
        for close, apart in zip(self._counts(*near), self._counts(*far), strict=True):
            close_share, apart_share = close / close.sum(), apart / apart.sum()
            both = (close_share + apart_share) / 2
            likely = (close + _PRIOR * both) / (close.sum() + _PRIOR)
            chance = (apart + _PRIOR * both) / (apart.sum() + _PRIOR)
            seen = both > 0
            weight = np.zeros(len(close))
            weight[seen] = np.log(likely[seen] / chance[seen])
            weights.append(weight)
        return weights

    def _counts(self, src: Ids, tgt: Ids) -> list[Floats]:
        """How often each code of each agreement occurs."""
        totals: list[Floats] = []
        for codes in self._sliced(src, tgt):
            counted = [
                np.bincount(c, minlength=size).astype(np.float64) for c, size in codes
            ]
            totals = (
                [a + b for a, b in zip(totals, counted, strict=True)]
                if totals
                else counted
            )
        return totals

    def _sliced(self, src: Ids, tgt: Ids) -> Iterator[list[tuple[Codes, int]]]:
        for start in range(0, len(src), _SLICE):
            yield list(
                self._agreements(
                    src[start : start + _SLICE], tgt[start : start + _SLICE]
                )
            )

    def _agreements(self, src: Ids, tgt: Ids) -> Iterator[tuple[Codes, int]]:
        """In what source lines agree with target lines: codes, each with how many different ones
        there are.
        """
        a, b = self._src, self._tgt
        yield (
            np.digitize(np.abs(self._deviation(src, tgt)), _LENGTH_EDGES),
            len(_LENGTH_EDGES) + 1,
        )
        yield a.ending[src] * _NUM_ENDINGS + b.ending[tgt], _NUM_ENDINGS**2
        here, there = a.numbers[src], b.numbers[tgt]
        yield (
            np.where(here == there, here != 0, 2 + ((here != 0) & (there != 0))).astype(
                np.int64
            ),
            4,
        )
        yield self._names.shared(src, tgt), _Names.size
        yield from ((codes, _Company.size) for codes in self._company.shared(src, tgt))

    def _deviation(self, src: Ids, tgt: Ids) -> Floats:
        ratio = self._src.length[src] - self._tgt.length[tgt] - self._centre
        return ratio / self._spread[self._band[src]]

    def _scores(self, by: int) -> Floats:
        """Return the score of each source line beside the target `by` lines further on; 0 where
        there is none.
        """
        src, tgt = _beside(self._size, by)
        parts = [
            sum(w[c] for w, (c, _) in zip(self._weights, codes, strict=True))
            for codes in self._sliced(src, tgt)
        ]
        found = np.zeros(self._size)
        found[src] = np.concatenate(parts)
        return found

    def _gains(self, by: int) -> Floats:
        """What each source line gains `by` lines further on; nothing, where no line is there."""
        src, _ = _beside(self._size, by)
        gains = np.full(self._size, -_LEAST_GAIN)
        gains[src] = self._scores(by)[src] - self.scores[src] - _DRIFT
        return gains

    def _first_stranger(self, gains: Floats, first: int, by: int) -> int:
        """Where a run truly begins: with the file, if little speaks against it (a heading on one
        side, say).

        And source lines before it, whose own target was lost, belong to it.
        """
        top = max(0, -by)
        if float(gains[top:first].sum()) > -_LITTLE:
            first = top
        for _ in range(max(0, -by)):
            if first and self.scores[first - 1] < 0:
                first -= 1
        return first


class _Names:
    """Words that both sides write alike and that are rare: names, terms, what was left as it is."""

    size = 5

    def __init__(self, src: _Side, tgt: _Side) -> None:
        self._num_ids = src.words.num_ids
        rare = max(_NAME_SHARE * len(src.length), 1)
        a, b = src.frequency, tgt.frequency
        is_name = (a > 0) & (b > 0) & (a <= rare) & (b <= rare)
        self._lines, self._ids, self._bounds = _only(src.words, is_name)
        lines, ids, _ = _only(tgt.words, is_name)
        self._there = np.unique(lines * self._num_ids + ids)

    def shared(self, src: Ids, tgt: Ids) -> Codes:
        """0: no such word in the source; else 1 and how many of them the target has, 3 at most."""
        counts = self._bounds[src + 1] - self._bounds[src]
        if not len(self._there) or not counts.any():
            return np.zeros(len(src), np.int64)
        row = np.repeat(np.arange(len(src)), counts)
        place = (
            np.arange(len(row))
            - np.repeat(np.cumsum(counts) - counts, counts)
            + np.repeat(self._bounds[src], counts)
        )
        keys = tgt[row] * self._num_ids + self._ids[place]
        at = np.minimum(np.searchsorted(self._there, keys), len(self._there) - 1)
        hits = np.bincount(
            row, weights=self._there[at] == keys, minlength=len(src)
        ).astype(np.int64)
        return np.where(counts > 0, 1 + np.minimum(hits, 3), 0)


class _Company:
    """Which words stand together in partners more often than by chance; `partner` is -1 where a
    line has none.
    """

    size = (_NUM_CONTENT + 1) * (2 * _NUM_CONTENT + 1)

    def __init__(self, src: _Side, tgt: _Side, partner: Ids) -> None:
        self._num_lines, self._partner = len(src.length), partner.copy()
        self._num_src, self._num_tgt = (
            (side.content >= 0).sum(1) for side in (src, tgt)
        )
        self._src, self._tgt = mixed(src.content), mixed(tgt.content, 1)
        # By chance a word is in as many of another's lines as in all the text; where there is no
        # word, in no line.
        self._chance_src = _frequencies(src) * (_CHANCE / self._num_lines)
        self._chance_tgt = _frequencies(tgt)
        cells = min(max(4 * self._num_lines * _NUM_CONTENT**2, 1 << 16), 1 << 25)
        self._shift = np.uint64(64 - int(cells - 1).bit_length())
        self._counts = np.zeros(1 << (64 - int(self._shift)), np.int32)
        taught = np.flatnonzero(partner >= 0)
        for start in range(0, len(taught), _SLICE):
            a = taught[start : start + _SLICE]
            b = partner[a]
            real = np.isfinite(
                self._chance_src[a][:, :, None] * self._chance_tgt[b][:, None, :]
            )
            np.add.at(self._counts, self._cells(a, b)[real], 1)

    def shared(self, src: Ids, tgt: Ids) -> tuple[Codes, Codes]:
        """How well the source's content words are kept company by the target's, and the other way
        round, as codes.

        A code says how many words there are, and for how many of them the other line has some
        company, or close.
        """
        together = self._counts[self._cells(src, tgt)]
        taught = (self._partner[src] == tgt)[
            :, None, None
        ]  # such a pair has taught itself, which says nothing of it
        chance = self._chance_src[src][:, :, None] * self._chance_tgt[tgt][:, None, :]
        met = together - taught
        some = (met > np.maximum(chance, _LEAST_TOGETHER - 1)).astype(np.int64)
        closeness = some + (some & (met > _CLOSE * chance))
        here, there = self._num_src[src], self._num_tgt[tgt]
        codes = (
            (np.where(there > 0, here, 0), closeness.max(2)),
            (np.where(here > 0, there, 0), closeness.max(1)),
        )
        src_code, tgt_code = (
            number * (2 * _NUM_CONTENT + 1) + best.sum(1) for number, best in codes
        )
        return src_code, tgt_code

    def _cells(self, src: Ids, tgt: Ids) -> Ids:
        """For each two words of the lines the cell where they are counted."""
        hashed = (
            self._src[src][:, :, None] ^ self._tgt[tgt][:, None, :]
        ) >> self._shift
        return hashed.astype(np.int64)


def _frequencies(side: _Side) -> npt.NDArray[np.float32]:
    """In how many lines each content word is; infinite where there is none."""
    often = np.append(side.frequency, 0).astype(np.float32)[side.content]
    return np.where(side.content >= 0, often, np.float32(np.inf))


def _only(words: Words, wanted: npt.NDArray[np.bool_]) -> tuple[Ids, Ids, Ids]:
    """Return the wanted words: their lines, their ids, and where each line's begin."""
    kept = wanted[words.ids]
    bounds = np.concatenate([[0], np.cumsum(kept)])[words.starts]
    return words.text_of[kept], words.ids[kept], bounds


def _spreads(length: Floats, log_ratio: Floats) -> tuple[Ids, Floats]:
    """Each line's band of length, and how widely the length ratios of each band are spread (scaled
    median).
    """
    edges = np.unique(np.quantile(length, np.arange(1, _BANDS) / _BANDS))
    band = np.digitize(length, edges)
    whole = max(1.4826 * float(np.median(np.abs(log_ratio))), 0.1)
    spread = np.full(len(edges) + 1, whole)
    for number in range(len(spread)):
        inside = np.abs(log_ratio[band == number])
        if len(inside) >= 50:
            spread[number] = max(1.4826 * float(np.median(inside)), whole / 2)
    return band, spread


def _beside(size: int, by: int) -> tuple[Ids, Ids]:
    """Source lines, and the target lines `by` further on, as far as there are any."""
    src = np.arange(max(0, -by), size - max(0, by))
    return src, src + by


def numbers_in(text: str) -> list[tuple[int, re.Match[str]]]:
    """Return the numbers in a text, in any script's digits, and where they stand.

    What groups their digits does not count: 1,000 is 1.000.
    """
    return [
        (int("".join(filter(str.isdecimal, match[0]))), match)
        for match in _NUMBER.finditer(text)
    ]


def _numbers(text: str) -> int:
    """Return the numbers in a text, in any order, as one integer; 0 if there are none."""
    found = sorted(value for value, _ in numbers_in(text))
    return hash(tuple(found)) or 1 if found else 0


def _largest_sum(values: Floats) -> tuple[float, int, int]:
    """Return the consecutive run with the largest sum: the sum, its first and its last index."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    lowest = np.minimum.accumulate(total)
    last = int(np.argmax(total - lowest))
    first = int(np.argmin(total[: last + 1]))
    return float(total[last] - total[first]), first, max(first, last - 1)


def _joined(shifts: Sequence[Shift]) -> list[Shift]:
    """Runs of the same shift that next to nothing parts are one."""
    joined: list[Shift] = []
    for shift in shifts:
        if (
            joined
            and shift.by == joined[-1].by
            and shift.first <= joined[-1].last + _SHORTEST
        ):
            joined[-1] = Shift(
                joined[-1].first, max(shift.last, joined[-1].last), shift.by
            )
        else:
            joined.append(shift)
    return joined
