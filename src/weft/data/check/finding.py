"""A finding of a check: its place, its remedy, and the rows that it is about."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Severity = Literal["note", "warning", "fatal"]

NUM_EXAMPLES = 5  # rows that a finding shows
MOST_PLACES = 5000  # rows whose places a report lists
EXAMPLE_CHARS = 160  # of a row's text, all columns together
BETWEEN = "  |  "  # the columns of a row
_ORDER = ("fatal", "warning", "note")
_PLACE = re.compile(r"(.*):( unit )?(\d+)", re.DOTALL)  # as a corpus names it


class Example(NamedTuple):
    """A row of a finding: `file:line`, what stands there, and what of it is meant, where not all of
    it is.

    `text` has a part of each column, around what is meant; `about` is that very thing (`<br>`,
    `U+0007`), what is odd (`12 against 21`), or where it was before. `marked` are the places in
    `text` where what is meant begins and ends, in characters.
    """

    where: str
    text: str
    about: str = ""
    marked: tuple[tuple[int, int], ...] = ()

    def with_marks(self, before: str, behind: str) -> str:
        """Return the text with something before and behind each place that is marked."""
        shown = self.text
        for start, end in reversed(self.marked):
            shown = f"{shown[:start]}{before}{shown[start:end]}{behind}{shown[end:]}"
        return shown


class Evidence(NamedTuple):
    """The part of a row that a finding is about: its name, the character of each column where it
    begins, and how many characters it has there.
    """

    about: str = ""
    starts: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()


class Shown(NamedTuple):
    """A row that is shown, what of it is meant, and how bad it is beside others."""

    row: int
    evidence: Evidence
    badness: float = 0.0


@dataclass(frozen=True)
class Share:
    """The sentence about rows that have something in common, and the rows that are shown.

    Above a share of the text (`warn`) it is a warning, above another (`fatal`) fatal. `by_badness`
    says that the worst are shown, else it is the first.
    """

    what: str
    remedy: str
    warn: float
    fatal: float
    shown: tuple[Shown, ...]
    by_badness: bool = False


@dataclass(frozen=True)
class Finding:
    """A thing worth knowing: `message` is one line with file and line, `remedy` says what to do
    about it.

    fatal: training would be wrong, or a score would mean nothing. warning: a good share of the
    text. note: less. `count` is how many rows (or characters, or labels) it is about; `rows` are
    their numbers in the text, where it is about rows, and `examples` the first of them. `part` is
    train, dev or test. `places` says where each row stands, of the first MOST_PLACES. `share` is
    what the finding was made of, where it is about any rows that have something.
    """

    severity: Severity
    code: str
    message: str
    remedy: str
    count: int
    rows: tuple[int, ...] = ()
    examples: tuple[Example, ...] = ()
    part: str = "train"
    places: tuple[str, ...] = ()
    share: Share | None = None

    def lines(self) -> dict[str, list[int]]:
        """Return the numbers of the lines in `places`, by file; of a file by units, the units'."""
        lines: dict[str, list[int]] = {}
        for place in self.places:
            match = _PLACE.fullmatch(place)
            assert match is not None
            name = f"{match[1]} (units)" if match[2] else match[1]
            lines.setdefault(name, []).append(int(match[3]))
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a plain dictionary, without `rows`: their numbers hold for this
        reading of the text alone.
        """
        return {
            "part": self.part,
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "count": self.count,
            "remedy": self.remedy,
            "examples": [example._asdict() for example in self.examples],
            "lines": self.lines(),
        }


def _whole_row(_: int) -> Evidence:
    return Evidence()


@dataclass(frozen=True)
class Rows:
    """The rows of any kind of text, as a check names and shows them.

    `unit` is their plural, `show` gives the columns of one; `among` says of which of a text's rows
    these are all that were looked at.
    """

    size: int
    unit: str
    where: Callable[[int], str]
    show: Callable[[int], tuple[str, ...]]
    among: str = ""

    def examples(
        self,
        indices: Sequence[int],
        evidence: Callable[[int], Evidence] = _whole_row,
        most: int = NUM_EXAMPLES,
    ) -> tuple[Example, ...]:
        """Return the first of the rows at `indices`, each around its evidence."""
        return tuple(self._example(i, evidence(i)) for i in indices[:most])

    def places(self, indices: Sequence[int]) -> tuple[str, ...]:
        """Say where each of the rows at `indices` stands, of the first MOST_PLACES."""
        return tuple(map(self.where, indices[:MOST_PLACES]))

    def _example(self, i: int, evidence: Evidence) -> Example:
        text, marked = marked_excerpts(self.show(i), evidence.starts, evidence.sizes)
        return Example(self.where(i), text, evidence.about, marked)

    def first_at(self, other: Mapping[int, int]) -> Callable[[int], Evidence]:
        """Return a function that says of a row that repeats another where that one stands."""
        return lambda i: Evidence(f"first at {self.where(other[i])}")

    def spot(
        self, find: Callable[[str], re.Match[str] | None]
    ) -> Callable[[int], Evidence]:
        """Return a function that finds in a row the first match of `find` in any column."""

        def evidence(i: int) -> Evidence:
            about = ""
            matches = [find(text) for text in self.show(i)]
            for match in matches:
                if match:
                    about = about or excerpt(match[0])
            return Evidence(about, *self.at(i, matches))

        return evidence

    def at(
        self, i: int, matches: Sequence[re.Match[str] | None]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Choose the character to show in each column of row i, and how many from it on are marked:
        those of its match, if any.
        """
        places: list[int | None] = []
        sizes = []
        for match in matches:
            places.append(match.start() if match else None)
            sizes.append(len(match[0]) if match else 0)
        return self.around(i, places), tuple(sizes)

    def around(self, i: int, places: Sequence[int | None]) -> tuple[int, ...]:
        """Choose the character to show in each column of row i: the given place.

        Where there is none, it is as far on, in proportion, as in the first column that has one.
        """
        texts = self.show(i)
        columns = list(zip(places, texts, strict=True))
        known = ((place, len(text)) for place, text in columns if place is not None)
        first, size = next(known, (0, 1))
        starts = []
        for place, text in columns:
            guess = len(text) * first // max(size, 1)
            starts.append(guess if place is None else place)
        return tuple(starts)

    def shares(
        self,
        found: Sequence[int],
        code: str,
        what: str,
        remedy: str,
        warn: float,
        fatal: float = 2.0,
        evidence: Callable[[int], Evidence] = _whole_row,
        badness: Callable[[int], float] | None = None,
    ) -> Iterator[Finding]:
        """Yield a note for rows that have something; above a share of the text a warning, or fatal.

        `badness` says how bad a row is, where some are worse than others: the worst are shown.
        """
        if found:
            order = list(found[:NUM_EXAMPLES])
            if badness is not None:
                order = sorted(found, key=lambda i: -badness(i))[:NUM_EXAMPLES]
            shown = tuple(
                Shown(i, evidence(i), badness(i) if badness else 0.0) for i in order
            )
            share = Share(what, remedy, warn, fatal, shown, badness is not None)
            yield self.finding(found, code, share)

    def finding(self, found: Sequence[int], code: str, share: Share) -> Finding:
        """Return the finding of rows that have something."""
        part = len(found) / self.size
        which = "worst" if share.by_badness else "first"
        many = f"{counted(len(found), self.unit)}, {100 * part:.1f} %{self.among}; the {which} is shown"
        severity: Severity = "warning" if part > share.warn else "note"
        if part > share.fatal:
            severity = "fatal"
        first = share.shown[0].row
        return Finding(
            severity,
            code,
            f"{self.where(first)}: {share.what} ({many})",
            share.remedy,
            len(found),
            tuple(found),
            tuple(self._example(row, evidence) for row, evidence, _ in share.shown),
            places=self.places(found),
            share=share,
        )


