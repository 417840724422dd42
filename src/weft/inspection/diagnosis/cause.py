"""A reason why a model is bad."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cause:
    """A thing that is wrong, the evidence for it, and what to do.

    `settings` are those of the remedy, where it is a new run of the same command.
    """

    code: str
    evidence: str
    remedy: str
    settings: Mapping[str, int | float] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the cause for a person to read, in lines."""
        return [f"{self.code}: {self.evidence}", f"  {self.remedy}"]

    def to_json(self) -> dict[str, str]:
        """Return what is wrong, the evidence and the remedy as a plain dictionary."""
        return {"code": self.code, "evidence": self.evidence, "remedy": self.remedy}
