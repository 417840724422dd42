"""Markdown: CommonMark with tables, strikethrough, footnotes and front matter.

The package markdown-it-py says in which lines the blocks are. A block's text is read without what
stands before it in each line (`> `, indents), which is put back. HTML is read by its own reader.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from weft.documents.document import Doubt, Reading, TextDocument, decode_file
from weft.documents.formats.text.lines import lines_of
from weft.documents.formats.text.markdown_inline import SYNTAX, Inline, parser
from weft.documents.formats.text.markdown_writing import (
    fill_paragraph,
    is_html,
    write_cell,
    write_paragraph,
    write_title,
)
from weft.documents.formats.text.values import Collector, Value, ValuesDocument
from weft.documents.formats.text.wrapping import width_of
from weft.documents.formats.web.html import read_html
from weft.documents.inline import Builder

Write = Callable[[str, str, Mapping[str, object]], str | None]
_FRONT_MATTER = re.compile(
    r"\A(---|\+\+\+)[ \t]*\r?\n(?=[\w\"'-]+\s*[:=]|#).*?\n\1[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
_TITLE = re.compile(r"(?m)^(title|description|summary)\s*[:=]")
# before the words of a paragraph: a footnote's name, a definition's mark, the box of a task
_LEAD = re.compile(r"\[\^[^\]\s]+\]:[ \t]*|:[ \t]+|\[[ xX]\][ \t]+")
# after the words of a heading
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ ]*[#.][^{}\n]*\}[ \t]*$")
# lines that are marks of dialects: containers, alerts, attributes, tables of contents
_DIALECT = re.compile(
    r"\s*(?::{3,}.*|\[!\w+\].*|\{%.*%\}|\{:.*\}|\{[#.][^{}]*\}|!!!\s.*|\?\?\?\+?\s.*|\[TOC\]|\[\[_?TOC_?\]\])\s*"
)
_FORMULA = "$$"
_HARD = re.compile(r"(?: {2,}|\\)\n")
_NARROWEST = 72
_WIDEST = 200  # of lines that are filled; longer ones are paragraphs in a line


def open_markdown(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of Markdown; raises UsageError if it is not UTF-8."""
    return _Reader(decode_file(content, reading.name)).document()


@dataclass(frozen=True)
class _Stretch:
    """Text of a block in one line, without what is around it."""

    line: int
    start: int
    end: int


