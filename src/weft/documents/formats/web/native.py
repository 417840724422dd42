"""Elements whose content is the code of another format: tags of a document as translators' tools
write them.

Sources: XLIFF 1.2 (OASIS, 2008), section 2.4, "Inline Elements"; TMX 1.4b (LISA, 2005), section 4,
"Content Markup". `x` and `g` have no code in them, and are tags like any other.
"""

import re

from weft.documents.document import Kind

_KINDS = {"bpt": Kind.OPEN, "ept": Kind.CLOSE, "ph": Kind.KEPT, "it": Kind.EMPTY}
# by which the two elements of a pair know each other: of TMX, of XLIFF
_PAIR = re.compile(r"\s(?:i|rid)\s*=\s*[\"']?([^\s\"'>]+)")
_ID = re.compile(r"\sid\s*=\s*[\"']?([^\s\"'>]+)")
_POSITION = re.compile(r"\spos\s*=")


def native_kind(name: str, tag: str) -> Kind | None:
    """Return what an element with such a start tag is as a whole; None for one of another kind.

    The name is in small letters. An `it` must say which half of a pair it is.
    """
    if name == "it" and not _POSITION.search(tag):
        return None
    return _KINDS.get(name)


def native_name(tag: str) -> str:
    """Return the name that both elements of a pair have, by one's start tag."""
    found = _PAIR.search(tag) or _ID.search(tag)
    return f"bpt {found[1]}" if found else "bpt"
