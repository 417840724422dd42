"""A text in numbers: how many rows, how long they are, in which scripts, with which labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.data.check.characters import letters_of
from weft.data.corpus import ParallelText
from weft.data.documents import Documents
from weft.data.labelled import LabelledText, label_counts

Lengths = npt.NDArray[np.int64]

_STEPS = (1, 2, 5)
_FEWEST_LETTERS = 0.001  # of a side; scripts with fewer are left out
_MOST_LABELS = 50  # that are listed


def summarize(text: ParallelText | Documents | LabelledText) -> dict[str, Any]:
    """Files, rows and languages, and of each column its lengths and scripts."""
    common = {
        "files": list(text.files),
        "rows": len(text),
        "dropped": dict(text.dropped),
    }
    if isinstance(text, ParallelText):
        columns = {"source": text.src, "target": text.tgt}
        languages = {"source": text.src_lang, "target": text.tgt_lang}
        return {
            **common,
            "languages": languages,
            "columns": {name: _column(t) for name, t in columns.items()},
        }
    labels = {"labels": _labels(text)} if isinstance(text, LabelledText) else {}
    return {**common, **labels, "columns": {"text": _column(text.texts)}}


def histogram(lengths: Lengths) -> list[dict[str, int]]:
    """How many lengths fall from each of 0, 1, 2, 5, 10, 20, 50 … up to the next."""
    edges = [0, *(step * 10**power for power in range(10) for step in _STEPS)]
    counts, _ = np.histogram(lengths, [*edges, np.iinfo(np.int64).max])
    filled = np.flatnonzero(counts)
    if not len(filled):
        return []
    chosen = range(int(filled[0]), int(filled[-1]) + 1)
    return [
        {"from": edges[i], "to": edges[i + 1] - 1, "count": int(counts[i])}
        for i in chosen
    ]


def _column(texts: Sequence[str]) -> dict[str, Any]:
    characters = np.fromiter(map(len, texts), np.int64, len(texts))
    words = np.fromiter((len(text.split()) for text in texts), np.int64, len(texts))
    scripts = letters_of(texts)
    kept = {
        script: n
        for script, n in scripts.most_common()
        if n >= _FEWEST_LETTERS * scripts.total()
    }
    return {
        "characters": _lengths(characters),
        "words": _lengths(words),
        "scripts": kept,
    }


def _lengths(lengths: Lengths) -> dict[str, Any]:
    return {
        "total": int(lengths.sum()),
        "shortest": int(lengths.min()),
        "median": float(np.median(lengths)),
        "longest": int(lengths.max()),
        "histogram": histogram(lengths),
    }


def _labels(text: LabelledText) -> dict[str, int]:
    counts = label_counts(text)
    return dict(
        sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_LABELS]
    )
