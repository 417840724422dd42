"""Parallel text: read from files in any known format, kept with its origin, held out,
fingerprinted.

DATA is one file of a type that `formats/registry.py` has a reader of pairs for, or two aligned
files joined by a comma, each also packed with gzip.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any, Self

import numpy as np

from weft.console import stages
from weft.data import languages, split
from weft.data.base import Corpus, join, numbers, reasons
from weft.data.column import Column, Growing, encoded, joined_texts
from weft.data.formats.aligned import open_aligned
from weft.data.formats.filenames import from_name, from_two_names, pair_from_name
from weft.data.formats.lines import read_lines, read_lines_within
from weft.data.formats.pair_files import is_plain, pair_reader, refuse_no_lines
from weft.data.formats.pairs import OpenPairs, Sides
from weft.data.formats.row import (
    BOTH_EMPTY,
    EMPTY_LINE,
    EMPTY_SIDE,
    TOO_LONG,
    PairRow,
    on_one_line,
)
from weft.data.formats.shards import shards_of
from weft.data.held_out import hold_out_rows
from weft.data.measures import Measures, Positions, measure
from weft.data.split import fold
from weft.data.train_text import PLAIN, TrainText, Worth, split_at_comma
from weft.errors import DataError, UsageError

__all__ = [
    "ParallelText",
    "SourceText",
    "fingerprint",
    "fold",
    "from_pairs",
    "join_pairs",
    "open_pairs",
    "read_lines",
    "read_pairs",
    "read_sources",
    "split_at_comma",
    "split_off",
]


@dataclass(frozen=True, kw_only=True)
class ParallelText(Corpus):
    """Pairs of sentences with their origin. Both sides are stripped, not empty, and hold no line
    end.

    A pair's line is the one that it stands on, or of a TMX file the line where its unit begins. In
    the files of `by_unit`, by their place in `files`, several units share a line: there it is the
    number of the unit. `coded` counts, by file, the pairs that reading took codes out of. `worths`
    say what is known of each file's rows, by its place in `files`; there are none where all are
    plain. So do `pairs`, the languages of the two sides, where these are not the same in all files.
    """

    COLUMNS = ("src", "tgt")

    src: Sequence[str]
    tgt: Sequence[str]
    src_lang: str
    tgt_lang: str
    by_unit: frozenset[int] = frozenset()
    coded: Mapping[str, int] = field(default_factory=dict)
    worths: tuple[Worth, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    measures: Measures | None = field(default=None, compare=False, repr=False)

    @property
    def is_large(self) -> bool:
        """Return whether the texts lie on disk."""
        return isinstance(self.src, Column)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Return the languages of source and target that pairs have, each two once."""
        if not self.pairs:
            return [(self.src_lang, self.tgt_lang)]
        having = sorted(set(self.file_of))
        return list(dict.fromkeys(self.pairs[file] for file in having))

    def direction_of(self, file: int) -> tuple[str, str]:
        """Return the languages of a file's source and target, by its place in `files`."""
        return self.pairs[file] if self.pairs else (self.src_lang, self.tgt_lang)

    def rows_of(self, direction: tuple[str, str]) -> list[int]:
        """Return the numbers of the pairs of a direction."""
        files = {n for n in set(self.file_of) if self.direction_of(n) == direction}
        return [i for i, file in enumerate(self.file_of) if file in files]

    def of(self, direction: tuple[str, str]) -> Self:
        """Return the pairs of a direction, as a text of these two languages."""
        src_lang, tgt_lang = direction
        part = self.select(self.rows_of(direction))
        return replace(part, src_lang=src_lang, tgt_lang=tgt_lang, pairs=())

    def worth_of(self, file: int) -> Worth:
        """Return what is known of the rows of a file, by its place in `files`."""
        return self.worths[file] if self.worths else PLAIN

    def worth_facts(self) -> list[dict[str, Any]]:
        """Return what a run keeps of each file that has rows: their number, and what they are
        worth.
        """
        counts = Counter(self.file_of)
        return [
            {"file": self.files[file], "rows": count, **asdict(self.worth_of(file))}
            for file, count in sorted(counts.items())
        ]

    def made(self) -> bytes:
        """Say of each pair whether a machine made its source (1); nothing where it made none."""
        if not any(worth.made for worth in self.worths):
            return b""
        return bytes(self.worths[file].made for file in self.file_of)

    def where(self, i: int) -> str:
        """Say where pair i stands: `file:line`, of two aligned files in the source; in a file by
        units `file: unit n`.
        """
        file = self.file_of[i]
        unit = " unit " if file in self.by_unit else ""
        return f"{self.files[file]}:{unit}{self.lines[i]}"

    def select(self, indices: Iterable[int]) -> Self:
        """Return the pairs at these indices, in this order, without what reading said of all."""
        if not self.is_large:
            return replace(super().select(indices), coded={})
        if not isinstance(indices, np.ndarray):
            indices = list(indices)
        # one array, which columns and measures share
        rows = np.asarray(indices, np.int32)
        measures = self.measures and self.measures.at(rows)
        return replace(super().select(rows), coded={}, measures=measures)


