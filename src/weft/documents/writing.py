"""The translation of a segment as its document writes it: tags, placeholders and entities back."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from weft.documents.begun import Begun
from weft.documents.document import (
    Doubt,
    Item,
    Kind,
    Segment,
    Translated,
    shown_item,
)
from weft.documents.kept import repair_kept, spans, words_around
from weft.documents.numbers import NO_NUMBERS, Numbers, differing, repair_numbers
from weft.documents.placing import Placed, cuts_of, place
from weft.documents.words import (
    OPENING,
    Word,
    is_mark,
    is_wide,
    link,
    split_words,
)

# how Chinese and Japanese write the marks that a placeholder may come with
_WIDE_MARKS = {",": "，", ";": "；", ":": "："}
_MARK = re.compile(r"([,;:])\s+")
_CHINESE = re.compile("[\u3001-\u9fff\uff01-\uff60\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u30ff]")
PLACED_ANEW = "Tags of a unit of the memory were placed by the alignment."


@dataclass(frozen=True)
class Mended:
    """A segment and its translation, in which all is that has to be, and what that took.

    What `stood` in a file before, with its markup, is written as it is, and `stood_shown` to a
    person.
    """

    segment: Segment
    translated: Translated
    numbers: Numbers = NO_NUMBERS
    stood: str | None = None
    stood_shown: str = ""

    @property
    def doubt(self) -> Doubt:
        """Return the doubt of the translation, with the remarks on its numbers and tags."""
        doubt = self.translated.doubt
        # with another number it is no longer what the memory has
        taken = "repaired" if self.has_wrong_unit else doubt.taken
        return replace(doubt, remarks=(*doubt.remarks, *self.remarks()), taken=taken)

    def remarks(self) -> Iterator[str]:
        """Yield what a person should check of its numbers and tags, each a sentence."""
        yield from self.number_remarks()
        if self.is_placed_anew:
            yield PLACED_ANEW

    def number_remarks(self) -> Iterator[str]:
        """Yield what a person should check of its numbers, and where a memory has others."""
        yield from self.numbers.remarks()
        if self.has_wrong_unit:
            yield f"The translation memory has another number: {self.translated.doubt.where}."

    @property
    def has_wrong_unit(self) -> bool:
        """Return whether a number of the segment had to be put into the unit of a memory."""
        return bool(self.numbers.put_back and self.translated.doubt.taken)

    @property
    def is_placed_anew(self) -> bool:
        """Return whether a memory has the words, but not the places of the items among them."""
        if self.stood is not None or self.is_same or not self.segment.items:
            return False
        return self.translated.doubt.taken != ""

    @property
    def is_same(self) -> bool:
        """Return whether the translation is the text itself, so that the source stays."""
        return self.translated.text == self.segment.text

    def text(self) -> str:
        """Return what takes the place of the segment's source."""
        if self.stood is not None:
            return self.stood
        if self.is_same:
            return self.segment.source
        segment = self.segment
        if not segment.items and not segment.spaces and not segment.kept:
            return segment.escape(self.translated.text)
        return _Writer(segment, self.translated).text()

    def shown(self) -> Translated:
        """Return the translation with placeholders and numbers where they are written, but without
        tags, for a person; its words at their places there.
        """
        if self.stood is not None:
            shown = self.stood_shown or self.stood
            return replace(self.translated, text=shown, words=())
        segment = _without_tags(self.segment)
        if not segment.items:
            return self.translated
        writer = _Writer(segment, self.translated)
        text = writer.text()
        return replace(self.translated, text=text, words=writer.places())


def mend(segment: Segment, translated: Translated) -> Mended:
    """Put right what a translation has lost or changed of a segment's placeholders and numbers.

    A translation that is the text itself is right.
    """
    if translated.text == segment.text:
        return Mended(segment, translated)
    if segment.kept:
        segment, translated = repair_kept(segment, translated)
    if not segment.keeps_numbers:
        return Mended(segment, translated, differing(segment, translated))
    return Mended(*repair_numbers(segment, translated))


def write_segment(segment: Segment, translated: Translated) -> str:
    """Return what takes the place of a segment's source.

    A translation that is the text itself leaves the source as it is, byte for byte.
    """
    return mend(segment, translated).text()


def shown_source(segment: Segment, words: Sequence[tuple[int, int]]) -> Translated:
    """Return the text of a segment as `Mended.shown` does its translation; some words move to their
    places there.
    """
    places = [(word.start, word.end) for word in split_words(segment.text)]
    itself = [(*place, *place) for place in places]
    return Mended(segment, Translated(segment.text, itself, words=words)).shown()


