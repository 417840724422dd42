"""A file of pairs, `source<TAB>target` on each line; a spreadsheet's quotes and a row of names are
known.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from weft.data import languages
from weft.data.formats.cells import Quoting, find_quoting, read_tab_separated
from weft.data.formats.pairs import (
    OpenPairs,
    Sides,
    choose_direction,
    doubt_name,
    other_way,
)
from weft.data.formats.row import BOTH_EMPTY, EMPTY_LINE, TOO_LONG, Row, on_one_line
from weft.errors import DataError

# Of what words the head of a column is made, beside a language.
_SOURCE = {"source", "src", "original"}
_TARGET = {"target", "tgt", "trg", "translation"}
_WORDS = {"text", "sentence", "sentences", "segment", "string", "language", "lang"}


class Header(NamedTuple):
    """A first row that names the columns: where the two that are read stand, and their languages if
    named.
    """

    cells: list[str]
    src: int
    tgt: int
    src_lang: str | None
    tgt_lang: str | None

    @property
    def is_turned(self) -> bool:
        """Return whether the target stands before the source."""
        return self.src > self.tgt


class Heading(NamedTuple):
    """The meaning of the head of one column."""

    place: int
    role: str  # source, target or ""
    lang: str | None
    # a language's code and nothing else, as a short word might be by chance
    is_code: bool


def open_tsv(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open lines of `source<TAB>target`, by the languages asked for and those of the file's name.

    Without either the languages are those of the columns.
    """
    return _open(path, find_quoting(path), asked, named)


def open_csv(path: Path, asked: Sides, named: Sides) -> OpenPairs:
    """Open CSV as `open_tsv` does. Raises DataError where no first row names the two sides."""
    return _open(path, Quoting("csv"), asked, named)


def _open(path: Path, quoting: Quoting, asked: Sides, named: Sides) -> OpenPairs:
    wanted = (asked[0] or named[0], asked[1] or named[1])
    header = find_header(first_row(path, quoting), *wanted)
    if quoting.kind == "csv":
        _refuse_unnamed(path, header)
    if header and named == (None, None):
        named = (header.src_lang, header.tgt_lang)
    pair = choose_direction(asked, named)
    doubts = doubt_name(pair, named)
    if header:
        doubts.extend(_doubt_header(pair, header, is_asked=any(asked)))
    dropped = Counter[str]()
    notes: list[str] = []
    return OpenPairs(
        rows=read_tsv(path, quoting, header, dropped, notes),
        languages=pair,
        doubts=doubts,
        dropped=dropped,
        notes=notes,
    )


def _refuse_unnamed(path: Path, header: Header | None) -> None:
    """Raise DataError for CSV whose first row does not say which columns are the two sides."""
    if header is None:
        raise DataError(
            f"{path}: is a table whose first row does not name the two sides; name two of its columns by languages "
            "(English,Deutsch), or source and target; or, if these are labelled rows, take a recipe such as "
            "--recipe classify-fast"
        )


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
        shown = f"{header.src_lang} to {header.tgt_lang}"
        yield f"its columns are named {shown}, but {read}; is that right?"


def _differ(pair: tuple[str, str], header: Header) -> bool:
    """Return whether a column is named as another language than it is read as."""
    named = (header.src_lang, header.tgt_lang)
    return any(
        name and languages.primary(name) != languages.primary(lang)
        for name, lang in zip(named, pair, strict=True)
    )


def first_row(path: Path, quoting: Quoting) -> list[str]:
    """Return the cells of the first row that holds something; none of a line that is too long."""
    _, cells = next(read_tab_separated(path, quoting, Counter()), (1, None))
    return cells or []


def find_header(
    cells: Sequence[str], src_lang: str | None, tgt_lang: str | None
) -> Header | None:
    """Find out whether a first row names the columns, and how; the languages are those asked for,
    or None.

    A column is named by a language (`en`, `yor`, `English`), or as `source`, `target` and the like,
    or by both (`source_en`). Of more than two such columns those of the languages asked for are
    read.
    """
    headings = [
        heading
        for place, cell in enumerate(cells)
        if (heading := _heading(place, cell, len(cells))) is not None
    ]
    if len(headings) < 2 or (len(cells) == 2 and cells[0].strip() == cells[1].strip()):
        return None
    src, tgt = _chosen(headings, src_lang, tgt_lang)
    if (src.role, src.lang) == (tgt.role, tgt.lang):
        return None
    asked = {languages.primary(lang) for lang in (src_lang, tgt_lang) if lang}
    named = {languages.primary(one.lang) for one in (src, tgt) if one.lang}
    if src.is_code and tgt.is_code and not asked <= named:  # two short words of a text
        return None
    return Header(list(cells), src.place, tgt.place, src.lang, tgt.lang)


