"""The target of a segment as it stood in a file before, with markup and placeholders."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from weft.data.formats.codes import has_any
from weft.data.memory import normal
from weft.data.substitution import exchange, form_of
from weft.documents.coded import read_coded
from weft.documents.document import Item, Kind, Segment, TextDocument, shown_item
from weft.documents.formats.programs.restructured import read_restructured
from weft.documents.formats.text.messages import read_message
from weft.documents.kept import core_of, spans
from weft.documents.words import split_words

Read = Callable[[str], TextDocument]
READERS: Sequence[Read] = (read_message, read_restructured)
"""The readers of messages; which of them a catalogue needs, one message does not say."""

_Shape = Sequence[tuple[str, str]]
_EDGE = "x"  # a word that keeps tags at the edge of a text inside it
_SPACES = re.compile(" {2,}")


@dataclass(frozen=True)
class Stood:
    """The target of a unit with the markup of a segment: as the document writes it, and as it is
    shown to a person.
    """

    text: str
    shown: str


@dataclass(frozen=True)
class _Mark:
    """An item of a segment, or what it keeps in its text, and the place that it takes there.

    `partner` is the number among the marks that an OPEN one is closed by, or a CLOSE one opened.
    """

    kind: Kind
    raw: str
    start: int
    end: int
    partner: int | None = None

    @property
    def kind_of_place(self) -> str:
        """Return what has to be the same in a unit: any two that stand between words are."""
        return self.kind.value if self.kind in (Kind.OPEN, Kind.CLOSE) else "point"

    @property
    def core(self) -> str:
        """Return it without the marks of the sentence around it."""
        return core_of(self.raw) or self.raw


def readers_of(text: str) -> Sequence[Read]:
    """Return the readers of a unit's side: of codes that it was read with, else of messages."""
    return (read_coded,) if has_any(text) else READERS


def as_it_stood(segment: Segment, stands: Mapping[str, str]) -> Stood | None:
    """Return the target, with markup, that a source had which stood like a segment; None where
    there is none, or it has other items or what the document writes in another way.

    A source that stood there in another way counts, too, if its items are at the same places: those
    of the segment go where they are in its target.
    """
    if not segment.items and not segment.kept:
        return None
    found = _to_the_letter(segment, stands.get(segment.source))
    if found is not None:
        return Stood(found, found)
    # of equal sources the last is the latest
    for source, target in reversed(list(stands.items())):
        stood = _in_its_own_way(segment, source, target)
        if stood is not None:
            return stood
    return None


def _to_the_letter(segment: Segment, target: str | None) -> str | None:
    own = [item.raw for item in segment.items]
    own += [span.raw for span in spans(segment.text, segment.kept)]
    if target is None or not own:
        return None
    rest = target
    for raw in sorted(own, key=len, reverse=True):
        before, found, after = rest.partition(raw)
        if not found:
            return None
        rest = f"{before}\0{after}"
    if any(character in rest for character in segment.escapes):
        return None
    return None if _has_items(rest) else target


def _has_items(text: str) -> bool:
    documents = [read(text) for read in READERS]
    return any(segment.items for one in documents for segment in one.segments)


def _in_its_own_way(segment: Segment, source: str, target: str) -> Stood | None:
    """Return the target of a unit with the items of a segment, if its source has them alike."""
    own = _marks(segment)
    wanted = _shape(segment, own)
    readers = readers_of(source + target)
    if any(_gains_items(read, source, target) for read in readers):
        return None
    for read in readers:
        for one, targets in _sides(read, source, target):
            marks = _marks(one)
            shape = _shape(one, marks)
            if len(shape) != len(wanted):
                continue
            if not all(map(_are_alike, shape, wanted)):
                continue
            exchanged = dict(_exchanged(shape, wanted))
            for other, has_edges in targets:
                is_coded = read is read_coded
                places = _partners(own, marks, _marks(other), is_coded)
                if places is not None:
                    unit = _Unit(segment, own, marks, other, places, exchanged)
                    return unit.stood(has_edges)
    return None


def _gains_items(read: Read, source: str, target: str) -> bool:
    """Return whether a target has items for a reader to which its source has none, or fewer."""
    counts = []
    for side in (source, target):
        segments = read(f"{_EDGE} {side} {_EDGE}").segments
        counts.append(sum(len(segment.items) for segment in segments))
    return counts[0] < counts[1]


def _sides(
    read: Read, source: str, target: str
) -> Iterator[tuple[Segment, list[tuple[Segment, bool]]]]:
    """Yield the segments of a unit's source, each with what may be its target: without what stands
    at its edges, and where it is the only one with that, between two words that are not its own.
    """
    sources = read(source).segments
    targets = read(target).segments
    whole = read(f"{_EDGE} {target} {_EDGE}").segments
    for number, one in enumerate(sources):
        found = []
        if len(sources) == len(targets):
            found.append((targets[number], False))
        if len(sources) == len(whole) == 1:
            found.append((whole[0], True))
        yield one, found


