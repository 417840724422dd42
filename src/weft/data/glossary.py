"""A glossary: which words of a source have to become which words of the target, and which words
must not be used.

A file has one row for each term: `source`, `target`, and, if it has a header, `case`, `inflection`
and `avoid`. Alternatives stand between vertical bars, `a|b`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path

from weft.data.formats.cells import Rows, find_quoting, read_csv, read_tab_separated
from weft.data.formats.source import open_file
from weft.data.formats.tbx import languages_in_tbx, read_tbx
from weft.data.glossary_columns import (
    COLUMNS,
    named_columns,
    refuse_half_header,
    unread_columns,
)
from weft.data.kept import places_of
from weft.data.languages import primary
from weft.data.scripts import is_spaceless_letter
from weft.errors import DataError

# in English, and as people write it elsewhere
_YES = {
    *("yes", "true", "1", "x", "y", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "sì", "sim", "да", "是", "はい"),
}  # fmt: skip
_NO = {
    *("", "no", "false", "0", "n", "nein", "falsch", "non", "faux", "não", "nee", "нет", "否", "いいえ"),
}  # fmt: skip
_KEY = 3  # letters by which terms are found
# an inflected word may end with another letter, and be longer or shorter by so many
_ENDING = 1
# but not one of these for the other: an importer is not imported
_APART = {"r", "d"}
_LONGER = 3
_HEAD = 65536  # bytes by which the separator of a table is told


@dataclass(frozen=True)
class Entry:
    """A term: each of the `sources` becomes one of the `targets`, and none of `avoided`.

    A term without a target stays as it is. With `exact_case`, capitals count in the source. With
    `inflected`, the last word of the source may have another ending, and that of the target may go
    on. `where` is its file and line.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    avoided: tuple[str, ...] = ()
    exact_case: bool = False
    inflected: bool = False
    where: str = ""


