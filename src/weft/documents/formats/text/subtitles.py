"""Subtitles, SubRip (.srt) and WebVTT (.vtt): a cue is a segment, its lines one text.

What is not the text of a cue stays: numbers, times, settings, styles, comments. A translation is
divided anew into about as many lines as the cue had; where lines begin with the dashes of a
dialogue, each speaker's stretch is a segment. Source: WebVTT (W3C, Candidate Recommendation of
2019), sections 4 and 6; SubRip has no specification.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import unescape

from weft.documents.document import Doubt, Kind, Reading, decode_file
from weft.documents.formats.text.lines import Line, lines_of
from weft.documents.formats.text.values import Collector, ValuesDocument
from weft.documents.formats.text.wrapping import balance
from weft.documents.inline import Builder, Piece, Syntax
from weft.errors import UsageError

_TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = re.compile(rf"[\ufeff\s]*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$", re.DOTALL)
_ARROW = "-->"
# what stands alone: a moment, a state of ASS and MicroDVD
_MOMENT = re.compile(rf"<{_TIME}>|\{{\\[^{{}}\n]*+\}}|\{{[a-zA-Z]:[^{{}}\n]*+\}}")
_TAG = re.compile(r"<(/?)([a-zA-Z]++)((?:[.\s][^<>\n]*+)?)>")
_MARKUP = re.compile(f"{_MOMENT.pattern}|{_TAG.pattern}")
_RUBY_TEXT = re.compile(r"<rt>[^<]*+</rt>")
_DASH = re.compile(r"(?:<[^<>\n]*>|\{[^{}\n]*\}|\s)*+[-‐–—]\s*+(?=\S)(?![-‐–—])")
_WIDEST = 42  # characters of a line, where the file itself has no longer one
_ENTITY = re.compile(r"&(?:\w{1,31}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_VTT_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def open_srt(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of SubRip; raises UsageError if it is not UTF-8, or has no cue but text."""
    text = decode_file(content, reading.name)
    found = _Reader(text, _SRT).document()
    if not found.segments and text.strip("\ufeff \r\n\t") and _ARROW not in text:
        raise UsageError(
            f"{reading.name}:1: no times of a subtitle are in it; is it a file of SubRip?"
        )
    return found


def open_vtt(content: bytes, reading: Reading) -> ValuesDocument:
    """Read a file of WebVTT; raises UsageError if it is not UTF-8, or begins as no such file."""
    text = decode_file(content, reading.name)
    if not re.match(r"\ufeff?WEBVTT(?![^\s])", text) and text:
        raise UsageError(
            f"{reading.name}:1: a file of WebVTT begins with the line WEBVTT; add it or name the file .srt"
        )
    return _Reader(text, _VTT).document()


def _bare(raw: str) -> str:
    return raw


def _no_escapes(_source: str) -> Mapping[str, str]:
    return {}


def _decode_vtt(raw: str) -> str:
    return _ENTITY.sub(lambda found: unescape(found[0]), raw)


def _vtt_escapes(source: str) -> Mapping[str, str]:
    """Return how marks are written; one that stands bare in a cue need no entity there."""
    bare = _ENTITY.sub("", source)
    return {
        mark: entity for mark, entity in _VTT_ESCAPES.items() if mark not in bare
    } | {"<": "&lt;"}


_WHITE = re.compile(r"(?:\s|&nbsp;)++")
_SRT = Syntax(re.compile(r"\s++"), _bare, _no_escapes, collapses=True)
_VTT = Syntax(_WHITE, _decode_vtt, _vtt_escapes, collapses=True)


