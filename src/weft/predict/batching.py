"""Rows of ids in padded batches of similar length; where memory runs out, in halves of them."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from weft.errors import OutOfMemoryError

T = TypeVar("T")
R = TypeVar("R")


def in_batches(
    rows: Iterable[T], length: Callable[[T], int], max_tokens: int
) -> Iterator[list[T]]:
    """Yield the rows in batches of similar length, the longest first.

    A batch has at most `max_tokens` padded tokens; a row of more is alone. A row of no token counts
    as one.
    """
    batch: list[T] = []
    for row in sorted(rows, key=length, reverse=True):
        width = max(1, length(batch[0] if batch else row))
        if batch and (len(batch) + 1) * width > max_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def in_halves(
    rows: list[T],
    work: Callable[[list[T]], R],
    too_large: Callable[[T], OutOfMemoryError],
) -> list[R]:
    """Return what `work` gives for all rows; where memory does not suffice, for halves of them.

    Raises `too_large` of a single row that does not fit.
    """
    try:
        return [work(rows)]
    except MemoryError:
        if len(rows) == 1:
            raise too_large(rows[0]) from None
    # outside of the handler, which would keep the failed attempt's tensors alive
    half = len(rows) // 2
    first = in_halves(rows[:half], work, too_large)
    return first + in_halves(rows[half:], work, too_large)


def in_threads(work: Callable[[T], None], parts: Iterable[T], num_threads: int) -> None:
    """Run the work on each part, in so many threads; raise its first error."""
    if num_threads == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(num_threads) as pool:
        for _ in pool.map(work, parts):
            pass
