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

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from weft.data.check.words import Ids, Words, bounds_of, mixed

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Chances = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
# codes of how lines agree in one respect, and how many different codes there are
Agreement = tuple[Codes, int]
Number = tuple[int, re.Match[str]]  # its value, and where it stands

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
_NUM_CONTENT = 8  # words of a line that are used, the rarest
_NUM_CLOSENESS = 2 * _NUM_CONTENT + 1  # sums of 0, 1 or 2 for each of them
# words keep company that meet this many times as often as by chance, and at least twice
_CHANCE = 4.0
_LEAST_TOGETHER = 2
_CLOSE = 8.0  # and this many times more often still where they are close
# a word of fewer lines teaches nothing, one of more than a fifth says nothing
_RARE = 3
_COMMON_SHARE = 0.2
_NAME_SHARE = 0.01
_SLICE = 1 << 15  # lines that are scored together
_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d{1,18}")
# how a line ends, in the scripts that have such a mark; all else is kind 0
_END_MARKS = ("?？؟⁇", "!！", ".。．", ":：", ",，、;；", "\"'”’»」』)）")
_ENDINGS: dict[str, int] = {}
for _kind, _marks in enumerate(_END_MARKS, 1):
    _ENDINGS |= dict.fromkeys(_marks, _kind)
_NUM_ENDINGS = 1 + len(_END_MARKS)


@dataclass(frozen=True)
class Shift:
    """Pairs `first` to `last` (indices) whose source fits the target `by` lines further on better
    than its own.
    """

    first: int
    last: int
    by: int


class _Side:
    """Numbers that measure one side, one entry a line: log length, kind of ending, numbers (0:
    none), rarest words.
    """

    def __init__(self, words: Words) -> None:
        texts = words.texts
        self.words = words
        self.ids = words.ids
        self.length = np.log1p(_of_each(texts, len))
        self.ending = _of_each(texts, _ending)
        self.numbers = _of_each(texts, _numbers)

    @cached_property
    def frequency(self) -> Ids:
        """Count how often each word of either side occurs on this one, which is near the number of
        its lines.
        """
        return np.bincount(self.ids, minlength=self.words.num_ids)

    @cached_property
    def content(self) -> Ids:
        """Choose the rarest words of each line that can be learned: ids as (lines, 8), -1 where
        there are fewer.
        """
        size = len(self.length)
        line_of = self.words.text_of
        often = self.frequency[self.ids]
        most = max(_COMMON_SHARE * size, _RARE)
        is_useful = (often >= _RARE) & (often <= most)
        useful = np.flatnonzero(is_useful)
        rarest_first = np.lexsort((often[useful], line_of[useful]))
        word = useful[rarest_first]
        line = line_of[word]
        first_of_line = np.searchsorted(line, line)
        rank = np.arange(len(word)) - first_of_line

        is_kept = rank < _NUM_CONTENT
        line = line[is_kept]
        rank = rank[is_kept]
        shape = (size, _NUM_CONTENT)
        content = np.full(shape, -1, np.int64)
        content[line, rank] = self.ids[word[is_kept]]
        return content


