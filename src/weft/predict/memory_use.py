"""A unit of a translation memory that is the translation of a text, or is offered for it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MemoryUse:
    """A unit of a memory for a text, or for its sentence from the character `start` to before
    `end`.

    Where it was `taken`, its target is the translation, if `repaired` with the numbers of the text;
    else it is only offered. The other fields are those of `weft.data.memory.Match`. `stands` has
    what is the same text with markup in files, sources with their targets.
    """

    start: int
    end: int
    source: str
    target: str
    score: float
    kind: str
    where: str
    taken: bool
    stands: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain dictionary, without how it stands in files."""
        fields = dict(vars(self))
        del fields["stands"]
        return fields