class _Reader:
    """Goes through the lines of a file once."""

    def __init__(self, text: str, syntax: Syntax) -> None:
        self._lines = lines_of(text)
        self._syntax = syntax
        self._found = Collector()
        self._cue = 0
        self._widest = _WIDEST

    def document(self) -> ValuesDocument:
        cues = list(self._cues())
        texts = [line for first, end in cues for line in self._lines[first:end]]
        widths = [len(_MARKUP.sub("", line.text)) for line in texts]
        self._widest = max(_WIDEST, _common_width(widths))
        place = 0
        for first, end in cues:
            self._keep(place, first)
            self._cue += 1
            self._take(self._lines[first:end])
            place = end
        self._keep(place, len(self._lines))
        return self._found.document()

    def _keep(self, first: int, end: int) -> None:
        is_new = True
        for number, line in enumerate(self._lines[first:end], first):
            is_before_times = number + 2 >= end and end < len(self._lines)
            has_letters = any(map(str.isalpha, line.text)) and _ARROW not in line.text
            if self._syntax is _SRT and has_letters and is_new and not is_before_times:
                self._found.note("stands outside of every cue, and is not translated")
                is_new = False
            self._found.keep(line.text + line.end)

    def _cues(self) -> Iterator[tuple[int, int]]:
        """Yield the first line of each cue's text, and the one after its last."""
        place = 0
        is_block_start = True
        while place < len(self._lines):
            line = self._lines[place].text
            if is_block_start and self._syntax is _VTT and _is_other_block(line):
                place = self._end_of_block(place)
                continue
            place += 1
            is_block_start = not line.strip()
            if _TIMES.match(line):
                end = self._end_of_text(place)
                yield place, end
                place = end
                is_block_start = True

    def _end_of_block(self, place: int) -> int:
        while place < len(self._lines) and self._lines[place].text.strip():
            place += 1
        return place + 1

    def _end_of_text(self, place: int) -> int:
        """Return where the text ends: at an empty line, or where the times of another cue are."""
        first = place
        while place < len(self._lines) and self._lines[place].text.strip():
            if _TIMES.match(self._lines[place].text):
                is_number = place > first and self._lines[place - 1].text.strip()
                return place - 1 if str(is_number).isdigit() else place
            place += 1
        return place

    def _take(self, lines: Sequence[Line]) -> None:
        """Add a cue: as one text, or as the text of each speaker."""
        starts = [number for number, line in enumerate(lines) if _DASH.match(line.text)]
        if len(starts) < 2:
            starts = [0]
        elif starts[0] > 0:
            starts.insert(0, 0)
        ends = [*starts[1:], len(lines)]
        for first, end in zip(starts, ends, strict=True):
            self._add(lines[first:end], is_dialogue=len(starts) > 1)

    def _add(self, lines: Sequence[Line], is_dialogue: bool) -> None:
        if not lines:
            return
        joined = "".join(line.text + line.end for line in lines)
        raw = joined[: len(joined) - len(lines[-1].end)]
        head = _DASH.match(raw) if is_dialogue else None
        start = head.end() if head else 0
        self._found.keep(raw[:start])
        builder = Builder(self._syntax)
        builder.run(list(_pieces(raw[start:])))
        encode = partial(
            _divided, len(lines), lines[0].end or "\n", self._widest, self._syntax
        )
        place = f"cue {self._cue}, line {self._found.line}"
        self._found.add(raw[start:], builder.document(), encode, place)
        self._found.keep(lines[-1].end)


def _is_other_block(line: str) -> bool:
    """Return whether a block of WebVTT begins that has no cue: comment, style or region."""
    return re.match(r"\ufeff?(?:WEBVTT|NOTE|STYLE|REGION)(?:\s|$)", line) is not None


def _common_width(widths: Sequence[int]) -> int:
    """Return the width that nearly no line goes over; the few longest may be mistakes."""
    ordered = sorted(widths)
    return ordered[(len(ordered) - 1) * 98 // 100] if ordered else 0


def _pieces(raw: str) -> Iterator[Piece]:
    """Divide the text of a cue into words and tags."""
    place = 0
    for match in _MARKUP.finditer(raw):
        if match.start() < place:
            continue
        if match.start() > place:
            yield Piece(raw[place : match.start()])
        place = match.end()
        name = match[2]
        if name is None:
            yield Piece(match[0], Kind.EMPTY)
            continue
        above = _RUBY_TEXT.match(raw, match.start())
        if above:  # how the word before is pronounced
            place = above.end()
            yield Piece(above[0], Kind.EMPTY)
        else:
            kind = Kind.CLOSE if match[1] else Kind.OPEN
            yield Piece(match[0], kind, name.lower())
    if place < len(raw):
        yield Piece(raw[place:])


def _divided(
    num_lines: int,
    end: str,
    widest: int,
    syntax: Syntax,
    text: str,
    _doubts: Sequence[Doubt],
) -> str:
    """Write a text in about so many lines of equal length."""
    one = re.sub(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]++", " ", text)
    safe = "--&gt;" if syntax is _VTT else "-- >"
    one = one.replace(_ARROW, safe)
    return end.join(balance(one, num_lines, widest, _MARKUP))
