"""The reader of a file that holds pairs or sentences, by the file's type."""

from collections.abc import Sequence
from pathlib import Path

from weft.data.formats.filetype import accepted_type
from weft.data.formats.lines import read_lines_within
from weft.data.formats.pairs import PairReader
from weft.data.formats.registry import FILE_TYPES
from weft.data.formats.tsv import open_tsv

_ROWS = "write source<TAB>target lines; or, if these are labelled rows, take a recipe such as --recipe classify-fast"


def pair_reader(path: Path) -> PairReader:
    """Return what reads a file of pairs; plain text is `source<TAB>target` lines."""
    readers = _pair_readers()
    wanted = f"pairs ({', '.join(_endings_of_pairs())} or source<TAB>target lines)"
    kind = accepted_type(path, readers, wanted, _remedies_of_tables())
    return readers[kind.name] if kind else open_tsv


def _pair_readers() -> dict[str, PairReader]:
    """Return the readers of pairs, by the names of the file types."""
    kinds = FILE_TYPES.values()
    return {kind.name: kind.read_pairs for kind in kinds if kind.read_pairs}


def _endings_of_pairs() -> list[str]:
    """Return an ending of each type of files whose pairs are no lines of text."""
    return [
        f".{kind.endings[0]}"
        for kind in FILE_TYPES.values()
        if kind.read_pairs and not kind.has_sentences and not kind.is_text
    ]


def _holds_pairs_alone(name: str) -> bool:
    """Return whether files of a type hold pairs and nothing else."""
    return FILE_TYPES[name].task == "translation"


def _remedies_of_tables() -> dict[str, str]:
    kinds = FILE_TYPES.values()
    return {kind.name: _ROWS for kind in kinds if kind.task == "classification"}


def refuse_no_lines(paths: Sequence[Path]) -> None:
    """Raise DataError if one of two aligned files is not lines of sentences."""
    accepted = [kind.name for kind in FILE_TYPES.values() if kind.has_sentences]
    each = f"name each by itself: {' '.join(map(str, paths))}"
    remedies = {name: each for name in _pair_readers() if _holds_pairs_alone(name)}
    for path in paths:
        accepted_type(
            path, accepted, "lines of text, as two aligned files are", remedies
        )


def is_plain(path: Path) -> bool:
    """Return whether a file is plain text, a sentence a line, by its type and its first line."""
    wanted = "text, a sentence or source<TAB>target on each line"
    kind = accepted_type(path, _pair_readers(), wanted, _remedies_of_tables())
    if kind is not None and not kind.has_sentences:
        return False
    first = next(
        (line for line in read_lines_within(path) if line is None or line.strip()), None
    )
    return first is not None and "\t" not in first