def gravest_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: fatal ones, then warnings, then notes; those of one severity keep their
    order.
    """
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def as_read(
    rows: Rows,
    files: Sequence[str],
    dropped: dict[str, int],
    notes: Sequence[str],
    warn: float = 0.1,
) -> Iterator[Finding]:
    """Yield what reading dropped, with a warning above a share of the text, and what it assumed."""
    for reason, count in sorted(dropped.items()):
        yield Finding(
            "warning" if count > warn * (rows.size + count) else "note",
            f"dropped-{rows.unit}",
            f"{', '.join(files)}: {counted(count, rows.unit)} dropped: {reason}",
            "nothing to do if this is expected; otherwise check the files",
            count,
        )
    for note in notes:
        yield Finding("note", "as-read", note, "nothing to do if this is intended", 1)


def counted(number: int, unit: str) -> str:
    """Return a number with its unit, "1 pair" or "2 pairs"."""
    return f"1 {unit.removesuffix('s')}" if number == 1 else f"{number:,} {unit}"


def excerpt(text: str, around: int = 0, room: int = EXAMPLE_CHARS) -> str:
    """Return the part of a text around a character, on one line, with … where something is left
    out.
    """
    return _marked(text, around, 0, room)[0]


def excerpts(texts: Sequence[str], starts: Sequence[int] = ()) -> str:
    """Return a part of each column of a row, around its place in `starts`.

    What a short one does not need others get.
    """
    return marked_excerpts(texts, starts)[0]


def marked_excerpts(
    texts: Sequence[str], starts: Sequence[int] = (), sizes: Sequence[int] = ()
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the same, and where in it those characters stand of which each column has `sizes`."""
    parts = [("", 0, 0)] * len(texts)
    left = EXAMPLE_CHARS
    shortest_first = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for done, column in enumerate(shortest_first):
        room = left // (len(texts) - done)
        start = starts[column] if starts else 0
        size = sizes[column] if sizes else 0
        parts[column] = _marked(texts[column], start, size, room)
        left -= min(len(texts[column]), room)
    marked = []
    first = 0
    for shown, start, end in parts:
        if end > start:
            marked.append((first + start, first + end))
        first += len(shown) + len(BETWEEN)
    return BETWEEN.join(shown for shown, _, _ in parts), tuple(marked)


def _marked(text: str, around: int, size: int, room: int) -> tuple[str, int, int]:
    """Return the part of a text around a character, and where it and so many after it stand in
    that.
    """
    start = max(0, min(around - room // 2, len(text) - room))
    before, meant, behind = (
        "".join(map(_visible, part))
        for part in (
            text[start:around],
            text[around : min(around + size, start + room)],
            text[around + size : start + room],
        )
    )
    if start:
        before = "…" + before
    if start + room < len(text):
        behind += "…"
    return before + meant + behind, len(before), len(before) + len(meant)


def _visible(letter: str) -> str:
    """Replace white space by a space, and what cannot be seen by its number in Unicode."""
    if letter.isprintable():
        return letter
    return " " if letter in "\t\n\u00a0\u3000" else f"[U+{ord(letter):04X}]"
