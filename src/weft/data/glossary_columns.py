"""The columns of a glossary's table, as its first row names them."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from weft.data.languages import (
    UNKNOWN,
    from_header,
    from_header_with_explanation,
    primary,
)
from weft.errors import DataError

COLUMNS = ("source", "target", "case", "inflection", "avoid")
# What people head the two sides with, beside their languages.
_SIDES = {
    "source": (
        "source term", "source language", "src", "term", "quelle", "quellbegriff", "quellsprache", "ausgangssprache",
        "begriff", "terme",
        "término", "termine", "termo", "origen", "origine", "origem", "原文", "源语言", "術語", "术语",
    ),
    "target": (
        "target term", "target language", "tgt", "trg", "translation", "ziel", "zielbegriff", "zielsprache",
        "übersetzung", "traduction", "traducción", "traduzione", "tradução", "cible", "destino", "译文", "訳語", "翻译",
    ),
}  # fmt: skip
# Columns that glossaries have beside these, and that nobody expects to be read.
_REMARKS = {"note", "notes", "comment", "comments", "remark", "remarks"}
_ALIKE = 0.75  # from which similarity on a name is a misspelt one


def named_columns(cells: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Return the columns that a first row names, for a pair of languages; none where it is a term.

    The sides are named by a word for them, or by their language: its code, or its name.
    """
    names = [cell.lower().removeprefix("\ufeff") for cell in cells]
    for side, code in zip(COLUMNS, pair, strict=False):
        if side not in names:
            place = next(_places(names, side, code), None)
            if place is not None:
                names[place] = side
    return names if {"source", "target"} <= set(names) else []


def _places(names: Sequence[str], side: str, code: str) -> Iterator[int]:
    """Yield where names stand that mean a side, words before languages."""
    yield from (n for n, name in enumerate(names) if name in _SIDES[side])
    language = primary(code)
    if language != UNKNOWN:
        yield from (n for n, name in enumerate(names) if _language(name) == language)


def _language(name: str) -> str:
    """Return the language that a name means: en of `en-us`, `english` and `english (us)`."""
    found = from_header(name)
    code = found[0] if found else from_header_with_explanation(name)
    return primary(code or name)


def languages_named(cells: Sequence[str]) -> tuple[str, str]:
    """Return the first two languages that a first row names; "" for each that it does not."""
    named = [_language(cell.lower().removeprefix("\ufeff")) for cell in cells]
    known = [code for code in named if code != UNKNOWN]
    src, tgt, *_ = [*known, "", ""]
    return src, tgt


def unread_columns(columns: Sequence[str], where: str) -> list[str]:
    """Return the named columns that are not read. Raises DataError for one that seems to be a
    misspelt one.
    """
    unread = [name for name in columns if name and name not in {*COLUMNS, *_REMARKS}]
    missing = [name for name in COLUMNS if name not in columns]
    for name in unread:
        if near := get_close_matches(name, missing, n=1, cutoff=_ALIKE):
            raise DataError(
                f"{where}: there is no column {name[:40]!r}; did you mean {near[0]}?"
            )
    return unread


def refuse_half_header(cells: Sequence[str], where: str) -> None:
    """Raise DataError for a first row that names columns, but not the target."""
    first, *others = map(str.lower, cells)
    if first.removeprefix("\ufeff") != "source" or "target" in others:
        return
    near = get_close_matches("target", others, n=1, cutoff=_ALIKE)
    if near:
        raise DataError(
            f"{where}: there is no column {near[0]!r}; did you mean target?"
        )
    if not {*COLUMNS, *_REMARKS}.isdisjoint(others):
        raise DataError(
            f"{where}: the first row names columns, and none is target; name the one with the translations so"
        )
