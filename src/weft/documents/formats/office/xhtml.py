"""Pages of XHTML within a book: read as XML, or as a browser does where that cannot be."""

import re
from collections.abc import Iterator

from weft.documents.direction import is_right_to_left
from weft.documents.document import Note, decode_file
from weft.documents.formats.office.package import Member, Stretch
from weft.documents.formats.web.html import read_markup
from weft.documents.formats.web.markup import (
    Markup,
    Token,
    attributes,
    scan,
    with_value,
)
from weft.documents.formats.xml.elements import Elements
from weft.documents.formats.xml.tokens import Xml, XmlToken, read_xml
from weft.documents.formats.xml.tree import with_attribute
from weft.errors import UsageError

_KINDS = {Xml.TEXT: Markup.TEXT, Xml.START: Markup.START, Xml.END: Markup.END}
_LANGUAGE_NAMES = ("lang", "xml:lang")
_TYPE = "http://www.idpf.org/2007/ops type"
_MARK = re.compile(r"[\[(]\d{1,4}[\])]|[*†‡§¶]{1,3}")
_LINE = re.compile(r":(\d+): ")


def read_page(
    content: bytes, member: str, book: str, target: str
) -> tuple[Member, list[Note]]:
    """Read a member that is a page, and set its language; raises UsageError if it is not text."""
    name = f"{book}, {member}"
    notes = []
    try:
        file = read_xml(content, name)
        tokens = list(_tokens(Elements(file)))
        encoding = file.encoding
    except UsageError as error:
        text = decode_file(content, name)
        tokens = list(scan(text, is_xml=True))
        encoding = "utf-8"
        line = _LINE.search(str(error))
        place = f"{member}, line {line[1]}" if line else member
        notes.append(Note(place, "is no strict XHTML; read as a browser does"))
    described = sum(_has_description(token) for token in tokens)
    if described:
        notes.append(Note(member, f"alternative texts of pictures stay: {described}"))
    told = [_told(token, target) for token in tokens]
    raw = "".join(token.raw for token in told)
    document = read_markup(told)
    stretch = Stretch([raw], document, member)
    return Member(member, [stretch], encoding), notes


def _tokens(elements: Elements) -> Iterator[Token]:
    """Yield the tokens of a page; a reference to a note is one."""
    place = 0
    while place < len(elements.tokens):
        token = elements.tokens[place]
        if token.kind is Xml.START and _is_reference(elements, place, token):
            after = elements.after(place)
            yield Token(Markup.OTHER, elements.raw(place, after))
            place = after
            continue
        kind = _KINDS.get(token.kind, Markup.OTHER)
        yield Token(kind, token.raw, token.name.lower())
        place += 1


def _is_reference(elements: Elements, place: int, token: XmlToken) -> bool:
    """Return whether an element is the number of a note, or another one that is raised."""
    if token.name not in ("a", "sup"):
        return False
    text = elements.plain(place).strip()
    if not text or any(map(str.isalpha, text)):
        return False
    if token.name == "sup" or _MARK.fullmatch(text):
        return True
    told = token.attributes.get(_TYPE, "")
    role = token.attributes.get("role", "")
    return "noteref" in f"{told} {role}"


def _has_description(token: Token) -> bool:
    return token.name == "img" and bool(attributes(token.raw).get("alt"))


def _told(token: Token, target: str) -> Token:
    """Return the tag of a page that says the language and the direction of the translation."""
    if not target or token.name != "html" or token.kind is not Markup.START:
        return token
    raw = with_value(token.raw, _LANGUAGE_NAMES, target)
    if is_right_to_left(target):
        raw = with_attribute(raw, "dir", "rtl")
    elif attributes(raw).get("dir") == "rtl":
        raw = with_attribute(raw, "dir", "ltr")
    return Token(token.kind, raw, token.name)