@dataclass(frozen=True)
class SourceText:
    """Sentences to translate: stripped, not empty. `dropped` and `notes` are those of a
    `ParallelText`.
    """

    lines: list[str]
    dropped: dict[str, int]
    notes: list[str]

    def sha256(self) -> str:
        """Hash the sentences and their order."""
        digest = sha256()
        for line in self.lines:
            digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()


def read_pairs(
    data: Sequence[str | Path | TrainText] | str,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
) -> ParallelText:
    """Read and join every DATA; a pair with an empty side is dropped whole and counted.

    A `TrainText` also says what its rows are worth.

    Languages are those given, else those of the file names (`train.en,train.de`,
    `pairs.en-zh.tsv`), else those in TMX or a table's first row, else `und`. Raises DataError with
    file and line for whatever cannot be read as pairs.
    """
    items = [data] if isinstance(data, str | Path) else data
    if not items:
        raise UsageError(
            "no data given; name a file of source<TAB>target lines, or two aligned files"
        )
    src_lang = _canonical(src_lang, "data.src_lang")
    tgt_lang = _canonical(tgt_lang, "data.tgt_lang")
    parts = [_read_item(item, src_lang, tgt_lang) for item in items]
    return parts[0] if len(parts) == 1 else join_pairs(parts, src_lang, tgt_lang)


def read_sources(
    data: Sequence[str], src_lang: str | None = None, tgt_lang: str | None = None
) -> SourceText:
    """Read and join the source sides of every DATA; one may also be plain text, a sentence a line,
    in the source language.

    A file is plain text where its first line that is not empty has no TAB. Raises as `read_pairs`.
    """
    joined = SourceText([], {}, [])
    dropped = Counter[str]()
    for item in data:
        paths = split_at_comma(item)
        if len(paths) == 1 and is_plain(paths[0]):
            joined.lines.extend(_read_plain(paths[0], dropped))
            joined.notes.extend(_otherwise_named(paths[0], src_lang))
        else:
            text = read_pairs(item, src_lang, tgt_lang)
            joined.lines.extend(text.src)
            joined.notes.extend(text.notes)
            dropped.update(text.dropped)
    joined.dropped.update(dropped)
    return joined


def from_pairs(
    pairs: Iterable[tuple[str, str]], name: str, src_lang: str, tgt_lang: str
) -> ParallelText:
    """Make a text of pairs that come from no file, by the same rules; line n is the n-th pair, line
    ends become spaces.
    """
    rows = ((n, src, tgt) for n, (src, tgt) in enumerate(pairs, start=1))
    return _keep(rows, Counter(), [], [name], (src_lang, tgt_lang))


def split_off(
    text: ParallelText, dev_size: int | None, test_size: int | None, seed: int
) -> tuple[ParallelText, ParallelText | None, ParallelText | None]:
    """Split the pairs into training, dev and test; None for a size of 0, and for both below 200
    pairs.

    A size of None is chosen by the corpus: 4 %, at least 20, at most 1,000. No folded source or
    target occurs in two parts. Large groups of repeats stay in training, so a part can be smaller
    than the size. A pair whose source a machine made is never held out; one that shares a side with
    what is, is in no part. Depends on seed and content alone; a text that has been measured has the
    order of that. Raises UsageError if nothing would be left to train on.
    """
    made = text.made()
    total = len(text) - sum(made)
    if total < split.MIN_PAIRS:
        return text, None, None
    sizes = split.held_out_sizes(total, dev_size, test_size, "pairs")
    parts: tuple[Sequence[int], ...] | tuple[Positions, ...]
    if text.is_large and not text.pairs:
        stages.enter("holding out dev and test")
        text = text if text.measures is not None else measured(text, seed)
        assert text.measures is not None
        parts = hold_out_rows(text.measures, *sizes, made)
    else:
        # a sentence is the same in whichever side it stands
        sides = _with_languages(text) if text.pairs else (text.src, text.tgt)
        is_one = bool(text.pairs)
        parts = split.hold_out(*sides, *sizes, seed, made, is_one)
    train, dev, test = parts
    # a model is scored as it is used, without a tag
    plain = replace(text, worths=())
    return (
        text.select(train),
        plain.select(dev) if len(dev) else None,
        plain.select(test) if len(test) else None,
    )


