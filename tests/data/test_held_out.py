"""Rows of a large text are held out by their hashes as those of one in memory by their texts."""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft.data.held_out import hold_out_rows
from weft.data.measures import hash_texts
from weft.data.split import hold_out, keyed_hash


def measures_of(src: list[str], tgt: list[str], seed: int) -> Any:
    sides = [hash_texts(src), hash_texts(tgt)]
    keys = [keyed_hash(seed, *pair)[:8] for pair in zip(src, tgt, strict=True)]
    order = np.frombuffer(b"".join(keys), ">u8").astype(np.uint64)
    return SimpleNamespace(num_sides=2, side=sides.__getitem__, order=order)


@pytest.mark.parametrize("kinds", [5, 150, 300, 900])
@pytest.mark.parametrize("has_made", [False, True])
def test_the_same_rows_are_held_out(kinds: int, has_made: bool) -> None:
    draw = random.Random(kinds)
    src = [f"s{draw.randrange(kinds)}" for _ in range(400)]
    tgt = [f"t{draw.randrange(2 * kinds)}" for _ in range(400)]
    made = bytes(draw.random() < 0.4 for _ in range(400)) if has_made else b""
    for seed in range(3):
        expected = hold_out(src, tgt, 40, 30, seed, made)
        found = hold_out_rows(measures_of(src, tgt, seed), 40, 30, made)
        assert [part.tolist() for part in found] == list(expected)
