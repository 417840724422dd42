"""A model in another form, opened by the other program's own library."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.ship.tensors import Array

Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Row:
    """Ids that a model reads in one pass, in the other program's numbers.

    Of a translator `ids` are the source, its end at its end, and `tgt_in` what the decoder has
    read. Of any other model `ids` are all, and `tgt_in` is empty.
    """

    ids: tuple[int, ...]
    tgt_in: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A row to continue by a search: at most `limit` new ids, the end among them."""

    ids: tuple[int, ...]
    limit: int


class Opened(ABC):
    """A model as the other program has it. All ids are in that program's numbers.

    `unchecked` says of each of a certificate's checks that cannot be made there why not: its keys
    are of `CHECKS`. `versions` are of the packages that computed. With `bans_first` ids that are
    never written have no share in the softmax there; else, as in Weft, they have one, and are left
    out then.
    """

    unchecked: ClassVar[Mapping[str, str]] = {}
    bans_first: ClassVar[bool] = False

    @property
    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the other program's packages, by name."""

    @abstractmethod
    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield each array in the files, by its name there, read from the files anew."""

    def encode(self, text: str) -> list[int]:
        """Return the ids that a text has there, all that the program adds to them included."""
        raise NotImplementedError

    def reads_otherwise(self, text: str) -> str:
        """Say what in a text the program is known to read otherwise, so that its ids may differ; ""
        where they must be equal.

        How many differ for what is named, the check of ids tells.
        """
        return ""

    def writes_otherwise(self, text: str) -> str:
        """Say what in a text the program is known to write otherwise, so that its ids may be
        another one there; "" where it must be equal.
        """
        return ""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids that the model has written, the end not among them."""
        raise NotImplementedError

    def logits(self, row: Row) -> Floats:
        """Return the logits after each id that the decoder has read (T, V); of a language model
        after each id (L, V), of a classifier those of the text (C).

        A program that gives log-probabilities alone gives these: where `computes_log_probs` is set.
        """
        raise NotImplementedError

    computes_log_probs: ClassVar[bool] = False

    def search(self, rows: Sequence[Wanted], beam_size: int) -> list[list[int]]:
        """Return the new ids of the best continuation of each row, without the end, by a beam of
        that size whose score is the sum of log-probabilities; 1: greedily.
        """
        raise NotImplementedError

    def use(self, texts: Sequence[str]) -> list[Any]:
        """Return what a person gets who uses the model as it was shipped: translations,
        continuations, or labels.
        """
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027  # most hold nothing that must be released
        """Release what the program holds; nothing more is asked of it."""