def measured(text: ParallelText, seed: int = 0) -> ParallelText:
    """Return the text with the hashes of its rows where it is large; `seed` is that of the order in
    which rows are held out.
    """
    if not isinstance(text.src, Column) or not isinstance(text.tgt, Column):
        return text
    return replace(text, measures=measure((text.src, text.tgt), seed))


def _with_languages(text: ParallelText) -> tuple[list[str], list[str]]:
    """Return both sides, each sentence with its language before it."""
    src = []
    tgt = []
    for file, one, other in zip(text.file_of, text.src, text.tgt, strict=True):
        src_lang, tgt_lang = text.direction_of(file)
        src.append(f"{src_lang} {one}")
        tgt.append(f"{tgt_lang} {other}")
    return src, tgt


def fingerprint(text: ParallelText) -> str:
    """Hash languages, pairs and their order (SHA-256); file names and line numbers do not count."""
    digest = sha256(f"{text.src_lang}\n{text.tgt_lang}\n{len(text)}\n".encode())
    if text.pairs:
        counts = Counter(text.file_of)
        of_files = [(*text.pairs[file], n) for file, n in sorted(counts.items())]
        digest.update(repr(of_files).encode())
    for some in chain(encoded(text.src), encoded(text.tgt)):
        digest.update(b"\n".join([*some, b""]))
    return digest.hexdigest()


def open_pairs(
    data: str, src_lang: str | None = None, tgt_lang: str | None = None
) -> OpenPairs:
    """Open one DATA for whoever reads its rows one by one. Raises as `read_pairs`."""
    asked = _canonical(src_lang, "data.src_lang"), _canonical(tgt_lang, "data.tgt_lang")
    return _open_pairs(split_at_comma(data), asked)


def _canonical(tag: str | None, key: str) -> str | None:
    """Return the language in canonical form, None for one that is open.

    Raises UsageError if it is no language.
    """
    if tag is None or tag == languages.UNKNOWN:
        return None
    canonical = languages.canonical(tag)
    if canonical is None:
        raise UsageError(
            f"{key} = {tag!r}: write a BCP-47 language code such as en, zh or pt-BR"
        )
    return canonical


def _read_item(
    named: str | Path | TrainText, src_lang: str | None, tgt_lang: str | None
) -> ParallelText:
    text = named if isinstance(named, TrainText) else TrainText(str(named))
    item = text.data
    paths = split_at_comma(item)
    if len(paths) == 1 and (shards := shards_of(paths[0])):
        parts = [
            _read_item(replace(text, data=str(shard)), src_lang, tgt_lang)
            for shard in shards
        ]
        return join_pairs(parts, src_lang, tgt_lang)
    stages.enter(f"reading {item}")
    pairs = _open_pairs(paths, (src_lang, tgt_lang))
    files = [str(path) for path in paths]
    read = _keep(pairs.rows, pairs.dropped, pairs.notes, files, pairs.languages)
    num_coded = len(pairs.coded.intersection(read.lines))
    coded = {item: num_coded} if num_coded else {}
    by_unit = frozenset({0} if pairs.by_unit else ())
    worths = () if text.worth == PLAIN else (text.worth,) * len(files)
    return replace(read, by_unit=by_unit, coded=coded, worths=worths)


def _open_pairs(paths: Sequence[Path], asked: Sides) -> OpenPairs:
    """Open one file of pairs by the reader of its type, or two aligned files, which must be
    lines.
    """
    if len(paths) == 1:
        read = pair_reader(paths[0])
        return read(paths[0], asked, pair_from_name(paths[0].name) or (None, None))
    refuse_no_lines(paths)
    src, tgt = paths
    return open_aligned(src, tgt, asked, from_two_names(src.name, tgt.name))


