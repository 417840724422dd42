"""A first row that names the columns of pairs: by languages, as source and target, or by both."""

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

from weft.data import languages

# Of what words the head of a column is made, beside a language.
_SOURCE = {"source", "src", "original"}
_TARGET = {"target", "tgt", "trg", "translation"}
_WORDS = {"text", "sentence", "sentences", "segment", "string", "language", "lang"}

_FEWEST_WORDS = 3  # of running text; fewer may be an entry of a dictionary
_SHORTEST_NAME = 4  # characters of a column's name in ASCII; shorter may be a word
_LONG_CODE = 3  # letters of a code that may be known to nobody here
_ALIKE = 0.6  # of the letters of two names of one language, "English" and "Englisch"
_LONGEST_NAME = 40  # characters of a column's name
_MOST_WORDS = 5
# four characters of a script that puts no spaces between words
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]{4}")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


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
    # a code of three letters that is in no list here
    is_rare: bool = False


def find_header(
    cells: Sequence[str],
    src_lang: str | None,
    tgt_lang: str | None,
    least_known: int = 2,
) -> Header | None:
    """Find out whether a first row names the columns, and how; the languages are those asked for,
    or None.

    A column is named by a language (`en`, `yor`, `English`), or as `source`, `target` and the like,
    or by both (`source_en`). Of more than two such columns those of the languages asked for are
    read, else those that languages name. Of two columns `least_known` must be known as such; the
    others may be any code of three letters (`kos`). With 0 the row is one of names for certain.
    Where it may be no pair of words, a language's name may have an explanation in brackets.
    """
    asked = _primaries(src_lang, tgt_lang)
    headings = _headings(cells, asked, with_rare=least_known < 2)
    is_same = len(cells) == 2 and cells[0].strip() == cells[1].strip()
    num_known = sum(not heading.is_rare for heading in headings)
    if len(headings) < 2 or num_known < least_known or is_same:
        return None
    src, tgt = _chosen(headings, src_lang, tgt_lang)
    if (src.role, src.lang) == (tgt.role, tgt.lang):
        return None
    named = _primaries(src.lang, tgt.lang)
    are_codes = least_known > 0 and src.is_code and tgt.is_code
    if are_codes and not asked <= named:  # two short words of a text
        return None
    return _header_of(cells, src, tgt)


def _header_of(cells: Sequence[str], src: Heading, tgt: Heading) -> Header:
    return Header(list(cells), src.place, tgt.place, src.lang, tgt.lang)


def find_header_of(
    rows: Sequence[Sequence[str]],
    is_csv: bool,
    src_lang: str | None,
    tgt_lang: str | None,
) -> Header | None:
    """Find the header of pairs in a table by its first rows, whatever stands above its numbers."""
    asked = without_heads_of_numbers(rows)
    if is_csv:
        header = header_of_csv(asked[0], src_lang, tgt_lang)
    else:
        header = header_of_tsv(asked, src_lang, tgt_lang)
    header = header or header_with_rare_code(asked, src_lang, tgt_lang)
    if header is None and not is_csv and len(rows[0]) > 2:
        header = header_above_numbers(rows)
    return header and header._replace(cells=list(rows[0]))


def header_of_csv(
    cells: Sequence[str], src_lang: str | None, tgt_lang: str | None
) -> Header | None:
    """Find the header of CSV that holds pairs: its first row is one unless it looks like a pair.

    The languages asked for name what the row does not name. Returns None where the two sides stay
    unknown.
    """
    header = find_header(cells, src_lang, tgt_lang, least_known=0)
    header = header or _complete(cells, src_lang, tgt_lang)
    if header is None and src_lang and tgt_lang and len(cells) == 2:
        is_header = not looks_like_a_pair(cells)
        return Header(list(cells), 0, 1, None, None) if is_header else None
    return header


