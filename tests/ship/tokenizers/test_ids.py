"""Where ids stand in the one list of another program, in numbers worked out by hand."""

import numpy as np
import pytest

from weft.data.tokenizer import Tokenizer
from weft.ship.tokenizers.ids import IdMap, joined, same


class Sized:
    """A tokenizer as far as its size goes."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size


def joined_of(num_src: int, num_tgt: int, own_eos: bool) -> IdMap:
    src: Tokenizer = Sized(num_src)  # type: ignore[assignment]
    tgt: Tokenizer = Sized(num_tgt)  # type: ignore[assignment]
    return joined(src, tgt, own_eos)


def test_one_tokenizer_keeps_its_ids(one: Tokenizer) -> None:
    ids = same(one)
    assert ids.size == one.vocab_size
    assert not ids.is_joined
    assert not ids.has_own_eos
    assert ids.to("src", [0, 3, 7]).tolist() == [0, 3, 7]
    assert ids.back("tgt", [0, 3, 7]).tolist() == [0, 3, 7]


def test_a_table_for_each_side_shares_the_special_ids() -> None:
    ids = joined_of(6, 7, own_eos=False)
    assert ids.src.tolist() == [0, 1, 2, 3, 7, 8]
    assert ids.tgt.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert ids.size == 9
    assert (ids.pad, ids.bos, ids.eos, ids.src_eos) == (0, 2, 3, 3)
    assert ids.is_joined
    assert not ids.has_own_eos


def test_one_table_for_both_gives_every_row_a_place_of_its_own() -> None:
    ids = joined_of(6, 7, own_eos=True)
    assert ids.src.tolist() == [7, 8, 9, 10, 11, 12]
    assert ids.size == 13
    assert (ids.pad, ids.bos, ids.eos, ids.src_eos) == (0, 2, 3, 10)
    assert ids.has_own_eos
    rows = np.arange(6), np.arange(10, 17)
    table = np.full(ids.size, -1)
    for side, own in zip((ids.src, ids.tgt), rows, strict=True):
        table[side] = own
    assert table[ids.src].tolist() == rows[0].tolist()
    assert table[ids.tgt].tolist() == rows[1].tolist()


@pytest.mark.parametrize("own_eos", [False, True])
def test_ids_go_there_and_back(own_eos: bool) -> None:
    ids = joined_of(6, 7, own_eos)
    rows = np.array([[5, 3, 0], [4, 5, 3]])
    there = ids.to("src", rows)
    assert there.shape == rows.shape
    assert np.array_equal(ids.back("src", there), rows)
    assert np.array_equal(ids.back("tgt", ids.to("tgt", rows)), rows)
    assert ids.back("tgt", there[0, :1]).tolist() == [-1]  # a word of the source
    assert ids.back("src", [6]).tolist() == [-1]  # and of the target
