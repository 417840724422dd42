"""Units of a translation memory as the segments of documents are: without markup and
placeholders.
"""

import re
from collections.abc import Sequence

from weft.data.scripts import is_spaceless_letter
from weft.documents.document import Segment, TextDocument
from weft.documents.formats.messages import read_message
from weft.documents.formats.restructured import is_restructured, read_restructured

# what markup, placeholders and addresses have, and most text has not
_SIGN = re.compile(r"[{<&%`*\\|$@#]|://")


def words_of_unit(source: str, target: str) -> list[tuple[str, str]]:
    """Return the segments of a unit's source with those of its target; none where it has no markup,
    or another number of segments on either side.
    """
    if not _SIGN.search(source):
        return []
    sources = [segment.text for segment in _segments(source)]
    targets = [_without_gaps(segment) for segment in _segments(target)]
    if len(sources) != len(targets):
        return []
    return list(zip(sources, targets, strict=True))


def _segments(text: str) -> Sequence[Segment]:
    read = read_restructured if is_restructured(text) else read_message
    document: TextDocument = read(text)
    return document.segments


def _without_gaps(segment: Segment) -> str:
    """Return the text of a segment without the spaces that stand for placeholders between letters
    of a script that has none.
    """
    text = segment.text
    for item in reversed(segment.items):
        is_gap = text[item.start : item.end] == " " and not (item.before or item.after)
        around = text[item.start - 1 : item.start] + text[item.end : item.end + 1]
        if is_gap and len(around) == 2 and all(map(is_spaceless_letter, around)):
            text = text[: item.start] + text[item.end :]
    return text