def header_of_tsv(
    rows: Sequence[Sequence[str]], src_lang: str | None, tgt_lang: str | None
) -> Header | None:
    """Find the header of TSV by its first rows: its first row is a pair unless it shows that it is
    none.

    A code of three letters that is not known (`kos`) is a name beside another language, and any
    cell is one beside a language where settings say which it is; not in a dictionary, whose first
    pair may be two words such as these.
    """
    cells, *body = rows or [[]]
    least_known = 1 if are_sentences(body) else 2
    header = find_header(cells, src_lang, tgt_lang, least_known)
    half = half_of_a_header(rows, src_lang, tgt_lang) if header is None else None
    if half is None:
        return header
    # the language that is asked for stands there in full, above sentences
    is_asked = _is_of(half, _primaries(src_lang, tgt_lang))
    is_sure = is_asked and not half.is_code and are_sentences(body)
    return _complete(cells, src_lang, tgt_lang, needs_other=not is_sure)


def header_with_rare_code(
    rows: Sequence[Sequence[str]], src_lang: str | None, tgt_lang: str | None
) -> Header | None:
    """Return the header of more than two columns of which one is named by a language, and one by a
    code of three letters that is not known (`kos`), both above running text.

    Such a word may be anything (`tag`, `url`), and then hardly a sentence stands below it.
    """
    cells, *body = rows or [[]]
    if len(cells) <= 2:
        return None
    asked = _primaries(src_lang, tgt_lang)
    heading_of = {heading.place: heading for heading in _headings(cells, asked)}
    known = []
    rare = []
    for place in columns_of_text(rows):
        column = [row[place] for row in body]
        if not _is_running_text(column):
            continue
        heading = heading_of.get(place)
        code = languages.code_of(cells[place])
        if heading is not None:
            known.append(heading)
        elif code is not None and len(code) == _LONG_CODE:
            rare.append(Heading(place, "", code, True, True))
    if len(known) != 1 or known[0].lang is None:
        return None
    if len(rare) != 1:
        return None
    both = _in_order([*known, *rare])
    src, tgt = _chosen(both, src_lang, tgt_lang)
    return _header_of(cells, src, tgt)


def half_of_a_header(
    rows: Sequence[Sequence[str]], src_lang: str | None, tgt_lang: str | None
) -> Heading | None:
    """Return the only language that a first row names, if it is probably no pair of words."""
    cells, *body = rows or [[]]
    asked = _primaries(src_lang, tgt_lang)
    headings = _headings(cells, asked)
    if len(headings) != 1 or headings[0].lang is None:
        return None
    [heading] = headings
    if are_sentences(body):
        is_likely = not asked or not heading.is_code or _is_of(heading, asked)
        return heading if is_likely else None
    if heading.is_code:
        return None
    own = cells[heading.place]
    others = [cell for place, cell in enumerate(cells) if place != heading.place]
    is_pair = any(_are_alike(own, other) for other in others)
    return None if is_pair else heading


def names_a_language(cells: Sequence[str]) -> bool:
    """Return whether one of the cells of a first row is a language's name in full."""
    named = [heading for heading in _headings(cells, set()) if heading.lang]
    return any(not heading.is_code for heading in named)


def known_and_unknown(cells: Sequence[str]) -> tuple[list[Heading], list[str]]:
    """Return the languages that a first row names, and the cells that mean nothing here."""
    headings = _headings(cells, set())
    places = {heading.place for heading in headings}
    unknown = [cell.strip() for i, cell in enumerate(cells) if i not in places]
    return [heading for heading in headings if heading.lang], unknown


