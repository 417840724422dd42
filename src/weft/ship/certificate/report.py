"""A certificate: each check, what it found, and what was not checked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from weft.folder.durable import MANIFEST

Name = Literal["weights", "ids", "logits", "greedy", "beam", "use"]
# the checks, in the order in which they are made, with what each compares
CHECKS: dict[Name, str] = {
    "weights": "numbers of the weights",
    "ids": "texts and their ids",
    "logits": "logits",
    "greedy": "greedy search",
    "beam": "beam search at length penalty 0",
    "use": "what a person gets",
}


@dataclass(frozen=True)
class Check:
    """A check: how many things were compared, how many were equal, and whether that suffices.

    Equal is what is `equal_how`. `largest` is the largest absolute difference of numbers, where
    numbers are compared, and `tolerance` what is allowed; `first` shows the first difference that
    is not. A check that only measures allows all.
    """

    name: Name
    compared: int
    equal: int
    unit: str
    is_passed: bool
    largest: float | None = None
    tolerance: float | None = None
    first: str = ""
    about: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    equal_how: str = "equal"

    def line(self) -> str:
        """Say in a line what was found."""
        parts = [f"{self.equal:,} of {self.compared:,} {self.unit} {self.equal_how}"]
        if self.largest is not None:
            parts = [f"{self.compared:,} {self.unit}"]
            parts.append(f"largest difference {self.largest:.1e}")
        if self.tolerance:
            parts.append(f"{self.tolerance:g} allowed")
        parts += [f"{name} {value:.2f}" for name, value in self.scores.items()]
        if self.about:
            parts.append(self.about)
        return f"{CHECKS[self.name]}: {', '.join(parts)}"


@dataclass(frozen=True)
class SourceFacts:
    """The model that was exported: the SHA-256 of its manifest and of its weights, and their
    type.
    """

    manifest_sha256: str
    weights_sha256: str
    weights: str


@dataclass(frozen=True)
class Certificate:
    """The checks of an export, those that could not be made with the reason, and the versions of
    the packages that computed. `text` says what they were made on, `notes` what speaks against it.

    `date` is the day (ISO 8601, UTC), `weft` the version that made it, `source` the model.
    """

    target: str
    form: str
    precision: str
    checks: tuple[Check, ...]
    unchecked: Mapping[str, str]
    versions: Mapping[str, str]
    text: str = ""
    notes: tuple[str, ...] = ()
    date: str = ""
    weft: str = ""
    source: SourceFacts | None = None

    @property
    def failed(self) -> Check | None:
        """Return the first check that did not pass; None where all did."""
        return next((check for check in self.checks if not check.is_passed), None)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate for a program."""
        return asdict(self)

    def for_others(self) -> dict[str, Any]:
        """Return the content of parity.json, which goes wherever the model goes: without what is
        shown of differences and of the text, as it quotes that and names its files.
        """
        told = asdict(self)
        first = {name: told.pop(name) for name in ("date", "weft", "source")}
        del told["notes"]
        for check in told["checks"]:
            del check["first"]
        return {**first, "hashes": MANIFEST, **told}

    def lines(self) -> list[str]:
        """Return the certificate for a person, in lines."""
        lines = [check.line() for check in self.checks]
        lines += [
            f"not checked: {CHECKS[name]} ({why})"  # type: ignore[index]
            for name, why in self.unchecked.items()
        ]
        return lines

    def sentence(self) -> str:
        """Say in a sentence what was compared, and by what."""
        packages = ", ".join(
            f"{name} {version}" for name, version in self.versions.items()
        )
        by = f", by {packages}" if packages else ""
        on = f", on {self.text}" if self.text else ""
        return f"It was compared with the model that it was made from{by}{on}:"