@dataclass(frozen=True)
class Occurrence:
    """A term in a text, from its character `start` to before `end`, and the entries that it is
    of.
    """

    start: int
    end: int
    source: str
    entries: tuple[Entry, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the targets of all entries, each once; the source itself where one has none."""
        found = chain.from_iterable(
            entry.targets or (self.source,) for entry in self.entries
        )
        return tuple(dict.fromkeys(found))

    @property
    def avoided(self) -> tuple[str, ...]:
        """Return what must not be used, each once."""
        found = chain.from_iterable(entry.avoided for entry in self.entries)
        return tuple(dict.fromkeys(found))

    @property
    def inflected(self) -> bool:
        """Return whether the target may go on."""
        return any(entry.inflected for entry in self.entries)


@dataclass(frozen=True)
class Glossary:
    """Entries, found in texts by their first letters.

    No term stands in what has one of the `kept_forms` (`weft.data.kept`).
    """

    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)
    kept_forms: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def reversed(self) -> "Glossary":
        """Return the terms with their sides exchanged, those that have both."""
        return Glossary(
            tuple(
                replace(one, sources=one.targets, targets=one.sources)
                for one in self.entries
                if one.targets
            )
        )

    def twins(self) -> Iterator[tuple[str, Entry, Entry]]:
        """Yield each source of a row that an earlier row has, too, with both, the earlier first."""
        first: dict[str, Entry] = {}
        for entry in self.entries:
            for source in entry.sources:
                earlier = first.setdefault(lowered_text(source), entry)
                if earlier is not entry:
                    yield source, earlier, entry

    @cached_property
    def sha256(self) -> str:
        """Hash the terms and their rules, in their order."""
        terms = [
            (one.sources, one.targets, one.avoided, one.exact_case, one.inflected)
            for one in self.entries
        ]
        return sha256(repr(terms).encode("utf-8", "surrogatepass")).hexdigest()

    def find(self, text: str) -> list[Occurrence]:
        """Return the terms of a text: the longest at each place, none within another."""
        found: list[Occurrence] = []
        place = 0
        lowered = lowered_text(text)
        kept = places_of(text, self.kept_forms)
        for start in _starts(text):
            if start < place:
                continue
            if start in kept:
                place = kept[start]
                continue
            occurrence = self._at(text, lowered, start)
            if occurrence is not None:
                found.append(occurrence)
                place = occurrence.end
        return found

    def _at(self, text: str, lowered: str, start: int) -> Occurrence | None:
        matches: defaultdict[int, list[Entry]] = defaultdict(list)
        for length in range(1, _KEY + 1):
            key = lowered[start : start + length]
            if len(key) < length:
                break
            for source, entry in self._by_key.get(key, ()):
                end = _end_of(source, entry, text, lowered, start)
                if end and entry not in matches[end]:
                    matches[end].append(entry)
        if not matches:
            return None
        end = max(matches)
        return Occurrence(start, end, text[start:end], tuple(matches[end]))

    @cached_property
    def _by_key(self) -> Mapping[str, list[tuple[str, Entry]]]:
        found: defaultdict[str, list[tuple[str, Entry]]] = defaultdict(list)
        for entry in self.entries:
            for source in entry.sources:
                found[lowered_text(source)[:_KEY]].append((source, entry))
        return found


@dataclass(frozen=True)
class Standing:
    """A word of a glossary in a translation, from its character `start` to before `end`; `word` is
    in small letters.
    """

    start: int
    end: int
    word: str


def find_words(text: str, occurrences: Sequence[Occurrence]) -> list[Standing]:
    """Return where targets and avoided words of some terms stand in a translation, in its order.

    They are whole words; the target of an inflected term may go on. No character belongs to two of
    them: what begins first has it, of these the longest. So the *house* within a *white house* is
    no second one, if both are terms.
    """
    lowered = lowered_text(text)
    found: set[tuple[int, int, str]] = set()
    for occurrence in occurrences:
        for wanted in chain(occurrence.targets, occurrence.avoided):
            word = lowered_text(wanted)
            for start in _places(word, lowered, occurrence.inflected):
                found.add((start, -(start + len(word)), word))
    standing: list[Standing] = []
    place = 0
    for start, end, word in sorted(found):
        if start >= place:
            place = -end
            standing.append(Standing(start, place, word))
    return standing


def word_with(text: str, part: str) -> str:
    """Return the first word of a text that has a term in it and is longer; "" where none is."""
    lowered = lowered_text(text)
    part = lowered_text(part)
    start = lowered.find(part)
    while start >= 0:
        begin = start
        end = start + len(part)
        while begin > 0 and are_joined(text[begin - 1], text[begin]):
            begin -= 1
        while end < len(text) and are_joined(text[end - 1], text[end]):
            end += 1
        if end - begin > len(part):
            return text[begin:end]
        start = lowered.find(part, start + 1)
    return ""


def alike(occurrences: Sequence[Occurrence]) -> list[list[int]]:
    """Group the numbers of terms by their targets: those that have one in common are together."""
    groups: list[tuple[set[str], list[int]]] = []
    for number, occurrence in enumerate(occurrences):
        targets = set(map(lowered_text, occurrence.targets))
        together = [number]
        apart = []
        for group in groups:
            if group[0].isdisjoint(targets):
                apart.append(group)
            else:
                targets |= group[0]
                together += group[1]
        groups = [*apart, (targets, together)]
    return [sorted(numbers) for _, numbers in groups]


def read_glossary(path: Path, src_lang: str, tgt_lang: str) -> Glossary:
    """Read a glossary for a pair of languages (BCP-47): TSV, CSV or TBX, by the file's name.

    Raises DataError with file and line for what cannot be read, for a rule that is none, and for a
    file without a term.
    """
    ending = _ending(path)
    if ending == ".tbx":
        entries = [
            Entry(sources, targets, avoided, where=f"{path}:{line}")
            for line, sources, targets, avoided in read_tbx(path, src_lang, tgt_lang)
        ]
        notes: list[str] = []
    elif ending in (".tsv", ".csv", ".txt"):
        entries, notes = _read_table(path, (src_lang, tgt_lang))
    else:
        raise DataError(
            f"{path}: a glossary is a .tsv, .csv or .tbx file; save it as one of these"
        )
    if not entries:
        raise DataError(f"{path}: there is no term in it")
    if len(entries) > 1 and not any(entry.targets for entry in entries):
        notes.append("no row has a target: each of its terms stays as it is")
    return Glossary(tuple(entries), tuple(notes))


def glossary_of(
    rows: Iterable[tuple[int, Sequence[str]]], name: str, pair: tuple[str, str]
) -> Glossary:
    """Return the glossary of rows with their numbers, as a table has them, for a pair of languages
    (BCP-47); `name` says in messages where they are from.

    Raises DataError for what is no term or no rule, and where there is none.
    """
    notes: list[str] = []
    entries = list(_entries(rows, name, pair, notes))
    if not entries:
        raise DataError(f"{name}: there is no term in it")
    return Glossary(tuple(entries), tuple(notes))


def pairs_in(path: Path, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of some pairs of languages that a glossary is for: a term base those that it has
    terms of, a table those that its header names; all where it does not say so.

    Raises DataError for what cannot be read.
    """
    pairs = list(pairs)
    if _ending(path) == ".tbx":
        languages = languages_in_tbx(path)
        return [pair for pair in pairs if languages.issuperset(map(primary, pair))]
    first = first_row(path)
    named = [
        pair for pair in pairs if named_columns(first, pair) and not _is_plain(first)
    ]
    return named or pairs


def first_row(path: Path) -> list[str]:
    """Return the cells of a table's first row. Raises DataError for what cannot be read."""
    rows, _ = _rows_of(path)
    return next((_stripped(cells) for _, cells in rows if cells and any(cells)), [])


def _is_plain(cells: Sequence[str]) -> bool:
    """Return whether a header names its columns `source` and `target`, and no language."""
    names = {cell.lower().removeprefix("\ufeff") for cell in cells}
    return {"source", "target"} <= names


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-1:]).lower()


