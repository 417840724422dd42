"""Paragraphs of runs: words that look alike are one stretch of text, however they are divided.

Office programs divide the words of a paragraph into runs at random, for their own ends. A format's
reader says what it meets in a paragraph: words and their look, edges of what surrounds them, and
points between them. Here the look of most words is the paragraph's own; words of another look are
in a pair of tags. The notation of a paragraph has a number for each tag, `<3>`, `</3>` and `<4/>`,
and is written as runs again.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.documents.document import Kind, TextDocument
from weft.documents.formats.office.package import Parts, WriteParts
from weft.documents.formats.xml.tokens import SYNTAX, decode_xml
from weft.documents.inline import Builder, Piece

_TAG = re.compile(r"<(/?)(\d+)(/?)>")
_SENTENCE_END = re.compile(r"[.!?…:。！？：][\"'”’»)\]」』]*\s*$")


@dataclass(frozen=True)
class Look:
    """The look of a run.

    Runs with the same `key` look the same. `start` and `end` are how a run begins and ends.
    """

    key: str = ""
    start: str = ""
    end: str = ""


NO_LOOK = Look()


@dataclass(frozen=True)
class Words:
    """Words of a run, written with references."""

    raw: str
    look: Look = NO_LOOK


@dataclass(frozen=True)
class Point:
    """A thing between words: in a run, if it has a look, else beside runs.

    Without `kind` it divides the paragraph into segments. One that `is_text` stands among the
    words of a run.
    """

    parts: Parts
    kind: Kind | None = Kind.EMPTY
    look: Look | None = None
    is_text: bool = False


@dataclass(frozen=True)
class Edge:
    """The start or the end of what surrounds words; both have the same `pair`.

    One that `may_part` becomes a point where its partner is missing or in another place: it is an
    element by itself, such as the start of a bookmark. All others are well nested.
    """

    raw: str
    pair: int
    is_end: bool = False
    may_part: bool = False


Event = Words | Point | Edge


class _Numbered(NamedTuple):
    """An entry for a number of the notation: a point, the edges of a pair, or a look."""

    point: Point | None = None
    start: str = ""
    end: str = ""
    base: Look = NO_LOOK  # of the words directly inside
    surrounds_runs: bool = False


@dataclass(frozen=True)
class Flow:
    """A paragraph in its notation, and what is needed to write it."""

    text: TextDocument
    _numbered: Sequence[_Numbered]
    _base: Look

    def write(
        self,
        notation: str,
        write_words: Callable[[str], str],
        write_parts: WriteParts,
    ) -> str:
        """Write the paragraph's content; `write_words` is how a run has some words."""
        writer = _RunWriter(self._numbered, self._base, write_words, write_parts)
        return writer.write(notation)


def read_flow(events: Sequence[Event]) -> Flow:
    """Read a paragraph from what is in it."""
    return _FlowReader(_with_edges_in_order(_without_blank_looks(events))).flow()


def divided(
    raw: str,
    look: Look,
    mark: re.Pattern[str],
    kind_of: Callable[[str], Kind | None],
) -> Iterator[Event]:
    """Yield the words of a run; marks among them are points, of the kinds that are told."""
    done = 0
    for match in mark.finditer(raw):
        if match.start() > done:
            yield Words(raw[done : match.start()], look)
        yield Point([match[0]], kind_of(match[0]), look, is_text=True)
        done = match.end()
    if done < len(raw):
        yield Words(raw[done:], look)


