"""A text in numbers: how many rows, how long they are, in which scripts, with which labels."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.data.base import Corpus
from weft.data.check.characters import letters_of
from weft.data.corpus import ParallelText
from weft.data.documents import Documents
from weft.data.labelled import LabelledText, label_counts

Lengths = npt.NDArray[np.int64]

_STEPS = (1, 2, 5)
_FEWEST_LETTERS = 0.001  # of a side; scripts with fewer are left out
_MOST_LABELS = 50  # that are listed


def summarize(text: Corpus) -> dict[str, Any]:
    """Count the rows of a text, the lengths and scripts of each column, and the labels; name its
    files and languages.
    """
    summary: dict[str, Any] = {
        "files": list(text.files),
        "rows": len(text),
        "dropped": dict(text.dropped),
    }
    if isinstance(text, ParallelText):
        summary["languages"] = {"source": text.src_lang, "target": text.tgt_lang}
        summary["columns"] = {
            "source": _column(text.src),
            "target": _column(text.tgt),
        }
        return summary
    assert isinstance(text, Documents | LabelledText)
    if isinstance(text, LabelledText):
        summary["labels"] = _labels(text)
    summary["columns"] = {"text": _column(text.texts)}
    return summary


def histogram(lengths: Lengths) -> list[dict[str, int]]:
    """Count how many lengths fall from each of 0, 1, 2, 5, 10, 20, 50 … up to the next."""
    edges = [0]
    for power in range(10):
        edges += [step * 10**power for step in _STEPS]
    longest = np.iinfo(np.int64).max
    counts, _ = np.histogram(lengths, [*edges, longest])
    filled = np.flatnonzero(counts)
    if not len(filled):
        return []
    rows = []
    for i in range(filled[0], filled[-1] + 1):
        next_edge = edges[i + 1]
        row = {"from": edges[i], "to": next_edge - 1, "count": int(counts[i])}
        rows.append(row)
    return rows


def _column(texts: Sequence[str]) -> dict[str, Any]:
    scripts = letters_of(texts)
    fewest = _FEWEST_LETTERS * scripts.total()
    return {
        "characters": _lengths(map(len, texts)),
        "words": _lengths(len(text.split()) for text in texts),
        "scripts": {name: n for name, n in scripts.most_common() if n >= fewest},
    }


def _lengths(numbers: Iterable[int]) -> dict[str, Any]:
    lengths = np.array(list(numbers), np.int64)
    return {
        "total": int(lengths.sum()),
        "shortest": int(lengths.min()),
        "median": float(np.median(lengths)),
        "longest": int(lengths.max()),
        "histogram": histogram(lengths),
    }


def _labels(text: LabelledText) -> dict[str, int]:
    counts = label_counts(text)
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(most_first[:_MOST_LABELS])
