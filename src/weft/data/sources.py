"""The sources of a training text after encoding: how often an epoch reads their rows.

A source is a file that a person named. Some rows of it are left out when text is encoded; what is
said here is of those that are in the store. A mixture gives the sources other weights, for a share
of a run's steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.config import MixtureSection
from weft.data.check.finding import counted
from weft.data.corpus import ParallelText
from weft.data.languages import direction
from weft.data.store import ParallelStore
from weft.data.train_text import MADE, OTHER, Worth
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


def mixtures_of(
    text: ParallelText, asked: Sequence[MixtureSection], temperature: float = 1.0
) -> list[Mixture]:
    """Return the mixtures of a text's sources that a recipe asks for, one after the other; the last
    ends with the run.

    With a `temperature` T, each direction has the share of an epoch that is its own to the power of
    1 / T (Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild",
    section 3.2).

    Raises UsageError where a mixture weighs a tag that no text has, or leaves no text.
    """
    own = list(map(text.worth_of, range(len(text.files))))
    tags = {worth.tag: None for worth in own if worth.tag}
    groups = [OTHER]
    if any(worth.made for worth in own):
        groups.append(MADE)
    found = []
    for number, section in enumerate(asked, start=1):
        where = f"data.mixtures, number {number}"
        for tag in section.weights:
            if tag not in (*groups, *tags):
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
    if temperature == 1 or len(text.directions) < 2:
        return found
    return [
        replace(mixture, weights=_at_temperature(text, mixture.weights, temperature))
        for mixture in found
    ]


def _at_temperature(
    text: ParallelText, weights: Sequence[float], temperature: float
) -> tuple[float, ...]:
    """Return the weights of files with the directions' shares at a temperature; an epoch reads as
    many rows as before.
    """
    counts = np.bincount(text.file_of, minlength=len(text.files))
    read = counts * np.array(weights)
    pairs = list(map(text.direction_of, range(len(text.files))))
    sizes = dict.fromkeys(pairs, 0.0)
    for pair, rows in zip(pairs, read, strict=True):
        sizes[pair] += float(rows)
    flat = {pair: size ** (1 / temperature) for pair, size in sizes.items() if size}
    scale = sum(sizes.values()) / sum(flat.values())
    found = []
    for pair, weight in zip(pairs, weights, strict=True):
        factor = scale * flat[pair] / sizes[pair] if pair in flat else 1.0
        found.append(weight * factor)
    return tuple(found)


def _weight_in(section: MixtureSection, worth: Worth) -> float:
    """Return the weight that a mixture gives a text."""
    if worth.tag in section.weights:
        return section.weights[worth.tag]
    if worth.made and MADE in section.weights:
        return section.weights[MADE]
    return section.weights.get(OTHER, worth.weight)


def source_notes(
    text: ParallelText, store: ParallelStore, mixtures: Sequence[Mixture]
) -> Iterator[str]:
    """Say of each file what its rows are worth, and how many of them an epoch reads; nothing where
    all files are plain. Of several mixtures each says itself what is read.
    """
    if not text.worths and not text.pairs:
        return
    (*earlier, last) = mixtures
    files = _files_of(text, store)
    counts = np.bincount(files, minlength=len(text.files)).tolist()
    for file, count in enumerate(counts):
        if not count:  # the target side of two aligned files
            continue
        said = [counted(count, "pairs")]
        if text.pairs:
            said.append(direction(*text.pairs[file]))
        if more := text.worth_of(file).describe():
            said.append(more)
        line = f"{text.files[file]}: {', '.join(said)}"
        if not earlier:
            read = counted(round(count * last.weights[file]), "rows")
            line += f"; an epoch reads {read} of it"
        yield line


def _files_of(text: ParallelText, store: ParallelStore) -> NDArray[np.integer]:
    """Return the file that each row of a store of the text is from."""
    return np.asarray(text.file_of)[store.rows]
