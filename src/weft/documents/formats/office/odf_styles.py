"""Styles of OpenDocument that make no difference to the eye, or the same one."""

from weft.documents.formats.xml.elements import Elements

STYLE = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"
# marks of revisions and languages
_UNSEEN = (
    "rsid",
    "paragraph-rsid",
    "language",
    "country",
    "script",
    "rfc-language-tag",
)


def text_looks(elements: Elements) -> dict[str, str]:
    """Return what can be seen of each automatic style of text; "" where nothing can."""
    looks = {}
    for place in elements.named({"style"}, {STYLE}):
        token = elements.tokens[place]
        name = token.attributes.get(f"{STYLE} name", "")
        if token.attributes.get(f"{STYLE} family") == "text":
            looks[name] = _look(elements, place)
    return looks


def _look(elements: Elements, place: int) -> str:
    token = elements.tokens[place]
    parent = token.attributes.get(f"{STYLE} parent-style-name", "")
    found = [parent] if parent else []
    for child in elements.children(place):
        inner = elements.tokens[child]
        for name, value in sorted(inner.attributes.items()):
            local = name.rpartition(" ")[2].removesuffix("-asian")
            if local.removesuffix("-complex") not in _UNSEEN:
                found.append(f"{name}={value}")
    return "\n".join(found)