class _Reader:
    """Goes through the blocks of a file once."""

    def __init__(self, text: str) -> None:
        head = "\ufeff" if text.startswith("\ufeff") else ""
        front = _FRONT_MATTER.match(text, len(head))
        start = front.end() if front else len(head)
        self._found = Collector()
        named = _TITLE.findall(front[0]) if front else []
        if named:
            listed = " and ".join(dict.fromkeys(named))
            self._found.note(f"the front matter stays, its {listed} too")
        self._found.keep(text[:start])
        self._first_line = self._found.line
        self._lines = lines_of(text[start:])
        # as the parser has them, and as long
        self._texts = [line.text.replace("\0", "\ufffd") for line in self._lines]
        env: dict[str, Any] = {}
        self._tokens: list[Any] = parser().parse("\n".join(self._texts), env)
        self._references: Mapping[str, object] = env.get("references", {})
        self._place = _Position(0, 0)

    def document(self) -> ValuesDocument:
        number = 0
        while number < len(self._tokens):
            token = self._tokens[number]
            if token.type == "html_block":
                self._html(token)
            elif token.type == "tr_open":
                number = self._row(number)
            elif token.type == "inline":
                self._block(token, self._tokens[number - 1])
            number += 1
        self._keep_until(_Position(len(self._lines), 0))
        return self._found.document()

    def _keep_until(self, end: "_Position") -> None:
        self._found.keep(self._raw(self._place, end))
        self._place = end

    def _raw(self, start: "_Position", end: "_Position") -> str:
        """Return what stands between two places."""
        if start.line == end.line:
            if start.line == len(self._lines):
                return ""
            return self._lines[start.line].text[start.column : end.column]
        first = self._lines[start.line]
        parts = [first.text[start.column :], first.end]
        for line in self._lines[start.line + 1 : end.line]:
            parts += line
        if end.line < len(self._lines):
            parts.append(self._lines[end.line].text[: end.column])
        return "".join(parts)

    def _text(self, stretch: _Stretch) -> str:
        return self._texts[stretch.line][stretch.start : stretch.end]

    def _prefix(self, stretch: _Stretch) -> str:
        return self._texts[stretch.line][: stretch.start]

    def _note(self, line: int) -> None:
        place = f"line {line + self._first_line}"
        self._found.note("is indented in a way that is not read, and stays", place)

    def _block(self, token: Any, opening: Any) -> None:
        """Add the text of a paragraph or a heading."""
        first = token.map[0]
        stretches = self._stretches(token, is_title=opening.markup.startswith("#"))
        if stretches is None:
            if any(map(str.isalpha, token.content)):
                self._note(first)
            return
        if opening.type == "heading_open":
            last = stretches[-1]
            cut = _ATTRIBUTES.search(self._texts[last.line], last.start, last.end)
            end = cut.start() if cut else last.end
            stretches[-1] = _Stretch(last.line, last.start, end)
            is_line = opening.markup.startswith("#")
            self._add(stretches, write_title if is_line else write_paragraph)
            return
        head = stretches[0]
        if lead := _LEAD.match(self._texts[head.line], head.start):
            stretches[0] = _Stretch(head.line, lead.end(), head.end)
        for group in self._groups(stretches):
            self._add(group, write_paragraph)

    def _groups(self, stretches: Sequence[_Stretch]) -> Iterator[list[_Stretch]]:
        """Divide a paragraph at lines that are marks of a dialect, or belong to a formula."""
        group: list[_Stretch] = []
        in_formula = False
        for stretch in stretches:
            text = self._text(stretch)
            toggles = text.count(_FORMULA) % 2 == 1
            is_formula = in_formula or text.lstrip().startswith(_FORMULA)
            if is_formula or _DIALECT.fullmatch(text):
                if group:
                    yield [*group[:-1], self._without_break(group[-1])]
                group = []
                in_formula ^= toggles
            else:
                group.append(stretch)
        if group:
            yield group

    def _without_break(self, last: _Stretch) -> _Stretch:
        """Return a line without the backslash that breaks it before one of a dialect."""
        text = self._text(last)
        length = len(text) - len(text.rstrip("\\"))
        return _Stretch(last.line, last.start, last.end - length % 2)

    def _stretches(self, token: Any, is_title: bool) -> list[_Stretch] | None:
        """Return where the lines of a block's text are; None where that is not found."""
        first = token.map[0]
        lines = token.content.split("\n")
        if first + len(lines) > len(self._texts):
            return None
        if is_title:
            return self._title(first, token.content)
        found = []
        for number, line in enumerate(lines, first):
            is_last = number - first + 1 == len(lines)
            whole = self._texts[number]
            text = whole.rstrip() if is_last else whole
            part = line.lstrip()
            part = part.rstrip() if is_last else part
            if not text.endswith(part):
                return None
            found.append(_Stretch(number, len(text) - len(part), len(text)))
        return found

    def _title(self, number: int, content: str) -> list[_Stretch] | None:
        form = rf"#{{1,6}}[ \t]+({re.escape(content)})(?:[ \t]+#+)?[ \t]*$"
        found = re.search(form, self._texts[number])
        return [_Stretch(number, *found.span(1))] if found else None

    def _add(self, stretches: Sequence[_Stretch], write: Write) -> None:
        """Add text that goes over some lines."""
        first = stretches[0]
        last = stretches[-1]
        start = _Position(first.line, first.start)
        end = _Position(last.line, last.end)
        if first.start >= first.end or start < self._place:
            return
        parts = list(map(self._text, stretches))
        prefixes = list(map(self._prefix, stretches[1:]))
        text = "\n".join(parts)
        line_end = self._lines[first.line].end or "\n"
        inner, inside = self._read(text)
        raw = self._raw(start, end)
        width = _fill_width(text, [self._texts[s.line] for s in stretches])
        form = _Form(write, text, self._references, raw, (first.start, width))
        encode = partial(_encoded, form, prefixes, line_end)
        self._keep_until(start)
        self._found.add(raw, inner, encode, self._at(first.line), inside)
        self._place = end

    def _at(self, line: int) -> str:
        return f"line {line + self._first_line}"

    def _read(self, text: str) -> tuple[TextDocument, list[Value]]:
        """Read inline Markdown, and the words of images in it."""
        pieces, images = Inline(text, self._references).pieces()
        builder = Builder(SYNTAX)
        builder.run(pieces)
        inside = []
        for image in images:
            words = Builder(SYNTAX)
            words.run(Inline(image.words, self._references).pieces()[0])
            encode = partial(_image, image.closing)
            inside.append(Value(image.raw, words.document(), encode))
        return builder.document(), inside

    def _row(self, number: int) -> int:
        """Add the cells of a row of a table; return the place of its last token."""
        line = self._tokens[number].map[0]
        contents = []
        while self._tokens[number].type != "tr_close":
            if self._tokens[number].type == "inline":
                contents.append(self._tokens[number].content)
            number += 1
        cells = _cells(self._texts[line], contents)
        if cells is None:
            self._note(line)
            return number
        for start, end in cells:
            self._cell(_Stretch(line, start, end))
        return number

    def _cell(self, cell: _Stretch) -> None:
        raw = self._lines[cell.line].text[cell.start : cell.end]
        text = self._text(cell).replace("\\|", "|")
        if not text:
            return
        inner, inside = self._read(text)
        form = _Form(write_cell, text, self._references, raw)
        encode = partial(_encoded_cell, form)
        self._keep_until(_Position(cell.line, cell.start))
        self._found.add(raw, inner, encode, self._at(cell.line), inside)
        self._place = _Position(cell.line, cell.end)

    def _html(self, token: Any) -> None:
        """Add a block of HTML."""
        first, end = token.map
        lines = token.content.split("\n")
        stretches = []
        for number in range(first, end):
            whole = self._texts[number]
            part = lines[number - first] if number - first < len(lines) else ""
            if not whole.endswith(part):
                self._note(first)
                return
            stretches.append(_Stretch(number, len(whole) - len(part), len(whole)))
        while stretches and stretches[-1].start == stretches[-1].end:
            stretches.pop()
        if not stretches:
            return
        start = _Position(first, stretches[0].start)
        last = stretches[-1]
        parts = list(map(self._text, stretches))
        prefixes = list(map(self._prefix, stretches[1:]))
        line_end = self._lines[first].end or "\n"
        if start < self._place:
            return
        self._keep_until(start)
        place = _Position(last.line, last.end)
        raw = self._raw(start, place)
        encode = partial(_encoded_html, raw, prefixes, line_end)
        self._found.add(raw, read_html("\n".join(parts)), encode, self._at(first))
        self._place = place


