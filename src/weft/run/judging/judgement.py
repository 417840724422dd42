"""The verdict at the end of a run: a model's use, in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from weft.predict.quality import Quality
from weft.run.judging.words import shorten_runs

USABLE, DRAFT, NOT_YET, NOT_JUDGED = "usable", "draft", "not usable yet", "not judged"
FEW_JUDGED = 20  # rows of dev below which what they show may be chance
NUM_EXAMPLES = 5
MOST_HELPS = 2


@dataclass(frozen=True)
class Judgement:
    """A verdict, derived from the run's own dev text.

    `verdict` is one of the four words above, `says` why, in sentences; `figures` are the numbers
    behind them; `helps` what would make the model better, the most helpful first; `examples` some
    dev rows with what the model makes of them. `still_improves` says that dev was still getting
    better when training ended, `is_flat` that it was seen not to. `anew` are the settings of a new
    run that is to be tried in place of a longer one; {} for none. `low_confidence` is the mean
    log-probability a token that one in twenty of dev's translations is below, `quality` how a
    translator estimates the quality of what it writes.
    """

    verdict: str
    says: Sequence[str]
    figures: dict[str, Any] = field(default_factory=dict)
    helps: Sequence[str] = ()
    examples: Sequence[dict[str, str]] = ()
    still_improves: bool = False
    is_flat: bool = False
    anew: Mapping[str, int | float] = field(default_factory=dict)
    low_confidence: float | None = None
    quality: Quality | None = None

    def with_curve(
        self,
        goes_on: str,
        helps: Sequence[str],
        is_flat: bool = False,
        anew: Mapping[str, int | float] | None = None,
    ) -> "Judgement":
        """Return the judgement with what its run's curve shows.

        `goes_on` says how it still gets better, if so; `helps` what would help first of all, and
        `anew` the settings of a new run that would.

        What is not judged stays as it is, and what is usable needs no help.
        """
        if self.verdict == NOT_JUDGED:
            return self
        first, *rest = self.says
        first += f"; the curve still {goes_on}: train it for longer" if goes_on else ""
        helps = () if self.verdict == USABLE else [*helps, *self.helps][:MOST_HELPS]
        return replace(
            self,
            says=[first, *rest],
            helps=helps,
            still_improves=bool(goes_on),
            is_flat=is_flat,
            anew=anew or {},
        )

    def summary(self) -> list[str]:
        """Return the verdict and what would help, for a person to read: without any of the text."""
        first, *rest = self.says or ("",)
        found = [f"{self.verdict}: {first}" if first else self.verdict, *rest]
        return [*found, *(f"what would help: {one}" for one in self.helps)]

    def lines(self) -> list[str]:
        """Return the summary and the examples, without endless repetitions."""
        shown = [
            f"  {name + ':':<13}{shorten_runs(text)}"
            for row in self.examples
            for name, text in row.items()
        ]
        if shown:
            shown.insert(0, f"{len(self.examples)} rows of dev:")
        return [
            f"verdict: {line}" if i == 0 else f"  {line}"
            for i, line in enumerate(self.summary())
        ] + shown

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as a plain dictionary; `helps` says in words what `anew` holds, and
        the folder has its `quality`.
        """
        facts = asdict(replace(self, quality=None))
        del facts["anew"], facts["quality"]
        return facts


def not_judged(why: str) -> Judgement:
    """Return the judgement that says why there is none."""
    return Judgement(NOT_JUDGED, [why])