def _without_tags(segment: Segment) -> Segment:
    """Return a segment whose items are shown as a person reads them: without tags, and as they are
    but for entities.
    """
    items = []
    for item in segment.items:
        shown = shown_item(item.raw) if item.kind is Kind.KEPT else ""
        items.append(replace(item, raw=shown))
    if not any(item.raw for item in items):
        items = []
    return replace(segment, items=tuple(items), spaces={}, escapes={})


def write_begun(begun: Begun, translated: Translated) -> str:
    """Return what takes the place of a segment where a person has begun its translation, which has
    the text of that at its head: what they wrote, and the rest with the items that are to come.
    """
    segment = begun.segment
    if segment.kept:
        repaired = repair_kept(segment, translated)
        if repaired[1].text.startswith(begun.text):
            segment, translated = repaired
    rest = _Writer(segment, translated).rest(len(begun.text))
    return begun.prefix + (rest.lstrip() if begun.prefix[-1:].isspace() else rest)


class _Writer:
    """Writes one translation."""

    def __init__(self, segment: Segment, translated: Translated) -> None:
        src_cuts, tgt_cuts = cuts_of(translated)
        self._segment = segment
        self._translation = translated.text
        self._kept = spans(translated.text, segment.kept)
        src_kept = spans(segment.text, segment.kept)
        self._src = words_around(segment.text, src_kept, src_cuts)
        self._tgt = words_around(translated.text, self._kept, tgt_cuts)
        self._targets = link(self._src, self._tgt, translated.alignment)
        places = zip(segment.items, _whites(segment), strict=True)
        self._whites = {id(item): whites for item, whites in places}
        self._words = translated.words
        self._begins: list[int] = []  # of the words in what is written

    def rest(self, place: int) -> str:
        """Return what stands behind a place of the translation, and no item before it."""
        first = sum(word.start < place for word in self._tgt)
        end = self._tgt[first - 1].end if first else 0
        return self._segment.escape(self._translation[place:end]) + self.text(first)

    def text(self, first: int = 0) -> str:
        """Return what stands from a boundary on, where all items are."""
        items = self._segment.items
        at: defaultdict[int, list[Item]] = defaultdict(list)
        for entry in self._placed(first):
            at[entry.boundary].append(items[entry.item])
        spaces = self._hard_spaces()
        is_kept = {span.start for span in self._kept}
        parts: list[str] = []
        number_of = []
        for boundary in range(first, len(self._tgt) + 1):
            white = self._white(boundary)
            if boundary in at:
                parts += self._gap(at[boundary], boundary, white)
            elif white:
                parts.append(spaces.get(boundary, white))
            if boundary < len(self._tgt):
                word = self._tgt[boundary]
                shown = self._translation[word.start : word.end]
                if word.start not in is_kept:
                    shown = self._segment.escape(shown)
                number_of.append(len(parts))
                parts.append(shown)
        begins = list(accumulate(map(len, parts), initial=0))
        self._begins = [begins[number] for number in number_of]
        return "".join(parts)

    def places(self) -> list[tuple[int, int]]:
        """Return where the words of interest are in what is written without escapes."""
        starts = [word.start for word in self._tgt]

        def moved(place: int) -> int:
            number = bisect_right(starts, place) - 1
            if number < 0:
                return 0
            return self._begins[number] + place - starts[number]

        return [
            (moved(start), moved(end - 1) + 1) if start < end else (0, 0)
            for start, end in self._words
        ]

    def _placed(self, first: int) -> list[Placed]:
        return place(
            self._segment,
            self._translation,
            self._src,
            self._tgt,
            self._targets,
            first,
        )

    def _white(self, boundary: int) -> str:
        """Return the white space that the translation has at a boundary."""
        start = self._tgt[boundary - 1].end if boundary else 0
        is_last = boundary == len(self._tgt)
        if is_last:
            return self._translation[start:]
        end = self._tgt[boundary].start
        return self._translation[start:end]

    def _hard_spaces(self) -> dict[int, str]:
        """Return how spaces are written whose neighbours are neighbours as in the source."""
        found = {}
        number_of = {word.end: number for number, word in enumerate(self._src)}
        for start, raw in self._segment.spaces.items():
            number = number_of.get(start)
            if number is None or number + 1 >= len(self._src):
                continue
            after = set(self._targets[number + 1])
            for target in self._targets[number]:
                if target + 1 in after:
                    found[target + 1] = raw
        return found

    def _gap(self, items: Sequence[Item], boundary: int, white: str) -> list[str]:
        """Write the items at a boundary; the translation has some white space there."""
        parts: list[str] = []
        tags: list[Item] = []
        before: Item | None = None
        for item in items:
            if not item.is_point:
                tags.append(item)
                continue
            between = self._white_between(before, item, boundary)
            parts += _with_white(tags, between)
            parts.append(self._shown(item, boundary))
            before = item
            tags = []
        has_own = any(tag.before or tag.after for tag in tags)
        if before and not (white and has_own):
            white = self._white_between(before, None, boundary)
        return parts + _with_white(tags, white)

    def _shown(self, item: Item, boundary: int) -> str:
        """Return an item as it is written; a mark that it came with is that of its new neighbour's
        script.
        """
        found = _MARK.match(item.raw)
        before = self._neighbour(boundary, -1)
        if not found or not _CHINESE.match(before):
            return item.raw
        mark = _WIDE_MARKS[found[1]]
        if mark == "，" and _KANA.search(self._translation):
            mark = "、"
        return mark + item.raw[found.end() :]

    def _white_between(
        self, before: Item | None, after: Item | None, boundary: int
    ) -> str:
        """Return the white space between two items at a boundary; None is a word."""
        if before and after:
            _, white = self._whites[id(before)]
            other, _ = self._whites[id(after)]
            return white or other
        if after:
            return self._side(after, boundary, -1)
        if before:
            return self._side(before, boundary, 1)
        return ""

    def _side(self, item: Item, boundary: int, step: int) -> str:
        """Return the white space on one side of what stands between words.

        There is as much as in the source, but none at a mark that has none. Where a mark stood
        in the source and a word stands now, there is a space. What stands inside a word has none of
        its own: that of the translation is before it.
        """
        neighbour = self._neighbour(boundary, step)
        there = self._white(boundary)
        if not self._separates(item):
            return there if step < 0 else ""
        if not neighbour or (_is_bound(neighbour, step) and not there):
            return ""
        left, right = self._whites[id(item)]
        white = left if step < 0 else right
        if white or item.kind is Kind.BREAK or is_wide(neighbour):
            return white
        source = self._segment.text
        place = item.start - 1 if step < 0 else item.end
        stood = source[place] if 0 <= place < len(source) else ""
        was_mark = not stood or is_mark(stood)
        is_apart = was_mark and not is_mark(neighbour)
        return " " if is_apart else ""

    def _separates(self, item: Item) -> bool:
        """Return whether an item stands between words in the source, not inside one."""
        if item.kind is not Kind.EMPTY or item.end > item.start:
            return True
        return any(self._whites[id(item)])

    def _neighbour(self, boundary: int, step: int) -> str:
        """Return the character of the translation before or after a boundary."""
        number = boundary - 1 if step < 0 else boundary
        if not 0 <= number < len(self._tgt):
            return ""
        word: Word = self._tgt[number]
        place = word.end - 1 if step < 0 else word.start
        return self._translation[place]


