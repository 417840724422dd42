"""Which test sentences occur in training, told from 64-bit hashes once the training text itself is gone."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weft.data.corpus import ParallelText
from weft.data.split import fold
from weft.errors import FolderError

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TextHashes:
    """Hashes of a text's folded pairs, sources and targets, each sorted.

    Folding ignores case, space and punctuation. Two different texts share a hash once in 2^64.
    """

    pairs: Hashes
    src: Hashes
    tgt: Hashes

    @classmethod
    def of(cls, text: ParallelText) -> "TextHashes":
        """The hashes of a text."""
        pairs, src, tgt = _hashes(text)
        return cls(np.unique(pairs), np.unique(src), np.unique(tgt))

    @classmethod
    def load(cls, path: Path) -> "TextHashes":
        """What `save` wrote. Raises FolderError where it is damaged."""
        try:
            lengths, *parts = np.split(flat := np.load(path, allow_pickle=False), [3])
            pairs, src, tgt = np.split(parts[0], np.cumsum(lengths[:2]).astype(np.int64))
        except (OSError, ValueError, IndexError) as error:
            raise FolderError(f"{path}: cannot be read as hashes of the training text ({error})") from None
        if flat.dtype != np.uint64 or len(tgt) != lengths[2]:
            raise FolderError(f"{path}: does not hold the hashes of a training text; the file is damaged")
        return cls(pairs, src, tgt)

    def save(self, path: Path) -> None:
        """Write one flat array: the three lengths, then the three sorted parts."""
        parts = [self.pairs, self.src, self.tgt]
        lengths = np.array([len(part) for part in parts], dtype=np.uint64)
        with path.open("wb") as file:
            np.save(file, np.concatenate([lengths, *parts]), allow_pickle=False)

    def shared_pairs(self, test: ParallelText) -> list[int]:
        """Numbers of the test pairs that occur, as pairs, in this text."""
        return [int(i) for i in np.flatnonzero(np.isin(_hashes(test)[0], self.pairs))]

    def shared_sources(self, test: ParallelText) -> int:
        """How many test sources occur in this text, whatever their target."""
        return int(np.isin(_hashes(test)[1], self.src).sum())


def contamination_notes(train: TextHashes, test: ParallelText) -> list[str]:
    """What to say of a score on `test`: nothing where no pair of it was trained on."""
    shared = train.shared_pairs(test)
    if not shared:
        return []
    share, first = 100 * len(shared) / len(test), test.where(shared[0])
    found = (
        f"contaminated: {len(shared):,} of {len(test):,} pairs ({share:.1f} %) are in the training text as well"
    )
    return [f"{found} (first: {first}); the score is too high"]


def _hashes(text: ParallelText) -> tuple[Hashes, Hashes, Hashes]:
    src, tgt = list(map(fold, text.src)), list(map(fold, text.tgt))
    pairs = [f"{a}\t{b}" for a, b in zip(src, tgt, strict=True)]
    return _hash_all(pairs), _hash_all(src), _hash_all(tgt)


def _hash_all(texts: Sequence[str]) -> Hashes:
    digests = (hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8).digest() for t in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