def _read_table(path: Path, pair: tuple[str, str]) -> tuple[list[Entry], list[str]]:
    rows, notes = _rows_of(path)
    checked = ((line, _whole(path, line, cells)) for line, cells in rows)
    return list(_entries(checked, str(path), pair, notes)), notes


def _rows_of(path: Path) -> tuple[Rows, list[str]]:
    """Return the rows of a table, and what was assumed of it."""
    dropped = Counter[str]()
    if _ending(path) == ".csv":
        return read_csv(path, (), dropped), []
    if _has_semicolons(path):
        note = "its rows have semicolons in the place of TABs, and are read so"
        return read_csv(path, (), dropped), [note]
    quoting = find_quoting(path)
    return read_tab_separated(path, quoting, dropped), list(quoting.notes)


def _has_semicolons(path: Path) -> bool:
    """Return whether each row of a file without a TAB has a semicolon, as some save a .csv."""
    with open_file(path) as file:
        head = file.read(_HEAD)
    rows = [row for row in head.split(b"\n") if row.strip()]
    return bool(rows) and b"\t" not in head and all(b";" in row for row in rows)


def _whole(path: Path, line: int, cells: Sequence[str] | None) -> Sequence[str]:
    if cells is None:
        raise DataError(f"{path}:{line}: the line is too long for a term")
    return cells


def _stripped(cells: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in cells]


def _entries(
    rows: Iterable[tuple[int, Sequence[str]]],
    name: str,
    pair: tuple[str, str],
    notes: list[str],
) -> Iterator[Entry]:
    """Yield the terms of rows, the first of which may be a header; add notes on its columns."""
    columns: Sequence[str] = ()
    is_first = True
    for line, cells in rows:
        texts = _stripped(cells)
        if not any(texts):
            continue
        where = f"{name}:{line}"
        if is_first:
            refuse_half_header(texts, where)
            columns = named_columns(texts, pair)
            notes += _on_columns(texts, columns, where)
        if not (is_first and columns):
            yield _entry(where, texts, columns)
        is_first = False


