"""The forms in which a report can be written, by the file's suffix."""

from collections.abc import Mapping
from pathlib import Path

from weft.errors import UsageError

DATA = {".json": "data"}
FORMATS = {".html": "a page", **DATA}
# of a translation
ALIGNMENTS = {".txt": "word alignment, to be read", ".pharaoh": "the same as 0-0 1-2"}
# written by weft.inspection.figure, which needs matplotlib
PICTURES = {".png": "a picture", ".svg": "a drawing"}


def refuse_other_suffixes(path: Path, known: Mapping[str, str]) -> None:
    """Raise UsageError where the name's suffix is none of the known ones; each comes with what it
    is.
    """
    if path.suffix.lower() in known:
        return
    choices = [f"{suffix} ({what})" for suffix, what in known.items()]
    listed = " or ".join(choices)
    raise UsageError(f"{path}: the name must end in {listed}")
