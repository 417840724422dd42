"""Catalogues of GNU gettext (.po, .pot): what has no translation yet, or a fuzzy one.

A message is translated into the place of its msgstr, wrapped as the file is; nothing else changes
but the marks of its review. Source: GNU gettext Manual, "The Format of PO Files".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from weft.documents.document import Doubt, Reading, TextDocument, decode_file
from weft.documents.formats.programs.restructured import (
    is_restructured,
    read_restructured,
    with_spaces,
)
from weft.documents.formats.text.lines import Line, lines_of
from weft.documents.formats.text.messages import MESSAGE, read_message
from weft.documents.formats.text.values import Collector, ValuesDocument, joined
from weft.documents.formats.text.wrapping import divide, width_of
from weft.documents.inline import Syntax
from weft.errors import UsageError

_STRING = r"\"((?:[^\"\\]|\\.)*+)\""
_KEYWORD = re.compile(
    rf"\s*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{{1,2}}\])?)\s*{_STRING}\s*$"
)
_MORE = re.compile(rf"\s*{_STRING}\s*$")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\\"'?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WRITTEN = {ord(character): f"\\{letter}" for letter, character in _SIMPLE.items()} | {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
}
_NUM_PLURALS = re.compile(r"nplurals\s*=\s*(\d{1,2})")
_LANGUAGE = re.compile(r"(\"Language:)[ \t]*(\\n\")")
# flags of formats in which %% is a percent sign
_DOUBLES = re.compile(
    r"(?:c|objc|python|php|perl|awk|lua|tcl|pascal|object-pascal|gcc-internal|boost|ruby)-format"
)
_CHARSET = re.compile(r"(charset=)([^\s\"\\;]+)")
_NO_CHARSETS = ("CHARSET", "ASCII", "US-ASCII")  # the first is a template's
_CHARSETS = ("UTF-8", "UTF8", *_NO_CHARSETS)
_BETWEEN = "\0"  # a message and its plural
_WIDTH = 79
_LONGEST_LINE = 110  # a longer one that has spaces is of a file that is not wrapped
_MOST_LONG = 0.1  # share of longer lines, to those that are wrapped
_WRAPPED = re.compile(r" .*(?<!\\n)\"$")
_MOST_FORMS = 20


@dataclass
class _Field:
    """A string of an entry: its lines, from the first to before the end, and its text."""

    first: int
    end: int
    text: str


@dataclass
class _Entry:
    """An entry: the line that it begins in, its flags and its strings by their keywords."""

    first: int
    flags: list[str] = field(default_factory=list)
    fields: dict[str, _Field] = field(default_factory=dict)

    @property
    def targets(self) -> list[str]:
        """List the keywords of its translations."""
        return [name for name in self.fields if name.startswith("msgstr")]

    @property
    def end(self) -> int:
        """Return the line after its last."""
        return max((found.end for found in self.fields.values()), default=self.first)


def open_po(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a catalogue; raises UsageError, with the line, for what is none, or not in UTF-8."""
    text = decode_file(content, reading.name)
    return _Reader(text, reading).document()


