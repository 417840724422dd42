"""The translation of a segment as its document writes it: tags, placeholders and entities back."""

from collections import defaultdict
from collections.abc import Sequence

from weft.documents.document import Item, Kind, Segment, Translated
from weft.documents.placing import cuts_of, place
from weft.documents.words import Word, is_mark, is_wide, link, split_words


def write_segment(segment: Segment, translated: Translated) -> str:
    """Return what takes the place of a segment's source.

    A translation that is the text itself leaves the source as it is, byte for byte.
    """
    if translated.text == segment.text:
        return segment.source
    if not segment.items and not segment.spaces:
        return segment.escape(translated.text)
    return _Writer(segment, translated).text()


class _Writer:
    """Writes one translation."""

    def __init__(self, segment: Segment, translated: Translated) -> None:
        src_cuts, tgt_cuts = cuts_of(translated)
        self._segment = segment
        self._translation = translated.text
        self._src = split_words(segment.text, src_cuts)
        self._tgt = split_words(translated.text, tgt_cuts)
        self._targets = link(self._src, self._tgt, translated.alignment)

    def text(self) -> str:
        placed = place(self._segment, self._src, self._tgt, self._targets)
        at: defaultdict[int, list[Item]] = defaultdict(list)
        for entry in placed:
            at[entry.boundary].append(self._segment.items[entry.item])
        spaces = self._hard_spaces()
        parts = []
        for boundary in range(len(self._tgt) + 1):
            white = self._white(boundary)
            if boundary in at:
                parts += self._gap(at[boundary], boundary, white)
            else:
                parts.append(spaces.get(boundary, white) if white else "")
            if boundary < len(self._tgt):
                word = self._tgt[boundary]
                shown = self._translation[word.start : word.end]
                parts.append(self._segment.escape(shown))
        return "".join(parts)

    def _white(self, boundary: int) -> str:
        """Return the white space that the translation has at a boundary."""
        start = self._tgt[boundary - 1].end if boundary else 0
        is_last = boundary == len(self._tgt)
        end = len(self._translation) if is_last else self._tgt[boundary].start
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
        """Write the items at a boundary, and the white space around each.

        Tags have it where they have it in the source; where none has it there, it is after those
        that close.
        """
        slots = [""] * (len(items) + 1)
        separate = False
        previous: Item | None = None
        for number, item in enumerate(items):
            if item.is_point:
                before = self._side(item, boundary, -1)
                after = self._side(item, boundary, 1)
                separate = separate or _separates(item)
            else:
                before = _kept_white(previous, item) if white else ""
                after = item.after if white and number + 1 == len(items) else ""
            slots[number] = slots[number] or before
            slots[number + 1] = after
            previous = item
        if white and not any(slots) and not separate:
            closing = [item.kind is Kind.CLOSE for item in items] + [False]
            slots[closing.index(False)] = white
        parts = [slots[0]]
        for item, slot in zip(items, slots[1:], strict=True):
            parts += (item.raw, slot)
        return parts

    def _side(self, item: Item, boundary: int, step: int) -> str:
        """Return the white space on one side of what stands between words.

        There is as much as in the source. Where a mark stood in the source and a word stands now,
        there is a space.
        """
        white = item.before if step < 0 else item.after
        neighbour = self._neighbour(boundary, step)
        if not neighbour or item.kind is Kind.BREAK:
            return white if neighbour else ""
        source = self._segment.text
        place = item.start - 1 if step < 0 else item.end
        stood = source[place] if 0 <= place < len(source) else ""
        is_edge = not stood or is_mark(stood)
        if white or not is_edge or is_mark(neighbour) or is_wide(neighbour):
            return white
        return " "

    def _neighbour(self, boundary: int, step: int) -> str:
        """Return the character of the translation before or after a boundary."""
        number = boundary - 1 if step < 0 else boundary
        if not 0 <= number < len(self._tgt):
            return ""
        word: Word = self._tgt[number]
        return self._translation[word.end - 1 if step < 0 else word.start]


def _kept_white(previous: Item | None, item: Item) -> str:
    """Return the white space before a tag; none, where it did not follow the same item."""
    if previous is not None and previous.after != item.before:
        return ""
    return item.before


def _separates(item: Item) -> bool:
    """Return whether an item stands between words in the source, not inside one."""
    has_white = bool(item.before or item.after)
    return item.kind is not Kind.EMPTY or has_white or item.end > item.start
