"""The language of a document of OpenDocument: what of its styles says it, and the direction."""

from dataclasses import replace

from weft.documents.direction import is_east_asian, is_right_to_left
from weft.documents.formats.web.markup import attributes
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tokens import XmlFile, XmlToken
from weft.documents.formats.xml.tree import with_attribute

_REGION = 2  # letters of a country in a code
_DIRECTED = {"paragraph-properties", "page-layout-properties"}


def in_tongue(elements: Elements, code: str) -> Elements:
    """Return the elements of a member whose styles say a language, where they said one."""
    if not code:
        return elements
    told = tuple(_told(token, code) for token in elements.tokens)
    return Elements(XmlFile(told, elements.encoding))


def _told(token: XmlToken, code: str) -> XmlToken:
    if not token.opens or not token.name.endswith("-properties"):
        return token
    raw = token.raw
    if token.name == "text-properties":
        raw = _with_language(raw, code)
    elif token.name in _DIRECTED:
        raw = _with_direction(raw, code)
    return replace(token, raw=raw)


def _with_language(raw: str, code: str) -> str:
    language, *rest = code.split("-")
    regions = [part for part in rest if len(part) == _REGION]
    country = regions[0].upper() if regions else "none"
    # scripts of Asia and those with complex layout have attributes of their own
    names = ("fo:language", "fo:country")
    if is_right_to_left(code):
        names = ("style:language-complex", "style:country-complex")
    elif is_east_asian(code):
        names = ("style:language-asian", "style:country-asian")
    if names[0] not in attributes(raw):
        return raw
    raw = with_attribute(raw, names[0], language.lower())
    return with_attribute(raw, names[1], country)


def _with_direction(raw: str, code: str) -> str:
    found = attributes(raw).get("style:writing-mode", "")
    if found not in ("lr-tb", "rl-tb"):
        return raw
    mode = "rl-tb" if is_right_to_left(code) else "lr-tb"
    return with_attribute(raw, "style:writing-mode", mode)
