"""The causes that were found, together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from weft.inspection.diagnosis.cause import Cause
from weft.inspection.shown import Shown


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """The causes found in a folder, the gravest first; it is a sequence of them.

    `tried` says whether the model was tried with text. `verdict` is what its own run said of it,
    to follow "nothing found", and what would help.
    """

    folder: str
    causes: tuple[Cause, ...]
    tried: bool
    verdict: Sequence[str] = ("",)

    def __iter__(self) -> Iterator[Cause]:
        return iter(self.causes)

    def __len__(self) -> int:
        return len(self.causes)

    def __getitem__(self, index: int) -> Cause:
        return self.causes[index]

    def lines(self) -> list[str]:
        """Return each cause with its evidence and remedy, or that none was found."""
        if self.causes:
            return [line for cause in self.causes for line in cause.lines()]
        more = (
            "" if self.tried else "; give text as well, and the model is tried with it"
        )
        why, *helps = self.verdict
        return [f"nothing found{why}{more}", *helps]

    def to_dict(self) -> dict[str, Any]:
        """Return the folder, whether text was tried, and the causes: code, evidence, remedy."""
        causes = [cause.to_json() for cause in self.causes]
        return {"folder": self.folder, "tried": self.tried, "causes": causes}

    def _repr_html_(self) -> str:
        if not self.causes:
            return super()._repr_html_()
        items = [
            f"<li><b>{escape(cause.code)}</b>: {escape(cause.evidence)}<br>{escape(cause.remedy)}</li>"
            for cause in self.causes
        ]
        return f"<ol>{''.join(items)}</ol>"