class Alignment:
    """Both sides of a corpus, measured once. They are equally long, not empty, and share a
    vocabulary.

    `log_ratio` is 0 where a pair's length ratio is the corpus's own; `deviation` is the same in
    spreads of it. `scores` are how much more each pair looks like a translation than lines put
    together at random, in nats.
    """

    def __init__(self, src: Words, tgt: Words) -> None:
        self._src = _Side(src)
        self._tgt = _Side(tgt)
        self._size = len(src.texts)
        ratio = self._src.length - self._tgt.length
        self._centre = float(np.median(ratio))
        self.log_ratio = ratio - self._centre
        self._band = _bands(self._src.length)
        self._spread = _spreads(self._band, self.log_ratio)
        spread = self._spread[self._band]
        self.deviation = self.log_ratio / spread
        self._names = _Names(self._src, self._tgt)
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
        misfit = self._length_misfit(rows, self._elsewhere)
        if float(np.mean(misfit)) <= _LEAST_VARIATION:
            return False
        return float(np.mean(self.scores)) < _NO_CONTRAST

    def strangers(self) -> list[int]:
        """Find the pairs whose lines look much more like strangers than like translations."""
        is_strange = self.scores < STRANGERS
        return np.flatnonzero(is_strange).tolist()

    def numbers_differ(self) -> list[int]:
        """Find the pairs that have numbers on both sides, and not the same."""
        src = self._src.numbers
        tgt = self._tgt.numbers
        has_numbers = (src != 0) & (tgt != 0)
        differs = has_numbers & (src != tgt)
        return np.flatnonzero(differs).tolist()

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
        lengths = self._length_misfit(src, tgt)
        misfit = lengths + 2.0 * asks + 2.0 * numbers
        return float(np.mean(misfit))

    def _length_misfit(self, src: Ids, tgt: Ids) -> Floats:
        """Return the squared deviations of the lines' length ratios, in spreads; 9 at most."""
        deviation = self._deviation(src, tgt)
        return np.minimum(deviation**2, 9.0)

    def _learn(self) -> None:
        """Learn from lines that seem to be partners which words keep company, and how much each
        agreement weighs.
        """
        rows = np.arange(self._size)
        has_partner = self._partner >= 0
        partner = self._partner
        self._company = _Company(self._src, self._tgt, partner)
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
            best = {by: _largest_sum(gain) for by, gain in gains.items()}
            by = max(best, key=lambda by: best[by][0])
            gain, first, last = best[by]
            if gain < threshold or last - first + 1 < _SHORTEST:
                break
            true_first = self._first_stranger(gains[by], first, by)
            runs.append(Shift(true_first, last, by))
            for other in gains.values():
                explained = other[first : last + 1]
                np.minimum(explained, -threshold, out=explained)
        runs.sort(key=lambda run: run.first)
        return _joined(runs)

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
        for start in range(0, len(src), _SLICE):
            part = slice(start, start + _SLICE)
            agreements = self._agreements(src[part], tgt[part])
            yield list(agreements)

    def _agreements(self, src: Ids, tgt: Ids) -> Iterator[Agreement]:
        """Yield the codes of each agreement of source with target lines, and how many different
        codes it has.
        """
        deviation = np.abs(self._deviation(src, tgt))
        length = np.digitize(deviation, _LENGTH_EDGES)
        yield length, len(_LENGTH_EDGES) + 1
        src_ending = self._src.ending[src]
        tgt_ending = self._tgt.ending[tgt]
        yield src_ending * _NUM_ENDINGS + tgt_ending, _NUM_ENDINGS**2
        src_numbers = self._src.numbers[src]
        tgt_numbers = self._tgt.numbers[tgt]
        yield _number_codes(src_numbers, tgt_numbers), 4
        yield self._names.shared(src, tgt), _Names.size
        for codes in self._company.shared(src, tgt):
            yield codes, _Company.size

    def _deviation(self, src: Ids, tgt: Ids) -> Floats:
        src_length = self._src.length[src]
        tgt_length = self._tgt.length[tgt]
        ratio = src_length - tgt_length - self._centre
        band = self._band[src]
        return ratio / self._spread[band]

    def _scores(self, by: int) -> Floats:
        """Score each source line beside the target `by` lines further on; 0 where there is none."""
        src, tgt = _beside(self._size, by)
        agreements = self._sliced(src, tgt)
        parts = list(map(self._sum, agreements))
        scores = np.zeros(self._size)
        scores[src] = np.concatenate(parts)
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


