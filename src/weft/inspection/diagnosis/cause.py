"""A reason why a model is bad."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Cause:
    """A thing that is wrong, the evidence for it, and what to do."""

    code: str
    evidence: str
    remedy: str

    def lines(self) -> list[str]:
        """Return the cause for a person to read, in lines."""
        return [f"{self.code}: {self.evidence}", f"  {self.remedy}"]

    def to_json(self) -> dict[str, str]:
        """Return the same as a plain dictionary."""
        return asdict(self)
