"""A unit of a translation memory that is the translation of a text, or is offered for it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MemoryUse:
    """A unit of a memory for a text, or for its sentence from the character `start` to before
    `end`.

    Where it was `taken`, its target is the translation, if `repaired` with the numbers of the text;
    else it is only offered. The other fields are those of `weft.data.memory.Match`.
    """

    start: int
    end: int
    source: str
    target: str
    score: float
    kind: str
    where: str
    taken: bool

    def to_json(self) -> dict[str, Any]:
        """Return the same as a plain dictionary."""
        return dict(vars(self))
