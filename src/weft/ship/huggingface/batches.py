"""Rows of several lengths in one batch of transformers.

Shapes: N rows, L ids.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from weft.console import stages
from weft.ship.target import load

_AT_ONCE = 64  # rows


def batches(lens: Sequence[int], may_pad: bool) -> Iterator[list[int]]:
    """Yield the numbers of rows, so many at a time, those of like length together: of one length
    where none may be padded.
    """
    places = range(len(lens))
    order = sorted(places, key=lens.__getitem__)
    groups = [order]
    if not may_pad:
        alike = groupby(order, key=lens.__getitem__)
        groups = [list(group) for _, group in alike]
    found = []
    for group in groups:
        for first in range(0, len(group), _AT_ONCE):
            end = first + _AT_ONCE
            found.append(group[first:end])
    yield from stages.each(found, "batches")


def padded(rows: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """Return the inputs of rows (N, L) that are filled up behind their ends, and are looked at up
    to there.
    """
    torch = load("torch")
    longest = max(map(len, rows))
    shape = len(rows), longest
    ids = torch.full(shape, pad)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        end = len(row)
        ids[i, :end] = torch.tensor(row)
        mask[i, :end] = 1
    return {
        "input_ids": ids,
        "attention_mask": mask,
    }


def stop_at(lengths: Any) -> Callable[..., Any]:
    """Return what ends each row at a length of its own (N), in all its beams: as the limit of a
    batch of this row alone does.
    """

    def is_done(ids: Any, scores: Any, **_: Any) -> Any:
        num_beams = len(ids) // len(lengths)
        longest = lengths.repeat_interleave(num_beams)
        return longest <= ids.shape[1]

    return is_done
