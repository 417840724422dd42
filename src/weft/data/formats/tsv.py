"""A file of pairs, `source<TAB>target` on each line; a spreadsheet's quotes and a row of names are
known.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from weft.data import languages
from weft.data.formats.cells import (
    Quoting,
    find_delimiter,
    find_quoting,
    read_tab_separated,
)
from weft.data.formats.header import (
    Header,
    Heading,
    are_sentences,
    find_header_of,
    half_of_a_header,
    known_and_unknown,
    looks_like_a_pair,
    may_be_names,
    places_of_text,
)
from weft.data.formats.pairs import (
    OpenPairs,
    Sides,
    choose_direction,
    doubt_name,
    other_way,
)
from weft.data.formats.row import TOO_LONG, PairRow
from weft.errors import DataError

_SAMPLE = 100  # rows below the first that show whether it is a pair
_EXAMPLE = "kos"  # a code that stands for one that nobody here knows
_MOST_SHOWN = 4  # cells of a first row


def open_tsv(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open lines of `source<TAB>target`, by the languages asked for and those of the file's name.

    Without either the languages are those of the columns.
    """
    return _open(path, find_quoting(path), asked, named)


def open_csv(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open CSV as `open_tsv` does. Raises DataError where nothing says which are the two sides."""
    return _open(path, Quoting("csv"), asked, named)


def _open(path: Path, quoting: Quoting, asked: Sides, named: Sides) -> OpenPairs:
    wanted = (asked[0] or named[0], asked[1] or named[1])
    rows = _first_rows(path, quoting)
    is_csv = quoting.kind == "csv"
    header = find_header_of(rows, is_csv, *wanted)
    places = places_of_text(rows)
    if header:
        places = (header.src, header.tgt)
    notes = []
    if is_csv:
        notes = _doubt_first_pair(path, rows, header, wanted)
    elif header is None:
        notes = _doubt_first_row(rows, places, wanted)
    if header and named == (None, None):
        named = (header.src_lang, header.tgt_lang)
    pair = choose_direction(asked, named)
    notes.extend(doubt_name(pair, named))
    if header:
        notes.extend(_doubt_header(pair, header, is_asked=any(asked)))
    dropped = Counter[str]()
    return OpenPairs(
        rows=read_tsv(path, quoting, places, header, dropped, notes),
        languages=pair,
        dropped=dropped,
        notes=notes,
    )


def _first_rows(path: Path, quoting: Quoting) -> list[list[str]]:
    """Return the cells of the first rows that hold something, at least of one; none of a line that
    is too long.
    """
    read = read_tab_separated(path, quoting, Counter())
    _, first = next(read, (1, None))
    rows = [first or []]
    with suppress(DataError):  # whoever reads on raises it again, with its place
        rows.extend(cells for _, cells in islice(read, _SAMPLE) if cells)
    return rows


def _doubt_first_pair(
    path: Path, rows: Sequence[Sequence[str]], header: Header | None, wanted: Sides
) -> list[str]:
    """Return a doubt on CSV whose first row is read as a pair. Raises DataError where nothing says
    what its columns are.
    """
    if header is not None:
        return []
    if all(wanted) and len(rows[0]) == 2:
        return ["its first row names no languages and is read as a pair"]
    raise DataError(f"{path}: {_unnamed(path, rows)}")


def _unnamed(path: Path, rows: Sequence[Sequence[str]]) -> str:
    """Say why the first row of CSV does not name the two sides, and what to do about it."""
    cells, *body = rows
    delimiter, _ = find_delimiter(path, ())
    names = delimiter.join(("English", "Deutsch"))
    if are_sentences(rows) and looks_like_a_pair(cells):
        roles = delimiter.join(("source", "target"))
        return (
            "looks like pairs of sentences without a header; add a first line that names the two columns: their "
            f"languages ({names}), or {roles}"
        )
    known, unknown = known_and_unknown(cells)
    shown = " and ".join(f"{cell:.40}" for cell in unknown[:_MOST_SHOWN])
    what = "is a table whose first row does not name the two sides"
    codes = delimiter.join(("en", _EXAMPLE))
    remedy = f"name two of its columns by languages ({names}) or their codes ({codes}), or source and target"
    if known and unknown:
        what += f": Weft knows no language by the name or code {shown}"
    if len(cells) == 2:
        settings = _settings(*_two_codes(known))
        own = f"{_EXAMPLE} stands for the code of {shown}" if known else "for example"
        remedy = f"say the codes of both languages ({settings}; {own}), or {remedy}"
    if not known and not are_sentences(body):
        remedy += "; or, if these are labelled rows, take a recipe such as --recipe classify-fast"
    return f"{what}; {remedy}"


def _two_codes(known: Sequence[Heading]) -> tuple[str, str]:
    """Return codes for two columns as an example, with the language that one of them has."""
    if len(known) != 1 or known[0].lang is None:
        return "en", _EXAMPLE
    lang = known[0].lang
    return (lang, _EXAMPLE) if known[0].place == 0 else (_EXAMPLE, lang)


def _settings(src: str, tgt: str) -> str:
    return f"--set data.src_lang={src} --set data.tgt_lang={tgt}"


def _doubt_first_row(
    rows: Sequence[Sequence[str]], places: tuple[int, int], wanted: Sides
) -> list[str]:
    """Return a doubt if the first row of TSV is read as a pair and may name the columns."""
    heading = half_of_a_header(rows, *wanted)
    if heading is None:
        return _doubt_unknown_names(rows, places)
    cells = [cell.strip() for cell in rows[0]]
    remedy = "name two columns by languages, or source and target"
    if len(cells) == 2:
        settings = _settings(*_two_codes([heading]))
        (other,) = (cell for place, cell in enumerate(cells) if place != heading.place)
        own = f"{_EXAMPLE} stands for the code of {other:.40}"
        remedy = f"add {settings} ({own}), or name them source and target"
    shown = ", ".join(f"{cell:.40}" for cell in cells[:_MOST_SHOWN])
    return [
        f"the first row ({shown}) is read as a pair; if it names the columns, {remedy}"
    ]


def _doubt_unknown_names(
    rows: Sequence[Sequence[str]], places: tuple[int, int]
) -> list[str]:
    """Return the same doubt of a first row in which no language is known."""
    src, tgt = places
    sides = [[row[src], row[tgt]] for row in rows if len(row) > max(places)]
    if not may_be_names(sides):
        return []
    shown = ", ".join(f"{cell.strip():.40}" for cell in sides[0])
    doubt = f"the first row ({shown}) is read as a pair; if it names the columns"
    return [f"{doubt}, name them by languages (English, Deutsch), or source and target"]


def _doubt_header(
    pair: tuple[str, str], header: Header, is_asked: bool
) -> Iterator[str]:
    """Yield the doubts on the direction that the names of the columns leave."""
    read = f"read as {pair[0]} to {pair[1]}"
    has_languages = header.src_lang and header.tgt_lang
    if has_languages and (header.is_turned or not is_asked):
        turned = "its columns are turned round and " if header.is_turned else ""
        yield f"{turned}{read}; {other_way(pair)}"
    if _differ(pair, header):
        src = header.src_lang or languages.UNKNOWN
        shown = languages.direction(src, header.tgt_lang or languages.UNKNOWN)
        yield f"its columns are named {shown}, but {read}; is that right?"


def _differ(pair: tuple[str, str], header: Header) -> bool:
    """Return whether a column is named as another language than it is read as."""
    named = (header.src_lang, header.tgt_lang)
    return any(
        name and languages.primary(name) != languages.primary(lang)
        for name, lang in zip(named, pair, strict=True)
    )


def read_tsv(
    path: Path,
    quoting: Quoting,
    places: tuple[int, int],
    header: Header | None,
    dropped: Counter[str],
    notes: list[str],
) -> Iterator[PairRow]:
    """Yield the line where each row begins and its two columns, in these places; further columns
    must be as many in every row.

    Raises DataError for a row without a TAB or with another number of columns than the first.
    """
    notes.extend(quoting.notes)
    src, tgt = places
    if header:
        shown = f"{header.cells[src].strip()} and {header.cells[tgt].strip()}"
        notes.append(f"the first row names the columns ({shown}) and is no pair")
    columns = 0
    for count, (number, cells) in enumerate(read_tab_separated(path, quoting, dropped)):
        if cells is None:
            dropped[TOO_LONG] += 1
            continue
        if len(cells) != columns:
            columns = _first_width(path, number, len(cells), columns)
        if count or not header:
            yield number, cells[src], cells[tgt]
    if columns > 2:
        which = f"columns {src + 1} and {tgt + 1} are used"
        if (src, tgt) == (0, 1):
            which = "the first two are used"
        elif header is None:
            which += ", the first two that do not hold numbers alone"
        notes.append(f"{columns} columns in every line; {which}")


def _first_width(path: Path, number: int, width: int, columns: int) -> int:
    """Return the width of the first line with text; raises DataError if there is none or the file
    is ragged.
    """
    if width < 2:
        raise DataError(
            f"{path}:{number}: no TAB; write source<TAB>target on every line, "
            "or give two aligned files joined by a comma (train.en,train.de)"
        )
    if columns:
        raise DataError(
            f"{path}:{number}: {width} columns where the lines before have {columns}; "
            "take stray TABs out of the text or drop the line"
        )
    return width
