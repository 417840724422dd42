"""A segment whose translation a person has begun: with some of its items where they belong."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.documents.document import Item, Kind, Segment, items_without
from weft.documents.kept import spans
from weft.documents.words import OPENING, is_mark


@dataclass(frozen=True)
class Begun:
    """The beginning of a translation as a person wrote it; its `text` is that without items, which
    a model reads. The segment has those that are still to come.
    """

    prefix: str
    text: str
    segment: Segment


def begin(segment: Segment, prefix: str) -> Begun:
    """Find the items of a segment in the beginning of its translation, each once."""
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for number, item in enumerate(segment.items):
        waiting[item.raw].append(number)
    there: list[int] = []
    stretches: list[str] = []
    place = 0
    for span in spans(prefix, waiting):
        if waiting[span.raw]:
            there.append(waiting[span.raw].popleft())
            stretches.append(prefix[place : span.start])
            place = span.end
    stretches.append(prefix[place:])
    items = [segment.items[number] for number in there]
    return Begun(
        prefix,
        _text_of(stretches, items),
        replace(segment, items=items_without(segment.items, there)),
    )


def _text_of(stretches: Sequence[str], items: Sequence[Item]) -> str:
    """Return the text of stretches with items between them."""
    text = stretches[0]
    for place, item in enumerate(items, start=1):
        after = "".join(stretches[place:])
        text = _before(item, text, after)
        following = stretches[place]
        # at the head of a text there is no white space
        if not text:
            following = following.lstrip()
        text += following
    return text


def _before(item: Item, text: str, after: str) -> str:
    """Return the text before an item, without a space that the text has on its other side too, or
    that only the item needs.
    """
    if not after:
        needs_none = item.kind is not Kind.OPEN
    else:
        first = after[0]
        closes = is_mark(first) and first not in OPENING
        needs_none = closes or first.isspace()
    return text.rstrip() if needs_none else text
