"""Two files whose lines of the same number translate each other."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, islice, zip_longest
from pathlib import Path

from weft.data.formats.lines import read_lines_within
from weft.data.formats.pairs import OpenPairs, Sides, choose_direction, doubt_name
from weft.data.formats.row import TOO_LONG, PairRow
from weft.errors import DataError


def open_aligned(
    src_path: Path, tgt_path: Path, asked: Sides, named: Sides
) -> OpenPairs:
    """Open two files, by the languages that are asked for and those of the files' names."""
    pair = choose_direction(asked, named)
    dropped = Counter[str]()
    return OpenPairs(
        rows=read_aligned(src_path, tgt_path, dropped),
        languages=pair,
        dropped=dropped,
        notes=doubt_name(pair, named),
    )


def read_aligned(
    src_path: Path, tgt_path: Path, dropped: Counter[str]
) -> Iterator[PairRow]:
    """Yield the number of each line, and the line of both files. Raises DataError with both counts
    where one file is longer.
    """
    sources = read_lines_within(src_path)
    targets = read_lines_within(tgt_path)
    for number in count(1):
        src = next(sources, _END)
        tgt = next(targets, _END)
        if _END in (src, tgt):
            src_count = number - (src == _END) + sum(1 for _ in sources)
            tgt_count = number - (tgt == _END) + sum(1 for _ in targets)
            return _refuse_unequal(src_path, src_count, tgt_path, tgt_count)
        if src is None or tgt is None:
            dropped[TOO_LONG] += 1
        else:
            yield number, src, tgt


def read_padded(
    src_path: Path, tgt_path: Path, dropped: Counter[str]
) -> Iterator[PairRow]:
    """Yield the same; where one file is a little longer, its last lines are beside empty ones.

    Raises DataError where it is longer by more than MOST_MISSING lines.
    """
    sources = read_lines_within(src_path)
    targets = read_lines_within(tgt_path)
    for number, (src, tgt) in enumerate(
        zip_longest(sources, targets, fillvalue=_END), 1
    ):
        if _END in (src, tgt):
            yield from _last_lines(src_path, tgt_path, number)
            return
        if src is None or tgt is None:
            dropped[TOO_LONG] += 1
        else:
            yield number, src, tgt


def _last_lines(src_path: Path, tgt_path: Path, first: int) -> Iterator[PairRow]:
    """Yield the lines from `first` on of the longer of two files, beside nothing."""
    sides = [read_lines_within(path) for path in (src_path, tgt_path)]
    rest = [list(islice(side, first - 1, first + MOST_MISSING)) for side in sides]
    if max(map(len, rest)) > MOST_MISSING:
        src_count, tgt_count = (_count(path) for path in (src_path, tgt_path))
        _refuse_unequal(src_path, src_count, tgt_path, tgt_count)
    for number, (src, tgt) in enumerate(zip_longest(*rest, fillvalue=""), first):
        yield number, src or "", tgt or ""


def _count(path: Path) -> int:
    return sum(1 for _ in read_lines_within(path))


MOST_MISSING = 3  # lines that a file may lack for the stretches to be put in step again
_END = "\n"  # no line holds it


def _refuse_unequal(
    src_path: Path, src_count: int, tgt_path: Path, tgt_count: int
) -> None:
    if src_count != tgt_count:
        raise DataError(
            f"{src_path} has {src_count} lines but {tgt_path} has {tgt_count}; "
            "line n of one must translate line n of the other; weft check says where they part"
        )
