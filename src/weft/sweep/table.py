"""The table of a sweep: for each text and row the mean over seeds, and whether it differs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from weft.errors import UsageError
from weft.evaluation.seeds import (
    FEWEST,
    Component,
    deviation_of,
    mean_of,
    of_seeds,
    p_of,
)
from weft.sweep.run import Outcome, Run

# by task, the score of a table that nobody names
USUAL = {
    "translation": "bleu",
    "language-modelling": "bits_per_byte",
    "classification": "accuracy",
}
LOWER_IS_BETTER = ("loss", "perplexity", "bits_per_byte", "calibration_error")

Outcomes = Sequence[tuple[Run, Outcome]]
# the variance that a difference of two rows' runs has by the text's rows, where that is known
OfRows = Callable[[Sequence[Run], Sequence[Run]], Component | None]


@dataclass(frozen=True)
class Line:
    """A row of the table: what its finished runs have, and how many there are to be.

    `scores` are those of the seeds, in their order. `difference` is to the first row of the same
    text, and `p` how probable one so large is by chance alone: by that of seeds and, with
    `is_over_rows`, of the text; None where it is not known. Minutes and steps are means,
    `parameters` those of a model.
    """

    text: str
    row: str
    score: str
    scores: tuple[float, ...]
    num_runs: int
    difference: float | None = None
    p: float | None = None
    is_over_rows: bool = False
    minutes: float | None = None
    steps: float | None = None
    parameters: int | None = None

    @property
    def mean(self) -> float | None:
        """Return the mean over seeds; None where no run is finished."""
        return mean_of(self.scores) if self.scores else None

    @property
    def deviation(self) -> float | None:
        """Return the sample standard deviation over seeds; None of fewer than two."""
        return deviation_of(self.scores)


@dataclass(frozen=True)
class Table:
    """The rows of all texts, the part of the text that they were scored on, and remarks on them."""

    part: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def names_texts(self) -> bool:
        """Return whether the rows are of more than one text."""
        return len({line.text for line in self.lines}) > 1


def table_of(
    outcomes: Outcomes,
    part: str,
    score: str | None = None,
    of_rows: OfRows = lambda first, second: None,
) -> Table:
    """Return the table of runs in the order of their texts and rows.

    Raises UsageError for a score that no finished run has.
    """
    if score is not None:
        _refuse_unknown(score, outcomes, part)
    by_row: dict[tuple[str, str], list[tuple[Run, Outcome]]] = {}
    for run, outcome in outcomes:
        by_row.setdefault((run.text, run.row), []).append((run, outcome))
    lines = []
    first: dict[str, list[tuple[Run, Outcome]]] = {}
    for (text, _), own in by_row.items():
        base = first.setdefault(text, own)
        name = score or USUAL[own[0][0].recipe.task]
        lines.append(_line(own, base, part, name, of_rows))
    return Table(part, tuple(lines), tuple(_notes(outcomes, lines, part)))


def _line(own: Outcomes, base: Outcomes, part: str, name: str, of_rows: OfRows) -> Line:
    run, _ = own[0]
    scored = _scored(own, part, name)
    before = _scored(base, part, name)
    done = [outcome for _, outcome in own if outcome.state == "done"]
    compared = _Compared()
    if scored and before and own is not base and _is_one_text([*own, *base], part):
        compared = _compared(scored, before, of_rows)
    return Line(
        run.text,
        run.row,
        name,
        tuple(scored.values()),
        len(own),
        *compared,
        *_costs(done),
    )


class _Compared(NamedTuple):
    """The difference of a row to the first one, where there is one."""

    difference: float | None = None
    p: float | None = None
    is_over_rows: bool = False


def _compared(
    scored: Mapping[Run, float], before: Mapping[Run, float], of_rows: OfRows
) -> _Compared:
    scores = list(scored.values())
    base_scores = list(before.values())
    difference = mean_of(scores) - mean_of(base_scores)
    if min(len(scores), len(base_scores)) < FEWEST:
        return _Compared(difference)
    components = [of_seeds(scores), of_seeds(base_scores)]
    rows = of_rows(list(before), list(scored))
    if rows is not None:
        components.append(rows)
    return _Compared(difference, p_of(difference, components), rows is not None)


def _is_one_text(outcomes: Outcomes, part: str) -> bool:
    """Return whether all finished runs were scored on the same text."""
    done = [outcome for _, outcome in outcomes if outcome.state == "done"]
    return len({outcome.scored_on.get(part) for outcome in done}) <= 1


def _costs(done: Sequence[Outcome]) -> tuple[float | None, float | None, int | None]:
    """Return the mean minutes and steps of finished runs, and the size of their models."""
    if not done:
        return None, None, None
    minutes = mean_of([outcome.seconds / 60 for outcome in done])
    steps = mean_of([outcome.steps for outcome in done])
    sizes = [outcome.parameters for outcome in done]
    return minutes, steps, round(median(sizes))


def _scored(own: Outcomes, part: str, name: str) -> dict[Run, float]:
    """Return the score of each run that has one."""
    found = {}
    for run, outcome in own:
        scores = outcome.scores.get(part, {})
        if name in scores:
            found[run] = scores[name]
    return found


def _refuse_unknown(score: str, outcomes: Outcomes, part: str) -> None:
    known: dict[str, None] = {}
    for _, outcome in outcomes:
        known |= dict.fromkeys(outcome.scores.get(part, {}))
    if known and score not in known:
        raise UsageError(
            f"--score {score}: the runs' scores on {part} are {', '.join(known)}"
        )


def _notes(outcomes: Outcomes, lines: Iterable[Line], part: str) -> Iterator[str]:
    """Yield what a reader of the table must know: failed runs first."""
    for run, outcome in outcomes:
        if outcome.state == "failed":
            yield f"failed: {run.name}: {outcome.reason}"
    left = sum(outcome.state in ("new", "begun") for _, outcome in outcomes)
    if left:
        yield f"{left:,} of {len(outcomes):,} runs are not finished"
    done = [(run, outcome) for run, outcome in outcomes if outcome.state == "done"]
    if done and not any(outcome.scores.get(part) for _, outcome in done):
        yield f"no run has scores on {part}: give a text as {part}"
    if any(len(line.scores) == 1 for line in lines):
        yield "a single seed tells neither deviation nor p; of two models weft compare does"
    for text in dict.fromkeys(run.text for run, _ in done):
        of_text = [(run, outcome) for run, outcome in done if run.text == text]
        if not _is_one_text(of_text, part):
            yield (
                f"{text}: not all runs have the same {part} text, so that their scores do not compare; give one "
                f"as {part}"
            )
    yield from _differently_computed(done)


def _differently_computed(done: Outcomes) -> Iterator[str]:
    """Yield for each way in which runs computed how many did so, where they are several."""
    ways: dict[str, list[str]] = {}
    for run, outcome in done:
        ways.setdefault(_in_words(outcome.computed), []).append(run.name)
    if len(ways) > 1:
        named = [f"{way or 'not known'}: {names[0]}" for way, names in ways.items()]
        yield (
            f"not all runs computed alike ({'; '.join(named)}, for example); set training.precision, "
            "training.kernels and training.threads"
        )


def _in_words(computed: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in computed.items())
