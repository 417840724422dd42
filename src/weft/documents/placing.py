"""The places of a segment's items in its translation.

A pair of tags goes around the words that the words in it became; what stands between words goes
where its neighbours went. Pairs are nested as in the source, whatever the alignment says. Places
are boundaries: boundary b is before word b of the translation, marks counted as words.
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from weft.documents.document import Item, Kind, Segment, Translated
from weft.documents.words import Word, is_han

# more items than this, or words in all pairs, are placed without regard to the alignment
_MOST_ITEMS = 2_000
_MOST_WORDS = 200_000
# the neighbours of an item on each side that have a say in its place
_NEIGHBOURS = 3
# how much the right order counts beside nearness
_ORDER = 0.45
# share of the words that must be aligned for an alignment to be of use
_LEAST_ALIGNED = 0.25
_ASCII_WORD = re.compile(r"\w", re.ASCII)
# letters and digits of a text that is looked for as it is, and the value of where it is found
_LEAST_SAME = 2
_SURE = 1_000_000
# kinds of boundaries: within a run of letters, and a gap in Chinese or Japanese
_INSIDE = 1
_GAP = 2
# the words from an edge of a pair to a gap, and from what stands between words
_NEAR = 2
_FAR = 4


@dataclass(frozen=True)
class Placed:
    """The number of an item of the segment, and the boundary of the translation that it is at."""

    boundary: int
    item: int


@dataclass
class _Node:
    """A pair of tags or a single item: its numbers, and the source words in it.

    `first` and `last` are boundaries of the source. A single item has both at one, and no `close`.
    """

    open: int
    close: int | None
    first: int
    last: int
    children: list["_Node"] = field(default_factory=list)
    start: int = 0
    end: int = 0


def cuts_of(translated: Translated) -> tuple[set[int], set[int]]:
    """Return the places where words of the alignment begin or end, in source and target."""
    src: set[int] = set()
    tgt: set[int] = set()
    for src_start, src_end, tgt_start, tgt_end in translated.alignment:
        src.update((src_start, src_end))
        tgt.update((tgt_start, tgt_end))
    return src, tgt


def place(
    segment: Segment,
    translation: str,
    src: Sequence[Word],
    tgt: Sequence[Word],
    targets: Sequence[Sequence[int]],
    first: int = 0,
) -> list[Placed]:
    """Return the items' places in the order in which they are written, pairs well nested.

    None is before the boundary `first`. `targets` are the words that each source word became. A
    pair whose text stands in the translation as it is goes around that. Where targets say too
    little, items keep their order and go to proportional places.
    """
    boundaries = _source_boundaries(segment.items, src)
    root = _tree(segment.items, boundaries, len(src))
    same = _same_runs(segment, translation, src, tgt)
    is_useful = bool(same) or _is_useful(targets, src, tgt)
    if not is_useful or not _is_small(segment.items, boundaries):
        return _proportional(segment.items, boundaries, len(src), len(tgt), first)
    placer = _Placer(targets, tgt, len(src), same, _kinds(translation, tgt))
    placer.place(root, first)
    return _in_order(root)


def _source_boundaries(items: Sequence[Item], src: Sequence[Word]) -> list[int]:
    """Return the boundary of the source that each item is at.

    A pair has all of the words that it has a part of.
    """
    starts = [word.start for word in src]
    ends = [word.end for word in src]
    return [
        bisect_left(starts, item.start)
        if item.kind is Kind.CLOSE
        else bisect_right(ends, item.start)
        for item in items
    ]


def _tree(items: Sequence[Item], boundaries: Sequence[int], num_src: int) -> _Node:
    root = _Node(-1, None, 0, num_src)
    opened = [root]
    for number, item in enumerate(items):
        boundary = boundaries[number]
        if item.kind is Kind.CLOSE:
            opened.pop()
            continue
        last = boundary if item.partner is None else boundaries[item.partner]
        node = _Node(number, item.partner, boundary, last)
        opened[-1].children.append(node)
        if item.kind is Kind.OPEN:
            opened.append(node)
    return root


def _is_useful(
    targets: Sequence[Sequence[int]], src: Sequence[Word], tgt: Sequence[Word]
) -> bool:
    """Return whether an alignment has enough different words of both sides."""
    num_src = sum(not word.is_mark for word in src)
    num_tgt = sum(not word.is_mark for word in tgt)
    least = _LEAST_ALIGNED * min(num_src, num_tgt)
    sources = [number for number, found in enumerate(targets) if found]
    aligned_src = sum(not src[number].is_mark for number in sources)
    found = {number for numbers in targets for number in numbers}
    aligned_tgt = sum(not tgt[number].is_mark for number in found)
    return min(aligned_src, aligned_tgt) > 0 and min(aligned_src, aligned_tgt) >= least


def _is_small(items: Sequence[Item], boundaries: Sequence[int]) -> bool:
    """Return whether there are few enough words in all pairs to look at each."""
    inside = sum(
        boundaries[item.partner] - boundaries[number]
        for number, item in enumerate(items)
        if item.kind is Kind.OPEN and item.partner is not None
    )
    return len(items) <= _MOST_ITEMS and inside <= _MOST_WORDS


def _proportional(
    items: Sequence[Item],
    boundaries: Sequence[int],
    num_src: int,
    num_tgt: int,
    first: int,
) -> list[Placed]:
    """Put all items in their order, each at its share of the words."""
    placed = []
    reached = first
    for number, item in enumerate(items):
        product = boundaries[number] * num_tgt
        if item.kind is Kind.CLOSE:
            boundary = -(-product // num_src)
        else:
            boundary = product // num_src
        reached = max(reached, boundary)
        placed.append(Placed(reached, number))
    return placed


def _in_order(root: _Node) -> list[Placed]:
    """Return the items of a tree in the order of their places."""
    placed = []
    waiting: list[_Node | Placed] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Placed):
            placed.append(node)
            continue
        if node.open >= 0:
            placed.append(Placed(node.start, node.open))
        if node.close is not None:
            waiting.append(Placed(node.end, node.close))
        children = sorted(node.children, key=_order, reverse=True)
        waiting += children
    return placed


def _order(node: _Node) -> tuple[int, int, int]:
    return node.start, node.end, node.open


def _same_runs(
    segment: Segment, translation: str, src: Sequence[Word], tgt: Sequence[Word]
) -> dict[int, "_Run"]:
    """Return the words of pairs whose text stands in the translation as it is, each at its own.

    It must stand there as often as in the source, or as often as in pairs: `*real*`, the name,
    beside real numbers, which are written otherwise.
    """
    pairs: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, item in enumerate(segment.items):
        if item.kind is not Kind.OPEN or item.partner is None:
            continue
        inside = segment.text[item.end : segment.items[item.partner].start]
        start = item.end + len(inside) - len(inside.lstrip())
        pairs[inside.strip()].append((start, number))
    here = _Borders(segment.text, src)
    beyond = _Borders(translation, tgt)
    runs = {}
    for inside, those in pairs.items():
        if sum(map(str.isalnum, inside)) < _LEAST_SAME:
            continue
        there = beyond.standing(inside)
        own = [src[first].start for first, _ in here.standing(inside)]
        if len(own) != len(there):
            own = [start for start, _ in those]
        if len(own) != len(there):
            continue
        run_at = dict(zip(own, there, strict=True))
        for start, number in those:
            if start in run_at:
                runs[number] = _Run(*run_at[start], _SURE)
    return runs


class _Borders:
    """The places at which the words of a text begin and end."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self._text = text
        self._starts = {word.start: number for number, word in enumerate(words)}
        self._ends = {word.end: number + 1 for number, word in enumerate(words)}

    def standing(self, inside: str) -> list[tuple[int, int]]:
        """Return where another text stands in this one, from word to word."""
        found = []
        start = self._text.find(inside)
        while start >= 0:
            end = start + len(inside)
            if self._is_whole(start, end):
                found.append((self._starts[start], self._ends[end]))
            else:
                end = start + 1
            start = self._text.find(inside, end)
        return found

    def _is_whole(self, start: int, end: int) -> bool:
        """Return whether words begin and end there, and no letter of ASCII is beside them."""
        beside = self._text[max(start - 1, 0) : start] + self._text[end : end + 1]
        is_apart = not _ASCII_WORD.search(beside)
        return is_apart and start in self._starts and end in self._ends


