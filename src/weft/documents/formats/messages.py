"""Messages of programs: plain text with placeholders and tags, or a piece of HTML."""

import re
from dataclasses import replace

from weft.documents.document import TextDocument
from weft.documents.formats.html import read_html
from weft.documents.formats.plain import SYNTAX as PLAIN
from weft.documents.formats.plain import read_plain
from weft.documents.inline import Syntax

MESSAGE = replace(PLAIN, keeps_numbers=True)
# block tags, entities, elements that are kept: what only a reader of HTML knows
_HTML = re.compile(
    r"<(?:p|div|ul|ol|li|h[1-6]|table|tr|td|blockquote|br|hr|img|code|kbd|pre)\b[^<>]*>"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|hellip|[mn]dash|[lr][sd]quo|copy|#\d{1,7}|#x[0-9a-f]{1,6});",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"</?\d{1,3}\s*/?>")  # a tag in messages of React


def read_message(text: str, syntax: Syntax = MESSAGE) -> TextDocument:
    """Read a message, as HTML where it shows that it is."""
    if syntax is MESSAGE and _HTML.search(text) and not _NUMBERED.search(text):
        return read_html(text)
    return read_plain(text, syntax)


def joined(documents: list[TextDocument], between: str) -> TextDocument:
    """Make one document of several, with a stretch between each two."""
    segments = documents[0].segments
    skeleton = documents[0].skeleton
    for document in documents[1:]:
        seam = skeleton[-1] + between + document.skeleton[0]
        segments += document.segments
        skeleton = (*skeleton[:-1], seam, *document.skeleton[1:])
    return TextDocument(segments, skeleton)
