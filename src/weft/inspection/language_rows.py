"""The rows on which language models are compared: documents or lines, and the loss of each."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from weft.data.documents import Documents
from weft.tasks.language_modelling import LanguageModelling

_FEWEST_DOCUMENTS = 20  # fewer are taken apart into lines


@dataclass(frozen=True)
class Row:
    """A document, or a line of it with the blank lines that belong to it.

    `num_ends` counts the line ends of its document before it.
    """

    where: str
    text: str
    num_bytes: int
    document: int
    num_ends: int = 0


def rows_of(text: Documents) -> list[Row]:
    """Return the documents of a text; of fewer than 20, their lines."""
    rows: list[Row] = []
    for number, document in enumerate(text.texts):
        if len(text) < _FEWEST_DOCUMENTS:
            rows += _lines(document, number, len(rows))
        else:
            size = _num_bytes(document)
            rows.append(Row(text.where(number), document, size, number))
    return rows


def losses_of_rows(
    task: LanguageModelling, text: Documents, rows: Sequence[Row]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the loss of each row in nats, and how many tokens it has: their sums are those of
    `weft evaluate`.

    A token belongs to the row in which it begins, an end symbol to the last row of its document.
    """
    tokenizer = task.tokenizers[0]

    @cache
    def count_ends(token: int) -> int:
        return tokenizer.spell([token], begins=False).count(b"\n")

    nats = np.zeros(len(rows))
    num_tokens = np.zeros(len(rows))
    documents = [row.document for row in rows]
    for number, scored in enumerate(task.losses_by_document(text)):
        first = bisect_left(documents, number)
        last = bisect_right(documents, number)
        begins = [row.num_ends for row in rows[first:last]]
        counts = [count_ends(token) for token in scored.ids.tolist()]
        ends_before = np.cumsum([0, *counts])[: len(scored.losses)]
        places = first - 1 + np.searchsorted(begins, ends_before, side="right")
        np.add.at(nats, places, scored.losses)
        np.add.at(num_tokens, places, 1)
    return nats, num_tokens


def _lines(document: str, number: int, num_before: int) -> Iterator[Row]:
    """Yield the lines that have more than white space.

    Blank lines belong to the line before them, those at the beginning to the first.
    """
    lines = document.split("\n")
    firsts = [place for place, line in enumerate(lines) if line.strip()]
    begins = [0, *firsts[1:]]
    ends = [*firsts[1:], len(lines)]
    for place, first in enumerate(firsts):
        begin, end = begins[place], ends[place]
        size = _num_bytes("\n".join(lines[begin:end]))
        if end < len(lines):
            size += 1  # its line end
        where = f"line {num_before + place + 1:,}"
        yield Row(where, lines[first], size, number, begin)


def _num_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
