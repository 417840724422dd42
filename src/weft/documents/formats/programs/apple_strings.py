"""Strings of Apple's programs: .strings, `"key" = "value";`, and .stringsdict, a property list of
the forms of plurals. The values are translated.

Source: Apple, "Localizing Strings" and "Stringsdict File Format".
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from functools import partial

from weft.documents.document import Doubt, Reading, TextDocument, decode_file
from weft.documents.formats.text.messages import MESSAGE, read_message
from weft.documents.formats.text.plain import pieces_around
from weft.documents.formats.text.values import Collector, ValuesDocument
from weft.documents.formats.xml.tokens import Xml, XmlToken, decode_xml, read_xml
from weft.documents.inline import Builder
from weft.errors import UsageError

_TOKEN = re.compile(
    r"(?P<skip>\s++|//[^\r\n]*+|/\*.*?\*/)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*+\")|(?P<bare>[\w.$/:-]++)|(?P<mark>[=;])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t"}
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_FORMS = {"zero", "one", "two", "few", "many", "other"}
_FORMAT_KEY = "NSStringLocalizedFormatKey"
# a variable of a format, which another dictionary explains
_VARIABLE = re.compile(r"%(?:\d+\$)?#@\w+@")


def open_strings(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of strings, UTF-8 or UTF-16; raises UsageError, with the line, if it is none."""
    encoding = _encoding_of(content, reading.name)
    if encoding == "utf-8":
        text = decode_file(content, reading.name)
    else:
        text = _decode_wide(content, encoding, reading.name)
    found = Collector()
    place = 0
    for key, start, end in _values(text, reading.name):
        found.keep(text[place:start])
        place = end
        raw = text[start:end]
        encode = partial(_encoded, raw)
        where = f"line {found.line}, {key}"
        found.add(raw, _read(_decoded(raw)), encode, where)
    found.keep(text[place:])
    return found.document(encoding)


def _encoding_of(content: bytes, name: str) -> str:
    if content.startswith(b"bplist"):
        raise UsageError(
            f"{name}: is a compiled property list; translate the file that it was made from"
        )
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    head = content[:100]
    if head[1::2].count(0) > len(head) // 4:
        return "utf-16-le"
    return "utf-16-be" if head[::2].count(0) > len(head) // 4 else "utf-8"


def _decode_wide(content: bytes, encoding: str, name: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}: byte {error.start + 1} is not UTF-16; save the file as UTF-8"
        ) from None


def _values(text: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield each key, and where its value begins and ends between its quotes."""
    waiting: list[tuple[str, str, int, int]] = []
    for kind, start, end in _tokens(text, name):
        raw = text[start:end]
        if kind in ("string", "bare") and len(waiting) in (0, 2):
            waiting.append((kind, raw, start, end))
        elif raw == "=" and len(waiting) == 1:
            waiting.append(("mark", raw, start, end))
        elif raw == ";" and len(waiting) in (1, 3):
            key = waiting[0][1].strip('"')
            if waiting[-1][0] == "string":
                yield key, waiting[-1][2] + 1, waiting[-1][3] - 1
            waiting = []
        else:
            _refuse(text, start, name)
    if waiting:
        _refuse(text, len(text), name)


def _tokens(text: str, name: str) -> Iterator[tuple[str, int, int]]:
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            _refuse(text, place, name)
            return
        place = match.end()
        if match.lastgroup != "skip":
            yield match.lastgroup or "", match.start(), place


def _refuse(text: str, place: int, name: str) -> None:
    line = text.count("\n", 0, place) + 1
    raise UsageError(
        f'{name}:{line}: not what a file of strings has here; its entries are "key" = "value";'
    )


def _decoded(raw: str) -> str:
    return _ESCAPE.sub(_character, raw)


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2]:
        return chr(int(escape[2], 8))
    return _SIMPLE.get(escape[3], escape[3])


def _read(text: str) -> TextDocument:
    """Read a value; variables of formats stay."""
    spans = [match.span() for match in _VARIABLE.finditer(text)]
    if not spans:
        return read_message(text)
    builder = Builder(MESSAGE)
    builder.run(list(pieces_around(text, spans)))
    return builder.document()


def _encoded(raw: str, text: str, _doubts: Sequence[Doubt]) -> str:
    """Write a value between its quotes; line breaks as the value has them."""
    written = text.replace("\\", "\\\\").replace('"', '\\"')
    if "\n" not in raw:
        written = written.replace("\n", "\\n").replace("\r", "\\r")
    return written if "\t" in raw else written.replace("\t", "\\t")


def open_stringsdict(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of plurals; raises UsageError, with the line, for what is no XML."""
    file = read_xml(content, reading.name)
    found = Collector()
    keys = [""]  # that of each dictionary that is open
    is_key = False
    is_text = False
    for token in file.tokens:
        if token.kind is Xml.START:
            is_key = token.name == "key"
            is_text = token.name == "string" and _has_text(keys)
            if token.name == "dict":
                keys.append("")
        elif token.kind is Xml.END:
            is_key = is_text = False
            if token.name == "dict":
                keys.pop()
        elif is_key and token.kind is Xml.TEXT:
            keys[-1] = decode_xml(token.raw).strip()
        if is_text and token.kind is Xml.TEXT:
            _add_form(found, token, keys)
        else:
            found.keep(token.raw)
    return found.document(file.encoding)


def _has_text(keys: Sequence[str]) -> bool:
    return keys[-1] in _FORMS or keys[-1] == _FORMAT_KEY


def _add_form(found: Collector, token: XmlToken, keys: Sequence[str]) -> None:
    where = f"line {found.line}, {'.'.join(filter(None, keys))}"
    found.add(token.raw, _read(decode_xml(token.raw)), _as_xml, where)


def _as_xml(text: str, _doubts: Sequence[Doubt]) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
