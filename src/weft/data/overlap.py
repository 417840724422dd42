"""The test rows that occur in training, found by 64-bit hashes once the training text itself is
gone.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weft.data.equals import sorted_once
from weft.data.split import fold
from weft.errors import FolderError

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TextHashes:
    """Hashes of folded rows, sorted; a row is a pair, or a text alone.

    Folding ignores case, space and punctuation. Two different rows share a hash once in 2^64.
    """

    rows: Hashes

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]]) -> "TextHashes":
        """Hash a text's rows."""
        return cls.of_hashes(_hashes(rows))

    @classmethod
    def of_hashes(cls, hashes: Hashes) -> "TextHashes":
        """Return those of rows that are hashed already."""
        return cls(sorted_once(hashes))

    @classmethod
    def load(cls, path: Path) -> "TextHashes":
        """Read the file that `save` wrote. Raises FolderError where it is damaged."""
        try:
            flat = np.load(path, allow_pickle=False)
            count = int(flat[0])
            rows = flat[1:]
        except (OSError, ValueError, IndexError, TypeError) as error:
            raise FolderError(
                f"{path}: cannot be read as hashes of the training text ({error})"
            ) from None
        if flat.dtype != np.uint64 or len(rows) != count:
            raise FolderError(
                f"{path}: does not hold the hashes of a training text; the file is damaged"
            )
        return cls(rows)

    def save(self, path: Path) -> None:
        """Write one flat array: how many there are, then the hashes."""
        count = np.array([len(self.rows)], np.uint64)
        flat = np.concatenate([count, self.rows])
        with path.open("wb") as file:
            np.save(file, flat, allow_pickle=False)

    def joined(self, other: "TextHashes") -> "TextHashes":
        """Return the hashes of both texts."""
        return TextHashes(np.union1d(self.rows, other.rows))

    def shared(self, rows: Iterable[Sequence[str]]) -> list[int]:
        """Find the rows that occur in this text; return their numbers."""
        is_shared = np.isin(_hashes(rows), self.rows)
        return np.flatnonzero(is_shared).tolist()


def contamination_notes(
    train: TextHashes,
    test: Sequence[Sequence[str]],
    where: Callable[[int], str],
    unit: str,
    effect: str = "the score is too high",
) -> list[str]:
    """Warn that scores on the rows of `test` are too good; return nothing where none of them was
    trained on.

    `effect` says which scores, and whether they are too high or too low.
    """
    shared = train.shared(test)
    if not shared:
        return []
    percent = 100 * len(shared) / len(test)
    contaminated = (
        f"contaminated: {len(shared):,} of {len(test):,} {unit} ({percent:.1f} %) are in "
        "the training text as well"
    )
    return [f"{contaminated} (first: {where(shared[0])}); {effect}"]


def _hashes(rows: Iterable[Sequence[str]]) -> Hashes:
    folded = ("\t".join(map(fold, row)) for row in rows)
    contents = (text.encode("utf-8", "surrogatepass") for text in folded)
    digests = (hashlib.blake2b(c, digest_size=8).digest() for c in contents)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
