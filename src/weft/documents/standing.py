"""The target of a segment as it stood in a file before, with markup and placeholders."""

from collections.abc import Callable, Mapping, Sequence

from weft.documents.document import Segment, TextDocument
from weft.documents.formats.programs.restructured import read_restructured
from weft.documents.formats.text.messages import read_message
from weft.documents.kept import spans

READERS: Sequence[Callable[[str], TextDocument]] = (read_message, read_restructured)
"""The readers of messages; which of them a catalogue needs, one message does not say."""


def as_it_stood(segment: Segment, stands: Mapping[str, str]) -> str | None:
    """Return the target, with markup, that a source had which stood like a segment; None where
    there is none, or it has other items or what the document writes in another way.
    """
    target = stands.get(segment.source)
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
