"""Which test rows occur in training, told from 64-bit hashes once the training text itself is
gone.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
        """Return the hashes of a text's rows."""
        return cls(np.unique(_hashes(rows)))

    @classmethod
    def load(cls, path: Path) -> "TextHashes":
        """What `save` wrote. Raises FolderError where it is damaged."""
        try:
            flat = np.load(path, allow_pickle=False)
            count, rows = int(flat[0]), flat[1:]
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
        with path.open("wb") as file:
            np.save(
                file,
                np.concatenate([np.array([len(self.rows)], np.uint64), self.rows]),
                allow_pickle=False,
            )

    def joined(self, other: "TextHashes") -> "TextHashes":
        """Return the hashes of both texts."""
        return TextHashes(np.union1d(self.rows, other.rows))

    def shared(self, rows: Iterable[Sequence[str]]) -> list[int]:
        """Numbers of the rows that occur in this text."""
        return [int(i) for i in np.flatnonzero(np.isin(_hashes(rows), self.rows))]


def contamination_notes(
    train: TextHashes,
    test: Sequence[Sequence[str]],
    where: Callable[[int], str],
    unit: str,
) -> list[str]:
    """What to say of a score on the rows of `test`: nothing where none of them was trained on."""
    shared = train.shared(test)
    if not shared:
        return []
    found = (
        f"contaminated: {len(shared):,} of {len(test):,} {unit} ({100 * len(shared) / len(test):.1f} %) are in "
        "the training text as well"
    )
    return [f"{found} (first: {where(shared[0])}); the score is too high"]


def _hashes(rows: Iterable[Sequence[str]]) -> Hashes:
    folded = ("\t".join(map(fold, row)) for row in rows)
    digests = (
        hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for t in folded
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