def _otherwise_named(path: Path, src_lang: str | None) -> Iterator[str]:
    named = from_name(path.name)
    if (
        named
        and _canonical(src_lang, "data.src_lang")
        and languages.primary(named) != languages.primary(str(src_lang))
    ):
        yield f"{path}: named {named}, but read as {src_lang}; is that right?"


def _read_plain(path: Path, dropped: Counter[str]) -> Iterator[str]:
    for line in read_lines_within(path):
        if line is None or not line.strip():
            dropped[TOO_LONG if line is None else EMPTY_LINE] += 1
        else:
            yield line.strip()


def _keep(
    rows: Iterator[PairRow],
    dropped: Counter[str],
    notes: list[str],
    files: list[str],
    pair: tuple[str, str],
) -> ParallelText:
    """Collect the rows that have text on both sides; raises DataError if none has."""
    sides = Growing(2)
    lines = array("i")
    for line, raw_src, raw_tgt in stages.counted(rows, "pairs"):
        src_text = on_one_line(raw_src)
        tgt_text = on_one_line(raw_tgt)
        if src_text and tgt_text:
            sides.append(src_text, tgt_text)
            lines.append(line)
        else:
            dropped[EMPTY_SIDE if src_text or tgt_text else BOTH_EMPTY] += 1
    # one name in every format for a line that stands for a pair and is blank
    if blank := dropped.pop(EMPTY_LINE, 0):
        dropped[BOTH_EMPTY] += blank
    where = ",".join(files)
    if not sides.length:
        raise DataError(
            f"{where}: no pair with text on both sides ({reasons(dropped) or 'no lines'})"
        )
    src, tgt = sides.done()
    return ParallelText(
        src=src,
        tgt=tgt,
        lines=numbers(lines, len(src)),
        files=files,
        file_of=numbers(repeat(0, len(src)), len(src), 1),
        dropped=dict(dropped),
        notes=[f"{where}: {note}" for note in notes],
        src_lang=pair[0],
        tgt_lang=pair[1],
    )


def join_pairs(
    parts: Sequence[ParallelText], src_lang: str | None, tgt_lang: str | None
) -> ParallelText:
    """Join texts; languages are those asked for, else those that the texts have.

    Raises DataError where two of them differ.
    """
    coded = Counter[str]()
    for part in parts:
        coded.update(part.coded)
    src = joined_texts([part.src for part in parts])
    tgt = joined_texts([part.tgt for part in parts])
    return join(
        parts,
        src=src,
        tgt=tgt,
        src_lang=src_lang or _common(parts, "src_lang"),
        tgt_lang=tgt_lang or _common(parts, "tgt_lang"),
        by_unit=_units_of(parts),
        coded=dict(coded),
        worths=_worths_of(parts),
        measures=None,
    )


def _worths_of(parts: Sequence[ParallelText]) -> tuple[Worth, ...]:
    """Return what is known of the rows of each file of all parts; nothing where all are plain."""
    if not any(part.worths for part in parts):
        return ()
    worths: list[Worth] = []
    for part in parts:
        worths += map(part.worth_of, range(len(part.files)))
    return tuple(worths)


def _units_of(parts: Sequence[ParallelText]) -> frozenset[int]:
    """Return the files that are counted by units, by their place among all."""
    before = [0, *accumulate(len(part.files) for part in parts)]
    return frozenset(
        start + file
        for start, part in zip(before, parts, strict=False)
        for file in part.by_unit
    )


def _common(parts: Sequence[ParallelText], key: str) -> str:
    """Return the one language of a side over all parts; raises DataError if two parts disagree."""
    known = {str(getattr(part, key)): part.files for part in reversed(parts)}
    known.pop(languages.UNKNOWN, None)
    if len({languages.primary(tag) for tag in known}) > 1:
        listing = ", ".join(
            f"{','.join(files)} is {tag}" for tag, files in reversed(known.items())
        )
        raise DataError(
            f"the data differ in language: {listing}; set data.{key} if that is meant; a model of "
            "all these directions takes --set data.directions=each"
        )
    return min(known, key=len) if known else languages.UNKNOWN
