"""A glossary by itself: whether a file is one, and what is doubtful in it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from weft.data.formats.tbx import languages_in_tbx
from weft.data.glossary import Entry, Glossary, first_row, lowered_text, read_glossary
from weft.data.glossary_columns import COLUMNS, languages_named, named_columns
from weft.errors import DataError, UsageError

_RULES = set(COLUMNS[2:])  # columns that no table of pairs has


@dataclass(frozen=True)
class GlossaryCheck:
    """The findings about a glossary in a file; `doubts` begin with its line."""

    file: str
    num_terms: int
    num_inflected: int
    notes: tuple[str, ...]
    doubts: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the same as a plain dictionary."""
        return asdict(self)


def is_glossary(path: Path) -> bool:
    """Return whether a file can be nothing but a glossary: a term base, or a table whose first row
    names a column of rules.
    """
    ending = path.suffix.lower()
    if ending == ".tbx":
        return path.is_file()
    if ending not in (".csv", ".tsv") or not path.is_file():
        return False
    try:
        cells = first_row(path)
    except DataError:
        return False
    columns = named_columns(cells, languages_named(cells))
    return not _RULES.isdisjoint(columns)


def check_glossary(path: Path, pair: Sequence[str]) -> GlossaryCheck:
    """Read a glossary and look through it; `pair` are the languages that are asked for, if any.

    Raises DataError as `read_glossary` does, UsageError for a term base of several languages of
    which none are asked for.
    """
    src, tgt = _languages(path, pair)
    glossary = read_glossary(path, src, tgt)
    entries = glossary.entries
    return GlossaryCheck(
        str(path),
        len(entries),
        sum(entry.inflected for entry in entries),
        glossary.notes,
        tuple(_doubts(glossary)),
    )


def _languages(path: Path, pair: Sequence[str]) -> tuple[str, str]:
    """Return the languages that are asked for, or else those that the file is in."""
    if len(pair) == 2:
        return pair[0], pair[1]
    if path.suffix.lower() != ".tbx":
        return languages_named(first_row(path))
    found = sorted(languages_in_tbx(path))
    if len(found) != 2:
        listed = ", ".join(found) or "none"
        raise UsageError(
            f"{path}: choose two languages with data.src_lang and data.tgt_lang from {listed}"
        )
    return found[0], found[1]


def _doubts(glossary: Glossary) -> Iterator[str]:
    """Yield what contradicts itself: within a row, then between rows."""
    for entry in glossary.entries:
        avoided = set(map(lowered_text, entry.avoided))
        both = avoided.intersection(map(lowered_text, entry.targets))
        if both:
            yield f"{entry.where}: {', '.join(sorted(both))} is wanted and to be avoided"
    for twins in glossary.twins():
        yield _on_twins(*twins)


def alternatives(glossary: Glossary) -> Iterator[str]:
    """Yield which terms have other targets in a row than in an earlier one, all of which count."""
    for source, first, second in glossary.twins():
        if set(first.targets) != set(second.targets):
            yield _on_twins(source, first, second)


def _on_twins(source: str, first: Entry, second: Entry) -> str:
    """Say that a term stands in two rows."""
    where = f"{second.where}: {source} stands in {first.where}, too"
    if set(first.targets) == set(second.targets):
        return f"{where}, with the same target"
    targets = chain(first.targets or (source,), second.targets or (source,))
    return f"{where}: either of {', '.join(dict.fromkeys(targets))} is taken"
