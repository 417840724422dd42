"""The sources of a training text after encoding: how often an epoch reads their rows.

A source is a file that a person named. Some rows of it are left out when text is encoded; what is
said here is of those that are in the store. A mixture gives the sources other weights, for a share
of a run's steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.config import MixtureSection
from weft.data.check.finding import counted
from weft.data.corpus import ParallelText
from weft.data.store import ParallelStore
from weft.data.train_text import OTHER, Worth
from weft.errors import UsageError

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """A mixture of a text's sources: the weight of each file, up to a share of the run's steps."""

    until: float
    weights: tuple[float, ...]

    def rows(self, text: ParallelText, store: ParallelStore) -> Weights | None:
        """Return the weight of each row of a store of the text; None where all are 1."""
        weights = np.array(self.weights)
        if (weights == 1).all():
            return None
        found: Weights = weights[_files_of(text, store)]
        return found

    def describe(self, text: ParallelText, store: ParallelStore) -> str:
        """Say which weights the files have, and how many rows an epoch reads of them."""
        counts = np.bincount(_files_of(text, store), minlength=len(text.files))
        said = []
        for file, (count, weight) in enumerate(zip(counts, self.weights, strict=True)):
            if count:
                said.append(f"{text.files[file]} {weight:g}")
        rows = counted(round(float(counts @ np.array(self.weights))), "rows")
        return f"{', '.join(said)}; an epoch reads {rows}"


def mixtures_of(text: ParallelText, asked: Sequence[MixtureSection]) -> list[Mixture]:
    """Return the mixtures of a text's sources that a recipe asks for, one after the other; the last
    ends with the run.

    Raises UsageError where a mixture weighs a tag that no text has, or leaves no text.
    """
    own = list(map(text.worth_of, range(len(text.files))))
    tags = {worth.tag: None for worth in own if worth.tag}
    found = []
    for number, section in enumerate(asked, start=1):
        where = f"data.mixtures, number {number}"
        for tag in section.weights:
            if tag not in (OTHER, *tags):
                known = ", ".join(tags) or "none; give one as FILE@:TAG"
                raise UsageError(f"{where}: no text has the tag {tag} (tags: {known})")
        weights = tuple(_weight_in(section, worth) for worth in own)
        is_read = [weights[file] > 0 for file in set(text.file_of)]
        if not any(is_read):
            raise UsageError(f"{where}: leaves no text to train on; give one a weight")
        found.append(Mixture(section.until, weights))
    if not found or found[-1].until < 1:
        weights = tuple(worth.weight for worth in own)
        found.append(Mixture(1.0, weights))
    return found


def _weight_in(section: MixtureSection, worth: Worth) -> float:
    """Return the weight that a mixture gives a text."""
    if worth.tag in section.weights:
        return section.weights[worth.tag]
    return section.weights.get(OTHER, worth.weight)


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