def _kinds(translation: str, tgt: Sequence[Word]) -> list[int]:
    """Return for each boundary whether it is within a run of letters, or a gap: a space between
    two Chinese or Japanese letters, which have none. There something stood: a model that learned
    from text whose tags were taken out leaves the space that was beside a tag.
    """
    kinds = [0] * (len(tgt) + 1)
    for boundary in range(1, len(tgt)):
        end = tgt[boundary - 1].end
        start = tgt[boundary].start
        before, after = translation[end - 1], translation[start]
        if start == end:
            kinds[boundary] = _INSIDE if before.isalnum() and after.isalnum() else 0
        elif is_han(before) and is_han(after):
            kinds[boundary] = _GAP
    return kinds


class _Placer:
    """Places the nodes of a tree by an alignment, parents first."""

    def __init__(
        self,
        targets: Sequence[Sequence[int]],
        tgt: Sequence[Word],
        num_src: int,
        same: Mapping[int, "_Run"],
        kinds: Sequence[int],
    ) -> None:
        self._targets = targets
        self._same = same
        self._kinds = kinds
        self._tgt = tgt
        self._num_src = num_src
        counts = Counter(number for numbers in targets for number in numbers)
        # how many links there are to the target words before each
        links = [counts[number] for number in range(len(tgt))]
        self._before = list(accumulate(links, initial=0))

    def place(self, root: _Node, first: int) -> None:
        """Set where each node starts and ends; none starts before a boundary."""
        root.start = first
        root.end = len(self._tgt)
        waiting = [root]
        while waiting:
            node = waiting.pop()
            self._place_children(node)
            waiting += [child for child in node.children if child.children]

    def _place_children(self, parent: _Node) -> None:
        pairs = [child for child in parent.children if child.close is not None]
        taken = _Taken(parent.start, parent.end)
        pairs.sort(key=lambda pair: -self._best_run(pair, taken).value)
        unplaced = []
        for pair in pairs:
            run = self._best_run(pair, taken)
            if run.is_found:
                pair.start, pair.end = self._to_gaps(run, taken)
                taken.add(pair.start, pair.end)
            else:
                unplaced.append(pair)
        for pair in unplaced:
            self._place_unaligned(pair, taken)
        for child in parent.children:
            if child.close is None:
                boundary = self._boundary(child.first, parent)
                child.start = child.end = self._hole(taken.near(boundary), taken)

    def _best_run(self, pair: _Node, taken: "_Taken") -> "_Run":
        """Return the run of free words that has the most links from the pair.

        Each link from outside counts against it.
        """
        same = self._same.get(pair.open)
        if same is not None and taken.is_free(same.start, same.end):
            return same
        inside = Counter(
            number
            for source in range(pair.first, pair.last)
            for number in self._targets[source]
        )
        best = run = _Run()
        for number in sorted(inside):
            if not taken.is_free(number, number + 1):
                continue
            value = 2 * inside[number] - self._links(number, number + 1)
            bridge = run.value - self._links(run.end, number)
            if run.is_found and bridge > 0 and taken.is_free(run.end, number):
                run = _Run(run.start, number + 1, bridge + value)
            else:
                run = _Run(number, number + 1, value)
            if not best.is_found or run.value > best.value:
                best = run
        return best

    def _to_gaps(self, run: "_Run", taken: "_Taken") -> tuple[int, int]:
        """Return where a run begins and ends: each edge at the gap that is next to it, if it is
        within a run of letters.
        """
        start, end = run.start, run.end
        if run.value == _SURE:
            return start, end
        if self._kinds[start] == _INSIDE:
            start = self._nearest_gap(start, range(taken.start, end), taken)
        if self._kinds[end] == _INSIDE:
            end = self._nearest_gap(end, range(start + 1, taken.end + 1), taken)
        return start, end

    def _nearest_gap(self, edge: int, allowed: range, taken: "_Taken") -> int:
        """Return the gap that is next to an edge with free words between; the edge for none."""
        near = [
            other
            for other in range(max(edge - _NEAR, 0), edge + _NEAR + 1)
            if other in allowed
            and self._kinds[other] == _GAP
            and taken.is_free(min(edge, other), max(edge, other))
        ]
        return min(near, key=lambda other: abs(other - edge), default=edge)

    def _hole(self, place: int, taken: "_Taken") -> int:
        """Return the gap nearest to a place between words that no pair begins or ends at."""
        first = max(place - _FAR, taken.start)
        last = min(place + _FAR, taken.end)
        holes = [
            other
            for other in range(first, last + 1)
            if self._kinds[other] == _GAP and not taken.touches(other)
        ]
        return min(holes, key=lambda other: abs(other - place), default=place)

    def _links(self, start: int, end: int) -> int:
        return self._before[end] - self._before[start]

    def _place_unaligned(self, pair: _Node, taken: "_Taken") -> None:
        """Put a pair whose words became none: around a free word there, else around nothing."""
        boundary = self._boundary(pair.first, taken)
        pair.start = pair.end = taken.near(boundary)
        for number in (boundary, boundary - 1):
            is_inside = taken.start <= number < taken.end
            if not is_inside or self._tgt[number].is_mark:
                continue
            if taken.is_free(number, number + 1):
                pair.start = number
                pair.end = number + 1
                taken.add(pair.start, pair.end)
                return

    def _boundary(self, source: int, limits: "_Node | _Taken") -> int:
        """Return the boundary that a boundary of the source became, within some limits.

        It is as near as can be to what the neighbours there became, and after what those on the
        left became, before what those on the right did; a near neighbour counts more.
        """
        left = self._votes(source - 1, -1)
        right = self._votes(source, 1)
        if not left and not right:
            share = source * len(self._tgt) // max(1, self._num_src)
            return min(max(share, limits.start), limits.end)
        places = {number + side for number, _ in left + right for side in (0, 1)}
        inside = [
            place for place in sorted(places) if limits.start <= place <= limits.end
        ]
        values = [_fit(boundary, left, right) for boundary in inside]
        if not inside:
            return min(max(min(places), limits.start), limits.end)
        return inside[values.index(max(values))]

    def _votes(self, source: int, step: int) -> list["_Vote"]:
        """Return the target words of the neighbours on one side, and their weights."""
        votes = []
        for distance in range(_NEIGHBOURS):
            neighbour = source + step * distance
            if not 0 <= neighbour < self._num_src:
                break
            numbers = self._targets[neighbour]
            weight = 1.0 / (1 + distance)
            votes += [(number, weight / len(numbers)) for number in numbers]
        return votes


