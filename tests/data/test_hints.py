"""Hints stand in a row as they can be read back; what they support is counted in plain tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.hints import Hints, TermHint
from weft.data.tokenizer import BOS_ID, EOS_ID, UNK_ID

PLAIN = [10, 11, 12, 13, 14]
TWO = Hints((TermHint(1, 3, (20, 21, 22)), TermHint(4, 5, (23,))), (30, 31))
WRITTEN = [
    *(10, UNK_ID, 20, 21, 22, EOS_ID, 13, UNK_ID, 23, EOS_ID),
    *(BOS_ID, 30, 31),
]


def _read(ids: list[int]) -> tuple[list[int], list[tuple[int, ...]], tuple[int, ...]]:
    """Read a row back as the brackets say: what is plain, a 0 for each term; these; the match."""
    plain: list[int] = []
    targets: list[tuple[int, ...]] = []
    rest = iter(ids)
    for i in rest:
        if i == BOS_ID:
            return plain, targets, tuple(rest)
        if i == UNK_ID:
            targets.append(tuple(iter(rest.__next__, EOS_ID)))
        plain.append(0 if i == UNK_ID else i)
    return plain, targets, ()


def _expected(plain: list[int], hints: Hints) -> list[int]:
    """The plain row with a 0 in the place of each term."""
    left: list[int] = []
    place = 0
    for term in hints.terms:
        left += [*plain[place : term.begin], 0]
        place = term.end
    return left + plain[place:]


@st.composite
def _rows(draw: st.DrawFn) -> tuple[list[int], Hints]:
    ids = st.lists(st.integers(4, 99), min_size=1, max_size=5)
    plain: list[int] = []
    terms = []
    for part in draw(st.lists(st.tuples(ids, ids | st.none()), max_size=4)):
        source, target = part
        if target:
            terms.append(TermHint(len(plain), len(plain) + len(source), tuple(target)))
        plain += source
    match = draw(st.lists(st.integers(4, 99), max_size=5))
    return plain, Hints(tuple(terms), tuple(match))


def test_hints_stand_in_the_row_between_brackets() -> None:
    assert TWO.write(PLAIN) == WRITTEN
    assert len(WRITTEN) == len(PLAIN) + TWO.num_tokens
    assert Hints().write(PLAIN) == PLAIN
    assert not Hints()
    assert Hints(match=(4,))


@given(_rows())
def test_what_is_written_is_read_back(row: tuple[list[int], Hints]) -> None:
    plain, hints = row
    written = hints.write(plain)
    targets = [term.target for term in hints.terms]
    assert _read(written) == (_expected(plain, hints), targets, hints.match)
    assert len(written) == len(plain) + hints.num_tokens


@given(_rows())
def test_support_is_counted_in_plain_tokens(row: tuple[list[int], Hints]) -> None:
    plain, hints = row
    written = [*hints.write(plain), EOS_ID]
    support = np.eye(len(written), dtype=np.float32)
    folded = hints.fold(support)
    assert folded.shape == (len(written), len(plain) + 1)
    assert (folded >= 0).all()
    of_match = len(hints.match) + 1 if hints.match else 0
    sums = folded.sum(1)
    end = len(written) - 1 - of_match
    assert sums[:end] == pytest.approx(1)
    assert sums[end:-1] == pytest.approx(0)
    assert folded[-1].tolist() == [*[0] * len(plain), 1]


def test_a_target_supports_its_source_from_left_to_right() -> None:
    written = [*WRITTEN, EOS_ID]
    folded = TWO.fold(np.eye(len(written), dtype=np.float32))
    # unk, 20, 21, 22, eos
    even, left, right = (0.5, 0.5), (1, 0), (0, 1)
    assert folded[1:6, 1:3] == pytest.approx(np.array([even, left, even, right, even]))
    assert folded[0].tolist() == [1, 0, 0, 0, 0, 0]
    assert folded[6].tolist() == [0, 0, 0, 1, 0, 0]
    assert folded[7:10, 4].tolist() == [1] * 3


@pytest.mark.parametrize(
    ("plain", "hinted"),
    [
        ((0, 1), (0, 1)),
        ((1, 3), (1, 6)),
        ((0, 2), (0, 6)),
        ((2, 4), (1, 7)),
        ((3, 4), (6, 7)),
        ((4, 5), (7, 10)),
        ((0, 5), (0, 10)),
    ],
)
def test_a_span_has_the_hints_of_its_tokens(
    plain: tuple[int, int], hinted: tuple[int, int]
) -> None:
    assert TWO.span(*plain) == hinted


def test_hints_beyond_the_room_are_left_out() -> None:
    assert TWO.within(TWO.num_tokens) is TWO
    assert TWO.num_tokens == 8
    assert TWO.within(7) == Hints(TWO.terms)
    assert TWO.within(5) == Hints(TWO.terms)
    assert TWO.within(4) == Hints(TWO.terms[:1])
    assert TWO.within(2) == Hints()
    # a term may be shorter than what it stands for
    short = Hints((TermHint(0, 6, (7,)),), (8, 9))
    assert short.num_tokens == 0
    assert short.within(0) is short
    assert short.within(-1) == Hints(short.terms)
    assert Hints(match=(1, 2, 3)).within(3) == Hints()
    assert Hints(match=(1, 2, 3)).within(4) == Hints(match=(1, 2, 3))