def _marks(segment: Segment) -> list[_Mark]:
    """Return the items of a segment and what it keeps, in the order of its text."""
    kept = spans(segment.text, segment.kept)
    every: list[tuple[int, int, Item | None]] = [
        (item.start, 0, item) for item in segment.items
    ]
    every += [(span.start, number + 1, None) for number, span in enumerate(kept)]
    every.sort(key=lambda one: one[:2])
    number_of = {id(item): place for place, (_, _, item) in enumerate(every) if item}
    marks = []
    for _, number, item in every:
        if item is None:
            span = kept[number - 1]
            marks.append(_Mark(Kind.KEPT, span.raw, span.start, span.end))
            continue
        partner = None
        if item.partner is not None:
            partner = number_of[id(segment.items[item.partner])]
        marks.append(_Mark(item.kind, item.raw, item.start, item.end, partner))
    return marks


def _shape(segment: Segment, marks: Sequence[_Mark]) -> list[tuple[str, str]]:
    """Return the words of a segment, and in their order the kinds of its marks."""
    shape = []
    place = 0
    for mark in marks:
        shape += _words(segment.text[place : mark.start])
        shape.append((mark.kind_of_place, ""))
        place = max(place, mark.end)
    return shape + _words(segment.text[place:])


def _words(text: str) -> list[tuple[str, str]]:
    text = normal(text)
    return [("word", text[word.start : word.end]) for word in split_words(text)]


def _are_alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether both are the same but for numbers."""
    if one[0] != other[0]:
        return False
    return form_of(one[1]) == form_of(other[1])


def _exchanged(shape: _Shape, wanted: _Shape) -> Iterator[tuple[str, str]]:
    """Yield the words with numbers of a unit that a segment has others for."""
    for (_, old), (_, new) in zip(shape, wanted, strict=True):
        if old != new:
            yield old, new


def _partners(
    own: Sequence[_Mark],
    sources: Sequence[_Mark],
    targets: Sequence[_Mark],
    is_coded: bool,
) -> dict[int, int] | None:
    """Return for each mark of a unit's target that of its source; None where that is not sure.

    The only pair of each is the same one, and the only code: it may well be translated inside.
    """
    partners: dict[int, int] = {}
    for kind in ("open", "point"):
        before = _of_kind(sources, kind)
        after = _of_kind(targets, kind)
        if len(before) != len(after):
            return None
        if len(before) == 1 and (kind == "open" or is_coded):
            partners[after[0]] = before[0]
            continue
        of_core = _by_core(targets, after)
        for core, numbers in _by_core(sources, before).items():
            there = of_core.get(core, [])
            are_same = len({own[number].raw for number in numbers}) == 1
            if len(there) != len(numbers) or not are_same:
                return None
            partners |= zip(there, numbers, strict=True)
    for number, source in list(partners.items()):
        closing = targets[number].partner
        its_closing = sources[source].partner
        if closing is not None and its_closing is not None:
            partners[closing] = its_closing
    is_whole = len(partners) == len(targets) == len(own)
    return partners if is_whole else None


def _of_kind(marks: Sequence[_Mark], kind: str) -> list[int]:
    return [number for number, mark in enumerate(marks) if mark.kind_of_place == kind]


def _by_core(marks: Sequence[_Mark], numbers: Sequence[int]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number in numbers:
        found[marks[number].core].append(number)
    return found


@dataclass(frozen=True)
class _Unit:
    """The target of a unit, with the marks of a segment at the places of its own.

    `places` are of which mark of the unit's source each of its target is, `exchanged` the words of
    the unit with numbers that the segment has others for.
    """

    segment: Segment
    own: Sequence[_Mark]
    sources: Sequence[_Mark]
    target: Segment
    places: Mapping[int, int]
    exchanged: Mapping[str, str]

    def stood(self, has_edges: bool) -> Stood | None:
        """Return the target; None where a mark would have to be written in another way."""
        raws = []
        for number in range(len(self.target.items)):
            raw = self._raw(number)
            if raw is None:
                return None
            raws.append(raw)
        written = self._text(raws, self.segment.escape)
        shown = self._text(list(map(shown_item, raws)), str)
        shown = _SPACES.sub(" ", shown)
        if not has_edges:
            return Stood(written, shown)
        return Stood(_without_edges(written), _without_edges(shown))

    def _raw(self, number: int) -> str | None:
        """Return what is written for an item of the target: with the marks of a sentence that it
        has there around it.
        """
        item = self.target.items[number]
        place = self.places[number]
        own = self.own[place]
        source = self.sources[place]
        if not item.is_point or item.raw == source.raw:
            return own.raw
        if item.raw.count(source.core) != 1:
            return own.raw
        before, _, after = item.raw.partition(source.core)
        if any(character in before + after for character in self.segment.escapes):
            return None
        return before + own.core + after

    def _text(self, raws: Sequence[str], escape: Callable[[str], str]) -> str:
        """Write the words between the items, and the white space that these have there."""
        parts: list[str] = []
        place = 0
        after = ""
        for item, raw in zip(self.target.items, raws, strict=True):
            words = escape(self._words(place, item.start))
            parts += (after, words) if words else ()
            parts += (item.before, raw)
            place = max(place, item.end)
            after = item.after
        words = escape(self._words(place, len(self.target.text)))
        return "".join((*parts, after, words))

    def _words(self, start: int, end: int) -> str:
        text = self.target.text
        for place, raw in self.target.spaces.items():
            space = unescape(raw)
            if len(space) == 1:
                text = text[:place] + space + text[place + 1 :]
        return exchange(text[start:end].strip(" \t\r\n"), self.exchanged)


def _without_edges(text: str) -> str:
    return text.removeprefix(_EDGE).removesuffix(_EDGE).strip()
