"""Units of a translation memory as the segments of documents are: without markup, and without the
placeholders that the model does not read.
"""

import re
from collections.abc import Collection
from functools import partial

from weft.data.formats.codes import has_any
from weft.data.memory import PartsOf, UnitPart
from weft.data.scripts import is_spaceless_letter
from weft.documents.document import Item, Segment
from weft.documents.kept import read_by
from weft.documents.standing import readers_of

# what markup, placeholders and addresses have, and most text has not
_SIGN = re.compile(r"[{<&%`*\\|$@#]|://")


def parts_for(*forms: Collection[str]) -> PartsOf:
    """Return `words_of_unit` for models that read placeholders of some forms, a collection for each
    model; without any, for one that reads none.
    """
    return partial(words_of_unit, readings=forms or ((),))


def words_of_unit(
    source: str, target: str, readings: Collection[Collection[str]] = ((),)
) -> list[UnitPart]:
    """Return the segments of a unit's source with those of its target, as each reader of messages
    has them, with the forms that each reading knows; none where it has no markup, or another number
    of segments on either side. Text with the marks of codes is read by these.
    """
    is_coded = has_any(source + target)
    if not is_coded and not _SIGN.search(source):
        return []
    parts: dict[UnitPart, None] = {}
    for read in readers_of(source + target):
        both = read(source), read(target)
        for forms in readings:
            sources, targets = (read_by(one, forms).segments for one in both)
            if len(sources) != len(targets):
                continue
            for pair in zip(sources, targets, strict=True):
                if is_coded or pair[0].text != source or pair[0].kept:
                    # of a code by itself only the text of the whole unit has the mark
                    raws = (source, target) if is_coded else None
                    parts[_part(*pair, raws)] = None
    return list(parts)


def _part(source: Segment, target: Segment, raws: tuple[str, str] | None) -> UnitPart:
    words = _without_gaps(target)
    return UnitPart(source.text, words, *(raws or (source.source, target.source)))


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
