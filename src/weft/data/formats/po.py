"""PO, the catalogues of messages of gettext, read as pairs.

Source: GNU gettext utilities 0.22, "The Format of PO Files" and "Plural forms".
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.data import languages
from weft.data.formats.lines import filled_lines
from weft.data.formats.pairs import OpenPairs, Sides, doubt_name, other_way
from weft.data.formats.row import TOO_LONG, PairRow
from weft.errors import DataError

NOT_TRANSLATED = "message without a translation"
TO_BE_REVIEWED = "message to be reviewed (fuzzy)"
OBSOLETE = "obsolete message"
# so many forms have the singular in the first one: of a language with more, as Arabic has, nothing
# but its plural can be told
_MOST_FORMS = 4
_LINE = re.compile(
    r"(?P<obsolete>#~\s*)?"
    r"(?P<keyword>msgctxt|msgid_plural|msgid|msgstr(?:\[(?P<form>\d{1,3})\])?)?"
    r'\s*"(?P<text>(?:[^"\\]|\\.)*+)"\s*'
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "", "b": "", "f": "\n", "v": "\n"}
_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*)$", re.M)


@dataclass
class _Message:
    """A message as it is read; the texts by their keywords, of `msgstr` by their forms."""

    line: int = 0
    is_fuzzy: bool = False
    is_obsolete: bool = False
    is_too_long: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    forms: dict[int, str] = field(default_factory=dict)

    @property
    def is_header(self) -> bool:
        return self.texts.get("msgid") == "" and "msgctxt" not in self.texts


def open_po(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open a catalogue, in the languages asked for; else from that of its messages, which only some
    headers say, to that of its header.
    """
    own = _languages_of(path)
    pair, is_turned = _direction(asked, named, own)
    dropped = Counter[str]()
    notes = doubt_name(pair, own)
    if pair[0] == languages.UNKNOWN or pair[1] == languages.UNKNOWN:
        notes.append(
            f"its header does not say both languages: read as {pair[0]} to {pair[1]}; "
            "say them with data.src_lang and data.tgt_lang"
        )
    elif not any(asked):
        notes.append(f"read as {pair[0]} to {pair[1]}; {other_way(pair)}")
    rows = read_po(path, dropped)
    if is_turned:
        rows = ((line, tgt, src) for line, src, tgt in rows)
    return OpenPairs(rows=rows, languages=pair, dropped=dropped, notes=notes)


def _direction(asked: Sides, named: Sides, own: Sides) -> tuple[tuple[str, str], bool]:
    """Return the languages to read, and whether the messages are the target."""
    src = own[0] or named[0]
    tgt = own[1] or named[1]
    is_turned = _is_same(asked[0], tgt) or _is_same(asked[1], src)
    if is_turned:
        src, tgt = tgt, src
    src = asked[0] or src or languages.UNKNOWN
    tgt = asked[1] or tgt or languages.UNKNOWN
    return (src, tgt), is_turned


def _is_same(asked: str | None, other: str | None) -> bool:
    if asked is None or other is None:
        return False
    return languages.primary(asked) == languages.primary(other)


def _languages_of(path: Path) -> Sides:
    """Return the languages that the header says."""
    for message in _messages(path):
        if not message.is_header:
            break
        header = dict(_FIELD.findall(message.forms.get(0, "")))
        return (
            languages.canonical(header.get("X-Source-Language", "").strip()),
            languages.canonical(header.get("Language", "").strip()),
        )
    return None, None


def read_po(path: Path, dropped: Counter[str]) -> Iterator[PairRow]:
    """Yield the line of each message that is translated, and both texts; of one with plural forms
    the singular and the first form, the plural and the last.

    Raises DataError with the line for what is no PO.
    """
    for message in _messages(path):
        if message.is_header and not message.is_obsolete:
            continue
        if reason := _why_left_out(message):
            dropped[reason] += 1
            continue
        src = message.texts["msgid"]
        plural = message.texts.get("msgid_plural")
        forms = message.forms
        if plural is None:
            yield message.line, src, forms[0]
            continue
        if 1 < len(forms) <= _MOST_FORMS:
            yield message.line, src, forms[0]
        yield message.line, plural, forms[max(forms)]


def _why_left_out(message: _Message) -> str:
    """Return why a message is no pair; "" where it is one."""
    if message.is_obsolete:
        return OBSOLETE
    if message.is_too_long:
        return TOO_LONG
    if message.is_fuzzy:
        return TO_BE_REVIEWED
    is_whole = message.forms and all(text.strip() for text in message.forms.values())
    return "" if is_whole else NOT_TRANSLATED


def _messages(path: Path) -> Iterator[_Message]:
    """Yield every message of a catalogue, the header as well."""
    message = _Message()
    keyword = ""
    form = 0
    for number, line in filled_lines(path):
        if line is None:
            message.is_too_long = True
            continue
        text = line.strip().removeprefix("\ufeff")
        if text.startswith("#") and not text.startswith("#~"):
            if message.forms:
                yield message
                message = _Message()
            message.is_fuzzy |= text.startswith("#,") and "fuzzy" in _flags(text)
            continue
        if text.startswith("#~|"):  # what an obsolete message was before
            continue
        found = _LINE.fullmatch(text)
        if found is None or not (found["keyword"] or keyword):
            raise DataError(
                f'{path}:{number}: no line of a PO file: {text[:40]!r}; a message is msgid "..." and msgstr "..."'
            )
        if found["keyword"]:
            if message.forms and not found["keyword"].startswith("msgstr"):
                yield message
                message = _Message()
            keyword, form = _begin(message, found, number)
        _add(message, keyword, form, unescape(found["text"]))
    if message.texts:
        yield message


def _flags(comment: str) -> list[str]:
    return [flag.strip() for flag in comment.removeprefix("#,").split(",")]


def _begin(message: _Message, found: re.Match[str], number: int) -> tuple[str, int]:
    """Note a keyword of a message; return its name and the number of the form."""
    message.is_obsolete |= found["obsolete"] is not None
    keyword = found["keyword"].partition("[")[0]
    form = int(found["form"] or 0)
    if keyword == "msgid":
        message.line = number
    if keyword == "msgstr":
        message.forms[form] = ""
    else:
        message.texts[keyword] = ""
    return keyword, form


def _add(message: _Message, keyword: str, form: int, text: str) -> None:
    if keyword == "msgstr":
        message.forms[form] += text
    else:
        message.texts[keyword] += text


def unescape(text: str) -> str:
    """Return a text without the escapes of C in it."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] == "x" and len(code) > 1:
        number = int(code[1:], 16)
    elif code[0].isdecimal() and code[0] < "8":
        number = int(code, 8)
    else:
        return _PLAIN.get(code, code)
    return chr(number) if number else ""
