"""XML as tokens that give the file back: every character belongs to one of them, in its order.

A document type that only names the format is passed over, and what it points to is never opened;
one with declarations of its own is refused, and so are entities that XML itself does not define,
but for those of a page. Source: Extensible Markup Language 1.0, fifth edition (W3C, 2008).
"""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from html import unescape
from typing import NoReturn
from xml.parsers import expat

from weft.documents.inline import Syntax
from weft.errors import UsageError

MAX_DEPTH = 256
# a text as XML writes it has only these of its own
_PREDEFINED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}+|#x[0-9a-fA-F]{1,6}+|\w{1,31}+);")
_WHITE = re.compile(r"(?:\s|&(?:#0*(?:9|10|13|32|160)|#x0*(?:9|[aAdD]|20|[aA]0));)++")
_ENCODINGS = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|us-ascii|iso-8859-\d{1,2}|windows-125\d|cp125\d",
    re.IGNORECASE,
)
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([\w.:-]+)")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


_NONE: Mapping[str, str] = {}


class Xml(Enum):
    """The kinds of tokens.

    EMPTY is a tag that is an element by itself; OTHER a comment, an instruction, a declaration or
    what stands outside the root.
    """

    TEXT = "text"
    CDATA = "cdata"
    START = "start"
    END = "end"
    EMPTY = "empty"
    OTHER = "other"


@dataclass(frozen=True)
class XmlToken:
    """A stretch of XML.

    `name` is that of a tag without its prefix, `space` the namespace that the prefix stands for.
    Attributes have their names without prefix where they have none, else as `NAMESPACE NAME`.
    """

    kind: Xml
    raw: str
    name: str = ""
    space: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def opens(self) -> bool:
        """Return whether an element begins here, also one that ends here at once."""
        return self.kind in (Xml.START, Xml.EMPTY)


@dataclass(frozen=True)
class XmlFile:
    """The tokens of a file, and the encoding in which it is written."""

    tokens: tuple[XmlToken, ...]
    encoding: str


def read_xml(content: bytes, name: str) -> XmlFile:
    """Read a file of XML; `name` is what messages call it.

    Raises UsageError, with the line, for what is not well formed, and for declarations, depths and
    encodings that are not read.
    """
    text, encoding = decode_xml_file(content, name)
    return XmlFile(tuple(_Scanner(text, name).tokens()), encoding)


def decode_xml_file(content: bytes, name: str) -> tuple[str, str]:
    """Return the text of a file of XML, and its encoding.

    Raises UsageError where it is in another one than it says, or in one that is not read.
    """
    encoding = _encoding_of(content, name)
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: byte {error.start + 1} is not {encoding}, in which the file says it is; save it again"
        ) from None


def decode_xml(raw: str) -> str:
    """Read the references of a stretch of text; white space is spaces."""
    return re.sub(r"\s", " ", _REFERENCE.sub(lambda found: unescape(found[0]), raw))


def escapes_of_xml(source: str) -> Mapping[str, str]:
    """Return how a stretch writes characters: a reference that it has for one, unless it also has
    the character itself.
    """
    escapes = dict(_PREDEFINED)
    bare = _REFERENCE.sub("", source)
    for match in _REFERENCE.finditer(source):
        character = unescape(match[0])
        if len(character) == 1 and not character.isspace() and character not in bare:
            escapes[character] = match[0]
    return escapes


def written_as_xml(text: str) -> str:
    """Write a text between two tags, or in an attribute between double quotes."""
    table = {**_PREDEFINED, '"': "&quot;"}
    return text.translate({ord(mark): entity for mark, entity in table.items()})


SYNTAX = Syntax(_WHITE, decode_xml, escapes_of_xml, collapses=True)


def _encoding_of(content: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    found = _DECLARED.match(content)
    declared = found[1].decode("ascii") if found else "utf-8"
    if not _ENCODINGS.fullmatch(declared):
        raise UsageError(
            f"{name}:1: the encoding {declared[:40]} is not read; save the file as UTF-8"
        )
    return declared


class _Scanner:
    """Lets the parser say where each token begins; the stretches between are the tokens."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._content = text.encode("utf-8", "surrogatepass")
        self._begun: list[tuple[int, Xml, str, Mapping[str, str]]] = []
        self._depth = 0
        self._in_other = False
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.namespace_prefixes = False
        parser.ordered_attributes = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.SkippedEntityHandler = self._skipped
        parser.StartCdataSectionHandler = self._start_cdata
        parser.EndCdataSectionHandler = self._end_cdata
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._refuse_declaration
        parser.DefaultHandler = self._other
        self._parser = parser
        self._is_cdata = False

    def tokens(self) -> list[XmlToken]:
        """Read all of the text."""
        try:
            self._parser.Parse(self._content, True)
        except expat.ExpatError as error:
            raise UsageError(
                f"{self._name}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
            ) from None
        return list(self._joined())

    def _joined(self) -> list[XmlToken]:
        found: list[XmlToken] = []
        ends = [begun[0] for begun in self._begun[1:]] + [len(self._content)]
        head = self._begun[0][0] if self._begun else len(self._content)
        if head:
            found.append(XmlToken(Xml.OTHER, self._content[:head].decode("utf-8")))
        for begun, end in zip(self._begun, ends, strict=True):
            start, kind, name, attributes = begun
            raw = self._content[start:end].decode("utf-8", "surrogatepass")
            last = found[-1] if found else None
            if kind is Xml.END and not raw:
                # the end of an element that is one tag
                assert last is not None
                found[-1] = XmlToken(
                    Xml.EMPTY, last.raw, last.name, last.space, last.attributes
                )
            elif last is not None and _go_together(last.kind, kind):
                found[-1] = XmlToken(last.kind, last.raw + raw)
            else:
                space, _, local = name.rpartition(" ")
                found.append(XmlToken(kind, raw, local, space, attributes))
        return found

    def _begin(
        self, kind: Xml, name: str = "", attributes: Mapping[str, str] = _NONE
    ) -> None:
        self._begun.append((self._parser.CurrentByteIndex, kind, name, attributes))

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"elements are nested more than {MAX_DEPTH} deep")
        self._begin(Xml.START, name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._begin(Xml.END, name)

    def _text(self, _data: str) -> None:
        if not self._is_cdata:
            self._begin(Xml.TEXT)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if is_parameter or unescape(f"&{name};") == f"&{name};":
            self._refuse(f"the entity {name[:40]} is declared elsewhere and not read")
        self._begin(Xml.TEXT)

    def _start_cdata(self) -> None:
        self._begin(Xml.CDATA)
        self._is_cdata = True

    def _end_cdata(self) -> None:
        self._is_cdata = False

    def _doctype(
        self, _name: str, _system: str | None, _public: str | None, has_internal: bool
    ) -> None:
        if has_internal:
            self._refuse("the document type has declarations, which are not read")
        self._begin(Xml.OTHER)

    def _refuse_declaration(self, *_: object) -> None:
        self._refuse("the file declares entities, which are not read")

    def _other(self, _data: str) -> None:
        if not self._is_cdata:
            self._begin(Xml.OTHER)

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"{self._name}:{self._parser.CurrentLineNumber}: {what}; remove that"
        )


def _go_together(first: Xml, second: Xml) -> bool:
    return first is second and first in (Xml.TEXT, Xml.OTHER)