def names_a_language(cells: Sequence[str]) -> bool:
    """Return whether one of the cells of a first row is a language's name in full."""
    headings = [_heading(i, cell, len(cells)) for i, cell in enumerate(cells)]
    named = [heading for heading in headings if heading and heading.lang]
    return any(not heading.is_code for heading in named)


def read_tsv(
    path: Path,
    quoting: Quoting,
    header: Header | None,
    dropped: Counter[str],
    notes: list[str],
) -> Iterator[Row]:
    """Yield the line where each row begins and its two columns; further columns must be as many in
    every row.

    Raises DataError for a row without a TAB or with another number of columns than the first.
    """
    notes.extend(quoting.notes)
    src, tgt = (header.src, header.tgt) if header else (0, 1)
    if header:
        shown = f"{header.cells[src].strip()} and {header.cells[tgt].strip()}"
        notes.append(
            f"{path}: the first row names the columns ({shown}) and is no pair"
        )
    columns = 0
    blank = Counter[str]()
    for count, (number, cells) in enumerate(read_tab_separated(path, quoting, blank)):
        if cells is None:
            dropped[TOO_LONG] += 1
            continue
        if len(cells) != columns:
            columns = _first_width(path, number, len(cells), columns)
        if count or not header:
            yield number, on_one_line(cells[src]), on_one_line(cells[tgt])
    if blank[EMPTY_LINE]:
        dropped[BOTH_EMPTY] += blank[EMPTY_LINE]
    if columns > 2:
        which = f"columns {src + 1} and {tgt + 1} are used"
        if (src, tgt) == (0, 1):
            which = "the first two are used"
        notes.append(f"{path}: {columns} columns in every line; {which}")


def _heading(place: int, cell: str, width: int) -> Heading | None:
    """Return the meaning of one cell, if every word of it is a language or one that heads
    columns.
    """
    if width > 2 and cell.strip().casefold() == "id":  # rather a number than Indonesian
        return None
    by_language = languages.from_header(cell)
    if by_language is not None:
        return Heading(place, "", *by_language)
    role = ""
    lang = None
    words = [word for word in re.split(r"[\W_]+", cell.casefold()) if word]
    for word in words:
        if word in _SOURCE | _TARGET and not role:
            role = "source" if word in _SOURCE else "target"
        elif len(words) > 1 and lang is None and (named := languages.from_header(word)):
            lang = named[0]
        elif word not in _WORDS:
            return None
    return Heading(place, role, lang, is_code=False) if words else None


def _chosen(
    headings: Sequence[Heading], src_lang: str | None, tgt_lang: str | None
) -> tuple[Heading, Heading]:
    """Choose the columns of the languages that are asked for; else source before target, else as
    they stand.
    """
    src = _of_language(headings, src_lang)
    others = [heading for heading in headings if heading is not src]
    tgt = _of_language(others, tgt_lang)
    rest = [heading for heading in headings if heading not in (src, tgt)]
    if src is None:
        src = _with_role(rest, "source")
        rest.remove(src)
    if tgt is None:
        tgt = _with_role(rest, "target")
    return src, tgt


def _with_role(headings: Sequence[Heading], role: str) -> Heading:
    """Return the first column that has the role, else the first of all."""
    named = (heading for heading in headings if heading.role == role)
    return next(named, headings[0])


def _of_language(headings: Sequence[Heading], lang: str | None) -> Heading | None:
    if not lang:
        return None
    same = [
        heading
        for heading in headings
        if heading.lang and languages.primary(heading.lang) == languages.primary(lang)
    ]
    exact = [heading for heading in same if heading.lang == lang]
    return next(iter(exact or same), None)


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