def _on_columns(
    first: Sequence[str], columns: Sequence[str], where: str
) -> Iterator[str]:
    """Yield what is to be known of how the columns are read; `first` is the first row."""
    if unread := unread_columns(columns, where):
        listed = ", ".join(unread)
        yield f"not read: {listed}; the columns of a glossary are {', '.join(COLUMNS)}"
    if not columns and any(first[2:]):
        yield "its first row names no columns; the third is read as case (yes: capitals count)"


def _entry(where: str, cells: Sequence[str], columns: Sequence[str]) -> Entry:
    """Return the term of a row; without names, the columns are the usual ones."""
    row = dict(zip(columns or COLUMNS, cells, strict=False))
    has_names = bool(columns)
    sources = _alternatives(row.get("source", ""))
    avoided = _alternatives(row.get("avoid", ""))
    if not sources:
        raise DataError(f"{where}: the term has no source; write source, TAB, target")
    return Entry(
        sources,
        _alternatives(row.get("target", "")),
        avoided,
        exact_case=_is_yes(row, "case", where, has_names)
        or all(map(_is_acronym, sources)),
        inflected=_is_yes(row, "inflection", where, has_names),
        where=where,
    )


def _alternatives(cell: str) -> tuple[str, ...]:
    parts = (" ".join(part.split()) for part in cell.split("|"))
    return tuple(dict.fromkeys(filter(None, parts)))


def _is_yes(row: Mapping[str, str], name: str, where: str, has_names: bool) -> bool:
    value = row.get(name, "").lower()
    if value in _YES | _NO:
        return value in _YES
    said = f"{where}: {name} is {value[:40]!r}; write yes or no"
    if not has_names:
        said += "; or name the columns in a first row: source, target, note"
    raise DataError(said)


def _is_acronym(term: str) -> bool:
    """Return whether a term has capitals alone, as IT has, which is not `it`."""
    return len(term) > 1 and term.upper() == term != term.lower()


def lowered_text(text: str) -> str:
    """Return a text in small letters, each character where it stood."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(map(_lowered_alone, text))


def _lowered_alone(character: str) -> str:
    small = character.lower()
    return small if len(small) == 1 else character


def _starts(text: str) -> Iterator[int]:
    """Yield where a term may begin: where a word does, in scripts without spaces anywhere."""
    before = " "
    for place, character in enumerate(text):
        if not character.isspace() and not are_joined(before, character):
            yield place
        before = character


def are_joined(before: str, after: str) -> bool:
    """Return whether two characters that follow each other are of one word."""
    is_inside = before.isalnum() and after.isalnum()
    return is_inside and not (is_spaceless_letter(before) or is_spaceless_letter(after))


def _places(word: str, lowered: str, may_go_on: bool) -> Iterator[int]:
    """Yield where a word stands in a text, not within another one; both are in small letters."""
    start = lowered.find(word)
    while start >= 0:
        end = start + len(word)
        begins = start == 0 or not are_joined(lowered[start - 1], lowered[start])
        ends = end == len(lowered) or not are_joined(lowered[end - 1], lowered[end])
        if begins and (may_go_on or ends):
            yield start
        start = lowered.find(word, start + 1)


def _end_of(
    source: str, entry: Entry, text: str, lowered: str, start: int
) -> int | None:
    """Return where a term ends that begins at a place; None where it does not stand there."""
    if entry.inflected:
        return _end_of_inflected(lowered_text(source), lowered, start)
    end = start + len(source)
    if entry.exact_case:
        is_there = text[start:end] == source
    else:
        is_there = lowered[start:end] == lowered_text(source)
    if not is_there:
        return None
    is_whole = end == len(text) or not are_joined(text[end - 1], text[end])
    return end if is_whole else None


def _end_of_inflected(source: str, lowered: str, start: int) -> int | None:
    stem = source[: max(_KEY, len(source) - _ENDING)]
    if not lowered.startswith(stem, start):
        return None
    end = start + len(stem)
    if {source[len(stem) :], lowered[end : end + 1]} == _APART:
        return None
    while end < len(lowered) and are_joined(lowered[end - 1], lowered[end]):
        end += 1
    return end if abs(end - start - len(source)) <= _LONGER else None
