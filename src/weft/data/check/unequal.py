"""Two files of unequal length: where, by all that their lines share, they part."""

from pathlib import Path

from weft.data.check.alignment import Alignment
from weft.data.check.finding import Finding, Rows
from weft.data.check.words import Vocabulary, Words
from weft.data.formats.lines import read_lines_within


def unequal_lines(src_path: Path, tgt_path: Path) -> Finding | None:
    """What to say of two files that have not the same number of lines; None where they have.

    Raises DataError where one of them cannot be read at all.
    """
    src, tgt = (
        [line or "" for line in read_lines_within(path)]
        for path in (src_path, tgt_path)
    )
    if len(src) == len(tgt):
        return None
    lines = [
        n for n in range(min(len(src), len(tgt))) if src[n].strip() and tgt[n].strip()
    ]
    rows = Rows(
        max(len(src), len(tgt)),
        "lines",
        lambda i: f"{src_path}:{i + 1}",
        lambda i: ("".join(src[i : i + 1]), "".join(tgt[i : i + 1])),
    )
    first = _where_they_part([src[n] for n in lines], [tgt[n] for n in lines])
    suspect = lines[first] if first is not None else min(len(src), len(tgt))
    where = (
        "they part at about"
        if first is not None
        else "what is more seems to stand at the end, from"
    )
    return Finding(
        "fatal",
        "unequal-lines",
        f"{src_path} has {len(src):,} lines but {tgt_path} has {len(tgt):,}; {where} {rows.where(suspect)}",
        "look there for a line that is missing, doubled or broken in two; line n must translate line n",
        abs(len(src) - len(tgt)),
        (suspect,),
        rows.examples([suspect]),
    )


def _where_they_part(src: list[str], tgt: list[str]) -> int | None:
    """Return the first pair that is out of step; None where none seems to be."""
    if not src:
        return None
    vocabulary = Vocabulary()
    shifts = Alignment(Words(src, vocabulary), Words(tgt, vocabulary)).find_shifts()
    return shifts[0].first if shifts else None