def columns_of_text(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that do not hold numbers alone; a first row may name the columns."""
    _, *body = rows or [[]]
    width = min(map(len, rows), default=0)
    return [place for place in range(width) if not _are_numbers(body, place)]


def _are_numbers(rows: Sequence[Sequence[str]], place: int) -> bool:
    cells = [row[place].strip() for row in rows]
    return len(cells) > 1 and all(map(str.isdecimal, cells))


def header_above_numbers(rows: Sequence[Sequence[str]]) -> Header | None:
    """Return the header of a table that has columns of numbers, below a name that is none.

    Whatever it is called, a column of numbers is no side: the first two others are read, or the one
    that a language names and the first other. None where the first row has numbers there, too.
    """
    cells, *_ = rows or [[]]
    texts = columns_of_text(rows)
    has_name = any(
        place not in texts and not cell.strip().isdecimal()
        for place, cell in enumerate(cells)
    )
    if not has_name or len(texts) < 2:
        return None
    headings = _headings(cells, set())
    lang_of = {heading.place: heading.lang for heading in headings if heading.lang}
    named = [place for place in texts if place in lang_of][:1]
    others = [place for place in texts if place not in named]
    src, tgt = sorted([*named, *others][:2])
    return Header(list(cells), src, tgt, lang_of.get(src), lang_of.get(tgt))


def without_heads_of_numbers(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows with "" at the head of each further column that holds numbers alone.

    Its name is not asked for a language or a side, unless there are only two columns.
    """
    cells, *body = rows
    if len(cells) <= 2:
        return [list(row) for row in rows]
    texts = columns_of_text(rows)
    heads = [
        cell if place in texts or cell.strip().isdecimal() else ""
        for place, cell in enumerate(cells)
    ]
    return [heads, *map(list, body)]


def places_of_text(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the first two columns that do not hold numbers alone; where there are none, the first
    two of all.
    """
    texts = columns_of_text(rows)
    if len(rows[0]) <= 2 or len(texts) < 2:
        return 0, 1
    return texts[0], texts[1]


def may_be_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row of two cells may name columns of sentences, in whatever words.

    Its cells are one to three words each, begin with a capital where their script has one, and
    hardly a row below is as short.
    """
    cells, *body = rows or [[]]
    if not are_sentences(body) or not all(map(_may_be_a_name, cells)):
        return False
    short = sum(_is_short(row) for row in body)
    return 20 * short <= len(body)


def _may_be_a_name(cell: str) -> bool:
    text = cell.strip()
    first = text[:1]
    has_case = first.upper() != first.lower()
    is_capital = first.isupper() or not has_case
    is_long = len(text) >= _SHORTEST_NAME or not text.isascii()
    return is_long and is_capital and not text.endswith(_SENTENCE_ENDS) and _few(text)


def _is_short(row: Sequence[str]) -> bool:
    return all(map(_few, row))


def _few(text: str) -> bool:
    """Return whether a text is at most three words, or as many characters without spaces."""
    return len(text.split()) <= _FEWEST_WORDS and not _UNSPACED.search(text)


def are_sentences(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether two columns hold running text, nearly every cell another one."""
    if not rows or any(len(row) != 2 for row in rows):
        return False
    return all(map(_is_running_text, zip(*rows, strict=True)))


def looks_like_a_pair(cells: Sequence[str]) -> bool:
    """Return whether the cells of a first row are texts rather than names of columns."""
    texts = [cell.strip() for cell in cells]
    if any(text.endswith(_SENTENCE_ENDS) for text in texts):
        return True
    return all(
        len(text) > _LONGEST_NAME or len(text.split()) > _MOST_WORDS for text in texts
    )


def _is_running_text(cells: Sequence[str]) -> bool:
    texts = list(filter(None, map(str.strip, cells)))
    num_running = 0
    for text in texts:
        is_spaced = len(text.split()) >= _FEWEST_WORDS
        num_running += is_spaced or _UNSPACED.search(text) is not None
    are_different = 10 * len(set(texts)) >= 9 * len(texts)
    return are_different and 2 * num_running > len(texts)


def _are_alike(name: str, other: str) -> bool:
    """Return whether two cells may be names of one language, in two languages."""
    letters = difflib.SequenceMatcher(None, name.casefold(), other.casefold())
    return letters.ratio() >= _ALIKE


def _complete(
    cells: Sequence[str],
    src_lang: str | None,
    tgt_lang: str | None,
    needs_other: bool = True,
) -> Header | None:
    """Return the header of two columns of which one is named by a language, and the other is of a
    language asked for; None where that leaves the other open, if it is needed.
    """
    asked = _primaries(src_lang, tgt_lang)
    headings = _headings(cells, asked)
    if len(cells) != 2 or len(headings) != 1 or headings[0].lang is None:
        return None
    [heading] = headings
    named = {languages.primary(heading.lang)}
    if needs_other and not asked - named:
        return None
    known = heading.place
    other = 1 - known
    if asked & named:
        is_src = _primaries(src_lang) == named
    elif len(asked) == 1:  # it is that of the other column
        is_src = src_lang is None
    else:
        is_src = known == 0
    if is_src:
        return Header(list(cells), known, other, heading.lang, tgt_lang)
    return Header(list(cells), other, known, src_lang, heading.lang)


def _primaries(*langs: str | None) -> set[str]:
    return {languages.primary(lang) for lang in langs if lang}


def _is_of(heading: Heading, asked: set[str]) -> bool:
    return languages.primary(heading.lang or "") in asked


def _headings(
    cells: Sequence[str], asked: set[str], with_rare: bool = False
) -> list[Heading]:
    """Return the cells that name a column.

    A code that is asked for is one even if it is not known. Of two cells `with_rare` any three
    letters are; with it, and of more cells, a language may have an explanation in brackets.
    """
    headings = []
    for place, cell in enumerate(cells):
        heading = _heading(place, cell, len(cells))
        code = languages.code_of(cell)
        if heading is None and code is not None:
            is_asked = languages.primary(code) in asked
            is_rare = len(cells) == 2 and len(cell.strip()) == _LONG_CODE
            if is_asked or (with_rare and is_rare):
                heading = Heading(place, "", code, True, not is_asked)
        if heading is not None:
            headings.append(heading)
    if with_rare or len(cells) > 2:
        return _with_explained(cells, headings)
    return headings


def _with_explained(cells: Sequence[str], headings: Sequence[Heading]) -> list[Heading]:
    """Add the columns named like `Yoruba (translated)`, if it takes them to name two languages."""
    named = {heading.place for heading in headings}
    explained = []
    for place, cell in enumerate(cells):
        lang = languages.from_header_with_explanation(cell)
        if place not in named and lang is not None:
            explained.append(Heading(place, "", lang, is_code=False))
    both = _in_order([*headings, *explained])
    if _names_two(headings) or not _names_two(both):
        return list(headings)
    return both


def _names_two(headings: Sequence[Heading]) -> bool:
    """Return whether the columns are named by two languages or more."""
    langs = [heading.lang for heading in headings]
    return len(_primaries(*langs)) >= 2


def _in_order(headings: Sequence[Heading]) -> list[Heading]:
    return sorted(headings, key=lambda heading: heading.place)


def _heading(place: int, cell: str, width: int) -> Heading | None:
    """Return the meaning of one cell, if every word of it is a language or one that heads
    columns, or a language stands there with its region in brackets.
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
            return _heading_with_region(place, cell)
    return Heading(place, role, lang, is_code=False) if words else None


def _heading_with_region(place: int, cell: str) -> Heading | None:
    lang = languages.from_header_with_region(cell)
    return Heading(place, "", lang, is_code=False) if lang else None


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
    rest = _best_named(rest, (src is None) + (tgt is None))
    if src is None:
        src = _with_role(rest, "source")
        rest.remove(src)
    if tgt is None:
        tgt = _with_role(rest, "target")
    return src, tgt


def _best_named(headings: list[Heading], number: int) -> list[Heading]:
    """Return the columns of which this number is to be chosen: those that languages name in full,
    else those that languages name at all, else all; what is called source beside them may say where
    a row is from.
    """
    by_language = [heading for heading in headings if heading.lang]
    in_full = [heading for heading in by_language if not heading.is_code]
    for group in (in_full, by_language):
        if len({heading.lang for heading in group}) >= number:
            return group
    return headings


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