class _Names:
    """Rare words that both sides write alike: names, terms, what was left as it is."""

    size = 5

    def __init__(self, src: _Side, tgt: _Side) -> None:
        self._num_ids = src.words.num_ids
        num_lines = len(src.length)
        rare = max(_NAME_SHARE * num_lines, 1)
        is_name = np.ones(self._num_ids, np.bool_)
        for often in (src.frequency, tgt.frequency):
            is_name &= (often > 0) & (often <= rare)
        _, self._ids, self._bounds = _only(src.words, is_name)
        lines, ids, _ = _only(tgt.words, is_name)
        keys = lines * self._num_ids + ids
        self._tgt_keys = np.unique(keys)

    def shared(self, src: Ids, tgt: Ids) -> Codes:
        """Return 0 for a source line without such words; else 1 plus how many of them the target
        has, 3 at most.
        """
        size = len(src)
        start = self._bounds[src]
        end = self._bounds[src + 1]
        counts = end - start
        if not len(self._tgt_keys) or not counts.any():
            return np.zeros(size, np.int64)
        row = np.repeat(np.arange(size), counts)
        first_of_row = np.cumsum(counts) - counts
        offset = np.repeat(start - first_of_row, counts)
        place = np.arange(len(row)) + offset
        ids = self._ids[place]
        keys = tgt[row] * self._num_ids + ids
        at = np.searchsorted(self._tgt_keys, keys)
        last = len(self._tgt_keys) - 1
        nearest = self._tgt_keys[np.minimum(at, last)]
        hits = np.bincount(row[nearest == keys], minlength=size)
        codes = 1 + np.minimum(hits, 3)
        return np.where(counts > 0, codes, 0)


class _Company:
    """Counts of which words stand together in partners; `partner` is -1 where a line has none."""

    size = (_NUM_CONTENT + 1) * _NUM_CLOSENESS

    def __init__(self, src: _Side, tgt: _Side, partner: Ids) -> None:
        num_lines = len(src.length)
        self._partner = partner.copy()
        self._num_src = (src.content >= 0).sum(1)
        self._num_tgt = (tgt.content >= 0).sum(1)
        self._src = mixed(src.content)
        self._tgt = mixed(tgt.content, 1)
        # By chance a word is in as many of another's lines as in all the text; where there is no
        # word, in no line.
        self._chance_src = _frequencies(src) * (_CHANCE / num_lines)
        self._chance_tgt = _frequencies(tgt)
        pairs = num_lines * _NUM_CONTENT**2
        num_cells = max(4 * pairs, 1 << 16)
        num_cells = min(num_cells, 1 << 25)
        bits = int(num_cells - 1).bit_length()
        self._shift = np.uint64(64 - bits)
        self._counts = np.zeros(1 << bits, np.int32)
        taught = np.flatnonzero(partner >= 0)
        for start in range(0, len(taught), _SLICE):
            src_lines = taught[start : start + _SLICE]
            tgt_lines = partner[src_lines]
            cells = self._cells(src_lines, tgt_lines)
            chance = self._chance(src_lines, tgt_lines)
            is_word = np.isfinite(chance)
            np.add.at(self._counts, cells[is_word], 1)

    def shared(self, src: Ids, tgt: Ids) -> tuple[Codes, Codes]:
        """Return codes of how well source words are kept company by the target's, and target words
        by the source's.

        A code says how many words there are, and for how many of them the other line has some
        company, or close.
        """
        together = self._counts[self._cells(src, tgt)]
        # a pair that has taught itself says nothing of itself
        is_taught = self._partner[src] == tgt
        met = together - is_taught[:, None, None]
        chance = self._chance(src, tgt)
        is_company = met > np.maximum(chance, _LEAST_TOGETHER - 1)
        is_close = is_company & (met > _CLOSE * chance)
        closeness = is_company.astype(np.int64) + is_close
        num_src = self._num_src[src]
        num_tgt = self._num_tgt[tgt]
        is_told = (num_src > 0) & (num_tgt > 0)
        num_src = num_src * is_told
        num_tgt = num_tgt * is_told
        src_code = _company_code(num_src, closeness.max(2))
        tgt_code = _company_code(num_tgt, closeness.max(1))
        return src_code, tgt_code

    def _chance(self, src: Ids, tgt: Ids) -> Chances:
        """Return how often each two words of the lines meet by chance, times `_CHANCE`."""
        src_chance = self._chance_src[src]
        tgt_chance = self._chance_tgt[tgt]
        return src_chance[:, :, None] * tgt_chance[:, None, :]

    def _cells(self, src: Ids, tgt: Ids) -> Ids:
        """Return the cell in which each two words of the lines are counted."""
        src_hash = self._src[src]
        tgt_hash = self._tgt[tgt]
        both = src_hash[:, :, None] ^ tgt_hash[:, None, :]
        cells = both >> self._shift
        return cells.astype(np.int64)