_Vote = tuple[int, float]


def _fit(boundary: int, left: list[_Vote], right: list[_Vote]) -> float:
    """Return how well a boundary fits to the words that neighbours on both sides became."""
    value = sum(weight for number, weight in left if number < boundary)
    value += sum(weight for number, weight in right if number >= boundary)
    value *= _ORDER
    for number, weight in left + right:
        distance = max(number - boundary, boundary - number - 1)
        value += weight / (1 + distance)
    return value


@dataclass(frozen=True)
class _Run:
    """A run of target words, and how well it fits."""

    start: int = 0
    end: int = 0
    value: int = 0

    @property
    def is_found(self) -> bool:
        return self.end > self.start


class _Taken:
    """The words of a stretch that pairs of tags have already."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._runs: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Take the words of a run."""
        insort(self._runs, (start, end))

    def is_free(self, start: int, end: int) -> bool:
        """Return whether none of some words is taken, or outside the stretch."""
        if start < self.start or end > self.end:
            return False
        number = bisect_left(self._runs, (end,))
        return number == 0 or self._runs[number - 1][1] <= start or start == end

    def touches(self, boundary: int) -> bool:
        """Return whether a run begins or ends at a boundary, or has it inside."""
        number = bisect_right(self._runs, (boundary, self.end))
        return number > 0 and self._runs[number - 1][1] >= boundary

    def near(self, boundary: int) -> int:
        """Return the boundary that is nearest to one, and not within a run."""
        number = bisect_left(self._runs, (boundary,))
        if number == 0 or self._runs[number - 1][1] <= boundary:
            return boundary
        start, end = self._runs[number - 1]
        return start if boundary - start < end - boundary else end
