"""Of a large text few bytes a row are held in memory; twice as many rows take no more than that."""

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft.data.batches import Batches
from weft.data.equals import later_of_equals
from weft.data.held_out import hold_out_rows

Work = Callable[[], object]
FEW, MANY = 100_000, 300_000


def hashes(count: int, seed: int) -> Any:
    """Numbers of which one in ten stands somewhere else, too."""
    draw = np.random.default_rng(seed)
    found = draw.integers(0, 2**64, count, dtype=np.uint64)
    found[::20] = found[10::20][: len(found[::20])]
    return found


def holding_out(count: int) -> Work:
    sides = [hashes(count, 1), hashes(count, 2)]
    order = hashes(count, 3)
    measures: Any = SimpleNamespace(num_sides=2, side=sides.__getitem__, order=order)
    return lambda: hold_out_rows(measures, 1000, 1000)


def comparing(count: int) -> Work:
    rows = hashes(count, 1)
    return lambda: later_of_equals(rows)


class Store:
    """The lengths of a store's rows."""

    def __init__(self, count: int) -> None:
        draw = np.random.default_rng(4)
        self.src_lens = draw.integers(5, 40, count, dtype=np.int32)
        self.tgt_lens = draw.integers(5, 40, count, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.src_lens)


def planning(count: int) -> Work:
    store: Any = Store(count)
    return lambda: Batches(store, 4096, None, 1).num_batches(0)


@pytest.mark.parametrize(
    ("work_of", "most"), [(holding_out, 40), (comparing, 24), (planning, 44)]
)
def test_so_many_bytes_are_held_for_a_row(
    work_of: Callable[[int], Work], most: int
) -> None:
    peaks = []
    for count in (FEW, MANY):
        work = work_of(count)
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert 4 < (peaks[1] - peaks[0]) / (MANY - FEW) < most
