"""Two files of unequal length: the line where they part, by all that their lines share."""

from pathlib import Path

from weft.data.check.alignment import Alignment
from weft.data.check.finding import Finding, Rows
from weft.data.check.words import Vocabulary, Words
from weft.data.formats.lines import read_lines_within


def unequal_lines(src_path: Path, tgt_path: Path) -> Finding | None:
    """Find the line at which two files of unequal length part; return None where both have as many
    lines.

    Raises DataError where one of them cannot be read at all.
    """
    src = _lines(src_path)
    tgt = _lines(tgt_path)
    if len(src) == len(tgt):
        return None
    shorter, longer = sorted((len(src), len(tgt)))
    lines = [n for n in range(shorter) if src[n].strip() and tgt[n].strip()]
    rows = Rows(
        longer,
        "lines",
        lambda i: f"{src_path}:{i + 1}",
        lambda i: ("".join(src[i : i + 1]), "".join(tgt[i : i + 1])),
    )
    src_texts = [src[n] for n in lines]
    tgt_texts = [tgt[n] for n in lines]
    first = _where_they_part(src_texts, tgt_texts)
    if first is None:
        suspect = shorter
        where = "the extra lines seem to be at the end, from"
    else:
        suspect = lines[first]
        where = "they diverge at about"
    return Finding(
        "fatal",
        "unequal-lines",
        f"{src_path} has {len(src):,} lines but {tgt_path} has {len(tgt):,}; {where} {rows.where(suspect)}",
        "look there for a line that is missing, repeated or split in two; line n must translate line n",
        longer - shorter,
        (suspect,),
        rows.examples([suspect]),
    )


def _lines(path: Path) -> list[str]:
    return [line or "" for line in read_lines_within(path)]


def _where_they_part(src: list[str], tgt: list[str]) -> int | None:
    """Find the first pair that is out of step; None where none seems to be."""
    if not src:
        return None
    vocabulary = Vocabulary()
    shifts = Alignment(Words(src, vocabulary), Words(tgt, vocabulary)).find_shifts()
    return shifts[0].first if shifts else None
