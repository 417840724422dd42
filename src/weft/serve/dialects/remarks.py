"""Marks, numbers, terms and units of a memory of translations, as answers say them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.documents.numbers import Numbers
from weft.predict.memory_use import MemoryUse
from weft.predict.prediction import Prediction
from weft.predict.terms import TermUse

_MARKS = {  # the attributes of a prediction that say so
    "cut": "truncated",
    "repetition": "repetition",
    "short": "short",
    "unsure": "unsure",
    "empty": "empty",
    "omission": "omitted",
    "doubled": "doubled",
}


def marks_of(every: Sequence[Prediction], has_numbers: bool) -> list[str]:
    """Return what may be wrong with the translations of a text, in words that do not change."""
    marks = []
    for name, attribute in _MARKS.items():
        if any(getattr(prediction, attribute) for prediction in every):
            marks.append(name)
    return [*marks, "numbers"] if has_numbers else marks


def numbers_row(numbers: Numbers) -> dict[str, list[str]]:
    """Return the numbers that differ, or did, by what became of them."""
    return {name: list(found) for name, found in vars(numbers).items()}


def terms_row(uses: Sequence[TermUse] | None) -> dict[str, Any]:
    """Return what became of a glossary's terms; nothing where there is none."""
    return {} if uses is None else {"terms": list(map(term_row, uses))}


def term_row(use: TermUse) -> dict[str, Any]:
    """Return what became of a term; its place is that in its own segment, which is not told."""
    return {
        "source": use.source,
        "wanted": list(use.wanted),
        "used": use.used,
        "status": use.status,
        "reason": use.reason,
    }


def unit_row(use: MemoryUse) -> dict[str, Any]:
    """Return a unit of a memory; its place is that in its own segment, which is not told, and its
    file without the folders of the server.
    """
    told = ("source", "target", "score", "kind", "taken")
    return {name: getattr(use, name) for name in told} | {"where": Path(use.where).name}
