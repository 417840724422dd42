"""Two files whose lines of the same number translate each other."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
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


_END = "\n"  # no line holds it


def _refuse_unequal(
    src_path: Path, src_count: int, tgt_path: Path, tgt_count: int
) -> None:
    if src_count != tgt_count:
        raise DataError(
            f"{src_path} has {src_count} lines but {tgt_path} has {tgt_count}; "
            "line n of one must translate line n of the other; weft check says where they part"
        )