@dataclass(frozen=True, order=True)
class _Position:
    """A place in a file, counted from 0."""

    line: int
    column: int


def _cells(line: str, contents: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return where the cells of a row stand, by what the parser says is in them."""
    pipes = [match.start() for match in re.finditer(r"(?<!\\)\|", line)]
    starts = [0, *(place + 1 for place in pipes)]
    ends = [*pipes, len(line)]
    spans = []
    for start, end in zip(starts, ends, strict=True):
        text = line[start:end]
        first = start + len(text) - len(text.lstrip())
        spans.append((first, first + len(text.strip())))
    for first in (0, 1):
        if found := _matched(line, spans[first:], contents):
            return found
    return None


def _matched(
    line: str, spans: Sequence[tuple[int, int]], contents: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the spans if they have these contents; the first may begin before its cell."""
    found: list[tuple[int, int]] = []
    for number, content in enumerate(contents):
        if number >= len(spans):
            return found if not any(contents[number:]) else []
        start, end = spans[number]
        text = line[start:end].replace("\\|", "|")
        if number == 0 and content and text.endswith(content):
            start = end - len(content) - content.count("|")
        elif text != content:
            return []
        found.append((start, end))
    return found


def _encoded_html(
    raw: str,
    prefixes: Sequence[str],
    line_end: str,
    text: str,
    _doubts: Sequence[Doubt],
) -> str:
    return _with_prefixes(prefixes, line_end, text) if is_html(text) else raw


def _with_prefixes(prefixes: Sequence[str], line_end: str, text: str) -> str:
    """Put back what stood before each line but the first; further lines have the last prefix."""
    first, *others = text.split("\n")
    parts = [first]
    for number, line in enumerate(others):
        prefix = prefixes[min(number, len(prefixes) - 1)] if prefixes else ""
        parts += (line_end, prefix, line)
    return "".join(parts)


@dataclass(frozen=True)
class _Form:
    """The way in which a block is written, and what stood there: its text, its raw lines."""

    write: Write
    text: str
    references: Mapping[str, object]
    raw: str
    # where its first line begins, and how wide its lines are, 0 where they are not filled
    shape: tuple[int, int] = (0, 0)


def _fill_width(text: str, lines: Sequence[str]) -> int:
    """Return how wide the lines of a paragraph are that has breaks for its width alone."""
    breaks = text.count("\n") - len(_HARD.findall(text))
    widest = max(width_of(line.rstrip()) for line in lines)
    return max(widest, _NARROWEST) if breaks > 0 and widest <= _WIDEST else 0


def _encoded(
    form: _Form,
    prefixes: Sequence[str],
    line_end: str,
    text: str,
    _doubts: Sequence[Doubt],
) -> str:
    """Write a text in a block's place; what cannot be written as Markdown leaves it as it was."""
    written = form.write(text, form.text, form.references)
    if written is None:
        return form.raw
    first, width = form.shape
    if width and prefixes:
        indents = (first, width_of(prefixes[-1]))
        written = fill_paragraph(written, form.references, indents, width)
    return _with_prefixes(prefixes, line_end, written)


def _encoded_cell(form: _Form, text: str, _doubts: Sequence[Doubt]) -> str:
    written = form.write(text.replace("\n", " "), form.text, form.references)
    return form.raw if written is None else written.replace("|", "\\|")


def _image(closing: str, text: str, _doubts: Sequence[Doubt]) -> str:
    return f"![{text}{closing}"