def _company_code(number: Ids, closeness: Ids) -> Codes:
    """Join how many words a line has and the sum of how close they are to the other line's."""
    return number * _NUM_CLOSENESS + closeness.sum(1)


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


def _frequencies(side: _Side) -> Chances:
    """Return in how many lines each content word is; infinite where there is none."""
    of_words = np.append(side.frequency, 0).astype(np.float32)
    often = of_words[side.content]
    is_word = side.content >= 0
    return np.where(is_word, often, np.float32(np.inf))


def _only(words: Words, wanted: Flags) -> tuple[Ids, Ids, Ids]:
    """Return the wanted words: their lines, their ids, and where each line's begin."""
    kept = wanted[words.ids]
    kept_before = bounds_of(kept)
    bounds = kept_before[words.starts]
    lines = words.text_of[kept]
    return lines, words.ids[kept], bounds


def _bands(length: Floats) -> Ids:
    """Divide the lines into bands of length, about as many lines in each."""
    shares = np.arange(1, _BANDS) / _BANDS
    quantiles = np.quantile(length, shares)
    edges = np.unique(quantiles)
    return np.digitize(length, edges)


def _spreads(band: Ids, log_ratio: Floats) -> Floats:
    """Return the spread of the length ratios in each band of length.

    A band of fewer than 50 lines has the spread of all of them.
    """
    distance = np.abs(log_ratio)
    overall = max(_spread(distance), 0.1)
    num_bands = int(band.max()) + 1
    spreads = np.full(num_bands, overall)
    for number in range(len(spreads)):
        inside = distance[band == number]
        if len(inside) >= 50:
            own = _spread(inside)
            spreads[number] = max(own, overall / 2)
    return spreads


def _spread(distance: Floats) -> float:
    """Scale the median distance so that it is the standard deviation where all is normal."""
    return 1.4826 * float(np.median(distance))


def _beside(size: int, by: int) -> tuple[Ids, Ids]:
    """Return source lines, and the target lines `by` further on, as far as there are any."""
    first = max(0, -by)
    end = size - max(0, by)
    src = np.arange(first, end)
    return src, src + by


def numbers_in(text: str) -> list[Number]:
    """Return the numbers in a text, in any script's digits, and where they stand.

    What groups their digits does not count: 1,000 is 1.000.
    """
    return [(_value(match[0]), match) for match in _NUMBER.finditer(text)]


def _value(number: str) -> int:
    digits = filter(str.isdecimal, number)
    return int("".join(digits))


def _of_each(texts: Sequence[str], function: Callable[[str], int]) -> Ids:
    values = map(function, texts)
    return np.fromiter(values, np.int64, len(texts))


def _ending(text: str) -> int:
    last = text[-1:]
    return _ENDINGS.get(last, 0)


def _numbers(text: str) -> int:
    """Return the numbers in a text, in any order, as one integer; 0 if there are none."""
    values = sorted(value for value, _ in numbers_in(text))
    if not values:
        return 0
    return hash(tuple(values)) or 1


def _largest_sum(values: Floats) -> tuple[float, int, int]:
    """Return the consecutive run with the largest sum: the sum, its first and its last index."""
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    lowest = np.minimum.accumulate(total)
    end = int(np.argmax(total - lowest))
    first = int(np.argmin(total[: end + 1]))
    largest = total[end] - total[first]
    last = max(first, end - 1)
    return float(largest), first, last


def _joined(shifts: Sequence[Shift]) -> list[Shift]:
    """Join runs of the same shift with fewer than _SHORTEST lines between them."""
    joined: list[Shift] = []
    for shift in shifts:
        last = joined[-1] if joined else None
        is_same = last is not None and shift.by == last.by
        if last and is_same and shift.first <= last.last + _SHORTEST:
            end = max(shift.last, last.last)
            joined[-1] = Shift(last.first, end, shift.by)
        else:
            joined.append(shift)
    return joined