def _with_white(tags: Sequence[Item], white: str) -> list[str]:
    """Write tags with white space before, between or after them.

    It is where they have it in the source; where none has it there, it is after those that close.
    """
    if not white:
        return [tag.raw for tag in tags]
    slots = [""] * (len(tags) + 1)
    for number, tag in enumerate(tags):
        # what is between two tags was between them in the source, too
        is_shared = number == 0 or tags[number - 1].after == tag.before
        if is_shared:
            slots[number] = tag.before
    slots[-1] = tags[-1].after if tags else white
    if not any(slots):
        closing = [tag.kind is Kind.CLOSE for tag in tags]
        closing.append(False)
        first = closing.index(False)
        slots[first] = white
    parts = [slots[0]]
    for tag, slot in zip(tags, slots[1:], strict=True):
        parts.append(tag.raw)
        parts.append(slot)
    return parts


def _is_bound(neighbour: str, step: int) -> bool:
    """Return whether a character is a mark that has its space on its other side alone."""
    if step < 0:
        return neighbour in OPENING
    return is_mark(neighbour) and neighbour not in OPENING


def _whites(segment: Segment) -> list[tuple[str, str]]:
    """Return the white space on both sides of each item, up to the next word or point: tags of
    pairs may stand between.
    """
    items = segment.items
    before = [item.before for item in items]
    after = [item.after for item in items]
    for number in range(1, len(items)):
        reached = number - 1
        if not before[number] and _reaches(segment, reached, reached):
            before[number] = before[reached]
    for number in reversed(range(len(items) - 1)):
        reached = number + 1
        if not after[number] and _reaches(segment, number, reached):
            after[number] = after[reached]
    return list(zip(before, after, strict=True))


def _reaches(segment: Segment, first: int, over: int) -> bool:
    """Return whether no word is between an item and the next one, and the one that is stepped over
    is a tag of a pair.
    """
    items = segment.items
    start = items[first].end
    end = items[first + 1].start
    is_empty = not segment.text[start:end].strip()
    return is_empty and not items[over].is_point
