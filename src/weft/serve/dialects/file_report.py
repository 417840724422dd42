"""The report on a translated file: how much is from a memory, and what a person should look at."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

from weft.documents.numbers import NO_NUMBERS, Numbers
from weft.predict.prediction import Prediction
from weft.serve.dialects.remarks import marks_of, numbers_row, term_row, unit_row

_MOST = 5  # places that are named
_LETTERS = 80  # of a text that is one

Report: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class FileAnswer:
    """A translated file, and the report on it; None where nothing was translated."""

    content: bytes
    report: Report | None = None


@dataclass(frozen=True)
class _Place:
    """A text of a file, what was predicted of it, and its numbers where it first stands."""

    text: str
    found: Prediction
    numbers: Numbers

    def row(self) -> Report:
        """Return what a person should look at here, nothing of which is empty."""
        uses = self.found.terms or ()
        taken = [use for use in self.found.memory or () if use.taken]
        row = {
            "marks": marks_of([self.found], bool(self.numbers)),
            "numbers": numbers_row(self.numbers) if self.numbers else None,
            "terms": [term_row(use) for use in uses if use.status != "used"],
            "memory": [unit_row(use) for use in taken if use.kind == "repaired"],
        }
        return {name: said for name, said in row.items() if said}


def report_of(
    texts: Sequence[str],
    found: Mapping[str, Prediction],
    numbers: Mapping[int, Numbers],
) -> Report:
    """Return the report on a file of these texts, each of which counts once but in `texts`; the
    numbers are by the places of texts.
    """
    places = list(_places(texts, found, numbers))
    rows = [(place.text, place.row()) for place in places]
    doubtful = [{"text": _begin(text), **row} for text, row in rows if row]
    report: Report = {
        "texts": len(texts),
        "numbers": _all_numbers(place.numbers for place in places),
        "doubtful": len(doubtful),
        "first": list(islice(doubtful, _MOST)),
    }
    predictions = [place.found for place in places]
    return report | _of_memory(predictions) | _of_terms(predictions)


def _places(
    texts: Sequence[str],
    found: Mapping[str, Prediction],
    numbers: Mapping[int, Numbers],
) -> Iterator[_Place]:
    """Yield each text once."""
    seen: set[str] = set()
    for number, text in enumerate(texts):
        if text not in seen:
            seen.add(text)
            yield _Place(text, found[text], numbers.get(number, NO_NUMBERS))


def _begin(text: str) -> str:
    """Return the beginning of a text, by which it is found in the file."""
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS].rstrip()}…"


def _all_numbers(every: Iterable[Numbers]) -> dict[str, int]:
    """Count the numbers by what became of them."""
    counts = Counter(put_back=0, missing=0, added=0)
    for numbers in every:
        for name, some in vars(numbers).items():
            counts[name] += len(some)
    return dict(counts)


def _of_memory(predictions: Sequence[Prediction]) -> Report:
    """Count the texts by what a memory has of them; nothing where there is none."""
    if all(one.memory is None for one in predictions):
        return {}
    counts = Counter(whole=0, part=0, repaired=0, near=0)
    for one in predictions:
        uses = one.memory or []
        taken = [use for use in uses if use.taken]
        counts["whole"] += one.is_taken
        counts["part"] += bool(taken) and not one.is_taken
        counts["repaired"] += any(use.kind == "repaired" for use in taken)
        counts["near"] += bool(uses) and not taken
    return {"memory": dict(counts)}


def _of_terms(predictions: Sequence[Prediction]) -> Report:
    """Count the terms of a glossary by what became of them; nothing where there is none."""
    if all(one.terms is None for one in predictions):
        return {}
    uses = chain.from_iterable(one.terms or () for one in predictions)
    return {"terms": dict(Counter(use.status for use in uses))}
