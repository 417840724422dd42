"""Units of a translation memory as the segments of documents are: without markup and
placeholders.
"""

import re

from weft.data.memory import UnitPart
from weft.data.scripts import is_spaceless_letter
from weft.documents.document import Item, Segment
from weft.documents.standing import READERS

# what markup, placeholders and addresses have, and most text has not
_SIGN = re.compile(r"[{<&%`*\\|$@#]|://")


def words_of_unit(source: str, target: str) -> list[UnitPart]:
    """Return the segments of a unit's source with those of its target, as each reader of messages
    has them; none where it has no markup, or another number of segments on either side.
    """
    if not _SIGN.search(source):
        return []
    parts: dict[UnitPart, None] = {}
    for read in READERS:
        sources = read(source).segments
        targets = read(target).segments
        if len(sources) == len(targets):
            parts.update(dict.fromkeys(map(_part, sources, targets)))
    return [part for part in parts if part.source != source]


def _part(source: Segment, target: Segment) -> UnitPart:
    words = _without_gaps(target)
    return UnitPart(source.text, words, source.source, target.source)


def _without_gaps(segment: Segment) -> str:
    """Return the text of a segment without the spaces that stand for placeholders between letters
    of a script that has none.
    """
    text = segment.text
    for item in reversed(segment.items):
        if _is_gap(text, item):
            before = text[: item.start]
            text = before + text[item.end :]
    return text


def _is_gap(text: str, item: Item) -> bool:
    """Return whether an item has a space that is not there in the file, between such letters."""
    if item.before or item.after:
        return False
    if text[item.start : item.end] != " ":
        return False
    before = text[: item.start][-1:]
    after = text[item.end :][:1]
    return all(map(_is_spaceless, (before, after)))


def _is_spaceless(letter: str) -> bool:
    return letter != "" and is_spaceless_letter(letter)
