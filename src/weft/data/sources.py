"""The sources of a training text after encoding: how often an epoch reads their rows.

A source is a file that a person named. Some rows of it are left out when text is encoded; what is
said here is of those that are in the store.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft.data.check.finding import counted
from weft.data.corpus import ParallelText
from weft.data.store import ParallelStore


def row_weights(text: ParallelText, store: ParallelStore) -> NDArray[np.float64] | None:
    """Return the weight of each row of a store of the text; None where all are 1."""
    of_files = [worth.weight for worth in text.worths]
    weights = np.array(of_files or [1.0])
    if (weights == 1).all():
        return None
    found: NDArray[np.float64] = weights[_files_of(text, store)]
    return found


def source_notes(text: ParallelText, store: ParallelStore) -> Iterator[str]:
    """Say of each file what its rows are worth, and how many of them an epoch reads; nothing where
    all files are plain.
    """
    if not text.worths:
        return
    files = _files_of(text, store)
    counts = np.bincount(files, minlength=len(text.files)).tolist()
    for file, count in enumerate(counts):
        if not count:  # the target side of two aligned files
            continue
        worth = text.worths[file]
        said = counted(count, "pairs")
        if more := worth.describe():
            said += f", {more}"
        read = counted(round(count * worth.weight), "rows")
        yield f"{text.files[file]}: {said}; an epoch reads {read} of it"


def _files_of(text: ParallelText, store: ParallelStore) -> NDArray[np.int64]:
    """Return the file that each row of a store of the text is from."""
    files: NDArray[np.int64] = np.array(text.file_of)[store.rows]
    return files
