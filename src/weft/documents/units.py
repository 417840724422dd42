"""Units of a translation memory as the segments of documents are: without markup and
placeholders.
"""

import re

from weft.documents.document import TextDocument
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
    sources = _segments(source)
    targets = _segments(target)
    if len(sources) != len(targets):
        return []
    return list(zip(sources, targets, strict=True))


def _segments(text: str) -> list[str]:
    read = read_restructured if is_restructured(text) else read_message
    document: TextDocument = read(text)
    return [segment.text for segment in document.segments]