class _Reader:
    """Goes through the entries of a file."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._lines = lines_of(text)
        self._reading = reading
        self._is_restructured = is_restructured(text)
        self._entries = list(_entries(self._lines, reading.name))
        self._width = _width_of_file(self._lines, self._entries)
        self._num_forms = 0
        self._found = Collector()

    def document(self) -> ValuesDocument:
        place = 0
        for entry in self._entries:
            self._keep(place, entry.first)
            self._take(entry)
            place = entry.end
        self._keep(place, len(self._lines))
        return self._found.document()

    def _keep(self, first: int, end: int) -> None:
        self._found.keep(_raw(self._lines[first:end]))

    def _take(self, entry: _Entry) -> None:
        if "msgid" not in entry.fields:
            self._keep(entry.first, entry.end)
        elif not entry.fields["msgid"].text and "msgctxt" not in entry.fields:
            self._header(entry)
        elif wanted := self._wanted(entry):
            self._add(entry, wanted)
        else:
            self._keep(entry.first, entry.end)

    def _header(self, entry: _Entry) -> None:
        """Keep the header; a language that it does not state yet is the target's.

        Its charset becomes UTF-8 where it states none, or ASCII; another is refused.
        """
        raw = _raw(self._lines[entry.first : entry.end])
        if (found := _CHARSET.search(raw)) and found[2].upper() not in _CHARSETS:
            raise UsageError(
                f"{self._reading.name}:{entry.first + 1}: says that its charset is {found[2][:40]}, but it is UTF-8; "
                "correct that, or convert it with msgconv -t UTF-8"
            )
        if self._reading.target:
            raw = _CHARSET.sub(_as_utf_8, raw, count=1)
        if language := self._reading.target.replace("-", "_"):
            raw = _LANGUAGE.sub(rf"\1 {language}\2", raw, count=1)
        texts = [entry.fields[name].text for name in entry.targets]
        if found := _NUM_PLURALS.search("".join(texts)):
            self._num_forms = min(int(found[1]), _MOST_FORMS)
        self._found.keep(raw)

    def _wanted(self, entry: _Entry) -> list[str]:
        """List the keywords of the translations that are to be made."""
        names = entry.targets
        if "msgid_plural" in entry.fields and self._num_forms:
            forms = [f"msgstr[{number}]" for number in range(self._num_forms)]
            names = list(dict.fromkeys([*names, *forms]))
        if "fuzzy" in entry.flags:
            return names
        return [
            name
            for name in names
            if name not in entry.fields or not entry.fields[name].text
        ]

    def _add(self, entry: _Entry, wanted: list[str]) -> None:
        """Add the value of an entry: all its lines."""
        texts = [entry.fields["msgid"].text]
        if "msgid_plural" in entry.fields:
            texts = _texts_of_forms(entry, wanted)
        if any(_BETWEEN in text for text in texts):
            self._found.note("has a NUL character, and is not translated")
            self._keep(entry.first, entry.end)
            return
        if self._is_restructured and any("\n" in text[:-1] for text in texts):
            place = f"line {entry.fields['msgid'].first + 1}"
            self._found.note("has several lines, as code has, and stays", place)
            self._keep(entry.first, entry.end)
            return
        if len(wanted) > len(texts) and len(wanted) > 2:
            self._found.note(
                f"the forms of the plural after the first have one translation, {len(wanted)} in all; correct them"
            )
        inner = joined([self._read(entry, text) for text in texts], _BETWEEN)
        lines = self._lines[entry.first : entry.end]
        encode = partial(_encoded, entry, wanted, lines, self._width)
        if self._is_restructured:
            encode = partial(_spaced, encode)
        self._found.add(
            _raw(lines), inner, encode, f"line {entry.fields['msgid'].first + 1}"
        )

    def _read(self, entry: _Entry, text: str) -> TextDocument:
        if self._is_restructured:
            return read_restructured(text)
        return read_message(text, _syntax_of(entry))


def _as_utf_8(found: re.Match[str]) -> str:
    return f"{found[1]}UTF-8" if found[2].upper() in _NO_CHARSETS else found[0]


def _raw(lines: Sequence[Line]) -> str:
    return "".join(line.text + line.end for line in lines)


def _texts_of_forms(entry: _Entry, wanted: Sequence[str]) -> list[str]:
    """List what the forms of a plural are translated from: the message, then its plural."""
    singular = entry.fields["msgid"].text
    plural = entry.fields["msgid_plural"].text
    if len(wanted) == 1 and wanted[0] == "msgstr[0]":
        is_only = entry.targets == ["msgstr[0]"]
        return [plural] if is_only else [singular]
    return [singular, plural] if "msgstr[0]" in wanted else [plural]


def _syntax_of(entry: _Entry) -> Syntax:
    if any(map(_DOUBLES.fullmatch, entry.flags)):
        return _DOUBLED
    return MESSAGE


def _undouble(raw: str) -> str:
    return raw.replace("%%", "%")


def _doubles(_source: str) -> dict[str, str]:
    return {"%": "%%"}


_DOUBLED = replace(MESSAGE, decode=_undouble, escapes_of=_doubles)


def _entries(lines: Sequence[Line], name: str) -> Iterator[_Entry]:
    """Yield the entries; obsolete ones are comments. Raises UsageError for any other line."""
    entry: _Entry | None = None
    last: _Field | None = None
    for number, line in enumerate(lines):
        text = line.text.removeprefix("\ufeff") if number == 0 else line.text
        found = _KEYWORD.match(text)
        is_comment = text.lstrip().startswith("#")
        is_new = is_comment or (found and found[1] in ("msgctxt", "msgid"))
        if entry and entry.targets and is_new:
            yield entry
            entry = None
        if not text.strip() or text.lstrip().startswith("#~"):
            last = None
            if entry and not entry.fields:
                entry = None  # comments that are of no message
            continue
        entry = entry or _Entry(number)
        if is_comment:
            last = None
            if text.lstrip().startswith("#,"):
                entry.flags += re.split(r"[,\s]+", text.strip()[2:].strip())
        elif found and found[1] not in entry.fields:
            last = _Field(number, number + 1, _decoded(found[2]))
            entry.fields[found[1]] = last
        elif last and (more := _MORE.match(text)):
            last.end = number + 1
            last.text += _decoded(more[1])
        else:
            raise UsageError(
                f"{name}:{number + 1}: not what a catalogue (PO) has here; check its quotes and keywords with msgfmt -c"
            )
    if entry:
        yield entry


def _decoded(raw: str) -> str:
    return _ESCAPE.sub(_character, raw)


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return _SIMPLE.get(escape[1], escape[1])
    if escape[2]:
        return chr(int(escape[2], 8))
    return chr(int(escape[3], 16)) if escape[3] else escape[0]


def _width_of_file(lines: Sequence[Line], entries: Sequence[_Entry]) -> int:
    """Return how wide the lines of strings may be; 0 where they are not wrapped."""
    widths: list[int] = []
    num_long = 0
    for entry in entries:
        for found in entry.fields.values():
            texts = [line.text.rstrip() for line in lines[found.first : found.end]]
            long = [text for text in texts if len(text) > _LONGEST_LINE]
            num_long += sum(" " in text for text in long)
            # the last line has room, and one that ends at a line break may have; programs differ in
            # how wide Chinese is
            inner = [text for text in texts[1:-1] if text.isascii()]
            widths += [len(text) for text in inner if _WRAPPED.search(text)]
    if num_long > len(widths) * _MOST_LONG:
        return 0
    widths.sort()
    return widths[len(widths) * 95 // 100] if widths else _WIDTH


def _spaced(encode: partial[str], text: str, doubts: Sequence[Doubt]) -> str:
    return encode(with_spaces(text), doubts)


def _encoded(
    entry: _Entry,
    wanted: Sequence[str],
    lines: Sequence[Line],
    width: int,
    text: str,
    doubts: Sequence[Doubt],
) -> str:
    """Write an entry with its translations, marked for review where there is doubt."""
    end = lines[0].end or "\n"
    head = _comments(entry, lines, doubts)
    body = []
    for name, found in entry.fields.items():
        if not name.startswith("msgstr"):
            body += _texts(lines[found.first - entry.first : found.end - entry.first])
    texts = text.split(_BETWEEN)
    names = list(dict.fromkeys([*entry.targets, *wanted]))
    for name in sorted(names):
        if name in wanted:
            is_first = name in ("msgstr", "msgstr[0]")
            body += _string(name, texts[0] if is_first else texts[-1], width)
        else:
            found = entry.fields[name]
            body += _texts(lines[found.first - entry.first : found.end - entry.first])
    return end.join([*head, *body]) + lines[-1].end


def _texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def _comments(
    entry: _Entry, lines: Sequence[Line], doubts: Sequence[Doubt]
) -> list[str]:
    """Return the comments of an entry; those of an older fuzzy translation go."""
    in_strings: set[int] = set()
    for found in entry.fields.values():
        in_strings.update(range(found.first - entry.first, found.end - entry.first))
    kept = []
    for number, line in enumerate(lines):
        text = line.text
        if number in in_strings or ("fuzzy" in entry.flags and text.startswith("#|")):
            continue
        kept.append(_without_fuzzy(text) if text.startswith("#,") else text)
    kept = [text for text in kept if text]
    for doubt in doubts:
        kept[_own(kept) : _own(kept)] = [
            _one_line(f"# Translation memory, {offer}") for offer in doubt.offers
        ]
    remarks = list(dict.fromkeys(said for doubt in doubts for said in doubt.remarks))
    return _with_review(kept, remarks, doubts) if remarks else kept


def _without_fuzzy(line: str) -> str:
    """Return the flags of a line without that; empty where there is no other."""
    flags = [flag.strip() for flag in line[2:].split(",")]
    if "fuzzy" not in flags:
        return line
    flags = [flag for flag in flags if flag != "fuzzy"]
    return f"#, {', '.join(flags)}" if flags else ""


def _own(comments: Sequence[str]) -> int:
    """Return the place after the comments of translators."""
    is_own = [re.match(r"#(?:\s|$)", text) is not None for text in comments]
    return is_own.index(False) if False in is_own else len(comments)


def _one_line(comment: str) -> str:
    return " ".join(comment.split())


def _with_review(
    comments: list[str], remarks: Sequence[str], doubts: Sequence[Doubt]
) -> list[str]:
    """Add the flag fuzzy, and a comment of the translator that says why."""
    known = [doubt.confidence for doubt in doubts if doubt.confidence is not None]
    share = f" (confidence {min(known):.2f})" if known else ""
    is_taken = all(doubt.taken for doubt in doubts)
    by = "Translation memory" if is_taken else "Machine translation"
    comment = _one_line(f"# {by}{share}: {' '.join(remarks)}")
    comments.insert(_own(comments), comment)
    for number, text in enumerate(comments):
        if text.startswith("#,"):
            comments[number] = f"#, fuzzy,{text[2:]}"
            return comments
        if text.startswith("#|"):
            comments.insert(number, "#, fuzzy")
            return comments
    return [*comments, "#, fuzzy"]


def _string(keyword: str, text: str, width: int) -> list[str]:
    """Write a string: in a line where there is room, else in lines of their own."""
    written = text.translate(_WRITTEN)
    one = f'{keyword} "{written}"'
    breaks_inside = "\n" in text[:-1]
    if not breaks_inside and (not width or width_of(one) <= width):
        return [one]
    lines = [f'{keyword} ""']
    for stretch in re.findall(r"[^\n]*\n|[^\n]+", text):
        escaped = stretch.translate(_WRITTEN)
        parts = [escaped]
        if width:
            parts = divide(escaped, width - 2)  # less the quotes
        lines += [f'"{part}"' for part in parts]
    return lines