class _FlowReader:
    """Builds the notation of a paragraph."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._bases = _bases(events)
        self._builder = Builder(SYNTAX)
        self._pieces: list[Piece] = []
        self._numbered: list[_Numbered] = []
        self._numbers: dict[int, int] = {}  # of each pair of edges
        self._pairs = [-1]  # which are open
        self._look: tuple[Look, int] | None = None  # of the pair of tags that is open
        self._waiting: list[Piece] = []  # points that may be inside of it, or after

    def flow(self) -> Flow:
        for event in self._events:
            if isinstance(event, Words):
                self._words(event)
            elif isinstance(event, Edge):
                self._edge(event)
            else:
                self._point(event)
        self._end_look()
        self._builder.run(self._pieces)
        text = self._builder.document()
        return Flow(text, self._numbered, self._bases.get(-1, NO_LOOK))

    def _words(self, words: Words) -> None:
        base = self._bases[self._pairs[-1]]
        if self._look and self._look[0].key == words.look.key:
            self._pieces += self._waiting
            self._waiting = []
        else:
            self._end_look()
            if words.look.key != base.key:
                number = self._number(_Numbered(base=words.look))
                self._look = (words.look, number)
                self._pieces.append(_opening(number))
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.kind is None:
            self._pieces[-1] = Piece(last.raw + words.raw)
        else:
            self._pieces.append(Piece(words.raw))

    def _edge(self, edge: Edge) -> None:
        self._end_look()
        if edge.is_end:
            number = self._numbers[edge.pair]
            entry = self._numbered[number]
            self._numbered[number] = entry._replace(end=edge.raw)
            self._pairs.pop()
            self._pieces.append(Piece(f"</{number}>", Kind.CLOSE, str(number)))
            return
        base = self._bases.get(edge.pair, self._bases[self._pairs[-1]])
        self._bases[edge.pair] = base
        entry = _Numbered(start=edge.raw, base=base, surrounds_runs=True)
        number = self._numbers[edge.pair] = self._number(entry)
        self._pairs.append(edge.pair)
        self._pieces.append(_opening(number))

    def _point(self, point: Point) -> None:
        number = self._number(_Numbered(point=point))
        raw = f"<{number}/>"
        if point.kind is None or self._is_after_end(point):
            self._end_look()
            self._builder.run(self._pieces)
            self._pieces = []
            self._builder.keep(raw)
        elif self._look:
            self._waiting.append(Piece(raw, point.kind))
        else:
            self._pieces.append(Piece(raw, point.kind))

    def _is_after_end(self, point: Point) -> bool:
        """Return whether this is a line break after a sentence, or after another line break."""
        if point.kind is not Kind.BREAK:
            return False
        for piece in reversed([*self._pieces, *self._waiting]):
            if piece.kind is Kind.BREAK:
                return True
            if piece.kind is None and piece.raw.strip():
                return _SENTENCE_END.search(piece.raw[-10:]) is not None
        return False

    def _end_look(self) -> None:
        if self._look:
            number = self._look[1]
            self._pieces.append(Piece(f"</{number}>", Kind.CLOSE, str(number)))
        self._pieces += self._waiting
        self._waiting = []
        self._look = None

    def _number(self, entry: _Numbered) -> int:
        self._numbered.append(entry)
        return len(self._numbered) - 1


class _RunWriter:
    """Writes runs from the notation of a paragraph."""

    def __init__(
        self,
        numbered: Sequence[_Numbered],
        base: Look,
        write_words: Callable[[str], str],
        write_parts: WriteParts,
    ) -> None:
        self._numbered = numbered
        self._looks = [base]
        self._write_words = write_words
        self._write_parts = write_parts
        self._parts: list[str] = []
        self._run: Look | None = None  # in which the last of the parts are
        self._text: list[str] = []  # words that are not yet among the parts

    def write(self, notation: str) -> str:
        place = 0
        for match in _TAG.finditer(notation):
            self._words(notation[place : match.start()])
            entry = self._numbered[int(match[2])]
            if entry.point:
                self._point(entry.point)
            else:
                self._edge(entry, is_end=bool(match[1]))
            place = match.end()
        self._words(notation[place:])
        self._end_run()
        return "".join(self._parts)

    def _words(self, raw: str) -> None:
        if raw:
            self._begin_run(self._looks[-1])
            self._text.append(raw)

    def _point(self, point: Point) -> None:
        written = self._write_parts(point.parts)
        if point.is_text:
            self._words(written)
        elif point.look is None:
            self._end_run()
            self._parts.append(written)
        else:
            self._begin_run(point.look)
            self._end_words()
            self._parts.append(written)

    def _edge(self, entry: _Numbered, *, is_end: bool) -> None:
        if entry.surrounds_runs:
            self._end_run()
            self._parts.append(entry.end if is_end else entry.start)
        if is_end:
            self._looks.pop()
        else:
            self._looks.append(entry.base)

    def _begin_run(self, look: Look) -> None:
        if self._run is not None and self._run.key == look.key:
            return
        self._end_run()
        self._parts.append(look.start)
        self._run = look

    def _end_words(self) -> None:
        if self._text:
            self._parts.append(self._write_words("".join(self._text)))
        self._text = []

    def _end_run(self) -> None:
        self._end_words()
        if self._run is not None:
            self._parts.append(self._run.end)
        self._run = None


def _opening(number: int) -> Piece:
    return Piece(f"<{number}>", Kind.OPEN, str(number))


def _without_blank_looks(events: Sequence[Event]) -> list[Event]:
    """Give white space the look of the words before it, and join words that look the same."""
    given: list[Event] = []
    for event in events:
        last = given[-1] if given else None
        if isinstance(event, Words) and isinstance(last, Words):
            is_blank = not decode_xml(event.raw).strip()
            if is_blank or event.look.key == last.look.key:
                given[-1] = Words(last.raw + event.raw, last.look)
                continue
            if not decode_xml(last.raw).strip():
                given[-1] = Words(last.raw + event.raw, event.look)
                continue
        given.append(event)
    return given


def _with_edges_in_order(events: Sequence[Event]) -> list[Event]:
    """Make points of edges that may part and have no partner, or are not well nested."""
    nested = _nested(events)
    kept: list[Event] = []
    for number, event in enumerate(events):
        if isinstance(event, Edge) and number not in nested:
            kept.append(Point((event.raw,)))
        else:
            kept.append(event)
    return kept


def _nested(events: Sequence[Event]) -> set[int]:
    """Return the numbers of the edges that make well-nested pairs."""
    nested: set[int] = set()
    opened: list[tuple[int, int]] = []  # pairs, and the numbers of their starts
    # how many pairs that cannot part each open one is in
    depths: dict[int, int] = {}
    depth = 0
    for number, event in enumerate(events):
        if not isinstance(event, Edge):
            continue
        depth -= event.is_end and not event.may_part
        if not event.is_end:
            opened.append((event.pair, number))
            depths[event.pair] = depth
        elif depths.get(event.pair) == depth:
            pair = -1
            while pair != event.pair:
                pair, start = opened.pop()
                del depths[pair]
            nested.update((start, number))
        depth += not event.is_end and not event.may_part
    return nested


def _bases(events: Sequence[Event]) -> dict[int, Look]:
    """Return the look of most letters directly in each pair of edges; -1 is the paragraph."""
    letters: dict[int, Counter[str]] = {}
    looks: dict[str, Look] = {}
    pairs = [-1]
    for event in events:
        if isinstance(event, Edge):
            if event.is_end:
                pairs.pop()
            else:
                pairs.append(event.pair)
        elif isinstance(event, Words):
            looks.setdefault(event.look.key, event.look)
            counts = letters.setdefault(pairs[-1], Counter())
            counts[event.look.key] += 1 + sum(map(str.isalpha, event.raw))
    found = {pair: looks[_most(counts)] for pair, counts in letters.items()}
    found.setdefault(-1, next(iter(found.values()), NO_LOOK))
    return found


def _most(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0]
